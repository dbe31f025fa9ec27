// The client against a real gRPC server on a unix socket, whose service says what the test told it to.
#include "lib/client/client.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "tests/client/statuses.h"

namespace tally::client {
namespace {

using std::chrono::milliseconds;

// Answers with the next scripted status, and with a grant once the script is over. Keeps what it was asked.
class ScriptedCalls final : public v1::Calls::Service {
 public:
  std::vector<grpc::Status> script;
  milliseconds hang{0};  // before the first answer

  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }
  std::string authorization() const {
    const std::lock_guard lock(mutex_);
    return authorization_;
  }

 private:
  grpc::Status Authorize(grpc::ServerContext* context, const v1::AuthorizeRequest* request,
                         v1::AuthorizeResponse* response) override {
    const size_t turn = Note(context, request->SerializeAsString());
    if (turn == 0 && hang.count() > 0) {
      for (int i = 0; i < 100 && !context->IsCancelled(); ++i) std::this_thread::sleep_for(hang / 100);
    }
    if (turn < script.size()) return script[turn];
    response->set_disposition(v1::DISPATCH);
    response->set_attempt_id(request->attempt_id());
    response->set_send_within_ms(10'000);
    return grpc::Status::OK;
  }

  size_t Note(grpc::ServerContext* context, std::string bytes) {
    const std::lock_guard lock(mutex_);
    asked_.push_back(std::move(bytes));
    const auto& metadata = context->client_metadata();
    const auto found = metadata.find("authorization");
    authorization_ = found == metadata.end() ? "" : std::string(found->second.data(), found->second.size());
    return asked_.size() - 1;
  }

  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
  std::string authorization_;
};

class ScriptedPermits final : public v1::Permits::Service {
 public:
  std::atomic<int> mints = 0;

 private:
  grpc::Status Mint(grpc::ServerContext*, const v1::MintRequest*, v1::MintResponse*) override {
    ++mints;
    return StatusWith(grpc::StatusCode::UNAVAILABLE, "IN_DOUBT", 0);
  }
};

class ClientAndServer : public testing::Test {
 protected:
  void SetUp() override {
    std::string folder = testing::TempDir() + "tally_client_XXXXXX";
    ASSERT_NE(mkdtemp(folder.data()), nullptr);
    folder_ = folder;
    Serve();
    auto client = Client::Create({.server = address()}, keys::Secret::Copy("tly_secret"));
    ASSERT_TRUE(client.ok()) << client.status();
    client_ = *std::move(client);
    request_.set_key("refund-1");
    request_.set_attempt_id(std::string(16, 'a'));
  }
  void TearDown() override {
    client_.reset();
    Stop();
    std::filesystem::remove_all(folder_);
  }
  std::string address() const { return "unix:" + (folder_ / "s").string(); }
  void Serve() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address(), grpc::InsecureServerCredentials());
    builder.RegisterService(&calls_);
    builder.RegisterService(&permits_);
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }
  void Stop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now() + milliseconds(500));
    server_.reset();
  }
  Answer<v1::AuthorizeResponse> Authorize(milliseconds timeout = milliseconds(10'000)) {
    return client_->Authorize(request_, SendDeadline::Start(),
                              {.timeout = timeout, .try_timeout = milliseconds(5'000)});
  }

  std::filesystem::path folder_;
  ScriptedCalls calls_;
  ScriptedPermits permits_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Client> client_;
  v1::AuthorizeRequest request_;
};

TEST_F(ClientAndServer, AGrantArrivesAndTheCredentialGoesAlong) {
  const auto answer = Authorize();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer.value().disposition(), v1::DISPATCH);
  EXPECT_EQ(calls_.authorization(), "Bearer tly_secret");
}

TEST_F(ClientAndServer, ContendedIsAskedThreeTimesWithTheSameBytes) {
  const grpc::Status contended = StatusWith(grpc::StatusCode::ABORTED, "SERIALIZATION_FAILURE", 1);
  calls_.script = {contended, contended, contended, contended};
  const auto answer = Authorize();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.failure().kind, v1::KIND_CONTENDED);
  EXPECT_EQ(calls_.asked(), std::vector<std::string>(3, request_.SerializeAsString()));
}

TEST_F(ClientAndServer, UnavailableIsAskedAgainUntilItAnswers) {
  calls_.script = {StatusWith(grpc::StatusCode::UNAVAILABLE, "IN_DOUBT", 1),
                   StatusWith(grpc::StatusCode::UNAVAILABLE, "OVERLOADED", 1),
                   grpc::Status(grpc::StatusCode::UNKNOWN, "Stream removed")};
  const auto answer = Authorize();
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(calls_.asked(), std::vector<std::string>(4, request_.SerializeAsString()));
}

TEST_F(ClientAndServer, AllOtherErrorsAreAskedOnce) {
  const grpc::Status statuses[] = {
      StatusWith(grpc::StatusCode::INVALID_ARGUMENT, "MALFORMED"),
      StatusWith(grpc::StatusCode::FAILED_PRECONDITION, "KEY_REUSED"),
      StatusWith(grpc::StatusCode::FAILED_PRECONDITION, "COMMIT_CONFLICT"),
      StatusWith(grpc::StatusCode::UNAUTHENTICATED, "UNAUTHENTICATED"),
      StatusWith(grpc::StatusCode::ABORTED, "FROM_THE_FUTURE"),
  };
  size_t asked = 0;
  for (const auto& status : statuses) {
    calls_.script = std::vector<grpc::Status>(asked + 1, status);
    EXPECT_FALSE(Authorize().ok());
    EXPECT_EQ(calls_.asked().size(), ++asked);
  }
}

TEST_F(ClientAndServer, AMintWhoseAnswerIsInDoubtIsNotRepeated) {
  const auto answer = client_->Mint({});
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.failure().code, "IN_DOUBT");
  EXPECT_EQ(permits_.mints, 1);
}

