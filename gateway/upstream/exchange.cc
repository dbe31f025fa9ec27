#include "gateway/upstream/exchange.h"

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace tally::gateway {

mcp::Reply UpstreamAnswer::reply() const {
  mcp::Reply reply;
  reply.how = how;
  reply.http_status = http_status;
  reply.error = error;
  reply.result = result;
  reply.session_ended = session_ended;
  return reply;
}

UpstreamAnswer AnswerOf(mcp::Message message) {
  UpstreamAnswer answer;
  if (message.kind == mcp::Message::Kind::kResult) {
    answer.how = mcp::Reply::How::kResult;
    answer.result = std::move(message.result);
  } else {
    answer.how = mcp::Reply::How::kRpcError;
    answer.error = std::move(message.error);
  }
  return answer;
}

Exchange::Exchange(const asio::any_io_executor& loop, Gate gate) : changed_(loop), gate_(std::move(gate)) {}

asio::awaitable<bool> Exchange::Wait(std::chrono::milliseconds at_most) {
  if (!done_) {
    changed_.expires_after(at_most);
    co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  co_return done_;
}

bool Exchange::Abandon() {
  if (!written_) {
    abandoned_ = true;
    gate_ = nullptr;
  }
  return !written_;
}

bool Exchange::OpenGate() {
  if (done_) return false;
  // It belongs to whoever waits, who may hold this exchange: kept, neither would ever go.
  const Gate gate = std::exchange(gate_, nullptr);
  if (abandoned_) {
    FinishWithNothing("given up before it was sent");
    return false;
  }
  if (gate && !gate()) {
    FinishWithNothing("the time to send it was over");
    return false;
  }
  written_ = true;
  sent_at_us_ =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  return true;
}

void Exchange::Finish(UpstreamAnswer answer) {
  if (done_) return;
  done_ = true;
  gate_ = nullptr;
  answer_ = std::move(answer);
  changed_.cancel();
  if (const auto when_done = std::exchange(when_done_, nullptr)) when_done();
}

void Exchange::WhenDone(std::function<void()> done) {
  if (done_) return done();
  when_done_ = std::move(done);
}

void Exchange::FinishWithNothing(std::string why) {
  UpstreamAnswer nothing;
  nothing.why = std::move(why);
  Finish(std::move(nothing));
}

}  // namespace tally::gateway
