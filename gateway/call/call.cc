#include "gateway/call/call.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <sodium.h>

#include <utility>

#include "gateway/mcp/raw.h"
#include "server/ops/log.h"

namespace tally::gateway {
namespace {

using mcp::Meaning;
using How = mcp::Reply::How;
namespace codes = mcp::gateway_code;

// The one failure of tallyd's to decide that a person must end; its words say so.
constexpr std::string_view kRecoveryNeeded = "RECOVERY_NEEDED";
// Of one call. A tool that goes on asking is no tool.
constexpr int kRoundsMax = 32;

// The largest answer that is committed with its bytes: with the rest of a commit it fits into the smallest message that
// tallyd can be set to take. A commit that tallyd refuses for its size would park a call that was answered.
constexpr size_t kCommittedBytesMax = (2 << 20) - (256 << 10);

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  randombytes_buf(bytes.data(), bytes.size());
  return bytes;
}

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

}  // namespace

Call::Call(Caller& caller, CallOrder order) : caller_(caller), order_(std::move(order)) {
  ++caller_.open_;
  ++caller_.unanswered_;
}

Call::~Call() {
  // Reached without an answer only if something threw: then nothing is known.
  if (order_.answer) Refuse(Refusal(v1::KIND_DELIVERY_UNCERTAIN, "NO_ANSWER"));
  if (order_.over) order_.over();
  --caller_.open_;
}

asio::awaitable<void> Call::Run() {
  if (!MayStart()) co_return;
  absl::StatusOr<SharedUpstream> upstream = absl::UnavailableError("not looked for");
  if (order_.upstream) upstream = co_await order_.upstream();
  // With a key of its caller's it may be known already, and then the upstream is not needed. Where there is none,
  // there is no grant, and tallyd says so.
  if (!upstream.ok() && order_.upstream && !order_.call.key) {
    co_return Refuse(CannotSend(upstream.status()));
  }
  if (upstream.ok()) co_await FindParamHeaders(**upstream);
  CallParts parts{order_.call.arguments, order_.call.meta, {}};
  Strip(order_.config.key, parts);
  Strip(order_.config.reference, parts);
  MakeRequest(parts);
  const client::SendDeadline started = client::SendDeadline::Start();
  const client::Answer<v1::AuthorizeResponse> answer = co_await caller_.authority_.Authorize(request_, started);
  if (!Granted(answer)) co_return;
  caller_.journal_.Granted(grant_.call_id(), request_.attempt_id(), grant_.send_within_ms());
  if (!upstream.ok()) co_return NotSent(CannotSend(upstream.status()));
  const absl::Status kept = co_await caller_.journal_.Sending(grant_.call_id(), request_.attempt_id(), NowUs());
  if (!kept.ok()) co_return NotSent(Refusal(v1::KIND_UNAVAILABLE, codes::kJournalDown));
  co_await SendRounds(*upstream, started, std::move(parts));
}

bool Call::MayStart() {
  if (!caller_.taking_) {
    Refuse(Refusal(v1::KIND_UNAVAILABLE, codes::kShuttingDown));
    return false;
  }
  if (caller_.open_ > caller_.config_.limits.calls_max) {
    mcp::Refusal refusal = Refusal(v1::KIND_UNAVAILABLE, codes::kNotSent);
    refusal.detail = "The gateway has as many calls under way as it may have.";
    Refuse(std::move(refusal));
    return false;
  }
  if (!caller_.audit_.healthy() && caller_.config_.audit.on_failure == Config::AuditFailure::kClosed) {
    Refuse(Refusal(v1::KIND_UNAVAILABLE, codes::kJournalDown));
    return false;
  }
  return true;
}

void Call::MakeRequest(const CallParts& parts) {
  request_.set_permit_token(std::string(order_.permit_token->Expose()));
  request_.set_key(order_.call.key ? *order_.call.key : absl::BytesToHexString(RandomBytes(16)));
  request_.set_attempt_id(RandomBytes(16));
  request_.set_tool(order_.call.name);
  request_.set_arguments(parts.arguments);
  if (order_.call.amount) request_.set_amount(*order_.call.amount);
  if (order_.call.intent) request_.set_intent(*order_.call.intent);
  request_.set_repeat(order_.call.repeat);
  request_.set_lease_ms(order_.send_within_ms + order_.config.timeout.count() +
                        caller_.config_.tallyd.lease_margin.count());
}

