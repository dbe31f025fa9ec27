#include "reconciler/lookup/mcp.h"

#include <utility>
#include <vector>

#include "gateway/mcp/names.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/refusal.h"
#include "lib/json/canonical.h"
#include "lib/keys/text.h"
#include "reconciler/lookup/make.h"
#include "reconciler/verdict/read.h"

namespace tally::reconciler {
namespace {

using How = mcp::Reply::How;
using keys::Cat;

bool Agree(const Answer& one, const Answer& other) {
  return one.finding == other.finding && one.amount == other.amount && one.reference == other.reference;
}

// The texts of a result's content that stand for themselves, unescaped.
std::optional<std::vector<std::string>> TextsOf(const mcp::RawObject& result) {
  std::vector<std::string> texts;
  const std::string_view* content = result.Find("content");
  if (content == nullptr) return texts;
  const auto blocks = mcp::ElementsOf(*content);
  if (!blocks) return std::nullopt;
  for (const std::string_view raw : *blocks) {
    const auto block = mcp::RawObject::Parse(raw);
    if (!block.ok()) return std::nullopt;
    const std::string_view* type = block->Find("type");
    const std::string_view* text = block->Find("text");
    if (type == nullptr || text == nullptr || mcp::StringOf(*type) != "text") continue;
    auto unescaped = mcp::StringOf(*text);
    if (!unescaped) return std::nullopt;
    texts.push_back(*std::move(unescaped));
  }
  return texts;
}

std::string_view OutcomeOf(const ToolCallEnd& end) {
  if (end.answer.how == How::kNothing) return "no_answer";
  return end.answer.how == How::kResult ? "answered" : "failed";
}

}  // namespace

Answer JudgeToolResult(std::string_view raw, const JudgeDocument& judge) {
  const auto result = mcp::RawObject::Parse(raw);
  if (!result.ok()) return Unclear("its result is no object", Cat(raw));
  const std::string_view* is_error = result->Find("isError");
  if (is_error != nullptr && mcp::BoolOf(*is_error) != false)
    return Unclear("the tool answered with an error", Cat(raw));
  if (mcp::ResultTypeOf(*result) != mcp::ResultType::kComplete || mcp::NestedErrorOf(*result)) {
    return Unclear("its result is not a whole one", Cat(raw));
  }
  const auto texts = TextsOf(*result);
  if (!texts) return Unclear("its content is not in the form of MCP", Cat(raw));
  const std::string_view* structured = result->Find("structuredContent");
  if (structured == nullptr && texts->empty()) return Unclear("its result has neither structure nor text", Cat(raw));
  if (structured == nullptr && !mcp::CheckJson(texts->front()).ok()) {
    return Unclear("its result has no structuredContent, and its text is not JSON", Cat(raw));
  }
  std::optional<Answer> found;
  const auto take = [&](std::string_view document) {
    Answer answer = judge(document);
    if (found && !Agree(*found, answer)) return false;
    if (!found) found = std::move(answer);
    return true;
  };
  bool agree = structured == nullptr || take(*structured);
  for (const std::string& text : *texts) {
    // Prose beside the structure says the same for people.
    if (!mcp::CheckJson(text).ok()) continue;
    agree = agree && take(text);
  }
  if (!agree) return Unclear("its result contradicts itself", Cat(raw));
  found->body = raw;
  return *std::move(found);
}

absl::StatusOr<std::unique_ptr<LookUp>> McpLookUp::Make(const ToolConfig& tool, gateway::AuditLog* audit) {
  std::string name = tool.mcp.upstream;
  if (name.empty()) {
    const auto parts = mcp::SplitName(tool.tool);
    if (!parts) return absl::InvalidArgumentError("it needs `upstream`, for the tool's name is not UPSTREAM__TOOL");
    name = parts->upstream;
  }
  const auto upstream = FindUpstream(tool.mcp.gateway_config, name);
  if (!upstream.ok()) return upstream.status();
  ToolCaller caller(name, upstream->config(), kAnswerBytesMax, audit);
  return std::unique_ptr<LookUp>(new McpLookUp(tool, std::move(caller)));
}

Answer McpLookUp::Ask(const Case& asked) {
  const auto values = ValuesOf(asked);
  if (!values.ok()) return Unclear(Cat("the call's arguments cannot be read: ", values.status().message()));
  const auto arguments = tool_.mcp.arguments.Fill(*values);
  if (!arguments.ok()) return Unclear(Cat(arguments.status().message()));
  ToolCallOrder order;
  order.tool = tool_.mcp.tool;
  order.arguments = json::Canonical(*arguments);
  order.timeout = tool_.timeout;
  order.about.permit_id = asked.parked.call().permit_id();
  order.about.call_id = asked.parked.call().call_id();
  const ToolCallEnd end = caller_.Call(order, OutcomeOf);
  if (!end.unsent.empty()) return Unclear(Cat("the server was not asked: ", end.unsent));
  switch (end.answer.how) {
    case How::kResult:
      return JudgeToolResult(end.answer.result, [&](std::string_view document) {
        return AnswerOf(ReadJsonAnswer(tool_.answer, *values, asked.parked.call().unit(), document), "");
      });
    case How::kRpcError:
      return Unclear(Cat("the server answered with JSON-RPC error ", end.answer.error.code), end.answer.error.message);
    case How::kHttpStatus:
    case How::kNothing:
    case How::kGarbage:
      break;
  }
  return Unclear(Cat("no answer: ", end.answer.why), end.answer.partial);
}

}  // namespace tally::reconciler
