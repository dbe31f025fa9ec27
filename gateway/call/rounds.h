// Calls of the era 2026-07-28 between two rounds: the tool asked for input, the agent was given it, and is to come back
// with an answer. A call stays one call, with one Authorize and one charge, however many rounds it has.
//
// What an agent brings back is a token of ours in place of the tool server's own requestState. It is good once, for the
// permit token, the tool and the arguments it was made for, and while the call waits; nothing is done for any other.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "gateway/call/order.h"
#include "lib/keys/hash.h"

namespace tally::gateway {

// What a continuation must agree with.
struct RoundOwner {
  std::shared_ptr<const keys::Secret> permit_token;
  std::string name;       // as the client says it: upstream__tool
  std::string arguments;  // raw, as the client sent them
  std::string key;        // the call's idempotency key
};

class Rounds {
 public:
  explicit Rounds(asio::any_io_executor loop) : loop_(std::move(loop)) {}
  Rounds(const Rounds&) = delete;

  // One call that waits.
  class Pause {
   public:
    // The agent's answer; nullopt: none came in this time, or GiveUp.
    asio::awaitable<std::optional<CallOrder>> Wait(std::chrono::milliseconds at_most);
    // Nobody will come.
    void GiveUp();

   private:
    friend class Rounds;
    Pause(const asio::any_io_executor& loop, RoundOwner owner);

    const RoundOwner owner_;
    asio::steady_timer changed_;
    bool over_ = false;
    std::optional<CallOrder> next_;
  };
  using SharedPause = std::shared_ptr<Pause>;

  // The token that stands for it: 256 random bits. Close it when the waiting is over.
  std::pair<std::string, SharedPause> Open(RoundOwner owner);
  void Close(std::string_view token);
  // Nobody can come any more, to those that wait and those that would.
  void GiveUpAll();

  // Hands `order` to the call that waits for it. An error (kInvalidParams) says what is wrong; then `order` is as it
  // was, and nothing was done or spent.
  std::optional<mcp::RpcError> Continue(CallOrder& order);

 private:
  const asio::any_io_executor loop_;
  // By the token's SHA-256: how long a look-up takes tells nothing about tokens.
  std::map<keys::Digest, SharedPause> pauses_;
  bool over_ = false;
};

}  // namespace tally::gateway
