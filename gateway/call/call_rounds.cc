#include <algorithm>
#include <utility>

#include "gateway/call/call.h"
#include "gateway/mcp/raw.h"
#include "lib/keys/provider_names.h"

namespace tally::gateway {
namespace {

using std::chrono::milliseconds;

}  // namespace

asio::awaitable<void> Call::SendRounds(SharedUpstream upstream, client::SendDeadline started, CallParts parts) {
  lease_ = Lease{started, grant_.lease_ms()};
  started_ = started;
  Put(order_.config.key, keys::ProviderKey(grant_.call_id()), parts);
  Put(order_.config.reference, keys::ProviderReference(grant_.call_id()), parts);
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

asio::awaitable<bool> Call::AskForInput(InputAsked asked) {
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

void Call::Take(CallOrder next) {
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

asio::awaitable<milliseconds> Call::Extended(milliseconds wanted) {
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

asio::awaitable<bool> Call::MayContinue() {
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

bool Call::MayCome(const client::Failure& failure) {
  return failure.kind == v1::KIND_UNAVAILABLE || failure.kind == v1::KIND_CONTENDED;
}

v1::ExtendRequest Call::ExtendBy(int64_t lease_ms) const {
  v1::ExtendRequest extend;
  extend.set_call_id(grant_.call_id());
  extend.set_attempt_id(request_.attempt_id());
  extend.set_lease_ms(std::min(lease_ms, int64_t{24} * 3'600'000));
  return extend;
}

asio::awaitable<void> Call::CannotContinue(std::string why) {
  const auto committed = co_await caller_.settler_.Settle(CommitOf(v1::OUTCOME_UNCERTAIN))->Wait(kReceiptPatience);
  if (committed) AddReceipts(committed->receipts());
  RefuseUncertain(committed, "INPUT_MISSING", why);
}

}  // namespace tally::gateway
