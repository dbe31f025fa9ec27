#include "server/connect/error.h"

#include <google/protobuf/util/json_util.h>

#include <array>
#include <nlohmann/json.hpp>
#include <string_view>

#include "absl/strings/escaping.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace tally::connect {
namespace {

struct Code {
  std::string_view name;
  int http;
};

// Connect's table of codes, in the order of gRPC's numbers.
constexpr std::array<Code, 17> kCodes = {{{"unknown", 500},
                                          {"canceled", 499},
                                          {"unknown", 500},
                                          {"invalid_argument", 400},
                                          {"deadline_exceeded", 504},
                                          {"not_found", 404},
                                          {"already_exists", 409},
                                          {"permission_denied", 403},
                                          {"resource_exhausted", 429},
                                          {"failed_precondition", 400},
                                          {"aborted", 409},
                                          {"out_of_range", 400},
                                          {"unimplemented", 501},
                                          {"internal", 500},
                                          {"unavailable", 503},
                                          {"data_loss", 500},
                                          {"unauthenticated", 401}}};

// A detail's readable form, for people with curl: Connect's `debug`.
nlohmann::json Readable(const google::protobuf::Any& detail) {
  std::string text;
  if (!google::protobuf::util::MessageToJsonString(detail, &text).ok()) return nullptr;
  nlohmann::json document = nlohmann::json::parse(text, nullptr, false);
  if (document.is_object()) document.erase("@type");
  return document;
}

}  // namespace

ops::HttpAnswer ErrorAnswer(const grpc::Status& status) {
  const auto number = static_cast<size_t>(status.error_code());
  const Code& code = number < kCodes.size() ? kCodes[number] : kCodes[0];
  nlohmann::json document = {{"code", code.name}, {"message", status.error_message()}};
  google::rpc::Status rich;
  if (rich.ParseFromString(status.error_details())) {
    for (const google::protobuf::Any& detail : rich.details()) {
      std::string value = absl::Base64Escape(detail.value());
      while (value.ends_with('=')) value.pop_back();
      const std::string_view url = detail.type_url();
      document["details"].push_back(
          {{"type", url.substr(url.rfind('/') + 1)}, {"value", value}, {"debug", Readable(detail)}});
    }
  }
  // A server's messages are UTF-8; what is not would be somebody else's, and is shown with marks in its place.
  return {code.http, "application/json",
          document.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n"};
}

}  // namespace tally::connect
