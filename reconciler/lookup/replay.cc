#include "reconciler/lookup/replay.h"

#include <absl/strings/escaping.h>

#include <algorithm>
#include <utility>

#include "gateway/call/answers.h"
#include "gateway/mcp/judge.h"
#include "gateway/mcp/names.h"
#include "lib/keys/hash.h"
#include "lib/keys/text.h"
#include "lib/receipt/payload.h"
#include "reconciler/lookup/make.h"
#include "reconciler/verdict/read.h"

namespace tally::reconciler {
namespace {

using keys::Cat;
using mcp::Meaning;
using std::chrono::milliseconds;

// Between BeginReplay and the first byte, at most: what was checked there must still be so.
constexpr milliseconds kSoon{10'000};
// When tallyd wrote CALL_REPLAY_SENT, by its clock.
std::optional<int64_t> TimeOf(const v1::BeginReplayResponse& begun) {
  for (const v1::Receipt& receipt : begun.receipts()) {
    const auto payload = receipt::Parse(receipt.payload());
    if (payload.ok() && payload->kind() == v1::CALL_REPLAY_SENT) return payload->time_us();
  }
  return std::nullopt;
}

// The time by tallyd's clock is never later than this; nullopt if that cannot be told.
std::optional<int64_t> LatestNow(int64_t then_us, const client::SendDeadline& since) {
  const auto elapsed = since.ElapsedNs();
  if (!elapsed) return std::nullopt;
  return then_us + *elapsed / 1'000 + 1;
}

Answer Happened(const gateway::UpstreamAnswer& said, const std::string& key) {
  Answer answer;
  answer.finding = v1::FINDING_HAPPENED;
  answer.detail = "asked again under the call's own key, the provider answered with success";
  answer.reference = key;
  std::string result = gateway::ResultFor(said);
  // Evidence is kept whole up to this; of what is larger, what proves it.
  if (result.size() > kAnswerBytesMax) {
    answer.detail += "; the answer is too large to be kept";
    answer.body = Cat(R"({"answer_bytes":)", result.size(), R"(,"answer_sha256":")",
                      absl::BytesToHexString(std::string(keys::Sha256({result}).view())), R"("})");
    return answer;
  }
  answer.body = result;
  answer.result = std::move(result);
  return answer;
}

}  // namespace

std::string ReplayWindow::WhyNot(int64_t now_us) const {
  const int64_t last_us = first_granted_us + (window - timeout - margin).count() * 1'000;
  if (now_us > last_us) return "the time in which the provider certainly knows the call's key is over";
  if (claim_until_us > 0 && now_us + timeout.count() * 1'000 > claim_until_us) {
    return "the claim ends before an answer can be here";
  }
  return "";
}

ReplayWindow WindowOf(const v1::ParkedCall& parked, const gateway::ToolConfig& tool, milliseconds margin,
                      milliseconds timeout) {
  ReplayWindow window{parked.granted_at_us(), parked.claim_until_us(), tool.replay_window, margin, timeout};
  for (const v1::AttemptInfo& attempt : parked.call().attempts()) {
    // Of a released attempt not one byte was sent.
    if (attempt.state() == v1::RELEASED || attempt.granted_at_us() == 0) continue;
    window.first_granted_us = std::min(window.first_granted_us, attempt.granted_at_us());
  }
  return window;
}

absl::StatusOr<std::unique_ptr<LookUp>> ReplayLookUp::Make(const ToolConfig& look_up, BeginReplay begin,
                                                           gateway::AuditLog* audit) {
  const std::string& name = look_up.tool;
  const std::string& gateway_config = look_up.replay.gateway_config;
  const milliseconds timeout = look_up.timeout;
  const auto parts = mcp::SplitName(name);
  if (!parts) return absl::InvalidArgumentError(Cat(name, " is no tool behind a gateway (upstream__tool)"));
  const std::string tool(parts->tool);
  auto upstream = FindUpstream(gateway_config, std::string(parts->upstream));
  if (!upstream.ok()) return upstream.status();
  gateway::ToolConfig config = upstream->config().ForTool(tool);
  if (!config.keyed) {
    return absl::InvalidArgumentError(
        Cat(name, " is not declared replay = \"keyed\" in ", gateway_config, ": it is sent once"));
  }
  if (config.replay_window <= timeout + upstream->file.tallyd.lease_margin) {
    return absl::InvalidArgumentError(
        Cat(name, "'s replay_window is not above the look-up's timeout and tallyd.lease_margin of ", gateway_config,
            " together: it would never be sent again"));
  }
  ToolCaller caller(upstream->name, upstream->config(), upstream->file.limits.answer_bytes_max, audit);
  return std::unique_ptr<LookUp>(new ReplayLookUp(std::move(caller), tool, std::move(config),
                                                  upstream->file.tallyd.lease_margin, timeout, std::move(begin),
                                                  audit));
}

