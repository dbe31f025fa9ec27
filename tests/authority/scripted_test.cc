// What is asked again: against a real gRPC server whose service says what the test told it to.
#include <gtest/gtest.h>

#include <boost/asio/detached.hpp>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "gateway/authority/authority.h"
#include "grpcpp/server.h"
#include "grpcpp/server_builder.h"
#include "tally/v1/calls.grpc.pb.h"
#include "tests/authority/loop.h"
#include "tests/client/statuses.h"

namespace tally::gateway {
namespace {

namespace asio = boost::asio;
using std::chrono::milliseconds;

class ScriptedCalls final : public v1::Calls::Service {
 public:
  std::vector<grpc::Status> script;
  bool hang_first = false;

  std::vector<std::string> asked() const {
    const std::lock_guard lock(mutex_);
    return asked_;
  }

 private:
  grpc::Status Commit(grpc::ServerContext* context, const v1::CommitRequest* request,
                      v1::CommitResponse* response) override {
    size_t turn = 0;
    {
      const std::lock_guard lock(mutex_);
      asked_.push_back(request->SerializeAsString());
      turn = asked_.size() - 1;
    }
    for (int i = 0; turn == 0 && hang_first && i < 10'000 && !context->IsCancelled(); ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    if (turn < script.size()) return script[turn];
    response->set_state(v1::SUCCEEDED);
    return grpc::Status::OK;
  }

  mutable std::mutex mutex_;
  std::vector<std::string> asked_;
};

class ScriptedAuthority : public testing::Test {
 protected:
  ScriptedAuthority() {
    std::string folder = testing::TempDir() + "tally_authority_XXXXXX";
    if (mkdtemp(folder.data()) == nullptr) std::abort();
    folder_ = folder;
    address_ = "unix:" + folder + "/s";
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~ScriptedAuthority() override {
    server_->Shutdown(std::chrono::system_clock::now());
    std::filesystem::remove_all(folder_);
  }

  client::Answer<v1::CommitResponse> Commit(client::CallOptions options = {}) {
    const auto authority = *Authority::Create({.endpoint = {.server = address_}, .call = options},
                                              keys::Secret::Copy("c"), loop_.get_executor());
    v1::CommitRequest request;
    request.set_call_id("call");
    request.set_attempt_id("attempt");
    return Await(loop_, authority->Commit(request));
  }

  asio::io_context loop_;
  std::filesystem::path folder_;
  std::string address_;
  ScriptedCalls service_;
  std::unique_ptr<grpc::Server> server_;
};

TEST_F(ScriptedAuthority, ContendedIsAskedThreeTimesInAllWithTheSameBytes) {
  service_.script.assign(2, client::StatusWith(grpc::StatusCode::ABORTED, "SERIALIZATION_FAILURE", 1));
  ASSERT_TRUE(Commit().ok());
  const auto asked = service_.asked();
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0], asked[1]);
  EXPECT_EQ(asked[0], asked[2]);
}

TEST_F(ScriptedAuthority, AfterThreeContendedTheFailureIsHandedOn) {
  service_.script.assign(9, client::StatusWith(grpc::StatusCode::ABORTED, "SERIALIZATION_FAILURE", 1));
  const auto answer = Commit();
  ASSERT_FALSE(answer.ok());
  EXPECT_EQ(answer.failure().kind, v1::KIND_CONTENDED);
  EXPECT_EQ(service_.asked().size(), 3u);
}

TEST_F(ScriptedAuthority, UnavailableIsAskedAgainUntilItIsAnswered) {
  service_.script.assign(4, client::StatusWith(grpc::StatusCode::UNAVAILABLE, "IN_DOUBT"));
  ASSERT_TRUE(Commit().ok());
  EXPECT_EQ(service_.asked().size(), 5u);
}

TEST_F(ScriptedAuthority, ATryThatHangsLeavesTimeForAnother) {
  service_.hang_first = true;
  ASSERT_TRUE(Commit({.timeout = milliseconds(20'000), .try_timeout = milliseconds(200)}).ok());
  EXPECT_EQ(service_.asked().size(), 2u);
}

TEST_F(ScriptedAuthority, ItMayBeDestroyedWhileAnAnswerIsAwaited) {
  service_.hang_first = true;
  auto authority =
      *Authority::Create({.endpoint = {.server = address_}}, keys::Secret::Copy("c"), loop_.get_executor());
  bool answered = false;
  asio::co_spawn(
      loop_,
      [&]() -> asio::awaitable<void> {
        (void)co_await authority->Commit({});
        answered = true;
      },
      asio::detached);
  for (int i = 0; i < 10'000 && service_.asked().empty(); ++i) loop_.run_for(milliseconds(1));
  ASSERT_EQ(service_.asked().size(), 1u);
  authority.reset();
  EXPECT_FALSE(answered);
}

TEST_F(ScriptedAuthority, NothingElseIsAskedAgain) {
  int asked = 0;
  for (const auto& [status, code] :
       {std::pair(grpc::StatusCode::FAILED_PRECONDITION, "COMMIT_CONFLICT"),
        std::pair(grpc::StatusCode::INVALID_ARGUMENT, "MALFORMED"), std::pair(grpc::StatusCode::NOT_FOUND, "NOT_FOUND"),
        std::pair(grpc::StatusCode::UNAUTHENTICATED, "UNAUTHENTICATED"),
        std::pair(grpc::StatusCode::ABORTED, "SOMETHING_NEW")}) {
    service_.script.assign(static_cast<size_t>(asked) + 1, client::StatusWith(status, code));
    EXPECT_FALSE(Commit().ok());
    EXPECT_EQ(service_.asked().size(), static_cast<size_t>(++asked)) << code;
  }
}

}  // namespace
}  // namespace tally::gateway
