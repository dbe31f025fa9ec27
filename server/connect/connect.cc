#include "server/connect/connect.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <google/protobuf/util/json_util.h>

#include <charconv>
#include <chrono>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "server/connect/error.h"
#include "server/rpc/status.h"
// Linked, so that their messages are known by name.
#include "tally/v1/calls.pb.h"
#include "tally/v1/parked.pb.h"
#include "tally/v1/permits.pb.h"
#include "tally/v1/receipts.pb.h"
#include "tally/v1/tenants.pb.h"
#include "tally/v1/webhooks.pb.h"

namespace tally::connect {
namespace {

using google::protobuf::Message;
using google::protobuf::MethodDescriptor;

constexpr std::string_view kPackage = "tally.v1.";
constexpr std::chrono::milliseconds kTimeout{30'000};
constexpr int64_t kTimeoutMaxMs = 600'000;

const MethodDescriptor* FindMethod(std::string_view path) {
  if (!path.starts_with('/') || !path.substr(1).starts_with(kPackage)) return nullptr;
  path.remove_prefix(1);
  const size_t slash = path.find('/');
  if (slash == std::string_view::npos) return nullptr;
  const auto* service =
      google::protobuf::DescriptorPool::generated_pool()->FindServiceByName(std::string(path.substr(0, slash)));
  return service == nullptr ? nullptr : service->FindMethodByName(std::string(path.substr(slash + 1)));
}

std::unique_ptr<Message> NewMessage(const google::protobuf::Descriptor* type) {
  return std::unique_ptr<Message>(google::protobuf::MessageFactory::generated_factory()->GetPrototype(type)->New());
}

grpc::ByteBuffer ToBuffer(const Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

std::string BytesOf(const grpc::ByteBuffer& buffer) {
  std::vector<grpc::Slice> slices;
  std::string bytes;
  if (!buffer.Dump(&slices).ok()) return bytes;
  for (const grpc::Slice& slice : slices) bytes.append(reinterpret_cast<const char*>(slice.begin()), slice.size());
  return bytes;
}

// What lives from the request until gRPC has answered.
struct Exchange {
  const MethodDescriptor* method = nullptr;
  bool json = false;
  grpc::ClientContext context;
  grpc::ByteBuffer request, response;
  ops::HttpServer::Answer answer;

  ops::HttpAnswer Answered(const grpc::Status& status) {
    if (!status.ok()) return ErrorAnswer(status);
    std::string bytes = BytesOf(response);
    if (!json) return {200, "application/proto", std::move(bytes)};
    const std::unique_ptr<Message> message = NewMessage(method->output_type());
    std::string text;
    if (!message->ParseFromString(bytes) || !google::protobuf::util::MessageToJsonString(*message, &text).ok()) {
      return ErrorAnswer(
          {grpc::StatusCode::INTERNAL, "the answer cannot be written as JSON; ask for application/proto"});
    }
    return {200, "application/json", text + "\n"};
  }
};

// Fills what gRPC needs, or says what is wrong with the request.
grpc::Status Translate(const ops::HttpPost& post, Exchange& exchange) {
  exchange.method = FindMethod(post.path);
  if (exchange.method == nullptr) {
    return {grpc::StatusCode::UNIMPLEMENTED,
            "there is no such method; paths are /tally.v1.SERVICE/METHOD, such as /tally.v1.Calls/Authorize"};
  }
  if (exchange.method->server_streaming() || exchange.method->client_streaming()) {
    return {grpc::StatusCode::UNIMPLEMENTED,
            "this method is a stream, which plain HTTP does not carry here; use gRPC, "
            "or `tally receipt export`"};
  }
  if (!post.content_encoding.empty() && post.content_encoding != "identity") {
    return {grpc::StatusCode::UNIMPLEMENTED, "compressed requests are not taken: leave out Content-Encoding"};
  }
  const std::unique_ptr<Message> message = NewMessage(exchange.method->input_type());
  if (exchange.json) {
    const auto read = google::protobuf::util::JsonStringToMessage(post.body, message.get());
    // protobuf's own words may quote the body, which may hold secrets.
    if (!read.ok()) {
      return rpc::Malformed(
          absl::StrCat("the body is not a ", exchange.method->input_type()->full_name(),
                       " in JSON: bytes are base64, 64-bit integers may be strings, unknown fields are errors"));
    }
  } else if (!message->ParseFromString(post.body)) {
    return rpc::Malformed(absl::StrCat("the body is not a ", exchange.method->input_type()->full_name()));
  }
  exchange.request = ToBuffer(*message);
  std::chrono::milliseconds timeout = kTimeout;
  if (!post.timeout.empty()) {
    int64_t given = 0;
    const char* const end = post.timeout.data() + post.timeout.size();
    const auto [stopped, error] = std::from_chars(post.timeout.data(), end, given);
    if (error != std::errc() || stopped != end || given < 1 || given > kTimeoutMaxMs) {
      return rpc::Malformed(absl::StrCat("Connect-Timeout-Ms must be 1 to ", kTimeoutMaxMs));
    }
    timeout = std::chrono::milliseconds(given);
  }
  exchange.context.set_deadline(std::chrono::system_clock::now() + timeout);
  if (!post.authorization.empty()) exchange.context.AddMetadata("authorization", post.authorization);
  return grpc::Status::OK;
}

}  // namespace

Connect::Connect(std::shared_ptr<grpc::Channel> in_process) : stub_(std::move(in_process)) {}

void Connect::Handle(ops::HttpPost post, const ops::HttpServer::Answer& answer) {
  const std::string_view type = std::string_view(post.content_type).substr(0, post.content_type.find(';'));
  if (type != "application/json" && type != "application/proto") {
    return answer({415, "text/plain; charset=utf-8",
                   "Content-Type must be application/json or application/proto. Nothing was done.\n"});
  }
  auto exchange = std::make_unique<Exchange>();
  exchange->json = type == "application/json";
  if (const grpc::Status wrong = Translate(post, *exchange); !wrong.ok()) return answer(ErrorAnswer(wrong));
  exchange->answer = answer;
  Exchange* raw = exchange.release();  // until gRPC has answered, which it always does: there is a deadline
  stub_.UnaryCall(&raw->context, absl::StrCat("/", raw->method->service()->full_name(), "/", raw->method->name()), {},
                  &raw->request, &raw->response, [raw](grpc::Status status) {
                    const std::unique_ptr<Exchange> done(raw);
                    done->answer(done->Answered(status));
                  });
}

ops::HttpAnswer OnlyOnLoopback() {
  return ErrorAnswer(
      {grpc::StatusCode::PERMISSION_DENIED,
       "credentials are not taken over plain HTTP from other machines. Nothing was done. Put listen.http "
       "on a loopback address, behind a proxy that speaks TLS, or use gRPC over TLS"});
}

ops::HttpAnswer TooLarge(size_t bytes_max) {
  return ErrorAnswer({grpc::StatusCode::RESOURCE_EXHAUSTED,
                      absl::StrCat("the body has more than ", bytes_max, " bytes. Nothing was done")});
}

}  // namespace tally::connect
