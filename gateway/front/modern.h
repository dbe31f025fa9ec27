// The MCP endpoint over HTTP, era 2026-07-28: no session, no initialize; each request says all there is to know.
//
// Behind it there is one upstream session for each permit token all the same, since upstreams of the older era need
// one. It is told of no capabilities of the client's, so that an upstream cannot ask the client anything.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <map>
#include <memory>
#include <string>

#include "gateway/front/http_server.h"
#include "gateway/front/session.h"
#include "lib/keys/hash.h"

namespace tally::gateway {

class Modern {
 public:
  explicit Modern(FrontServices services) : services_(std::move(services)) {}
  Modern(const Modern&) = delete;

  // Whether a POST is of this era, going by its body, and by its header where the body says nothing.
  static bool Takes(const ClientRequest& request, const mcp::Message& message);
  asio::awaitable<ClientReply> Handle(ClientRequest request, std::string token, mcp::Message message);
  void Sweep();
  void CloseAll();

 private:
  const FrontServices services_;
  std::map<keys::Digest, SharedSession> sessions_;  // by the token's SHA-256
};

}  // namespace tally::gateway
