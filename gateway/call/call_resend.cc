#include <algorithm>
#include <utility>

#include "gateway/call/call.h"

namespace tally::gateway {
namespace {

using mcp::Meaning;
using std::chrono::milliseconds;

}  // namespace

bool Call::MayAskAgain(const UpstreamAnswer& answer) const {
  return MeaningOf(answer) == Meaning::kUncertain && !(modern_ && IsIncomplete(answer)) && !IsParkedFurtherUp(answer) &&
         !NeedsCapability(answer);
}

asio::awaitable<void> Call::SendAgain(Sent first, OutgoingRequest request) {
  Sends sends(caller_.loop_);
  agent_until_ = first.began + order_.config.timeout;
  sends.Add(first.upstream, first.exchange, first.began, first.number).heard = first.exchange->done();
  TakePartial(first.exchange->answer());
  AuditSend(first.exchange->done() ? Word(Meaning::kUncertain) : "no_answer", first);
  Heard heard = Heard::kUncertain;
  for (int number = 2; number <= kSendsMax && heard <= Heard::kUncertain; ++number) {
    heard = co_await Hear(sends, Sends::Clock::now() + PauseBefore(number));
    if (heard > Heard::kUncertain) break;
    const bool may = co_await MaySendAgain();
    if (!may) break;
    const absl::StatusOr<SharedUpstream> upstream = co_await order_.upstream();
    if (!upstream.ok()) continue;
    modern_ = mcp::version::IsModern((*upstream)->version());
    OutgoingRequest same = request;
    same.gate = [started = *started_, limits = Limits(), lease_ms = lease_ms_] {
      const auto elapsed = ElapsedOf(started);
      return elapsed && limits.Allow(*elapsed) && *elapsed + limits.timeout <= milliseconds(lease_ms);
    };
    const auto began = Sends::Clock::now();
    const SharedExchange exchange = (*upstream)->Send(std::move(same));
    if (order_.sent) order_.sent(exchange);
    const Sent& sent = sends.Add(*upstream, exchange, began, ++send_);
    heard = Heard::kNothing;
    while (!sent.heard && heard <= Heard::kUncertain && Sends::Clock::now() < began + order_.config.timeout) {
      heard = co_await Hear(sends, began + order_.config.timeout);
    }
    // Not one byte, and none to come: it waits in a queue still.
    if (!exchange->done() && exchange->Abandon()) exchange->FinishWithNothing("it was not written in time");
    if (!exchange->done()) AuditSend("no_answer", sent);
  }
  if (heard == Heard::kSuccess) co_return;
  v1::CommitRequest commit = CommitOf(v1::OUTCOME_UNCERTAIN);
  commit.set_partial_answer(partial_);
  const auto committed = co_await caller_.settler_.Settle(std::move(commit))->Wait(kReceiptPatience);
  if (committed) AddReceipts(committed->receipts());
  RefuseUncertain(committed, "NO_ANSWER", "");
  late_ = true;
  const auto until = Sends::Clock::now() + order_.config.late_answer_window;
  while (heard != Heard::kSuccess && sends.outstanding() && Sends::Clock::now() < until) {
    heard = co_await Hear(sends, until);
  }
}

asio::awaitable<Call::Heard> Call::Hear(Sends& sends, Sends::Clock::time_point until) {
  while (true) {
    const bool waits = order_.answer != nullptr;
    Sent* sent = co_await sends.Next(waits ? std::min(until, agent_until_) : until);
    if (sent != nullptr) co_return co_await Weigh(*sent);
    if (waits && Sends::Clock::now() >= agent_until_) RefuseUncertain(std::nullopt, "NO_ANSWER", "");
    if (Sends::Clock::now() >= until) co_return Heard::kNothing;
  }
}

asio::awaitable<Call::Heard> Call::Weigh(const Sent& sent) {
  const UpstreamAnswer& answer = sent.exchange->answer();
  if (!sent.exchange->written()) {
    AuditSend("not_sent", sent);
    co_return Heard::kUncertain;
  }
  mcp::Reply reply = answer.reply();
  reply.earlier_send_unanswered = true;
  const bool incomplete = modern_ && IsIncomplete(answer);
  const Meaning meaning = incomplete ? Meaning::kUncertain : mcp::Judge(reply, order_.config.judged_by);
  AuditSend((late_ ? "late_" : "") + std::string(Word(meaning)), sent);
  if (meaning == Meaning::kSucceeded) {
    co_await Conclude(answer, meaning);
    co_return Heard::kSuccess;
  }
  if (answer.session_ended && order_.session_ended) order_.session_ended();
  TakePartial(answer);
  // The provider's answer to this key, it seems: it would be the same again.
  co_return MeaningOf(answer) == Meaning::kToolError || incomplete ? Heard::kError : Heard::kUncertain;
}

void Call::TakePartial(const UpstreamAnswer& answer) {
  partial_ = (answer.result.empty() ? answer.partial : answer.result).substr(0, kPartialBytesMax);
}

ReplayLimits Call::Limits() const {
  return {order_.config.replay_window, order_.config.timeout, caller_.config_.tallyd.lease_margin};
}

std::optional<milliseconds> Call::ElapsedOf(const client::SendDeadline& started) {
  const auto elapsed = started.ElapsedNs();
  if (!elapsed) return std::nullopt;
  return milliseconds(*elapsed / 1'000'000 + 1);
}

asio::awaitable<bool> Call::MaySendAgain() {
  const auto elapsed = ElapsedOf(*started_);
  const bool trace = caller_.audit_.healthy() || caller_.config_.audit.on_failure == Config::AuditFailure::kOpen;
  if (!caller_.taking_ || !trace || !elapsed || !Limits().Allow(*elapsed)) co_return false;
  const std::string token(order_.permit_token->Expose());
  caller_.authority_.ForgetPermit(token);
  const auto permit = co_await caller_.authority_.GetPermit(token);
  if (!permit.ok() || permit.value()->state() != v1::ACTIVE) co_return false;
  const v1::ExtendRequest extend = ExtendBy((order_.config.timeout + caller_.config_.tallyd.lease_margin).count());
  const auto extended = co_await caller_.authority_.Extend(extend);
  if (!extended.ok() || extended.value().has_refusal() || extended.value().state() != v1::AUTHORIZED) co_return false;
  // Both ends are by tallyd's clock, and the grant came after `started_`: never later than it is.
  lease_ms_ = grant_.lease_ms() + (extended.value().lease_end_us() - grant_.lease_end_us()) / 1000;
  co_return true;
}

}  // namespace tally::gateway
