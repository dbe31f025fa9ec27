#include "server/ops/http.h"

#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <thread>
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

class HttpPosts : public Http {
 protected:
  void SetUp() override {
    HttpServer::Posts posts;
    posts.body_max = 100;
    posts.handler = [this](HttpPost post, HttpServer::Answer answer) {
      if (post.path == "/later") {
        threads_.emplace_back([post, answer] { answer({200, "text/plain", "later " + post.body}); });
      } else if (post.path == "/never") {
        kept_.push_back(answer);
      } else {
        answer({200, "text/plain", post.path + " " + post.content_type + " " + post.authorization + " " + post.body});
      }
    };
    auto server = HttpServer::Start("127.0.0.1:0", {}, std::move(posts));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void TearDown() override {
    for (std::thread& thread : threads_) thread.join();
  }

  static std::string Post(const std::string& path, const std::string& body, const std::string& more = "") {
    return "POST " + path + " HTTP/1.0\r\nContent-Length: " + std::to_string(body.size()) + "\r\n" + more + "\r\n" +
           body;
  }

  std::vector<std::thread> threads_;
  std::vector<HttpServer::Answer> kept_;
};

TEST_F(HttpPosts, AreHandedOnWithWhatTheyCarry) {
  const std::string answer =
      Say(Post("/do?x=1", "{}", "Content-Type: application/json\r\nAuthorization: Bearer b\r\n"));
  EXPECT_TRUE(answer.ends_with("\r\n\r\n/do application/json Bearer b {}")) << answer;
  EXPECT_TRUE(Say("GET /do HTTP/1.0\r\n\r\n").starts_with("HTTP/1.0 404"));
}

TEST_F(HttpPosts, MayBeAnsweredLaterOnAnotherThread) {
  EXPECT_TRUE(Say(Post("/later", "x")).ends_with("\r\n\r\nlater x"));
}

TEST_F(HttpPosts, AtTheLimitAreTakenAndOneByteBeyondIsNot) {
  EXPECT_TRUE(Say(Post("/do", std::string(100, 'x'))).starts_with("HTTP/1.0 200"));
  EXPECT_TRUE(Say(Post("/do", std::string(101, 'x'))).starts_with("HTTP/1.0 413"));
  const std::string chunk = "65\r\n" + std::string(101, 'x') + "\r\n0\r\n\r\n";
  EXPECT_TRUE(
      Say("POST /do HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk).starts_with("HTTP/1.1 413"));
}

TEST_F(HttpPosts, AnAnswerAfterTheServersEndGoesNowhere) {
  const int waiting = Connect();
  const std::string request = Post("/never", "x");
  ASSERT_EQ(send(waiting, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
  // Requests of one connection are read in order by one thread: once another was answered, give the first its time.
  for (int tries = 0; tries < 1000 && kept_.empty(); ++tries) {
    Say(Post("/do", ""));
  }
  server_.reset();
  ASSERT_EQ(kept_.size(), 1u);
  kept_.front()({200, "text/plain", "too late"});
  close(waiting);
}

class HttpSlowly : public Http {
 protected:
  void SetUp() override {
    const auto too_late = [] { return HttpAnswer{200, "text/plain", "too late"}; };
    HttpServer::Slow slow;
    slow["/later"] = {.handler =
                          [this](const HttpServer::Answer& answer) {
                            threads_.emplace_back([answer] { answer({200, "text/plain", "later"}); });
                          },
                      .patience = std::chrono::minutes(5),
                      .too_late = too_late};
    slow["/never"] = {.handler = [this](const HttpServer::Answer& answer) { kept_.push_back(answer); },
                      .patience = std::chrono::milliseconds(20),
                      .too_late = too_late};
    HttpServer::Handlers handlers;
    handlers["/healthz"] = [] { return HttpAnswer{200, "text/plain", "ok"}; };
    auto server = HttpServer::Start("127.0.0.1:0", std::move(handlers), {}, std::move(slow));
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }
  void TearDown() override {
    for (std::thread& thread : threads_) thread.join();
  }

  std::vector<std::thread> threads_;
  std::vector<HttpServer::Answer> kept_;
};

TEST_F(HttpSlowly, AGetIsAnsweredWhenItsAnswerComes) {
  EXPECT_TRUE(Say("GET /later?x HTTP/1.0\r\n\r\n").ends_with("\r\n\r\nlater"));
  const std::string head = Say("HEAD /later HTTP/1.0\r\n\r\n");
  EXPECT_TRUE(head.starts_with("HTTP/1.0 200") && head.ends_with("\r\n\r\n")) << head;
  EXPECT_TRUE(Say("POST /later HTTP/1.0\r\nContent-Length: 0\r\n\r\n").starts_with("HTTP/1.0 405"));
  EXPECT_TRUE(Say("GET /healthz HTTP/1.0\r\n\r\n").ends_with("ok"));
}

TEST_F(HttpSlowly, AfterItsPatienceWhatIsLateGoesNowhere) {
  EXPECT_TRUE(Say("GET /never HTTP/1.0\r\n\r\n").ends_with("\r\n\r\ntoo late"));
  ASSERT_EQ(kept_.size(), 1u);
  kept_.front()({200, "text/plain", "now"});
  EXPECT_TRUE(Say("GET /never HTTP/1.0\r\n\r\n").ends_with("\r\n\r\ntoo late"));
}

TEST(HttpAddress, KnowsLoopback) {
  EXPECT_TRUE(HttpServer::IsLoopback("127.0.0.1:1"));
  EXPECT_TRUE(HttpServer::IsLoopback("[::1]:1"));
  EXPECT_FALSE(HttpServer::IsLoopback("0.0.0.0:1"));
  EXPECT_FALSE(HttpServer::IsLoopback("10.0.0.1:1"));
}

TEST(HttpAddress, MustBeAnAddressAndAPort) {
  for (const char* wrong : {"", "9464", "localhost:9464", "127.0.0.1:", "127.0.0.1:x", "127.0.0.1:70000"}) {
    EXPECT_FALSE(HttpServer::Start(wrong, {}).ok()) << wrong;
  }
}

}  // namespace
}  // namespace tally::ops
