// What an answer to Authorize comes to: exit code, document, and words.
#pragma once

#include <string>

#include "cli/json_form.h"
#include "lib/client/send_deadline.h"
#include "tally/v1/calls.pb.h"

namespace tally::cli {

struct AuthorizeAnswer {
  int exit_code;
  Json document;
  std::string for_people;
};

// A grant whose send window is over by now, or that is for another attempt, is told as PENDING: it must not be sent. So
// is a disposition that is not known here.
AuthorizeAnswer Describe(const v1::AuthorizeRequest& request, const v1::AuthorizeResponse& response,
                         const client::SendDeadline& started);

}  // namespace tally::cli
