#include "gateway/call/caller.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <sodium.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <utility>

#include "gateway/call/placement.h"
#include "gateway/call/sends.h"
#include "gateway/mcp/judge.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/refusal.h"
#include "lib/client/send_deadline.h"
#include "server/ops/log.h"

namespace tally::gateway {
namespace {

using How = mcp::Reply::How;
using mcp::Meaning;
using std::chrono::milliseconds;
namespace codes = mcp::gateway_code;

// How long an answer is kept back for tallyd's receipt of it. It is in the journal then, and is delivered later.
constexpr milliseconds kReceiptPatience{5'000};
// The one failure of tallyd's to decide that a person must end; its words say so.
constexpr std::string_view kRecoveryNeeded = "RECOVERY_NEEDED";
// Of one call. A tool that goes on asking is no tool.
constexpr int kRoundsMax = 32;
constexpr size_t kStateBytesMax = 256 * 1024;  // of a tool server's requestState, which is kept while a call waits

// The largest answer that is committed with its bytes: with the rest of a commit it fits into the smallest message that
// tallyd can be set to take. A commit that tallyd refuses for its size would park a call that was answered.
constexpr size_t kCommittedBytesMax = (2 << 20) - (256 << 10);

std::string RandomBytes(size_t count) {
  std::string bytes(count, '\0');
  randombytes_buf(bytes.data(), bytes.size());
  return bytes;
}

template <typename Receipts>
void AddReceipts(const Receipts& receipts, std::vector<std::string>& ids) {
  for (const auto& receipt : receipts) ids.push_back(absl::BytesToHexString(receipt.receipt_id()));
}

int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// A gateway of the same kind further up has the call, and sends nothing again for being asked again.
bool IsParkedFurtherUp(const UpstreamAnswer& answer) {
  const auto object = mcp::RawObject::Parse(answer.how == How::kResult ? answer.result : answer.error.data);
  return object.ok() && mcp::NestedErrorOf(*object).has_value();
}

std::string_view Word(Meaning meaning) {
  switch (meaning) {
    case Meaning::kSucceeded:
      return "succeeded";
    case Meaning::kToolError:
      return "tool_error";
    case Meaning::kNoEffect:
      return "no_effect";
    case Meaning::kUncertain:
      break;
  }
  return "uncertain";
}

// What is kept, and replayed, for an answer that was no tool result.
std::string ErrorAsResult(const UpstreamAnswer& answer) {
  const std::string text =
      answer.error.code != 0 || !answer.error.message.empty()
          ? absl::StrCat("The tool server answered with error ", answer.error.code, ": ", answer.error.message)
          : absl::StrCat("The tool server refused the request with HTTP status ", answer.http_status,
                         ". Nothing was done.");
  return absl::StrCat(R"({"content":[{"type":"text","text":)", mcp::Quote(text), R"(}],"isError":true})");
}

// The bytes that the agent gets.
std::string ResultFor(const UpstreamAnswer& answer) {
  return answer.how == How::kResult ? answer.result : ErrorAsResult(answer);
}

// 2026-07-28: not done yet, and what was done so far is not said.
bool IsIncomplete(const UpstreamAnswer& answer) {
  const auto result = answer.how == How::kResult ? mcp::RawObject::Parse(answer.result) : absl::NotFoundError("");
  return result.ok() && mcp::ResultTypeOf(*result) != mcp::ResultType::kComplete;
}

// What a tool needs to go on. Both raw; empty: none.
struct InputAsked {
  std::string requests;
  std::string state;
};

// Nullopt: the answer asks for nothing that could be given.
std::optional<InputAsked> InputAskedBy(const UpstreamAnswer& answer) {
  const auto result = answer.how == How::kResult ? mcp::RawObject::Parse(answer.result) : absl::NotFoundError("");
  if (!result.ok() || mcp::ResultTypeOf(*result) != mcp::ResultType::kInputRequired) return std::nullopt;
  InputAsked asked;
  if (const std::string_view* requests = result->Find("inputRequests")) asked.requests = *requests;
  if (const std::string_view* state = result->Find("requestState")) asked.state = *state;
  const bool requests_fit = asked.requests.empty() || mcp::IsObject(asked.requests);
  const bool state_fits =
      asked.state.empty() || (mcp::StringOf(asked.state).has_value() && asked.state.size() <= kStateBytesMax);
  if (!requests_fit || !state_fits || (asked.requests.empty() && asked.state.empty())) return std::nullopt;
  return asked;
}

// 2026-07-28: the client must declare a capability for this call. What was done before the tool noticed is not said.
bool NeedsCapability(const UpstreamAnswer& answer) {
  return answer.how != How::kResult && answer.error.code == mcp::code::kMissingClientCapability;
}

}  // namespace

class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(Caller& caller, CallOrder order) : caller_(caller), order_(std::move(order)) {
    ++caller_.open_;
    ++caller_.unanswered_;
  }
  ~Call() {
    // Reached without an answer only if something threw: then nothing is known.
    if (order_.answer) Refuse(Refusal(v1::KIND_DELIVERY_UNCERTAIN, "NO_ANSWER"));
    if (order_.over) order_.over();
    --caller_.open_;
  }

