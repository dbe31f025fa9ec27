// One HTTP request to somebody else's server, on libcurl: for look-ups and webhooks.
//
// What a caller may rely on:
//  * One request, no redirects followed, no proxy taken from the environment, no credentials or cookies of libcurl's
//  own.
//  * The address that is checked is the one that is connected to: private, loopback, link-local, multicast and other
//    addresses that are not of the public internet are refused unless allowed (also when a name resolves to them, also
//    as IPv4 inside IPv6).
//  * It ends by its timeout, and an answer above `answer_bytes_max` is a failure, not a cut answer.
//  * https verifies the certificate and the name; http only where it is allowed.
//  * Errors and logs never hold headers, bodies or a URL's query.
// Thread-safe; blocks.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tally::outbound {

struct Request {
  std::string method = "GET";
  std::string url;                                           // whole, already encoded
  std::vector<std::pair<std::string, std::string>> headers;  // neither name nor value may hold CR, LF or NUL
  std::string body;                                          // sent with POST, PUT, PATCH
  std::chrono::milliseconds timeout{10'000};
  size_t answer_bytes_max = 1 << 20;
  bool allow_private = false;
  bool allow_http = false;
  std::string ca_file;  // PEM; empty: the system's
};

struct Answer {
  int status = 0;
  std::string content_type;
  std::string body;
};

// An answer of any status, 3xx included. InvalidArgument: the request cannot be sent as it is (nothing was);
// PermissionDenied: its address is not allowed (nothing was sent); Unavailable: no connection (nothing was sent);
// DeadlineExceeded and Unknown: it may have been sent; ResourceExhausted: the answer was too large.
absl::StatusOr<Answer> Send(const Request& request);

}  // namespace tally::outbound
