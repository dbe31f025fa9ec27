#include "gateway/call/rounds.h"

#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>
#include <sodium.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "lib/json/canonical.h"

namespace tally::gateway {
namespace {

constexpr size_t kTokenBytes = 32;
constexpr std::string_view kTokenBegin = "tally-round-";

mcp::RpcError Refuse(std::string_view what) {
  return {mcp::code::kInvalidParams, absl::StrCat(std::string(what), " Nothing was sent and nothing was charged."), ""};
}

// Of one client's hand both times, but maybe printed anew.
bool SameArguments(std::string_view a, std::string_view b) {
  const auto canonical = [](std::string_view raw) { return json::Canonicalise(raw.empty() ? "{}" : raw); };
  if (a == b) return true;
  const auto one = canonical(a);
  const auto other = canonical(b);
  return one.ok() && other.ok() && *one == *other;
}

}  // namespace

Rounds::Pause::Pause(const asio::any_io_executor& loop, RoundOwner owner) : owner_(std::move(owner)), changed_(loop) {}

asio::awaitable<std::optional<CallOrder>> Rounds::Pause::Wait(std::chrono::milliseconds at_most) {
  if (!over_) {
    changed_.expires_after(at_most);
    co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  over_ = true;
  co_return std::exchange(next_, std::nullopt);
}

void Rounds::Pause::GiveUp() {
  over_ = true;
  changed_.cancel();
}

std::pair<std::string, Rounds::SharedPause> Rounds::Open(RoundOwner owner) {
  std::string bytes(kTokenBytes, '\0');
  randombytes_buf(bytes.data(), bytes.size());
  std::string token = absl::StrCat(std::string(kTokenBegin), absl::BytesToHexString(bytes));
  SharedPause pause(new Pause(loop_, std::move(owner)));
  pause->over_ = over_;
  pauses_.emplace(keys::Sha256(token), pause);
  return {std::move(token), std::move(pause)};
}

void Rounds::Close(std::string_view token) { pauses_.erase(keys::Sha256(token)); }

void Rounds::GiveUpAll() {
  over_ = true;
  for (const auto& [token, pause] : pauses_) pause->GiveUp();
}

std::optional<mcp::RpcError> Rounds::Continue(CallOrder& order) {
  const auto token = mcp::StringOf(order.call.request_state);
  const auto found = token ? pauses_.find(keys::Sha256(*token)) : pauses_.end();
  // A token of another permit's looks like none.
  if (found == pauses_.end() || found->second->over_ ||
      !found->second->owner_.permit_token->Equals(order.permit_token->Expose())) {
    return Refuse(
        "requestState is none that a call of this permit waits for: it was changed, used before, or is too old.");
  }
  const RoundOwner& owner = found->second->owner_;
  if (owner.name != order.call.name || !SameArguments(owner.arguments, order.call.arguments)) {
    return Refuse("requestState belongs to another call: tool and arguments must be those it was given for.");
  }
  if (order.call.key && *order.call.key != owner.key) {
    return Refuse("requestState belongs to a call with another idempotency key.");
  }
  const SharedPause pause = found->second;
  pauses_.erase(found);
  pause->next_ = std::move(order);
  pause->over_ = true;
  pause->changed_.cancel();
  return std::nullopt;
}

}  // namespace tally::gateway
