#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "absl/strings/str_cat.h"
#include "lib/outbound/request.h"

extern char** environ;

namespace tally::outbound {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// server.py, until this goes.
class Server {
 public:
  explicit Server(std::vector<std::string> arguments = {}) {
    arguments.insert(arguments.begin(), {"python3", "tests/outbound/server.py"});
    std::vector<char*> argv;
    for (std::string& argument : arguments) argv.push_back(argument.data());
    argv.push_back(nullptr);
    int in[2], out[2];
    EXPECT_EQ(pipe2(in, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, in[0], 0);
    posix_spawn_file_actions_adddup2(&actions, out[1], 1);
    EXPECT_EQ(posix_spawnp(&pid_, "python3", &actions, nullptr, argv.data(), environ), 0);
    posix_spawn_file_actions_destroy(&actions);
    close(in[0]);
    close(out[1]);
    stdin_ = in[1];
    FILE* told = fdopen(out[0], "r");
    EXPECT_EQ(fscanf(told, "%d", &port_), 1);
    fclose(told);
  }
  ~Server() {
    close(stdin_);
    waitpid(pid_, nullptr, 0);
  }

  std::string Url(const std::string& path, const std::string& host = "127.0.0.1", const std::string& scheme = "http") {
    return absl::StrCat(scheme, "://", host, ":", port_, path);
  }
  int port() const { return port_; }

  nlohmann::json Seen() {
    Request request;
    request.url = Url("/seen");
    request.allow_private = request.allow_http = true;
    const auto answer = Send(request);
    EXPECT_TRUE(answer.ok()) << answer.status();
    return nlohmann::json::parse(answer.ok() ? answer->body : "[]");
  }

 private:
  pid_t pid_ = 0;
  int stdin_ = -1;
  int port_ = 0;
};

class Outbound : public ::testing::Test {
 protected:
  Request To(const std::string& path) {
    Request request;
    request.url = server_.Url(path);
    request.timeout = std::chrono::seconds(20);
    request.allow_private = request.allow_http = true;
    return request;
  }
  Server server_;
};

TEST_F(Outbound, SendsWhatItIsGivenAndNothingOfItsOwnBesides) {
  Request request = To("/echo?a=%2F..%2F&b=/../x");
  request.method = "POST";
  request.headers = {{"Content-Type", "application/json"}, {"X-Empty", ""}, {"Authorization", "Bearer abc"}};
  request.body = std::string("{\"zero\": \"") + "\\u0000\"}";
  const auto answer = Send(request);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->content_type, "application/json; charset=utf-8");
  const auto told = nlohmann::json::parse(answer->body);
  EXPECT_EQ(told["method"], "POST");
  EXPECT_EQ(told["path"], "/echo?a=%2F..%2F&b=/../x");
  EXPECT_EQ(told["body"], request.body);
  std::map<std::string, std::string> headers;
  for (const auto& header : told["headers"]) headers[header[0]] = header[1];
  EXPECT_EQ(headers["Content-Type"], "application/json");
  EXPECT_EQ(headers["Authorization"], "Bearer abc");
  EXPECT_EQ(headers["User-Agent"], "tallystick");
  EXPECT_EQ(headers.count("X-Empty"), 1u);
  EXPECT_EQ(headers.count("Expect"), 0u);
  EXPECT_EQ(headers.count("Cookie"), 0u);
}

TEST_F(Outbound, EveryMethodArrivesAsItself) {
  for (const char* method : {"GET", "POST", "PUT", "PATCH", "DELETE"}) {
    Request request = To("/echo");
    request.method = method;
    const auto answer = Send(request);
    ASSERT_TRUE(answer.ok()) << method << answer.status();
    EXPECT_EQ(nlohmann::json::parse(answer->body)["method"], method);
  }
  Request head = To("/size/5");
  head.method = "HEAD";
  const auto answer = Send(head);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->body, "");
}

TEST_F(Outbound, AnAnswerOfAnyStatusIsAnAnswer) {
  for (int status : {204, 304, 400, 401, 404, 407, 410, 417, 429, 500, 503}) {
    const auto answer = Send(To(absl::StrCat("/status/", status)));
    ASSERT_TRUE(answer.ok()) << status << answer.status();
    EXPECT_EQ(answer->status, status);
  }
  EXPECT_EQ(server_.Seen().size(), 11u);  // each once
}

