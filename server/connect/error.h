#ifndef TALLY_SERVER_CONNECT_ERROR_H_
#define TALLY_SERVER_CONNECT_ERROR_H_

#include <grpcpp/support/status.h>

#include "server/ops/http.h"

namespace tally::connect {

// A gRPC error as Connect writes it: HTTP status by Connect's map, JSON body.
ops::HttpAnswer ErrorAnswer(const grpc::Status& status);

}  // namespace tally::connect

#endif  // TALLY_SERVER_CONNECT_ERROR_H_