bool Call::Granted(const client::Answer<v1::AuthorizeResponse>& answer) {
  if (!answer.ok()) {
    const client::Failure& failure = answer.failure();
    const bool in_doubt = failure.kind == v1::KIND_UNAVAILABLE || failure.kind == v1::KIND_DELIVERY_UNCERTAIN;
    if (in_doubt) caller_.settler_.Void(request_.permit_token(), request_.key(), request_.attempt_id());
    // Whatever tallyd did, nothing is sent for this attempt any more.
    mcp::Refusal refusal = Refusal(failure.kind, failure.code);
    if (in_doubt && failure.code != kRecoveryNeeded) {
      refusal = Refusal(v1::KIND_UNAVAILABLE, codes::kAuthorityDown);
    }
    if (in_doubt) {
      // For the operator: addresses and paths of the authority are nothing for an agent.
      ops::LogWarning("authority_down", {{"code", failure.code}, {"error", failure.message}});
    } else {
      refusal.detail = failure.message;
    }
    Refuse(std::move(refusal));
    return false;
  }
  grant_ = answer.value();
  AddReceipts(grant_.receipts());
  if (grant_.disposition() == v1::DISPATCH && grant_.attempt_id() == request_.attempt_id() && !grant_.has_refusal()) {
    return true;
  }
  if (grant_.disposition() == v1::REPLAY && grant_.has_result() && !grant_.has_refusal()) {
    const std::string& of = grant_.repeat_of().empty() ? grant_.call_id() : grant_.repeat_of();
    Answer({.result = mcp::WithCallMeta(grant_.result(), of, receipt_ids_, true)});
    return false;
  }
  mcp::Refusal refusal = mcp::RefusalOf(grant_);
  refusal.key = request_.key();
  refusal.receipt_ids = receipt_ids_;
  Refuse(std::move(refusal));
  return false;
}

asio::awaitable<void> Call::FindParamHeaders(const UpstreamSession& upstream) {
  if (mcp::version::IsModern(upstream.version()) && order_.param_headers) {
    param_headers_ = co_await order_.param_headers();
  }
}

asio::awaitable<std::optional<InputAsked>> Call::SendOnce(SharedUpstream upstream, Gate gate, CallParts parts,
                                                          std::string state) {
  modern_ = mcp::version::IsModern(upstream->version());
  OutgoingRequest request;
  request.method = std::string(mcp::method::kToolsCall);
  request.params = Params(parts, state);
  request.headers = parts.headers;
  if (modern_) {
    request.capabilities = order_.capabilities;
    for (const mcp::ParamHeader& param : param_headers_) {
      if (const auto value = mcp::ParamHeaderValue(param, parts.arguments)) request.headers[param.header] = *value;
    }
  }
  OutgoingRequest again;
  if (order_.config.keyed) again = request;
  request.gate = std::move(gate);
  const auto began = std::chrono::steady_clock::now();
  const SharedExchange exchange = upstream->Send(std::move(request));
  if (order_.sent) order_.sent(exchange);
  const bool answered = co_await exchange->Wait(order_.config.timeout);
  if (!exchange->written() && (answered || exchange->Abandon())) {
    Audit("not_sent", began, exchange);
    upstream->Forget(exchange);
    if (send_ == 1) {
      NotSent(Refusal(v1::KIND_UNAVAILABLE, codes::kNotSent));
    } else {
      co_await CannotContinue("what it asked for could not be sent to it");
    }
    co_return std::nullopt;
  }
  sent_at_us_ = exchange->sent_at_us();
  if (answered) {
    std::optional<InputAsked> asked = modern_ && send_ < kRoundsMax ? InputAskedBy(exchange->answer()) : std::nullopt;
    if (asked) {
      Audit("input_required", began, exchange);
      asked_result_ = exchange->answer().result;
      co_return asked;
    }
  }
  if (order_.config.keyed && (!answered || MayAskAgain(exchange->answer()))) {
    Sent first{upstream, exchange, began, send_};
    co_await SendAgain(std::move(first), std::move(again));
    co_return std::nullopt;
  }
  if (answered) {
    const Meaning meaning = MeaningOf(exchange->answer());
    Audit(Word(meaning), began, exchange);
    co_await Conclude(exchange->answer(), meaning);
    co_return std::nullopt;
  }
  co_await Uncertain(began, exchange);
  // The agent has been answered. The call has not: what comes now still counts.
  if (co_await exchange->Wait(order_.config.late_answer_window)) Late(exchange->answer(), began, exchange);
  upstream->Forget(exchange);
  co_return std::nullopt;
}

