#include "gateway/authority/authority.h"

#include <algorithm>
#include <boost/asio/async_result.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include "grpcpp/client_context.h"
#include "lib/client/retry.h"
#include "lib/keys/text.h"
#include "tally/v1/calls.grpc.pb.h"
#include "tally/v1/permits.grpc.pb.h"

namespace tally::gateway {
namespace {

namespace asio = boost::asio;
using client::Answer;
using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

milliseconds Left(Steady::time_point end) { return std::chrono::duration_cast<milliseconds>(end - Steady::now()); }

}  // namespace

class Authority::Channel {
 public:
  Channel(const std::shared_ptr<grpc::Channel>& channel, keys::Secret credential_of_ours)
      : calls(v1::Calls::NewStub(channel)),
        permits(v1::Permits::NewStub(channel)),
        credential_(std::move(credential_of_ours)) {}

  // Cancels what is under way and waits for it: after this no thread of gRPC touches the loop.
  ~Channel() {
    std::unique_lock lock(mutex_);
    for (grpc::ClientContext* context : unanswered_) context->TryCancel();
    ended_.wait(lock, [this] { return callbacks_ == 0; });
  }

  // gRPC keeps a copy of the credential for as long as the call lasts; that is as far as the secret can be guarded.
  void Begin(grpc::ClientContext& context, milliseconds timeout) {
    context.set_deadline(std::chrono::system_clock::now() + timeout);
    if (!credential_.empty()) context.AddMetadata("authorization", keys::Cat("Bearer ", credential_.Expose()));
    const std::lock_guard lock(mutex_);
    unanswered_.insert(&context);
    ++callbacks_;
  }

  // Its callback has begun: it is not to be cancelled any more, and may be destroyed.
  void Answered(grpc::ClientContext& context) {
    const std::lock_guard lock(mutex_);
    unanswered_.erase(&context);
  }

  // Its callback has done all that touches the loop or this.
  void End() {
    const std::lock_guard lock(mutex_);
    --callbacks_;
    ended_.notify_all();  // under the lock: the destructor may run as soon as it is free
  }

  const std::unique_ptr<v1::Calls::Stub> calls;
  const std::unique_ptr<v1::Permits::Stub> permits;

 private:
  const keys::Secret credential_;
  std::mutex mutex_;
  std::condition_variable ended_;
  std::set<grpc::ClientContext*> unanswered_;
  size_t callbacks_ = 0;
};

absl::StatusOr<std::unique_ptr<Authority>> Authority::Create(AuthorityOptions options, keys::Secret credential,
                                                             asio::any_io_executor loop) {
  auto channel = client::OpenChannel(options.endpoint);
  if (!channel.ok()) return channel.status();
  auto ours = std::make_unique<Channel>(*channel, std::move(credential));
  return std::unique_ptr<Authority>(new Authority(std::move(options), std::move(ours), std::move(loop)));
}

Authority::Authority(AuthorityOptions options, std::unique_ptr<Channel> channel, asio::any_io_executor loop)
    : options_(std::move(options)),
      loop_(std::move(loop)),
      views_(options_.permit_view_ttl, options_.permit_views_max),
      channel_(std::move(channel)) {}

Authority::~Authority() = default;

namespace {

// One try. It lives until it is answered, whatever becomes of the coroutine that waits.
template <typename Request, typename Response>
struct Try {
  std::shared_ptr<const Request> request;
  grpc::ClientContext context;
  Response response;
};

// A try, and who waits for it; the loop runs on as long as somebody does. gRPC copies its callbacks, and lets go of the
// last copy when it likes: so this is shared, and after Resume holds nothing of the loop any more, and nothing of the
// try: its context may own the channel's last reference, and gRPC 1.51, when a callback's own thread lets go of that
// one, frees the completion queue under this thread's feet (it cannot join itself, and goes on polling).
template <typename Handler, typename Attempted>
class Waiting {
 public:
  Waiting(Handler handler, const asio::any_io_executor& loop, std::shared_ptr<Attempted> attempted)
      : handler_(std::move(handler)), loop_(loop), attempted_(std::move(attempted)) {}

  grpc::ClientContext& context() { return attempted_->context; }

  void Resume(grpc::Status status) {
    asio::post(loop_.get_executor(), [handler = std::move(*handler_), attempted = std::move(attempted_),
                                      status = std::move(status)]() mutable { std::move(handler)(std::move(status)); });
    handler_.reset();
    loop_.reset();
  }

