// HTTP/1.1 in front: connections, limits, and event streams. What a request means is the handler's business.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "gateway/config/config.h"
#include "gateway/front/outlet.h"

namespace tally::gateway {

struct ClientRequest {
  std::string method;                               // GET, POST, DELETE, …
  std::string path;                                 // without query
  std::multimap<std::string, std::string> headers;  // names in lower case
  std::string body;

  // The only value of a header; nullopt if there is none, or several.
  std::optional<std::string> Header(std::string_view lower_case_name) const;
  std::vector<std::string> Headers(std::string_view lower_case_name) const;
};

struct ClientReply {
  int status = 200;
  std::vector<std::pair<std::string, std::string>> headers = {};
  std::string content_type = "application/json";
  std::string body = {};

  // Not null: the answer is what comes on this stream, after the event of that number. As one JSON body if the answer
  // comes quickly and alone, or if `events` is false; as server-sent events otherwise.
  std::shared_ptr<EventStream> stream = nullptr;
  uint64_t after = 0;
  bool events = true;
  bool json = true;
  std::string event_prefix = {};  // of the ids by which this stream is taken up again
  bool priming = false;
  std::chrono::milliseconds quick{250};     // an answer that comes alone within this is plain JSON
  std::function<void()> hung_up = nullptr;  // the client closed the connection before the answer
};

using ClientHandler = std::function<asio::awaitable<ClientReply>(ClientRequest request)>;

class HttpServer {
 public:
  // Listens at once. Fails with what is wrong with the address.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Listen(asio::any_io_executor loop, const Config& config,
                                                            ClientHandler handler);
  virtual ~HttpServer() = default;

  virtual uint16_t port() const = 0;
  // Takes no new connection; those there are end after the request they are at.
  virtual void Stop() = 0;
};

}  // namespace tally::gateway
