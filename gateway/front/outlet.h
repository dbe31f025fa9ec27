// Where one request's messages go to a client: what belongs to it while it is worked on, and at last its answer.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>

namespace tally::gateway {

namespace asio = boost::asio;

class Outlet {
 public:
  virtual ~Outlet() = default;
  // A notification, or a request of the server's. One JSON text.
  virtual void Send(std::string message) = 0;
  // The answer; the last message. `undelivered` is called at most once, later, if nobody took it.
  virtual void Finish(std::string message, std::function<void()> undelivered = nullptr) = 0;
  // No answer will come.
  virtual void End() = 0;
  // Whether somebody is there to read.
  virtual bool read() const = 0;
};

using SharedOutlet = std::shared_ptr<Outlet>;

// An outlet that keeps what it was given, within a bound, so that a reader who lost its connection can take it up
// again. One reader at a time; a new one sends the old one away, so that no message is read on two connections.
class EventStream final : public Outlet {
 public:
  struct Event {
    uint64_t number = 0;  // from 1
    std::string message;
  };

  // `general`: a stream with no answer at its end (GET).
  EventStream(const asio::any_io_executor& loop, size_t bytes_max, bool general);

  void Send(std::string message) override;
  void Finish(std::string message, std::function<void()> undelivered = nullptr) override;
  void End() override;
  bool read() const override { return reader_ != 0; }

  bool general() const { return general_; }
  bool ended() const { return ended_; }
  std::chrono::steady_clock::time_point ended_at() const { return ended_at_; }

  // For readers. The number stays valid until somebody else attaches.
  uint64_t Attach();
  bool Attached(uint64_t reader) const { return reader_ == reader; }
  void Detach(uint64_t reader);
  // The first event after that number; null: none yet.
  const Event* After(uint64_t number) const;
  // Null until there is one.
  const Event* Answer() const { return answered_ ? &events_.back() : nullptr; }
  // The event that is the answer was written out in full.
  void Delivered() { undelivered_ = nullptr; }
  // The HTTP status of the answer, where it goes out as plain JSON.
  void set_status(int status) { status_ = status; }
  int status() const { return status_; }
  // It went out as plain JSON: without an event id nobody can ask for it again.
  void DeliveredForGood();
  // Nothing is kept, and nothing will come.
  bool spent() const { return ended_ && events_.empty(); }
  // Returns when there may be something new, or the time is over.
  asio::awaitable<void> Wait(std::chrono::milliseconds at_most);
  void Wake() { changed_.cancel(); }

 private:
  void Push(std::string message);
  void NobodyTookIt();

  const size_t bytes_max_;
  const bool general_;
  asio::steady_timer changed_;
  std::deque<Event> events_;
  size_t bytes_ = 0;
  uint64_t last_number_ = 0;
  uint64_t reader_ = 0;
  uint64_t last_reader_ = 0;
  bool ended_ = false;
  bool answered_ = false;
  int status_ = 200;
  std::chrono::steady_clock::time_point ended_at_;
  std::function<void()> undelivered_;
};

}  // namespace tally::gateway
