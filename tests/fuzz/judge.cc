#include "gateway/mcp/judge.h"

#include "gateway/mcp/raw.h"
#include "gateway/mcp/refusal.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/targets.h"

namespace tally::fuzz {
namespace {

using mcp::Meaning;
using How = mcp::Reply::How;

const mcp::ErrorRules& Rules() {
  static const mcp::ErrorRules rules = [] {
    const std::vector<mcp::ErrorRule> own = {{"insufficient", mcp::ErrorRule::Means::kError},
                                             {"^-32050 ", mcp::ErrorRule::Means::kNoEffect}};
    const std::vector<std::string> words = {"perhaps"};
    return mcp::ErrorRules::Compile(own, words).value_or(mcp::ErrorRules());
  }();
  return rules;
}

bool SaysError(const mcp::RawObject& result) {
  const std::string_view* said = result.Find("isError");
  return said != nullptr && *said != "false";
}

}  // namespace

void FuzzJudge(std::string_view bytes) {
  if (bytes.size() < 2) return;
  mcp::Reply reply;
  reply.how = static_cast<How>(static_cast<unsigned char>(bytes[0]) % 5);
  reply.earlier_send_unanswered = (static_cast<unsigned char>(bytes[0]) & 0x40) != 0;
  reply.session_ended = (static_cast<unsigned char>(bytes[0]) & 0x20) != 0;
  reply.http_status = 100 + static_cast<unsigned char>(bytes[1]) * 2;
  bytes.remove_prefix(2);
  const std::string text(bytes);
  reply.result = text;
  if (reply.how == How::kRpcError || reply.how == How::kHttpStatus) {
    reply.error.code = text.empty() ? 0 : -32000 - static_cast<unsigned char>(text[0]);
    reply.error.message = text;
    if (mcp::RawObject::Parse(text).ok()) reply.error.data = text;
  }
  const Meaning meaning = Judge(reply, Rules());
  Promise(meaning == Judge(reply, Rules()), "the same answer means the same");
  if (reply.how == How::kNothing || reply.how == How::kGarbage) {
    Promise(meaning == Meaning::kUncertain, "no answer is uncertain");
  }
  if (reply.earlier_send_unanswered) {
    Promise(meaning == Meaning::kUncertain || meaning == Meaning::kSucceeded, "only success ends a keyed attempt");
  }
  if (reply.how != How::kResult) {
    const auto data = mcp::RawObject::Parse(text);
    const bool nested = data.ok() && mcp::NestedErrorOf(*data).has_value();
    Promise(meaning != Meaning::kSucceeded || nested,
            "an error is no success, unless a gateway says that it was done before");
    return;
  }
  const auto result = mcp::RawObject::Parse(text);
  if (!result.ok()) {
    Promise(meaning == Meaning::kUncertain, "what is no object is no answer");
    return;
  }
  const bool by_gateway = mcp::NestedErrorOf(*result).has_value();
  if (SaysError(*result) && !by_gateway) {
    Promise(meaning != Meaning::kSucceeded, "an error is no success");
  }
  if (!SaysError(*result) && !by_gateway) {
    Promise(meaning == Meaning::kSucceeded || meaning == Meaning::kUncertain, "no error, no error");
  }
}

}  // namespace tally::fuzz
