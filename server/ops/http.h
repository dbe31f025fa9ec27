#ifndef TALLY_SERVER_OPS_HTTP_H_
#define TALLY_SERVER_OPS_HTTP_H_

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

// A small HTTP/1.1 server for what operators' tools fetch: GET and HEAD of fixed paths, in plain text, without
// authentication. One thread. At most 256 connections, requests of at most 8 KiB, 5 seconds to send one and to take the
// answer; what exceeds that is cut off.
class HttpServer {
 public:
  // Called on the server's thread; must not block for long, or throw.
  using Handler = std::function<HttpAnswer()>;
  using Handlers = std::map<std::string, Handler>;  // by path

  // `address`: "ADDRESS:PORT" or "[ADDRESS]:PORT"; port 0 takes a free one. FailedPrecondition: it cannot be listened
  // on.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address, Handlers handlers);

  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // As listened on, with the port taken.
  const std::string& address() const;

 private:
  struct Running;
  explicit HttpServer(std::unique_ptr<Running> running);
  std::unique_ptr<Running> running_;
};

}  // namespace tally::ops

#endif  // TALLY_SERVER_OPS_HTTP_H_