 private:
  std::optional<Handler> handler_;
  asio::executor_work_guard<asio::any_io_executor> loop_;
  std::shared_ptr<Attempted> attempted_;
};

}  // namespace

// `start` begins the RPC: start(context, request, response, callback).
template <typename Request, typename Response, typename Start>
asio::awaitable<Answer<Response>> Authority::Ask(Request request, Start start) {
  using Attempted = Try<Request, Response>;
  const auto shared = std::make_shared<const Request>(std::move(request));
  const Steady::time_point end = Steady::now() + options_.call.timeout;
  client::RetrySchedule schedule(client::Repeat::kSafe);
  // Ends: the schedule gives up after a bounded number of tries of either kind, and each try has a deadline.
  while (true) {
    const auto attempted = std::make_shared<Attempted>();
    attempted->request = shared;
    channel_->Begin(attempted->context, std::min(options_.call.try_timeout, Left(end)));
    const grpc::Status status = co_await asio::async_initiate<const asio::use_awaitable_t<>, void(grpc::Status)>(
        [&](auto handler) {
          auto waiting = std::make_shared<Waiting<decltype(handler), Attempted>>(std::move(handler), loop_, attempted);
          start(attempted->context, *attempted->request, attempted->response,
                [waiting, channel = channel_.get()](grpc::Status said) {
                  channel->Answered(waiting->context());
                  waiting->Resume(std::move(said));
                  channel->End();
                });
        },
        asio::use_awaitable);
    if (status.ok()) co_return std::move(attempted->response);
    const client::Failure failure = client::FromStatus(status);
    const auto wait = schedule.After(failure, Left(end));
    if (!wait) co_return failure;
    asio::steady_timer timer(loop_, *wait);
    co_await timer.async_wait(asio::use_awaitable);
  }
}

asio::awaitable<Answer<v1::AuthorizeResponse>> Authority::Authorize(v1::AuthorizeRequest request,
                                                                    const client::SendDeadline& /*started*/) {
  return Ask<v1::AuthorizeRequest, v1::AuthorizeResponse>(
      std::move(request), [this](auto& context, const auto& asked, auto& response, auto done) {
        channel_->calls->async()->Authorize(&context, &asked, &response, std::move(done));
      });
}

asio::awaitable<Answer<v1::CommitResponse>> Authority::Commit(v1::CommitRequest request) {
  return Ask<v1::CommitRequest, v1::CommitResponse>(
      std::move(request), [this](auto& context, const auto& asked, auto& response, auto done) {
        channel_->calls->async()->Commit(&context, &asked, &response, std::move(done));
      });
}

asio::awaitable<Answer<v1::ExtendResponse>> Authority::Extend(v1::ExtendRequest request) {
  return Ask<v1::ExtendRequest, v1::ExtendResponse>(
      std::move(request), [this](auto& context, const auto& asked, auto& response, auto done) {
        channel_->calls->async()->Extend(&context, &asked, &response, std::move(done));
      });
}

asio::awaitable<Answer<v1::CallInfo>> Authority::GetCall(v1::GetCallRequest request) {
  return Ask<v1::GetCallRequest, v1::CallInfo>(
      std::move(request), [this](auto& context, const auto& asked, auto& response, auto done) {
        channel_->calls->async()->GetCall(&context, &asked, &response, std::move(done));
      });
}

asio::awaitable<Answer<PermitView>> Authority::GetPermit(std::string permit_token) {
  const keys::Digest digest = keys::Sha256(permit_token);
  if (auto known = views_.Find(digest, Steady::now())) co_return *std::move(known);
  v1::GetPermitByTokenRequest request;
  request.set_permit_token(std::move(permit_token));
  Answer<v1::PermitInfo> said = co_await Ask<v1::GetPermitByTokenRequest, v1::PermitInfo>(
      std::move(request), [this](auto& context, const auto& asked, auto& response, auto done) {
        channel_->permits->async()->GetByToken(&context, &asked, &response, std::move(done));
      });
  Answer<PermitView> answer = said.ok()
                                  ? Answer<PermitView>(std::make_shared<const v1::PermitInfo>(std::move(said.value())))
                                  : Answer<PermitView>(said.failure());
  views_.Put(digest, answer, Steady::now());
  co_return answer;
}

void Authority::ForgetPermit(const std::string& permit_token) { views_.Forget(keys::Sha256(permit_token)); }

}  // namespace tally::gateway