  asio::awaitable<void> Run() {
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

 private:
  bool MayStart() {
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

  void MakeRequest(const CallParts& parts) {
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

  // False: there is no grant to send, and the agent has its answer.
  bool Granted(const client::Answer<v1::AuthorizeResponse>& answer) {
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
    AddReceipts(grant_.receipts(), receipt_ids_);
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

  // Arguments that a tool of 2026-07-28 wants to see in headers, too. Before Authorize, since it may ask the upstream.
  asio::awaitable<void> FindParamHeaders(const UpstreamSession& upstream) {
    if (mcp::version::IsModern(upstream.version()) && order_.param_headers) {
      param_headers_ = co_await order_.param_headers();
    }
  }

  // The call is sent once; where the upstream asks for input, once more for each answer that the agent brings.
  asio::awaitable<void> SendRounds(SharedUpstream upstream, client::SendDeadline started, CallParts parts) {
    lease_ = Lease{started, grant_.lease_ms()};
    started_ = started;
    Put(order_.config.key, ProviderKey(grant_.call_id()), parts);
    Put(order_.config.reference, ProviderReference(grant_.call_id()), parts);
    // Weak: the session keeps the exchange until this call is over, which it would never be if the exchange kept it.
    Gate gate = [weak = weak_from_this(), started] {
      const std::shared_ptr<Call> call = weak.lock();
      return call != nullptr && client::MaySend(call->request_, call->grant_, started);
    };
    std::string state;
    while (true) {
      std::optional<InputAsked> asked = co_await SendOnce(upstream, std::move(gate), parts, std::move(state));
      if (!asked) co_return;
      state = asked->state;
      if (!co_await AskForInput(*std::move(asked))) co_return;
      // From here on the agent waits again.
      const absl::StatusOr<SharedUpstream> again = co_await order_.upstream();
      if (!again.ok() || !mcp::version::IsModern((*again)->version())) {
        co_return co_await CannotContinue("its server cannot be reached any more");
      }
      upstream = *again;
      const client::SendDeadline extended = client::SendDeadline::Start();
      if (!co_await MayContinue()) co_return;
      gate = [extended, window = grant_.send_within_ms()] { return extended.MayStillSend(window); };
      ++send_;
    }
  }

  // What the upstream asks for before it goes on; nullopt: the call was concluded.
  asio::awaitable<std::optional<InputAsked>> SendOnce(SharedUpstream upstream, Gate gate, CallParts parts,
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

  // True: the answer to what was asked is in order_, and its agent waits. False: the call was parked.
  asio::awaitable<bool> AskForInput(InputAsked asked) {
    const milliseconds window = co_await Extended(order_.config.input_window);
    if (window.count() <= 0) {
      co_await CannotContinue("the time of the call is over");
      co_return false;
    }
    if (order_.ask) {
      // Nothing to be asked: the tool wants to be called again, no more.
      std::optional<std::string> responses = "";
      if (!asked.requests.empty()) responses = co_await order_.ask(std::move(asked.requests), window);
      if (!responses) {
        co_await CannotContinue("it asked for input that the client did not give");
        co_return false;
      }
      order_.call.input_responses = *std::move(responses);
      co_return true;
    }
    RoundOwner owner{order_.permit_token, order_.call.name, order_.call.arguments, request_.key()};
    auto [token, pause] = caller_.rounds_.Open(std::move(owner));
    ToolAnswer question;
    question.result = mcp::WithCallMeta(mcp::WithMember(asked_result_, "requestState", mcp::Quote(token)),
                                        grant_.call_id(), receipt_ids_);
    Answer(std::move(question), [pause = pause] { pause->GiveUp(); });
    std::optional<CallOrder> next = co_await pause->Wait(window);
    caller_.rounds_.Close(token);
    if (!next) {
      co_await CannotContinue("");
      co_return false;
    }
    Take(*std::move(next));
    co_return true;
  }

  // The agent's answer takes the place of what it asked first; what the permit judged stays.
  void Take(CallOrder next) {
    if (order_.over) order_.over();
    order_.over = std::move(next.over);
    order_.answer = std::move(next.answer);
    order_.sent = std::move(next.sent);
    order_.session_ended = std::move(next.session_ended);
    if (next.upstream) order_.upstream = std::move(next.upstream);
    order_.progress_token = std::move(next.progress_token);
    order_.capabilities = std::move(next.capabilities);
    order_.call.input_responses = std::move(next.call.input_responses);
    ++caller_.unanswered_;
  }

  struct Lease {
    client::SendDeadline since;
    int64_t ms = 0;
  };

  // How long the agent may take: as long as is wanted if tallyd moves the lease, else what is left of it.
  asio::awaitable<milliseconds> Extended(milliseconds wanted) {
    const milliseconds rest = order_.config.timeout + caller_.config_.tallyd.lease_margin;
    const client::SendDeadline since = client::SendDeadline::Start();
    const v1::ExtendRequest extend = ExtendBy((wanted + rest).count());
    const auto answer = co_await caller_.authority_.Extend(extend);
    if (answer.ok() && !answer.value().has_refusal() && answer.value().state() == v1::AUTHORIZED) {
      lease_ = Lease{since, extend.lease_ms()};
    } else if (answer.ok() || !MayCome(answer.failure())) {
      co_return milliseconds(0);
    }
    const std::optional<int64_t> elapsed = lease_->since.ElapsedNs();
    if (!elapsed) co_return milliseconds(0);
    const milliseconds left(lease_->ms - *elapsed / 1'000'000);
    co_return std::min(wanted, left - caller_.config_.tallyd.lease_margin / 2);
  }

  // The last look before another round: an attempt that is over, or a permit that is, sends nothing more.
  asio::awaitable<bool> MayContinue() {
    const std::string token(order_.permit_token->Expose());
    caller_.authority_.ForgetPermit(token);
    const auto permit = co_await caller_.authority_.GetPermit(token);
    if (!permit.ok() || permit.value()->state() != v1::ACTIVE) {
      std::string why = permit.ok() ? "the permit is no longer active" : "the authority cannot be reached";
      co_await CannotContinue(std::move(why));
      co_return false;
    }
    const milliseconds wanted = milliseconds(grant_.send_within_ms()) + order_.config.timeout;
    const v1::ExtendRequest extend = ExtendBy((wanted + caller_.config_.tallyd.lease_margin).count());
    const auto answer = co_await caller_.authority_.Extend(extend);
    if (answer.ok() && !answer.value().has_refusal() && answer.value().state() == v1::AUTHORIZED) co_return true;
    std::string why = answer.ok() ? "the time of the call is over" : "the authority cannot be reached";
    co_await CannotContinue(std::move(why));
    co_return false;
  }

  static bool MayCome(const client::Failure& failure) {
    return failure.kind == v1::KIND_UNAVAILABLE || failure.kind == v1::KIND_CONTENDED;
  }

  v1::ExtendRequest ExtendBy(int64_t lease_ms) const {
    v1::ExtendRequest extend;
    extend.set_call_id(grant_.call_id());
    extend.set_attempt_id(request_.attempt_id());
    extend.set_lease_ms(std::min(lease_ms, int64_t{24} * 3'600'000));
    return extend;
  }

  // An earlier round was written, so what became of the call is not known. The agent is told, if it waits.
  asio::awaitable<void> CannotContinue(std::string why) {
    const auto committed = co_await caller_.settler_.Settle(CommitOf(v1::OUTCOME_UNCERTAIN))->Wait(kReceiptPatience);
    if (committed) AddReceipts(committed->receipts(), receipt_ids_);
    RefuseUncertain(committed, "INPUT_MISSING", why);
  }

  bool MayAskAgain(const UpstreamAnswer& answer) const {
    return MeaningOf(answer) == Meaning::kUncertain && !(modern_ && IsIncomplete(answer)) &&
           !IsParkedFurtherUp(answer) && !NeedsCapability(answer);
  }

  // A keyed tool whose first send may have been carried out, or not: the same bytes go again under the same key, until
  // one of them is answered with success. Meanwhile the attempt stays open; the agent waits no longer than for one.
  asio::awaitable<void> SendAgain(Sent first, OutgoingRequest request) {
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
    if (committed) AddReceipts(committed->receipts(), receipt_ids_);
    RefuseUncertain(committed, "NO_ANSWER", "");
    late_ = true;
    const auto until = Sends::Clock::now() + order_.config.late_answer_window;
    while (heard != Heard::kSuccess && sends.outstanding() && Sends::Clock::now() < until) {
      heard = co_await Hear(sends, until);
    }
  }

  // In this order: what ends the sending comes last.
  enum class Heard { kNothing, kUncertain, kError, kSuccess };

  // The next answer to any of the sends. When the agent's time is over it is told meanwhile.
  asio::awaitable<Heard> Hear(Sends& sends, Sends::Clock::time_point until) {
    while (true) {
      const bool waits = order_.answer != nullptr;
      Sent* sent = co_await sends.Next(waits ? std::min(until, agent_until_) : until);
      if (sent != nullptr) co_return co_await Weigh(*sent);
      if (waits && Sends::Clock::now() >= agent_until_) RefuseUncertain(std::nullopt, "NO_ANSWER", "");
      if (Sends::Clock::now() >= until) co_return Heard::kNothing;
    }
  }

  // Another send of this attempt is always unanswered: only success ends it.
  asio::awaitable<Heard> Weigh(const Sent& sent) {
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

  void TakePartial(const UpstreamAnswer& answer) {
    partial_ = (answer.result.empty() ? answer.partial : answer.result).substr(0, kPartialBytesMax);
  }

  ReplayLimits Limits() const {
    return {order_.config.replay_window, order_.config.timeout, caller_.config_.tallyd.lease_margin};
  }

  static std::optional<milliseconds> ElapsedOf(const client::SendDeadline& started) {
    const auto elapsed = started.ElapsedNs();
    if (!elapsed) return std::nullopt;
    return milliseconds(*elapsed / 1'000'000 + 1);
  }

  // The provider still remembers the key, the permit is active, and tallyd has moved the lease's end to where an answer
  // will have come. Whatever cannot be told is no.
  asio::awaitable<bool> MaySendAgain() {
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

  std::string Params(const CallParts& parts, const std::string& state) const {
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

  Meaning MeaningOf(const UpstreamAnswer& answer) const {
    if (modern_ && IsIncomplete(answer)) return Meaning::kUncertain;
    const Meaning meaning = mcp::Judge(answer.reply(), order_.config.judged_by);
    // Said of this round alone: what those before it did is not known.
    return send_ > 1 && meaning == Meaning::kNoEffect ? Meaning::kUncertain : meaning;
  }

  v1::CommitRequest CommitOf(v1::CommitOutcome outcome) const {
    v1::CommitRequest commit;
    commit.set_call_id(grant_.call_id());
    commit.set_attempt_id(request_.attempt_id());
    commit.set_outcome(outcome);
    commit.set_sent_at_us(sent_at_us_);
    return commit;
  }

  v1::CommitRequest CommitOf(Meaning meaning, const UpstreamAnswer& answer) const {
    if (meaning == Meaning::kUncertain) {
      v1::CommitRequest commit = CommitOf(v1::OUTCOME_UNCERTAIN);
      commit.set_partial_answer((answer.result.empty() ? answer.partial : answer.result).substr(0, kPartialBytesMax));
      return commit;
    }
    v1::CommitRequest commit =
        CommitOf(meaning == Meaning::kSucceeded ? v1::OUTCOME_SUCCEEDED : v1::OUTCOME_TOOL_ERROR);
    std::string result = ResultFor(answer);
    if (result.size() <= kCommittedBytesMax) commit.set_result(std::move(result));
    commit.set_no_effect(meaning == Meaning::kNoEffect);
    return commit;
  }

  // An answer came in time.
  asio::awaitable<void> Conclude(const UpstreamAnswer& answer, Meaning meaning) {
    if (answer.session_ended && order_.session_ended) order_.session_ended();
    v1::CommitRequest commit = CommitOf(meaning, answer);
    if (!order_.answer) commit.set_undelivered(true);
    const auto committed = co_await caller_.settler_.Settle(commit)->Wait(kReceiptPatience);
    if (committed) AddReceipts(committed->receipts(), receipt_ids_);
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

  asio::awaitable<void> Uncertain(std::chrono::steady_clock::time_point began, const SharedExchange& exchange) {
    Audit("no_answer", began, exchange);
    const auto committed = co_await caller_.settler_.Settle(CommitOf(v1::OUTCOME_UNCERTAIN))->Wait(kReceiptPatience);
    if (committed) AddReceipts(committed->receipts(), receipt_ids_);
    RefuseUncertain(committed, "NO_ANSWER", "");
  }

  void Late(const UpstreamAnswer& answer, std::chrono::steady_clock::time_point began, const SharedExchange& exchange) {
    const Meaning meaning = MeaningOf(answer);
    Audit("late_" + std::string(Word(meaning)), began, exchange);
    if (meaning == Meaning::kUncertain) return;
    v1::CommitRequest commit = CommitOf(meaning, answer);
    commit.set_undelivered(true);
    caller_.settler_.Settle(std::move(commit));
  }

  // Certain: not one byte of it was written.
  void NotSent(mcp::Refusal refusal) {
    caller_.settler_.Settle(CommitOf(v1::OUTCOME_NOT_SENT));
    refusal.call_id = grant_.call_id();
    refusal.key = request_.key();
    refusal.receipt_ids = receipt_ids_;
    Refuse(std::move(refusal));
  }

  void RefuseUncertain(const std::optional<v1::CommitResponse>& committed, std::string_view code,
                       const std::string& why) {
    // A READ never parks: tallyd has ended it.
    const bool read = committed ? committed->attempt_state() == v1::TOOL_ERROR : order_.effect == v1::READ;
    mcp::Refusal refusal =
        read ? Refusal(v1::KIND_READ_FAILED, "READ_NO_ANSWER") : Refusal(v1::KIND_DELIVERY_UNCERTAIN, code);
    if (!why.empty()) refusal.detail = absl::StrCat("Of the tool server: ", why, ".");
    refusal.call_id = grant_.call_id();
    refusal.key = request_.key();
    refusal.receipt_ids = receipt_ids_;
    Refuse(std::move(refusal));
  }

  // The client is to see the tool server's own error, by which it knows what to declare, and the model that the call
  // may have been carried out.
  void RefuseCapability(mcp::RpcError error) {
    mcp::Refusal refusal = Refusal(v1::KIND_DELIVERY_UNCERTAIN, "UPSTREAM_AMBIGUOUS");
    refusal.call_id = grant_.call_id();
    refusal.key = request_.key();
    refusal.receipt_ids = receipt_ids_;
    const mcp::RpcError told = mcp::RefusalError(refusal);
    const auto data = mcp::RawObject::Parse(told.data);
    const std::string_view* ours = data.ok() ? data->Find(mcp::meta::kError) : nullptr;
    if (ours != nullptr && mcp::RawObject::Parse(error.data).ok()) {
      error.data = mcp::WithMember(error.data, mcp::meta::kError, *ours);
    } else {
      error.data = told.data;
    }
    error.message = absl::StrCat(told.message, " Of the tool server: ", error.message);
    Answer({.error = std::move(error)});
  }

  static mcp::Refusal CannotSend(const absl::Status& why) {
    return absl::IsFailedPrecondition(why) ? Refusal(v1::KIND_DENIED, codes::kToolChanged)
                                           : Refusal(v1::KIND_UNAVAILABLE, codes::kUpstreamDown);
  }

  static mcp::Refusal Refusal(v1::Kind kind, std::string_view code) { return mcp::MakeRefusal(kind, code); }

  void Refuse(const mcp::Refusal& refusal) {
    if (caller_.config_.mcp.error_style == Config::ErrorStyle::kJsonRpc && refusal.kind != v1::KIND_ALREADY_DONE) {
      Answer({.error = mcp::RefusalError(refusal)});
    } else {
      Answer({.result = mcp::RefusalResult(refusal)});
    }
  }

  void Answer(ToolAnswer answer, std::function<void()> undelivered = nullptr) {
    const auto hand_over = std::exchange(order_.answer, nullptr);
    if (!hand_over) return;
    --caller_.unanswered_;
    hand_over(std::move(answer), std::move(undelivered));
  }

  void Audit(std::string_view outcome, std::chrono::steady_clock::time_point began, const SharedExchange& exchange) {
    AuditSend(outcome, Sent{nullptr, exchange, began, send_});
  }

  void AuditSend(std::string_view outcome, const Sent& sent) {
    const SharedExchange& exchange = sent.exchange;
    AuditEntry entry;
    entry.time_us = exchange->sent_at_us();
    entry.method = std::string(mcp::method::kToolsCall);
    entry.upstream = order_.upstream_name;
    entry.tool = order_.tool;
    entry.permit_id = order_.permit_id;
    entry.call_id = grant_.call_id();
    entry.attempt_id = request_.attempt_id();
    entry.attempt = grant_.attempt_number();
    entry.send = sent.number;
    entry.outcome = outcome;
    entry.latency_us =
        std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - sent.began).count();
    caller_.audit_.Write(entry);
  }

  Caller& caller_;
  CallOrder order_;
  v1::AuthorizeRequest request_;
  v1::AuthorizeResponse grant_;
  std::vector<std::string> receipt_ids_;
  std::vector<mcp::ParamHeader> param_headers_;
  std::optional<Lease> lease_;  // the last that tallyd confirmed
  std::string asked_result_;    // the last that asked for input
  int send_ = 1;
  int64_t sent_at_us_ = 0;
  bool modern_ = false;  // the upstream's era
  // Of a call that is sent again:
  std::optional<client::SendDeadline> started_;  // before Authorize
  Sends::Clock::time_point agent_until_{};       // then the agent is told that nobody knows
  std::string partial_;                          // what came last in place of success
  int64_t lease_ms_ = 0;                         // after started_
  bool late_ = false;                            // it was committed as uncertain
};

Caller::Caller(asio::any_io_executor loop, const Config& config, Authority& authority, Journal& journal,
               AuditLog& audit)
    : loop_(std::move(loop)),
      config_(config),
      authority_(authority),
      journal_(journal),
      audit_(audit),
      settler_(loop_, authority, journal),
      rounds_(loop_) {}

void Caller::Start(CallOrder order) {
  if (!order.call.request_state.empty()) {
    if (const auto refused = rounds_.Continue(order)) {
      order.answer({.error = *refused}, nullptr);
      if (order.over) order.over();
    }
    return;
  }
  auto call = std::make_shared<Call>(*this, std::move(order));
  asio::co_spawn(
      loop_, [call]() -> asio::awaitable<void> { co_await call->Run(); }, asio::detached);
}

}  // namespace tally::gateway
