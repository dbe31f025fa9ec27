// What a call of tallyd comes to. Apart from client.h, so that who only passes answers on need not read every stub.
#pragma once

#include <chrono>
#include <utility>
#include <variant>

#include "lib/client/error_map.h"
#include "lib/client/send_deadline.h"
#include "tally/v1/calls.pb.h"

namespace tally::client {

// What a call came to: the service's response, or why there is none.
template <typename T>
class [[nodiscard]] Answer {
 public:
  Answer(T value) : held_(std::move(value)) {}            // NOLINT(google-explicit-constructor)
  Answer(Failure failure) : held_(std::move(failure)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(held_); }
  const T& value() const { return std::get<T>(held_); }                // only if ok()
  T& value() { return std::get<T>(held_); }                            // only if ok()
  const Failure& failure() const { return std::get<Failure>(held_); }  // only if not ok()

 private:
  std::variant<T, Failure> held_;
};

struct CallOptions {
  std::chrono::milliseconds timeout{10'000};     // the whole call, retries and their waits included
  std::chrono::milliseconds try_timeout{5'000};  // one try: a connection that hangs must leave time for another
};

// Whether the call may be sent now: granted to this attempt, and inside its send window. The last thing to ask before
// the first byte (see send_deadline.h). A disposition that is not known here is not a grant.
bool MaySend(const v1::AuthorizeRequest& request, const v1::AuthorizeResponse& response, const SendDeadline& started);

}  // namespace tally::client
