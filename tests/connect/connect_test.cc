#include "server/connect/connect.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <string>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "google/rpc/error_details.pb.h"
#include "tests/rpc/service.h"

namespace tally::test {
namespace {

using nlohmann::json;

constexpr size_t kBodyMax = 1 << 20;

struct HttpReply {
  int status = 0;
  std::string body;
  json document() const { return json::parse(body, nullptr, false); }
};

class ByHttp : public ::testing::Test {
 protected:
  void SetUp() override {
    ops::HttpServer::Posts posts;
    posts.body_max = kBodyMax;
    posts.too_large = connect::TooLarge(kBodyMax);
    posts.handler = [this](ops::HttpPost post, const ops::HttpServer::Answer& answer) {
      connect_.Handle(std::move(post), answer);
    };
    auto http = ops::HttpServer::Start("127.0.0.1:0", {}, std::move(posts));
    ASSERT_TRUE(http.ok()) << http.status();
    http_ = *std::move(http);
  }

  HttpReply Post(const std::string& path, const std::string& credential, const std::string& body,
                 const std::string& type = "application/json", const std::string& more = "") const {
    const std::string& address = http_->address();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(::connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    std::string request = absl::StrCat("POST ", path, " HTTP/1.0\r\nContent-Type: ", type,
                                       "\r\nContent-Length: ", body.size(), "\r\n", more);
    if (!credential.empty()) absl::StrAppend(&request, "Authorization: Bearer ", credential, "\r\n");
    absl::StrAppend(&request, "\r\n", body);
    for (size_t sent = 0; sent < request.size();) {
      const ssize_t n = send(fd, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) break;  // refused before it was read whole
      sent += static_cast<size_t>(n);
    }
    std::string reply;
    char buffer[4096];
    for (ssize_t n; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;) reply.append(buffer, static_cast<size_t>(n));
    close(fd);
    if (reply.size() < 12) return {};
    return {std::stoi(reply.substr(9, 3)), reply.substr(reply.find("\r\n\r\n") + 4)};
  }

  static std::string Authorizing(const v1::MintResponse& permit, const std::string& key) {
    const v1::AuthorizeRequest request = Service::Asking(permit, key);
    return json{{"permitToken", request.permit_token()},
                {"key", request.key()},
                {"attemptId", absl::Base64Escape(request.attempt_id())},
                {"tool", request.tool()},
                {"arguments", absl::Base64Escape(request.arguments())}}
        .dump();
  }

  Service service_;
  connect::Connect connect_{service_.server().InProcess()};
  std::unique_ptr<ops::HttpServer> http_;
};

TEST_F(ByHttp, AuthorizeAndCommitAsByGrpc) {
  const std::string& gateway = service_.Of("acme", v1::GATEWAY).credential;
  const v1::MintResponse permit = service_.Mint(service_.Terms("acme"));
  const std::string asking = Authorizing(permit, "k1");
  const HttpReply granted = Post("/tally.v1.Calls/Authorize", gateway, asking);
  ASSERT_EQ(granted.status, 200) << granted.body;
  EXPECT_EQ(granted.document()["disposition"], "DISPATCH");
  const json commit = {{"callId", granted.document()["callId"]},
                       {"attemptId", granted.document()["attemptId"]},
                       {"outcome", "OUTCOME_SUCCEEDED"},
                       {"result", absl::Base64Escape("done")}};
  const HttpReply ended = Post("/tally.v1.Calls/Commit", gateway, commit.dump(), "application/json; charset=utf-8");
  ASSERT_EQ(ended.status, 200) << ended.body;
  EXPECT_EQ(ended.document()["state"], "SUCCEEDED");

  v1::AuthorizeRequest again = Service::Asking(permit, "k1");
  const HttpReply replay = Post("/tally.v1.Calls/Authorize", gateway, again.SerializeAsString(), "application/proto");
  v1::AuthorizeResponse response;
  ASSERT_EQ(replay.status, 200);
  ASSERT_TRUE(response.ParseFromString(replay.body));
  EXPECT_EQ(response.disposition(), v1::REPLAY);
  EXPECT_EQ(response.result(), "done");
}

TEST_F(ByHttp, CredentialsAndRolesAreThoseOfGrpc) {
  const v1::MintResponse permit = service_.Mint(service_.Terms("acme"));
  const HttpReply none = Post("/tally.v1.Calls/Authorize", "", Authorizing(permit, "k"));
  EXPECT_EQ(none.status, 401);
  EXPECT_EQ(none.document()["code"], "unauthenticated");
  const HttpReply auditor =
      Post("/tally.v1.Calls/Authorize", service_.Of("acme", v1::AUDITOR).credential, Authorizing(permit, "k"));
  EXPECT_EQ(auditor.status, 403);
  EXPECT_EQ(auditor.document()["code"], "permission_denied");
  // The stable code, for programs and for people.
  const json detail = auditor.document()["details"][0];
  EXPECT_EQ(detail["type"], "google.rpc.ErrorInfo");
  std::string value;
  ASSERT_TRUE(absl::Base64Unescape(detail["value"].get<std::string>(), &value));
  google::rpc::ErrorInfo info;
  ASSERT_TRUE(info.ParseFromString(value));
  EXPECT_EQ(info.reason(), "PERMISSION_DENIED");
  EXPECT_EQ(detail["debug"]["reason"], "PERMISSION_DENIED");
}

TEST_F(ByHttp, WhatIsNotARequestSaysWhatIsWrong) {
  const std::string& gateway = service_.Of("acme", v1::GATEWAY).credential;
  EXPECT_EQ(Post("/tally.v1.Calls/Nothing", gateway, "{}").status, 501);
  EXPECT_EQ(Post("/tally.v1.Receipts/List", gateway, "{}").status, 501);  // a stream
  EXPECT_EQ(Post("/grpc.health.v1.Health/Check", gateway, "{}").status, 501);
  EXPECT_EQ(Post("/elsewhere", gateway, "{}").status, 501);
  EXPECT_EQ(Post("/tally.v1.Calls/Commit", gateway, "{}", "text/plain").status, 415);
  EXPECT_EQ(Post("/tally.v1.Calls/Commit", gateway, "{}", "application/json", "Content-Encoding: gzip\r\n").status,
            501);
  const char* const wrong[] = {"", "[]", "{", "{\"callid\":1}", "{\"attemptId\":\"***\"}", "{\"outcome\":\"MAYBE\"}"};
  for (const char* body : wrong) {
    const HttpReply reply = Post("/tally.v1.Calls/Commit", gateway, body);
    EXPECT_EQ(reply.status, 400) << body;
    EXPECT_EQ(reply.document()["code"], "invalid_argument") << body;
  }
  EXPECT_EQ(Post("/tally.v1.Calls/Commit", gateway, "\xff\xff", "application/proto").status, 400);
  EXPECT_EQ(Post("/tally.v1.Calls/Commit", gateway, std::string(4000, '['), "application/json").status, 400);
  for (const char* timeout : {"0", "-1", "x", "600001"}) {
    EXPECT_EQ(Post("/tally.v1.Calls/Commit", gateway, "{}", "application/json",
                   absl::StrCat("Connect-Timeout-Ms: ", timeout, "\r\n"))
                  .status,
              400)
        << timeout;
  }
  const HttpReply large = Post("/tally.v1.Calls/Commit", gateway, std::string(kBodyMax + 1, ' '));
  // 0: the answer was lost with the connection that was cut.
  EXPECT_TRUE(large.status == 429 || large.status == 0) << large.status;
}

TEST_F(ByHttp, ErrorsHaveConnectsStatuses) {
  const std::string& gateway = service_.Of("acme", v1::GATEWAY).credential;
  const json unknown = {{"callId", "018f0000-0000-7000-8000-000000000000"}};
  EXPECT_EQ(Post("/tally.v1.Calls/GetCall", service_.Of("acme", v1::OPERATOR).credential, unknown.dump()).status, 404);
  EXPECT_EQ(Post("/tally.v1.Calls/Authorize", gateway, R"({"permitToken":"none","key":"k"})").status, 401);
  service_.core().closing = true;
  const v1::MintResponse permit;
  EXPECT_EQ(Post("/tally.v1.Calls/Authorize", gateway, Authorizing(permit, "k")).status, 503);
  service_.core().closing = false;
}

}  // namespace
}  // namespace tally::test
