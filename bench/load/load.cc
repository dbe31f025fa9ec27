#include "bench/load/load.h"

#include <grpcpp/alarm.h>
#include <grpcpp/grpcpp.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <random>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "tally/v1/calls.grpc.pb.h"

namespace tally::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kContendedTriesMax = 3;
constexpr int64_t kContendedDelayMs = 50;
constexpr std::chrono::seconds kCallTimeout{20};
// What is in flight when the window ends is waited for, so that the next run meets an idle server.
constexpr std::chrono::seconds kDrainMax{30};

// What all callers share. One thread: callers take turns on one completion queue.
struct Run {
  explicit Run(const LoadOptions& o)
      : options(o), random(std::random_device{}()), run_id(keys::HexEncode(keys::RandomBytes(6))) {}

  const LoadOptions& options;
  grpc::CompletionQueue queue;
  std::mt19937_64 random;
  const std::string run_id;  // no key or argument of another run is met again
  int64_t pairs_begun = 0;
  int in_flight = 0;
  bool stopping = false;
  Clock::time_point measured_from, measured_until;
  std::vector<float> latencies_ms;  // of pairs that ended inside the window
  int64_t contended = 0;
  absl::Status failure;
};

class Caller {
 public:
  Caller(Run& run, std::shared_ptr<grpc::Channel> channel) : run_(run), stub_(v1::Calls::NewStub(channel)) {}

  void Begin() {
    if (run_.stopping || !run_.failure.ok()) return;
    const std::string number = absl::StrCat(run_.run_id, "-", ++run_.pairs_begun);
    const auto& tokens = run_.options.permit_tokens;
    authorize_.Clear();
    authorize_.set_permit_token(tokens[std::uniform_int_distribution<size_t>(0, tokens.size() - 1)(run_.random)]);
    authorize_.set_key(absl::StrCat("key-", number));
    uint64_t words[2] = {run_.random(), run_.random()};
    authorize_.set_attempt_id(words, sizeof(words));
    authorize_.set_tool("payments__refund");
    authorize_.set_arguments(
        absl::StrCat("{\"customer\":\"cus-", number, "\",\"amount\":100,\"reason\":\"duplicate\"}"));
    began_ = Clock::now();
    ++run_.in_flight;
    tries_ = 0;
    step_ = Step::kAuthorize;
    Send();
  }

  // The completion queue's word about this caller.
  void Event() {
    if (step_ == Step::kPauseAuthorize || step_ == Step::kPauseCommit) {
      step_ = step_ == Step::kPauseAuthorize ? Step::kAuthorize : Step::kCommit;
      return Send();
    }
    if (status_.error_code() == grpc::StatusCode::ABORTED) return Contended();
    if (!status_.ok()) return Fail(absl::StrCat("answered ", status_.error_code(), ": ", status_.error_message()));
    tries_ = 0;
    step_ == Step::kAuthorize ? Authorized() : Committed();
  }

 private:
  enum class Step { kAuthorize, kPauseAuthorize, kCommit, kPauseCommit };

  void Send() {
    ++tries_;
    context_ = std::make_unique<grpc::ClientContext>();
    context_->set_deadline(std::chrono::system_clock::now() + kCallTimeout);
    context_->AddMetadata("authorization", absl::StrCat("Bearer ", run_.options.credential));
    status_ = {};
    if (step_ == Step::kAuthorize) {
      authorized_.Clear();
      authorizing_ = stub_->AsyncAuthorize(context_.get(), authorize_, &run_.queue);
      authorizing_->Finish(&authorized_, &status_, this);
    } else {
      committed_.Clear();
      committing_ = stub_->AsyncCommit(context_.get(), commit_, &run_.queue);
      committing_->Finish(&committed_, &status_, this);
    }
  }

  void Authorized() {
    if (authorized_.disposition() != v1::DISPATCH) {
      return Fail(absl::StrCat("Authorize was not granted: ", authorized_.refusal().code()));
    }
    commit_.Clear();
    commit_.set_call_id(authorized_.call_id());
    commit_.set_attempt_id(authorize_.attempt_id());
    commit_.set_outcome(v1::OUTCOME_SUCCEEDED);
    commit_.set_result(absl::StrCat("{\"refund\":\"re_", authorize_.key(), "\",\"status\":\"succeeded\"}"));
    step_ = Step::kCommit;
    Send();
  }

