// One request to an upstream and what came of it, apart from whoever waits: a caller that gives up waiting changes
// nothing, and may look again later. All on the loop's thread.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "gateway/mcp/judge.h"
#include "gateway/mcp/message.h"

namespace tally::gateway {

namespace asio = boost::asio;

// What an upstream said to one request, or that it said nothing.
struct UpstreamAnswer {
  mcp::Reply::How how = mcp::Reply::How::kNothing;
  int http_status = 0;         // kHttpStatus
  mcp::RpcError error = {};    // kRpcError
  std::string result = {};     // kResult: raw JSON, as it came
  bool session_ended = false;  // the upstream no longer knows the session
  std::string partial = {};    // what came in place of an answer, at most kPartialBytesMax
  std::string why = {};        // for logs and people: what went wrong, never contents

  mcp::Reply reply() const;  // refers to this
};

// Of a message that is a result or an error.
UpstreamAnswer AnswerOf(mcp::Message message);

inline constexpr size_t kPartialBytesMax = 64 * 1024;

// Asked directly before the first byte is written; false: nothing is written.
using Gate = std::function<bool()>;

class Exchange {
 public:
  explicit Exchange(const asio::any_io_executor& loop, Gate gate = nullptr);

  bool done() const { return done_; }
  // False only if it is certain that not one byte was written; with done() or after Abandon() it stays so.
  bool written() const { return written_; }
  int64_t sent_at_us() const { return sent_at_us_; }  // by this machine's clock; 0: not written
  const UpstreamAnswer& answer() const { return answer_; }

  // Waits until there is an answer, at most so long. True: there is. One waiter at a time.
  asio::awaitable<bool> Wait(std::chrono::milliseconds at_most);
  // Called when there is an answer, or at once if there is one: for whoever waits for several. Must not throw, and must
  // not look at the session.
  void WhenDone(std::function<void()> done);
  // Nobody wants it sent any more. True: not one byte was written, and none will be.
  bool Abandon();

  // For sessions. OpenGate is the last thing before the first byte: false means do not write, and ends the exchange.
  bool OpenGate();
  // The write failed, and the system took not one byte.
  void NothingWritten() { written_ = false; }
  // The first answer counts.
  void Finish(UpstreamAnswer answer);
  void FinishWithNothing(std::string why);

 private:
  asio::steady_timer changed_;
  Gate gate_;
  std::function<void()> when_done_;
  bool written_ = false;
  bool abandoned_ = false;
  bool done_ = false;
  int64_t sent_at_us_ = 0;
  UpstreamAnswer answer_;
};

using SharedExchange = std::shared_ptr<Exchange>;

}  // namespace tally::gateway
