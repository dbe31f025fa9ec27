#include "reconciler/lookup/tool_caller.h"

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "gateway/config/secrets.h"
#include "gateway/mcp/param_headers.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "gateway/upstream/open.h"
#include "lib/keys/text.h"

namespace tally::reconciler {
namespace {

namespace asio = boost::asio;
using gateway::SharedExchange;
using gateway::SharedUpstream;
using How = mcp::Reply::How;
using keys::Cat;
using Clock = std::chrono::steady_clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int kPagesMax = 100;
// A process that is told to end is made to within four seconds; an HTTP session is bidden goodbye for two.
constexpr milliseconds kEndPatience{6'000};

microseconds Since(Clock::time_point began) { return std::chrono::duration_cast<microseconds>(Clock::now() - began); }

// One call while it is under way. All on the thread that runs its loop.
class Run {
 public:
  Run(const ToolCaller& caller, const ToolCallOrder& order, const ToolCaller::Outcome& outcome,
      int64_t answer_bytes_max, gateway::AuditLog* audit)
      : caller_(caller), order_(order), outcome_(outcome), answer_bytes_max_(answer_bytes_max), audit_(audit) {}

  ToolCallEnd ToTheEnd() {
    asio::io_context loop(1);
    executor_ = loop.get_executor();
    bool over = false;
    asio::co_spawn(executor_, Call(), [this, &over](const std::exception_ptr& failed) {
      over = true;
      if (failed) end_.answer.why = "asking it failed here";
    });
    while (!over && loop.run_one_until(until_) > 0) {
    }
    timed_out_ = !over;
    // What it waits for ends with the session, and so does it.
    if (upstream_) upstream_->Close();
    loop.restart();
    loop.run_for(kEndPatience);
    upstream_ = nullptr;
    executor_ = {};
    if (timed_out_ && end_.answer.how == How::kNothing) end_.answer.why = "it did not answer in time";
    return std::move(end_);
  }

 private:
  asio::awaitable<void> Call() {
    const bool connected = co_await Connect();
    if (!connected) co_return;
    end_.modern = mcp::version::IsModern(upstream_->version());
    gateway::OutgoingRequest request;
    request.method = std::string(mcp::method::kToolsCall);
    request.params = Cat(R"({"name":)", mcp::Quote(order_.tool), R"(,"arguments":)", order_.arguments);
    if (!order_.meta.empty()) request.params += Cat(R"(,"_meta":)", order_.meta);
    request.params += "}";
    request.headers = order_.headers;
    if (end_.modern && !caller_.config().url.empty()) {
      const std::vector<mcp::ParamHeader> marked = co_await ParamHeaders();
      for (const mcp::ParamHeader& param : marked) {
        if (const auto value = mcp::ParamHeaderValue(param, order_.arguments)) request.headers[param.header] = *value;
      }
    }
    if (timed_out_) co_return;
    if (order_.before_sending) {
      end_.unsent = order_.before_sending();
      if (!end_.unsent.empty()) co_return;
    }
    request.gate = [this] { return Clock::now() < until_ && (!order_.gate || order_.gate()); };
    const auto began = Clock::now();
    end_.unsent.clear();
    const SharedExchange exchange = upstream_->Send(std::move(request));
    co_await exchange->Wait(Left());
    const bool sent = exchange->written() && (exchange->done() || !exchange->Abandon());
    end_.answer = exchange->answer();
    end_.unsent = sent ? "" : end_.answer.why.empty() ? "it was not written in time" : end_.answer.why;
    if (sent && !exchange->done()) end_.answer.why = "it did not answer in time";
    Audit(mcp::method::kToolsCall, sent ? outcome_(end_) : "not_sent", exchange, Since(began));
    upstream_->Forget(exchange);
  }

  // In the older era first: a server that speaks both can be asked in either.
  asio::awaitable<bool> Connect() {
    absl::StatusOr<gateway::Handshake> handshake = absl::UnavailableError("");
    std::string first;
    for (const bool modern : {false, true}) {
      if (timed_out_) co_return false;
      if (absl::Status opened = Open(); !opened.ok()) {
        end_.unsent = Cat("it cannot be started: ", opened.message());
        co_return false;
      }
      std::string nothing = "{}";
      const gateway::ReadPolicy policy = Policy();
      if (modern) {
        handshake = co_await gateway::Discover(upstream_, policy);
      } else {
        handshake = co_await gateway::Initialize(upstream_, std::move(nothing), policy);
      }
      if (handshake.ok()) co_return true;
      if (!modern) first = std::string(handshake.status().message());
    }
    end_.unsent = Cat("it cannot be connected: ", first, "; ", handshake.status().message());
    co_return false;
  }

  absl::Status Open() {
    if (upstream_ && upstream_->alive()) return absl::OkStatus();
    auto opened = gateway::OpenUpstream(executor_, caller_.name(), caller_.config(), answer_bytes_max_,
                                        [this](const mcp::Message& message, const SharedExchange&) { Take(message); });
    if (!opened.ok()) return opened.status();
    upstream_ = *std::move(opened);
    return absl::OkStatus();
  }

  // It was told that nobody can be asked anything.
  void Take(const mcp::Message& message) {
    if (message.kind != mcp::Message::Kind::kRequest || !upstream_) return;
    if (message.method == mcp::method::kPing) return upstream_->Post(mcp::ResultText(message.id, "{}"));
    upstream_->Post(mcp::ErrorText(message.id, {mcp::code::kMethodNotFound, "Nobody can be asked here.", ""}));
  }

  asio::awaitable<std::vector<mcp::ParamHeader>> ParamHeaders() {
    std::vector<mcp::ParamHeader> none;
    std::string params;
    for (int page = 0; page < kPagesMax; ++page) {
      std::string method(mcp::method::kToolsList);
      const gateway::ReadPolicy policy = Policy();
      const gateway::UpstreamAnswer answer =
          co_await gateway::Read(upstream_, std::move(method), std::move(params), policy);
      const auto result = answer.how == How::kResult ? mcp::RawObject::Parse(answer.result) : absl::NotFoundError("");
      const std::string_view* tools = result.ok() ? result->Find("tools") : nullptr;
      const auto items = tools ? mcp::ElementsOf(*tools) : std::nullopt;
      if (!items) co_return none;
      for (const std::string_view item : *items) {
        const auto members = mcp::RawObject::Parse(item);
        const std::string_view* name = members.ok() ? members->Find("name") : nullptr;
        const std::string_view* schema = members.ok() ? members->Find("inputSchema") : nullptr;
        if (name == nullptr || schema == nullptr || mcp::StringOf(*name) != order_.tool) continue;
        auto found = mcp::ParamHeadersOf(*schema);
        co_return found.ok() ? *std::move(found) : none;
      }
      const std::string_view* next = result->Find("nextCursor");
      if (next == nullptr || !mcp::StringOf(*next)) break;
      params = Cat(R"({"cursor":)", *next, "}");
    }
    co_return none;
  }

  gateway::ReadPolicy Policy() {
    gateway::ReadPolicy policy;
    policy.timeout = Left();
    policy.tries = 1;  // whoever asks looks again later
    policy.over = [this](std::string_view method, const SharedExchange& exchange, microseconds took) {
      const bool answered = exchange->answer().how == How::kResult;
      Audit(method, answered ? "answered" : exchange->written() ? "failed" : "not_sent", exchange, took);
    };
    return policy;
  }

  void Audit(std::string_view method, std::string_view outcome, const SharedExchange& exchange, microseconds took) {
    if (audit_ == nullptr) return;
    gateway::AuditEntry entry = order_.about;
    entry.time_us = exchange->sent_at_us();
    entry.method = std::string(method);
    entry.upstream = caller_.name();
    if (method == mcp::method::kToolsCall) entry.tool = order_.tool;
    entry.outcome = outcome;
    entry.latency_us = took.count();
    audit_->Write(entry);
  }

  milliseconds Left() const {
    return std::max(milliseconds(0), std::chrono::duration_cast<milliseconds>(until_ - Clock::now()));
  }

  static constexpr const char* kNotYet = "it was not connected in time";

  const ToolCaller& caller_;
  const ToolCallOrder& order_;
  const ToolCaller::Outcome& outcome_;
  const int64_t answer_bytes_max_;
  gateway::AuditLog* const audit_;
  const Clock::time_point until_ = Clock::now() + order_.timeout;
  asio::any_io_executor executor_;
  SharedUpstream upstream_;
  bool timed_out_ = false;
  ToolCallEnd end_{.unsent = kNotYet};
};

}  // namespace

ToolCaller::ToolCaller(std::string name, gateway::UpstreamConfig config, int64_t answer_bytes_max,
                       gateway::AuditLog* audit)
    : name_(std::move(name)), config_(std::move(config)), answer_bytes_max_(answer_bytes_max), audit_(audit) {}

ToolCallEnd ToolCaller::Call(const ToolCallOrder& order, const Outcome& outcome) const {
  return Run(*this, order, outcome, answer_bytes_max_, audit_).ToTheEnd();
}

absl::StatusOr<NamedUpstream> FindUpstream(const std::string& gateway_config, const std::string& name) {
  auto file = gateway::LoadConfig(gateway_config);
  if (!file.ok()) return file.status();
  const auto found = file->upstreams.find(name);
  if (found == file->upstreams.end()) {
    return absl::NotFoundError(Cat(gateway_config, " has no [upstreams.", name, "]"));
  }
  if (const auto headers = gateway::ReadHeaders(found->second); !headers.ok()) return headers.status();
  if (const auto secrets = gateway::ReadEnvironmentFiles(found->second); !secrets.ok()) return secrets.status();
  return NamedUpstream{*std::move(file), name};
}

}  // namespace tally::reconciler