  void Committed() {
    if (committed_.state() != v1::SUCCEEDED || committed_.receipts_size() == 0) {
      return Fail(absl::StrCat("Commit was not recorded: ", committed_.refusal().code()));
    }
    const auto now = Clock::now();
    if (now >= run_.measured_from && now < run_.measured_until) {
      run_.latencies_ms.push_back(std::chrono::duration<float, std::milli>(now - began_).count());
    }
    End();
  }

  void Contended() {
    if (tries_ < kContendedTriesMax) {
      step_ = step_ == Step::kAuthorize ? Step::kPauseAuthorize : Step::kPauseCommit;
      const auto delay = std::chrono::milliseconds(
          std::uniform_int_distribution<int64_t>(kContendedDelayMs / 2, kContendedDelayMs * 3 / 2)(run_.random));
      pause_ = std::make_unique<grpc::Alarm>();
      pause_->Set(&run_.queue, std::chrono::system_clock::now() + delay, this);
      return;
    }
    const auto now = Clock::now();
    if (now >= run_.measured_from && now < run_.measured_until) ++run_.contended;
    End();
  }

  void Fail(std::string why) {
    if (run_.failure.ok()) run_.failure = absl::UnavailableError(why);
    End();
  }

  void End() {
    --run_.in_flight;
    Begin();
  }

  Run& run_;
  const std::unique_ptr<v1::Calls::Stub> stub_;
  Step step_ = Step::kAuthorize;
  int tries_ = 0;
  Clock::time_point began_;
  v1::AuthorizeRequest authorize_;
  v1::AuthorizeResponse authorized_;
  v1::CommitRequest commit_;
  v1::CommitResponse committed_;
  std::unique_ptr<grpc::ClientContext> context_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::AuthorizeResponse>> authorizing_;
  std::unique_ptr<grpc::ClientAsyncResponseReader<v1::CommitResponse>> committing_;
  std::unique_ptr<grpc::Alarm> pause_;
  grpc::Status status_;
};

float Percentile(std::vector<float>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::clamp<size_t>(rank, 1, sorted.size()) - 1];
}

// A connection of its own: channels to one address would otherwise share one.
std::shared_ptr<grpc::Channel> Connect(const std::string& server) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);
  return grpc::CreateCustomChannel(server, grpc::InsecureChannelCredentials(), arguments);
}

}  // namespace

absl::StatusOr<LoadResult> RunLoad(const LoadOptions& options) {
  if (options.permit_tokens.empty() || options.callers < 1 || options.connections < 1) {
    return absl::InvalidArgumentError("no permits, callers or connections");
  }
  Run run(options);
  std::vector<std::shared_ptr<grpc::Channel>> channels;
  for (int i = 0; i < options.connections; ++i) {
    channels.push_back(Connect(options.server));
    if (!channels.back()->WaitForConnected(std::chrono::system_clock::now() + kCallTimeout)) {
      return absl::UnavailableError(absl::StrCat("nobody answers on ", options.server));
    }
  }
  std::vector<std::unique_ptr<Caller>> callers;
  for (int i = 0; i < options.callers; ++i) {
    callers.push_back(std::make_unique<Caller>(run, channels[static_cast<size_t>(i) % channels.size()]));
  }
  run.measured_from = Clock::now() + options.warm_up;
  run.measured_until = run.measured_from + options.window;
  const auto drained_until = std::chrono::system_clock::now() + options.warm_up + options.window + kDrainMax;
  for (const auto& caller : callers) caller->Begin();
  while (run.in_flight > 0) {
    void* tag = nullptr;
    bool ok = false;
    if (run.queue.AsyncNext(&tag, &ok, drained_until) != grpc::CompletionQueue::GOT_EVENT) {
      if (run.failure.ok()) run.failure = absl::DeadlineExceededError("answers are missing after the window's end");
      break;
    }
    if (Clock::now() >= run.measured_until) run.stopping = true;
    static_cast<Caller*>(tag)->Event();
  }
  run.queue.Shutdown();
  void* tag = nullptr;
  bool ok = false;
  while (run.queue.Next(&tag, &ok)) {
  }
  if (!run.failure.ok()) return run.failure;

  std::sort(run.latencies_ms.begin(), run.latencies_ms.end());
  LoadResult result;
  result.pairs = static_cast<int64_t>(run.latencies_ms.size());
  result.pairs_per_s = static_cast<double>(result.pairs) / std::chrono::duration<double>(options.window).count();
  result.p50_ms = Percentile(run.latencies_ms, 0.50);
  result.p99_ms = Percentile(run.latencies_ms, 0.99);
  result.contended = run.contended;
  return result;
}

}  // namespace tally::bench