Meaning ReplayLookUp::MeaningOf(const ToolCallEnd& end) const {
  if (end.modern && gateway::IsIncomplete(end.answer)) return Meaning::kUncertain;
  mcp::Reply reply = end.answer.reply();
  reply.earlier_send_unanswered = true;
  return mcp::Judge(reply, config_.judged_by);
}

Answer ReplayLookUp::Ask(const Case& asked) {
  const v1::ParkedCall& parked = asked.parked;
  const v1::CallInfo& call = parked.call();
  if (call.attempts().empty()) return Unclear("not sent again: the call shows no attempt");
  if (call.arguments().empty()) return Unclear("not sent again: the call's arguments are not there any more");
  if (audit_ != nullptr && !audit_->healthy()) return Unclear("not sent again: the audit log cannot be written");
  const v1::AttemptInfo& attempt = call.attempts(call.attempts_size() - 1);
  const ReplayWindow window = WindowOf(parked, config_, margin_, timeout_);
  if (const std::string why = window.WhyNot(parked.now_us()); !why.empty()) return Unclear("not sent again: " + why);

  gateway::CallParts parts{call.arguments(), "", {}};
  gateway::Put(config_.key, asked.provider_key, parts);
  gateway::Put(config_.reference, asked.reference, parts);
  ToolCallOrder order;
  order.tool = tool_;
  order.arguments = parts.arguments;
  order.meta = parts.meta;
  order.headers = parts.headers;
  order.timeout = timeout_;
  order.about.permit_id = call.permit_id();
  order.about.call_id = call.call_id();
  order.about.attempt_id = attempt.attempt_id();
  order.about.attempt = attempt.number();

  std::optional<client::SendDeadline> begun_after;
  int64_t begun_us = 0;
  order.before_sending = [&]() -> std::string {
    v1::BeginReplayRequest request;
    request.set_call_id(call.call_id());
    request.set_attempt_id(attempt.attempt_id());
    request.set_supersedes(parked.uncertain_receipt_id());
    request.set_claim_id(asked.claim_id);
    begun_after = client::SendDeadline::Start();
    const auto begun = begin_(request);
    if (!begun.ok()) return Cat("tallyd does not let it be sent: ", begun.failure().code);
    const auto time_us = TimeOf(begun.value());
    if (!time_us) return "tallyd does not say when it let it be sent";
    begun_us = *time_us;
    return window.WhyNot(begun_us);
  };
  order.gate = [&] {
    const auto now_us = LatestNow(begun_us, *begun_after);
    return now_us && begun_after->MayStillSend(kSoon.count()) && window.WhyNot(*now_us).empty();
  };
  const ToolCallEnd end = caller_.Call(order, [this](const ToolCallEnd& sent) {
    return sent.answer.how == mcp::Reply::How::kNothing ? "no_answer" : gateway::Word(MeaningOf(sent));
  });
  if (!end.unsent.empty()) return Unclear("not sent again: " + end.unsent);
  if (MeaningOf(end) == Meaning::kSucceeded) return Happened(end.answer, asked.provider_key);
  const gateway::UpstreamAnswer& said = end.answer;
  std::string why = said.why;
  if (why.empty())
    why = said.how == mcp::Reply::How::kResult ? "its answer is no success" : "it answered with an error";
  return Unclear(Cat("sent again under the call's own key: ", why, "; only success would tell"),
                 !said.result.empty()    ? said.result
                 : !said.partial.empty() ? said.partial
                                         : said.error.message);
}

}  // namespace tally::reconciler
