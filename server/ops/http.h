#ifndef TALLY_SERVER_OPS_HTTP_H_
#define TALLY_SERVER_OPS_HTTP_H_

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "absl/status/statusor.h"

namespace tally::ops {

struct HttpAnswer {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body;
};

struct HttpPost {
  std::string path;
  std::string content_type, content_encoding, authorization, timeout;  // of headers; empty: absent
  std::string body;
};

// Who takes POST.
struct HttpPosts {
  // Called once, on any thread, at once or later; after the server's end it does nothing.
  using Answer = std::function<void(HttpAnswer)>;
  // Called on the server's thread; must not block for long, or throw. Null: POST is answered 405.
  std::function<void(HttpPost, Answer)> handler;
  size_t body_max = 0;  // bytes; more is answered `too_large`
  HttpAnswer too_large{413, "text/plain; charset=utf-8", "The body is too large.\n"};
};

// A GET whose answer takes a while.
struct HttpSlow {
  // Called once, on the server's thread; must not block or throw. The answer may come on any thread, at once or later;
  // after the server's end, or after `patience`, it does nothing.
  std::function<void(std::function<void(HttpAnswer)>)> handler;
  std::chrono::milliseconds patience{0};
  std::function<HttpAnswer()> too_late;  // what is answered when that is over
};

// A small HTTP/1.1 server: GET and HEAD of fixed paths for operators' tools, in plain text and without authentication;
// and POST, where somebody takes it. One thread. At most 256 connections, 8 KiB of headers, 5 seconds to send a request
// without a body and to take the answer, 30 to send one with a body; what exceeds that is cut off.
class HttpServer {
 public:
  // Called on the server's thread; must not block for long, or throw.
  using Handler = std::function<HttpAnswer()>;
  using Handlers = std::map<std::string, Handler>;  // by path
  using Answer = HttpPosts::Answer;
  using Posts = HttpPosts;
  using Slow = std::map<std::string, HttpSlow>;  // by path

  // `address`: "ADDRESS:PORT" or "[ADDRESS]:PORT"; port 0 takes a free one. FailedPrecondition: it cannot be listened
  // on.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address, Handlers handlers,
                                                           Posts posts = {}, Slow slow = {});

  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // Whether only this machine can reach what listens on `address`.
  static bool IsLoopback(const std::string& address);

  // As listened on, with the port taken.
  const std::string& address() const;

 private:
  struct Running;
  explicit HttpServer(std::shared_ptr<Running> running);
  std::shared_ptr<Running> running_;
};

}  // namespace tally::ops

#endif  // TALLY_SERVER_OPS_HTTP_H_