std::string Call::Params(const CallParts& parts, const std::string& state) const {
  std::string params = absl::StrCat(R"({"name":)", mcp::Quote(order_.tool));
  if (!parts.arguments.empty()) absl::StrAppend(&params, R"(,"arguments":)", parts.arguments);
  std::string meta = parts.meta;
  if (!order_.progress_token.empty()) {
    meta = mcp::WithMember(meta.empty() ? "{}" : meta, mcp::meta::kProgressToken, order_.progress_token);
  }
  if (!meta.empty()) absl::StrAppend(&params, R"(,"_meta":)", meta);
  const std::string& responses = order_.call.input_responses;
  if (modern_ && !responses.empty()) absl::StrAppend(&params, R"(,"inputResponses":)", responses);
  if (modern_ && !state.empty()) absl::StrAppend(&params, R"(,"requestState":)", state);
  return params + "}";
}

Meaning Call::MeaningOf(const UpstreamAnswer& answer) const {
  if (modern_ && IsIncomplete(answer)) return Meaning::kUncertain;
  const Meaning meaning = mcp::Judge(answer.reply(), order_.config.judged_by);
  // Said of this round alone: what those before it did is not known.
  return send_ > 1 && meaning == Meaning::kNoEffect ? Meaning::kUncertain : meaning;
}

v1::CommitRequest Call::CommitOf(v1::CommitOutcome outcome) const {
  v1::CommitRequest commit;
  commit.set_call_id(grant_.call_id());
  commit.set_attempt_id(request_.attempt_id());
  commit.set_outcome(outcome);
  commit.set_sent_at_us(sent_at_us_);
  return commit;
}

v1::CommitRequest Call::CommitOf(Meaning meaning, const UpstreamAnswer& answer) const {
  if (meaning == Meaning::kUncertain) {
    v1::CommitRequest commit = CommitOf(v1::OUTCOME_UNCERTAIN);
    commit.set_partial_answer((answer.result.empty() ? answer.partial : answer.result).substr(0, kPartialBytesMax));
    return commit;
  }
  v1::CommitRequest commit = CommitOf(meaning == Meaning::kSucceeded ? v1::OUTCOME_SUCCEEDED : v1::OUTCOME_TOOL_ERROR);
  std::string result = ResultFor(answer);
  if (result.size() <= kCommittedBytesMax) commit.set_result(std::move(result));
  commit.set_no_effect(meaning == Meaning::kNoEffect);
  return commit;
}

asio::awaitable<void> Call::Conclude(const UpstreamAnswer& answer, Meaning meaning) {
  if (answer.session_ended && order_.session_ended) order_.session_ended();
  v1::CommitRequest commit = CommitOf(meaning, answer);
  if (!order_.answer) commit.set_undelivered(true);
  const auto committed = co_await caller_.settler_.Settle(commit)->Wait(kReceiptPatience);
  if (committed) AddReceipts(committed->receipts());
  if (meaning == Meaning::kUncertain && NeedsCapability(answer)) co_return RefuseCapability(answer.error);
  if (meaning == Meaning::kUncertain) {
    RefuseUncertain(committed, answer.how == How::kNothing ? "NO_ANSWER" : "UPSTREAM_AMBIGUOUS", answer.why);
    co_return;
  }
  auto undelivered = [&settler = caller_.settler_, commit]() mutable {
    commit.set_undelivered(true);
    settler.Settle(std::move(commit));
  };
  if (answer.how == How::kRpcError || NeedsCapability(answer)) {
    Answer({.error = answer.error}, std::move(undelivered));
  } else {
    Answer({.result = mcp::WithCallMeta(ResultFor(answer), grant_.call_id(), receipt_ids_)}, std::move(undelivered));
  }
}

asio::awaitable<void> Call::Uncertain(std::chrono::steady_clock::time_point began, const SharedExchange& exchange) {
  Audit("no_answer", began, exchange);
  const auto committed = co_await caller_.settler_.Settle(CommitOf(v1::OUTCOME_UNCERTAIN))->Wait(kReceiptPatience);
  if (committed) AddReceipts(committed->receipts());
  RefuseUncertain(committed, "NO_ANSWER", "");
}

void Call::Late(const UpstreamAnswer& answer, std::chrono::steady_clock::time_point began,
                const SharedExchange& exchange) {
  const Meaning meaning = MeaningOf(answer);
  Audit("late_" + std::string(Word(meaning)), began, exchange);
  if (meaning == Meaning::kUncertain) return;
  v1::CommitRequest commit = CommitOf(meaning, answer);
  commit.set_undelivered(true);
  caller_.settler_.Settle(std::move(commit));
}

void Call::NotSent(mcp::Refusal refusal) {
  caller_.settler_.Settle(CommitOf(v1::OUTCOME_NOT_SENT));
  refusal.call_id = grant_.call_id();
  refusal.key = request_.key();
  refusal.receipt_ids = receipt_ids_;
  Refuse(std::move(refusal));
}

}  // namespace tally::gateway
