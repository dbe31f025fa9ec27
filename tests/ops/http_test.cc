#include "server/ops/http.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

namespace tally::ops {
namespace {

class Http : public ::testing::Test {
 protected:
  void SetUp() override {
    HttpServer::Handlers handlers;
    handlers["/healthz"] = [] { return HttpAnswer{503, "application/json", "{}\n"}; };
    handlers["/metrics"] = [] { return HttpAnswer{200, "text/plain", std::string(100'000, 'm')}; };
    auto server = HttpServer::Start("127.0.0.1:0", std::move(handlers));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  int Connect() const {
    const std::string& address = server_->address();
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    return fd;
  }

  // What the server says until it closes.
  std::string Say(const std::string& request) const {
    const int fd = Connect();
    std::string answer;
    if (send(fd, request.data(), request.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(request.size())) {
      char buffer[4096];
      for (ssize_t size; (size = recv(fd, buffer, sizeof(buffer), 0)) > 0;)
        answer.append(buffer, static_cast<size_t>(size));
    }
    close(fd);
    return answer;
  }

  std::unique_ptr<HttpServer> server_;
};

TEST_F(Http, AnswersWhatItHasAndNothingElse) {
  const std::string metrics = Say("GET /metrics?x=1 HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(metrics.starts_with("HTTP/1.0 200 OK")) << metrics.substr(0, 100);
  EXPECT_GT(metrics.size(), 100'000u);
  EXPECT_TRUE(Say("GET /healthz HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 503"));
  EXPECT_TRUE(Say("GET /elsewhere HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404"));
  EXPECT_TRUE(Say("DELETE /metrics HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 405"));
  const std::string head = Say("HEAD /metrics HTTP/1.0\r\n\r\n");
  EXPECT_NE(head.find("Content-Length: 100000"), std::string::npos);
  EXPECT_TRUE(head.ends_with("\r\n\r\n"));
}

TEST_F(Http, AnswersSeveralRequestsOnOneConnection) {
  const std::string both =
      Say("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\nGET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_NE(both.find("503", both.find("503") + 3), std::string::npos);
}

TEST_F(Http, CutsOffWhatIsNotHttpOrTooLarge) {
  EXPECT_EQ(Say("no such protocol\r\n\r\n"), "");
  EXPECT_EQ(Say("GET /metrics HTTP/1.0\r\nX: " + std::string(20'000, 'x') + "\r\n\r\n"), "");
}

// A client that never finishes its request is cut off, and does not keep others from being answered.
TEST_F(Http, ASlowClientIsCutOff) {
  const int slow = Connect();
  ASSERT_EQ(send(slow, "GET /met", 8, MSG_NOSIGNAL), 8);
  EXPECT_TRUE(Say("GET /healthz HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 503"));
  char byte;
  EXPECT_EQ(recv(slow, &byte, 1, 0), 0);
  close(slow);
}

TEST_F(Http, ClosesConnectionsBeyondItsLimit) {
  std::vector<int> held;
  for (int i = 0; i < 256; ++i) held.push_back(Connect());
  // The last of them has been accepted once it is answered.
  ASSERT_EQ(send(held.back(), "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 34, MSG_NOSIGNAL), 34);
  char byte;
  ASSERT_EQ(recv(held.back(), &byte, 1, 0), 1);
  EXPECT_EQ(Say("GET /healthz HTTP/1.0\r\n\r\n"), "");
  for (const int fd : held) close(fd);
}

TEST(HttpAddress, MustBeAnAddressAndAPort) {
  for (const char* wrong : {"", "9464", "localhost:9464", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"}) {
    EXPECT_FALSE(HttpServer::Start(wrong, {}).ok()) << wrong;
  }
}

}  // namespace
}  // namespace tally::ops