TEST_F(ClientAndServer, AServerThatIsNotThereIsUnavailableWithinTheTimeout) {
  Stop();
  const auto answer = Authorize(milliseconds(300));
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.failure().kind, v1::KIND_UNAVAILABLE);
  EXPECT_EQ(answer.failure().code, kTransportCode);
}

TEST_F(ClientAndServer, AServerThatComesBackIsFound) {
  Stop();
  std::thread restart([this] {
    std::this_thread::sleep_for(milliseconds(300));
    Serve();
  });
  const auto answer = Authorize(milliseconds(30'000));
  restart.join();
  EXPECT_TRUE(answer.ok());
}

TEST_F(ClientAndServer, ATryThatHangsLeavesTimeForAnother) {
  calls_.hang = milliseconds(20'000);
  const auto answer = client_->Authorize(request_, SendDeadline::Start(),
                                         {.timeout = milliseconds(20'000), .try_timeout = milliseconds(200)});
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(calls_.asked().size(), 2u);
}

TEST(MaySend, NeedsAGrantForThisAttemptInsideItsWindow) {
  v1::AuthorizeRequest request;
  request.set_attempt_id(std::string(16, 'a'));
  v1::AuthorizeResponse grant;
  grant.set_disposition(v1::DISPATCH);
  grant.set_attempt_id(request.attempt_id());
  grant.set_send_within_ms(10'000);
  int64_t now = 0;
  const SendDeadline started = SendDeadline::Start([&now] { return std::optional<int64_t>(now); });
  EXPECT_TRUE(MaySend(request, grant, started));

  v1::AuthorizeResponse other = grant;
  other.set_attempt_id(std::string(16, 'b'));
  EXPECT_FALSE(MaySend(request, other, started));
  for (const int disposition : {0, 2, 3, 4, 5, 6, 99}) {
    v1::AuthorizeResponse no = grant;
    no.set_disposition(static_cast<v1::Disposition>(disposition));
    EXPECT_FALSE(MaySend(request, no, started)) << disposition;
  }
  v1::AuthorizeResponse refused = grant;
  refused.mutable_refusal()->set_code("ANYTHING");
  EXPECT_FALSE(MaySend(request, refused, started));
  now = 10'000'000'000;
  EXPECT_FALSE(MaySend(request, grant, started));
}

}  // namespace
}  // namespace tally::client
