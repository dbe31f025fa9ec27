#include "gateway/front/outlet.h"

#include <algorithm>
#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

namespace tally::gateway {

EventStream::EventStream(const asio::any_io_executor& loop, size_t bytes_max, bool general)
    : bytes_max_(bytes_max), general_(general), changed_(loop) {}

void EventStream::Push(std::string message) {
  bytes_ += message.size();
  events_.push_back({++last_number_, std::move(message)});
  // The newest stays whatever its size: it may be the answer.
  while (bytes_ > bytes_max_ && events_.size() > 1) {
    bytes_ -= events_.front().message.size();
    events_.pop_front();
  }
  changed_.cancel();
}

void EventStream::Send(std::string message) {
  if (!ended_) Push(std::move(message));
}

void EventStream::Finish(std::string message, std::function<void()> undelivered) {
  if (ended_) {
    if (undelivered) undelivered();
    return;
  }
  ended_ = true;
  answered_ = true;
  ended_at_ = std::chrono::steady_clock::now();
  undelivered_ = std::move(undelivered);
  Push(std::move(message));
  if (reader_ == 0) NobodyTookIt();
}

void EventStream::End() {
  if (ended_) return;
  ended_ = true;
  ended_at_ = std::chrono::steady_clock::now();
  changed_.cancel();
}

void EventStream::DeliveredForGood() {
  Delivered();
  answered_ = false;
  events_.clear();
  bytes_ = 0;
}

void EventStream::NobodyTookIt() {
  if (const auto undelivered = std::exchange(undelivered_, nullptr)) undelivered();
}

uint64_t EventStream::Attach() {
  reader_ = ++last_reader_;
  changed_.cancel();
  return reader_;
}

void EventStream::Detach(uint64_t reader) {
  if (reader_ != reader) return;
  reader_ = 0;
  if (ended_) NobodyTookIt();
}

const EventStream::Event* EventStream::After(uint64_t number) const {
  const auto found =
      std::upper_bound(events_.begin(), events_.end(), number, [](uint64_t n, const Event& e) { return n < e.number; });
  return found == events_.end() ? nullptr : &*found;
}

asio::awaitable<void> EventStream::Wait(std::chrono::milliseconds at_most) {
  changed_.expires_after(at_most);
  co_await changed_.async_wait(asio::as_tuple(asio::use_awaitable));
}

}  // namespace tally::gateway
