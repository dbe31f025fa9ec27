// One HTTP/1.1 exchange on a connection made for it and closed after it. Never a reused connection, never a second try,
// no redirects followed: a request that moves money must not be repeated by a library.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"

namespace tally::gateway {

namespace asio = boost::asio;

struct Url {
  bool tls = false;
  std::string host;          // without brackets
  std::string port;          // decimal
  std::string target;        // path and query, begins with '/'
  std::string ca_file = {};  // PEM of the authorities for TLS; empty: the system's

  std::string HostHeader() const;
};

// http://HOST[:PORT][/PATH] or https://…; no user, no fragment, no control characters.
absl::StatusOr<Url> ParseUrl(std::string_view text);

struct HttpRequest {
  std::string method = "POST";
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string body = {};
};

struct HttpHead {
  int status = 0;
  std::string content_type;  // lower case, without parameters
  std::string session_id;    // Mcp-Session-Id
};

// Ends an exchange from outside, at any time.
class Hangup {
 public:
  void Now();
  bool done() const { return done_; }

 private:
  friend class HangupScope;
  bool done_ = false;
  std::function<void()> close_;
};

struct HttpEvents {
  std::function<bool()> before_write = nullptr;          // false: not one byte is written
  std::function<void()> nothing_written = nullptr;       // the write failed and the system took nothing
  std::function<bool(const HttpHead&)> head = nullptr;   // false: enough
  std::function<bool(std::string_view)> body = nullptr;  // a piece of it; false: enough
};

struct HttpEnd {
  bool whole = false;  // the response came to its own end, or the reader had enough
  std::string why;     // where not whole; fit for a log
};

struct HttpTimeouts {
  std::chrono::milliseconds connect{10'000};
  std::chrono::milliseconds write{30'000};
  std::chrono::milliseconds silence{3'600'000};  // nothing came for so long
};

asio::awaitable<HttpEnd> Converse(const Url& url, HttpRequest request, HttpEvents events, HttpTimeouts timeouts,
                                  std::shared_ptr<Hangup> hangup);

}  // namespace tally::gateway
