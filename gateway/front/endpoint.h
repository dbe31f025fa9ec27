// The MCP endpoint over HTTP: who may speak; in the 2025-11-25 era in which session and on which stream.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <map>
#include <memory>
#include <string>

#include "gateway/front/http_server.h"
#include "gateway/front/modern.h"
#include "gateway/front/session.h"

namespace tally::gateway {

class Endpoint {
 public:
  // `port`: the one listened on, for what a Host header may say.
  Endpoint(FrontServices services, uint16_t port);
  Endpoint(const Endpoint&) = delete;

  asio::awaitable<ClientReply> Handle(ClientRequest request);
  // Ends sessions that nobody used for long, and what is kept of streams that ended. To be called every few seconds.
  void Sweep();
  void CloseAll();
  size_t sessions() const { return sessions_.size(); }

 private:
  struct Client {
    SharedSession session;
    std::shared_ptr<EventStream> general;
    std::map<uint64_t, std::shared_ptr<EventStream>> streams;  // of requests, by number
    uint64_t last_stream = 0;
  };
  using SharedClient = std::shared_ptr<Client>;

  asio::awaitable<ClientReply> Post(ClientRequest request, std::string token);
  asio::awaitable<ClientReply> Begin(ClientRequest request, std::string token, mcp::Message message);
  ClientReply Get(const ClientRequest& request, const std::string& token);
  ClientReply Delete(const ClientRequest& request, const std::string& token);
  ClientReply StreamOf(Client& client, const ClientRequest& request, mcp::Message message);

  bool HostAllowed(const std::string& host) const;
  bool OriginAllowed(const std::string& origin) const;
  std::string TokenOf(const ClientRequest& request) const;
  // Null with `refusal` filled: no such session, or another token's.
  SharedClient Find(const ClientRequest& request, const std::string& token, ClientReply* refusal);
  void End(const std::string& id);

  const FrontServices services_;
  const uint16_t port_;
  Modern modern_;
  std::map<std::string, SharedClient> sessions_;
};

}  // namespace tally::gateway
