// tallyd, asked from the loop without blocking it.
//
// What a caller may rely on:
//  * As lib/client: an answer is the service's or a Failure of the error map; `contended` and `unavailable` are asked
//    again with the same request, so the same key and attempt id, and nothing else is; every question ends by its
//    timeout.
//  * Coroutines go on on the loop; only gRPC's own threads wait for the network.
//  * If tallyd cannot be reached, the answer is a Failure: nothing may be sent then.
// Call it from the loop only. Destroy it after the loop has stopped and before its io_context: it cancels what is under
// way, and waits for that.
#pragma once

#include <absl/status/statusor.h>

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstddef>
#include <memory>
#include <string>

#include "gateway/authority/permit_view.h"
#include "lib/client/answer.h"
#include "lib/client/endpoint.h"
#include "lib/client/send_deadline.h"
#include "lib/keys/secret.h"
#include "tally/v1/calls.pb.h"
#include "tally/v1/permits.pb.h"

namespace tally::gateway {

struct AuthorityOptions {
  client::Endpoint endpoint;
  client::CallOptions call = {};
  std::chrono::milliseconds permit_view_ttl{5'000};
  size_t permit_views_max = 10'000;
};

class Authority {
 public:
  // Opens no connection yet. The credential may be empty where a client certificate stands for it.
  static absl::StatusOr<std::unique_ptr<Authority>> Create(AuthorityOptions options, keys::Secret credential,
                                                           boost::asio::any_io_executor loop);
  ~Authority();
  Authority(const Authority&) = delete;

  // `started` must have been started before this attempt id was first used; it is asked for so that it cannot be
  // forgotten. The last thing before the first byte is client::MaySend(request, answer, started).
  boost::asio::awaitable<client::Answer<v1::AuthorizeResponse>> Authorize(v1::AuthorizeRequest request,
                                                                          const client::SendDeadline& started);
  // Where the answer is `unavailable`, nobody knows whether it was recorded: to be said again until it is not.
  boost::asio::awaitable<client::Answer<v1::CommitResponse>> Commit(v1::CommitRequest request);
  boost::asio::awaitable<client::Answer<v1::ExtendResponse>> Extend(v1::ExtendRequest request);
  boost::asio::awaitable<client::Answer<v1::CallInfo>> GetCall(v1::GetCallRequest request);

  // The permit that a token belongs to, at most permit_view_ttl old. Failure of kind `unauthorized`: tallyd does not
  // know the token (or the gateway).
  boost::asio::awaitable<client::Answer<PermitView>> GetPermit(std::string permit_token);
  // The next GetPermit asks tallyd.
  void ForgetPermit(const std::string& permit_token);

 private:
  class Channel;  // stubs, credential, and what is under way

  Authority(AuthorityOptions options, std::unique_ptr<Channel> channel, boost::asio::any_io_executor loop);

  template <typename Request, typename Response, typename Start>
  boost::asio::awaitable<client::Answer<Response>> Ask(Request request, Start start);

  const AuthorityOptions options_;
  const boost::asio::any_io_executor loop_;
  PermitViews views_;
  const std::unique_ptr<Channel> channel_;
};

}  // namespace tally::gateway
