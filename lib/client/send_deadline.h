// May the first byte still be written? A grant to send is good for `send_within_ms`, counted from the moment Authorize
// was first sent with this attempt id, on a clock that goes on while the machine sleeps. A gateway that was stopped for
// an hour must not wake up and send what was meanwhile judged "not happened".
//
//   SendDeadline started = SendDeadline::Start();       // before the first Authorize of this attempt
//   auto answer = client.Authorize(request, started);   // asked again with the same attempt id as often as needed
//   journal.WriteAndSync(kSending, attempt_id);
//   if (!started.MayStillSend(answer.value().send_within_ms())) { … commit NOT_SENT … }
//   … write the first byte, with nothing in between …
//
// What it cannot do: a pause of this process between MayStillSend and the write, however short the code between them,
// is not fenced by anything. Keep no lock, no allocation and no log line there; the lease, the parked state and the
// reconciler's waiting time cover what is left.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>

namespace tally::client {

class SendDeadline {
 public:
  // Nanoseconds of a clock that never goes back and counts suspension; nullopt if it cannot be read.
  using Clock = std::function<std::optional<int64_t>()>;

  // On CLOCK_BOOTTIME. Call it before Authorize is first sent with an attempt id, and keep it for all later asking.
  static SendDeadline Start();
  static SendDeadline Start(Clock clock);

  // True only while less than send_within_ms has certainly passed. A clock that cannot be read, or that went back,
  // gives false.
  bool MayStillSend(int64_t send_within_ms) const;

  // Since Start; nullopt if that cannot be told.
  std::optional<int64_t> ElapsedNs() const;

 private:
  SendDeadline(Clock clock, std::optional<int64_t> started_ns);

  Clock clock_;
  std::optional<int64_t> started_ns_;
};

}  // namespace tally::client
