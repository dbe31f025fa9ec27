#ifndef TALLY_SERVER_CONNECT_CONNECT_H_
#define TALLY_SERVER_CONNECT_CONNECT_H_

#include <grpcpp/channel.h>
#include <grpcpp/generic/generic_stub.h>

#include <memory>

#include "server/ops/http.h"

namespace tally::connect {

// The service for people without gRPC: the unary form of the Connect protocol (connectrpc.com/docs/protocol).
//   POST /tally.v1.SERVICE/METHOD, Content-Type application/json (ProtoJSON) or application/proto
// Every request becomes an RPC on a channel of this process, with the caller's own Authorization: credentials, roles,
// limits and answers are gRPC's. Errors are {"code","message","details"} under Connect's HTTP statuses; `details` carry
// google.rpc.ErrorInfo with the stable code as gRPC's do. Streams (List of receipts) are gRPC's alone.
class Connect {
 public:
  // `in_process`: leads to the service in this process.
  explicit Connect(std::shared_ptr<grpc::Channel> in_process);

  // Takes what an HttpServer is sent.
  void Handle(ops::HttpPost post, const ops::HttpServer::Answer& answer);

 private:
  grpc::GenericStub stub_;
};

// The answer to anything that is asked over plain HTTP from another machine.
ops::HttpAnswer OnlyOnLoopback();
// The answer to a body over the limit.
ops::HttpAnswer TooLarge(size_t bytes_max);

}  // namespace tally::connect

#endif  // TALLY_SERVER_CONNECT_CONNECT_H_