TEST_F(Outbound, ARedirectIsTheAnswerAndIsNotFollowed) {
  const auto answer = Send(To("/redirect"));
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(answer->status, 302);
  EXPECT_EQ(answer->body, "elsewhere");
  EXPECT_EQ(server_.Seen(), nlohmann::json({"GET /redirect"}));
}

TEST_F(Outbound, AnAnswerThatDoesNotComeOrDripsEndsByTheTimeout) {
  for (const char* path : {"/silent", "/drip"}) {
    Request request = To(path);
    request.timeout = std::chrono::milliseconds(300);
    const auto answer = Send(request);
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kDeadlineExceeded) << path << answer.status();
  }
}

TEST_F(Outbound, AnAnswerUpToTheLimitIsTakenAndOneByteMoreIsAFailure) {
  for (const char* kind : {"/size/", "/unsized/"}) {
    Request request = To(absl::StrCat(kind, 50'000));
    request.answer_bytes_max = 50'000;
    const auto taken = Send(request);
    ASSERT_TRUE(taken.ok()) << kind << taken.status();
    EXPECT_EQ(taken->body.size(), 50'000u);
    request.answer_bytes_max = 49'999;
    EXPECT_EQ(Send(request).status().code(), absl::StatusCode::kResourceExhausted) << kind;
  }
  EXPECT_EQ(Send(To("/headers")).status().code(), absl::StatusCode::kResourceExhausted);
}

TEST_F(Outbound, AServerThatHangsUpLeavesItUnknownAndIsNotAskedAgain) {
  Request request = To("/hang-up");
  request.method = "POST";
  request.body = "once";
  EXPECT_EQ(Send(request).status().code(), absl::StatusCode::kUnknown);
  EXPECT_EQ(server_.Seen(), nlohmann::json({"POST /hang-up"}));
}

TEST_F(Outbound, AnAddressThatIsNotPublicIsRefusedHoweverItIsNamed) {
  for (const char* host : {"127.0.0.1", "localhost", "127.1", "0x7f.1", "2130706433", "0.0.0.0", "[::1]", "[::]",
                           "[::ffff:127.0.0.1]", "sub.localhost"}) {
    Request request = To("/echo");
    request.url = server_.Url("/echo?secret", host);
    request.allow_private = false;
    const auto answer = Send(request);
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kPermissionDenied) << host << answer.status();
    EXPECT_THAT(std::string(answer.status().message()), Not(HasSubstr("secret")));
  }
  EXPECT_EQ(server_.Seen().size(), 0u);
  Request allowed = To("/echo");
  allowed.url = server_.Url("/echo", "localhost");
  EXPECT_TRUE(Send(allowed).ok());
}

TEST_F(Outbound, ANameThatTheSystemResolvesToAPrivateAddressIsRefused) {
  char name[256] = "";
  ASSERT_EQ(gethostname(name, sizeof(name) - 1), 0);
  Request request = To("/echo");
  request.url = server_.Url("/echo", name);
  request.allow_private = false;
  const absl::StatusCode code = Send(request).status().code();
  // A machine whose name does not resolve cannot show it.
  EXPECT_TRUE(code == absl::StatusCode::kPermissionDenied || code == absl::StatusCode::kUnavailable) << name;
  EXPECT_EQ(server_.Seen().size(), 0u);
}

TEST_F(Outbound, NoProxyOfTheEnvironmentIsAsked) {
  Server proxy;
  for (const char* name : {"http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"}) {
    setenv(name, proxy.Url("/").c_str(), 1);
  }
  const auto answer = Send(To("/echo"));
  Request unresolvable = To("/echo");
  unresolvable.url = "http://no-such-host.invalid/";
  const auto none = Send(unresolvable);
  for (const char* name : {"http_proxy", "HTTP_PROXY", "https_proxy", "all_proxy", "ALL_PROXY"}) unsetenv(name);
  EXPECT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(none.status().code(), absl::StatusCode::kUnavailable) << none.status();
  EXPECT_EQ(proxy.Seen().size(), 0u);
}

TEST_F(Outbound, WhatCannotBeSentAsItIsIsNotSent) {
  std::vector<Request> requests;
  for (const std::string& value : {std::string("a\r\nX-Bent: 1"), std::string("a\nb"), std::string("a\0b", 3)}) {
    requests.push_back(To("/echo"));
    requests.back().headers = {{"X-Straight", value}};
  }
  for (const std::string& name :
       {std::string("X-A: 1\r\nX-B"), std::string(""), std::string("X A"), std::string("X:"), std::string("X\0A", 3),
        std::string("Content-Length"), std::string("HOST"), std::string("transfer-encoding")}) {
    requests.push_back(To("/echo"));
    requests.back().headers = {{name, "1"}};
  }
  for (const char* method : {"", "get", "CONNECT", "GET /other HTTP/1.1\r\n", "TRACE"}) {
    requests.push_back(To("/echo"));
    requests.back().method = method;
  }
  requests.push_back(To("/echo"));
  requests.back().body = "a body with GET";
  requests.push_back(To("/echo"));
  requests.back().timeout = std::chrono::milliseconds(0);
  requests.push_back(To("/echo"));
  requests.back().url = server_.Url("/echo", "user:hunter2@127.0.0.1");
  requests.push_back(To("/echo"));
  requests.back().allow_http = false;
  for (const Request& request : requests) {
    const auto answer = Send(request);
    EXPECT_EQ(answer.status().code(), absl::StatusCode::kInvalidArgument) << request.url << answer.status();
    EXPECT_THAT(std::string(answer.status().message()), Not(HasSubstr("hunter2")));
  }
  EXPECT_EQ(server_.Seen().size(), 0u);
}

TEST_F(Outbound, APortThatNobodyListensOnIsUnavailable) {
  int port = 0;
  {
    Server gone;
    port = gone.port();
  }
  Request request = To("/");
  request.url = absl::StrCat("http://127.0.0.1:", port, "/secret?secret");
  const absl::Status status = Send(request).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << status;
  EXPECT_THAT(std::string(status.message()), Not(HasSubstr("secret")));
}

TEST_F(Outbound, ManyThreadsSendAtOnce) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([this] {
      for (int j = 0; j < 5; ++j) EXPECT_TRUE(Send(To("/echo")).ok());
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(server_.Seen().size(), 40u);
}

// ---- TLS ----

class OutboundTls : public ::testing::Test {
 protected:
  void SetUp() override {
    char pattern[] = "/tmp/tally-outbound-XXXXXX";
    ASSERT_NE(mkdtemp(pattern), nullptr);
    folder_ = pattern;
    for (const char* name : {"one", "other"}) {
      const std::string command = absl::StrCat(
          "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost",
          " -addext subjectAltName=DNS:localhost -keyout ", folder_, "/", name, ".key -out ", folder_, "/", name,
          ".pem 2>/dev/null");
      ASSERT_EQ(system(command.c_str()), 0);
    }
    server_ = std::make_unique<Server>(std::vector<std::string>{folder_ + "/one.pem", folder_ + "/one.key"});
  }
  void TearDown() override {
    server_.reset();
    std::filesystem::remove_all(folder_);
  }
  absl::StatusOr<Answer> Ask(const std::string& host, const std::string& ca) {
    Request request;
    request.url = server_->Url("/echo", host, "https");
    request.allow_private = true;
    if (!ca.empty()) request.ca_file = absl::StrCat(folder_, "/", ca);
    return Send(request);
  }
  std::string folder_;
  std::unique_ptr<Server> server_;
};

TEST_F(OutboundTls, TheCertificateAndTheNameAreVerified) {
  EXPECT_TRUE(Ask("localhost", "one.pem").ok()) << Ask("localhost", "one.pem").status();
  const absl::Status foreign = Ask("localhost", "other.pem").status();
  EXPECT_EQ(foreign.code(), absl::StatusCode::kUnavailable);
  EXPECT_THAT(std::string(foreign.message()), HasSubstr("certificate"));
  EXPECT_EQ(Ask("localhost", "").status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(Ask("127.0.0.1", "one.pem").status().code(), absl::StatusCode::kUnavailable);  // another name
  EXPECT_FALSE(Ask("localhost", "missing.pem").ok());
}

TEST_F(OutboundTls, APrivateAddressIsRefusedBeforeAnyHandshake) {
  Request request;
  request.url = server_->Url("/echo", "localhost", "https");
  request.ca_file = folder_ + "/one.pem";
  EXPECT_EQ(Send(request).status().code(), absl::StatusCode::kPermissionDenied);
}

}  // namespace
}  // namespace tally::outbound
