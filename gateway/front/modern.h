// The era 2026-07-28 in front: no session, no initialize; each request says all there is to know.
//
// Behind it there is one upstream session for each permit token all the same, since upstreams of the older era need
// one. Those are told of no capabilities of the client's, so that they cannot ask the client anything; upstreams of
// this era are told with each call.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "gateway/front/http_server.h"
#include "gateway/front/session.h"
#include "lib/keys/hash.h"

namespace tally::gateway {

struct ModernAnswer {
  int status = 200;
  std::string body = {};                   // an answer at once; empty: it comes through the outlet
  std::function<void()> cancel = nullptr;  // on the agent's word, while it has not come
};

class Modern {
 public:
  explicit Modern(FrontServices services) : services_(std::move(services)) {}
  Modern(const Modern&) = delete;

  // Whether a POST is of this era, going by its body, and by its header where the body says nothing.
  static bool Takes(const ClientRequest& request, const mcp::Message& message);
  asio::awaitable<ClientReply> Handle(ClientRequest request, std::string token, mcp::Message message);
  // A request whose form was checked, on any transport. `outlet` adds what this era wants (ModernOutlet).
  asio::awaitable<ModernAnswer> Take(std::string token, mcp::Message message, std::vector<std::string> key_headers,
                                     SharedOutlet outlet);
  void Sweep();
  void CloseAll();

 private:
  const FrontServices services_;
  std::map<keys::Digest, SharedSession> sessions_;  // by the token's SHA-256
};

}  // namespace tally::gateway
