// One client and its upstreams, in the 2025-11-25 era: what it asked for, what it declared, and the ids that its
// messages and theirs have on the other side. Holds for one permit token alone.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/call/caller.h"
#include "gateway/front/link.h"
#include "gateway/front/outlet.h"
#include "gateway/front/shared_links.h"
#include "gateway/mcp/message.h"
#include "lib/keys/secret.h"

namespace tally::gateway {

// The capability that a client must have declared to be asked this; empty: it is never asked.
std::string_view CapabilityFor(std::string_view method);

// What all sessions share. Outlives them.
struct FrontServices {
  asio::any_io_executor loop;
  const Config* config = nullptr;
  Caller* caller = nullptr;
  Authority* authority = nullptr;
  AuditLog* audit = nullptr;
  PinKeeper* pins = nullptr;  // null where no upstream is pinned
  SharedLinks* shared = nullptr;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(FrontServices services, std::string_view permit_token);
  ~Session();

  bool Holds(std::string_view permit_token) const { return token_->Equals(permit_token); }
  bool initialized() const { return !version_.empty(); }
  const std::string& version() const { return version_; }
  // The stream of what belongs to no request; the front sets it.
  void SetGeneral(SharedOutlet general) { general_ = std::move(general); }

  // For clients of the 2026-07-28 era, which have no sessions: begins one without being asked.
  void Adopt(const v1::PermitInfo& permit);
  bool modern() const { return modern_; }

  // One message of the client's. A request is answered through `outlet`, sooner or later, and the work on it does not
  // depend on who calls. `key_headers`: the values of Idempotency-Key.
  // What it returns cancels it, on the agent's word.
  std::function<void()> TakeRequest(mcp::Message request, std::vector<std::string> key_headers, SharedOutlet outlet);
  void TakeNotification(const mcp::Message& notification);
  void TakeAnswer(mcp::Message answer);

  bool busy() const { return !open_.empty(); }
  // Ends subscriptions of a permit that grants nothing any more. To be called every few seconds.
  void CheckSubscriptions();
  std::chrono::steady_clock::time_point last_used() const { return last_used_; }
  void Touch() { last_used_ = std::chrono::steady_clock::now(); }
  // Calls that are under way go on to their end; their upstreams are closed after that.
  void Close();

 private:
  // A request of the client's that is being worked on.
  struct Open {
    std::string id;  // raw
    std::string id_key;
    std::string method;
    SharedOutlet outlet;
    std::string progress_token;  // the client's, raw; empty: none
    int64_t upstream_token = 0;  // what stands for it upstream
    SharedLink link;             // null: not asked of an upstream yet
    SharedExchange exchange;
    std::string capabilities;  // 2026-07-28: what the client can be asked for in this request, raw
    bool cancelled = false;
  };
  using SharedOpen = std::shared_ptr<Open>;

  // What a client of 2026-07-28 wants to be told of, as long as its request is open.
  struct Subscription {
    SharedOpen open;
    bool tools = false;
    bool prompts = false;
    bool resources = false;
    std::vector<std::pair<std::string, SharedLink>> watched;  // by uri
  };

  // Requests that an upstream of 2026-07-28 made in place of an answer, put to a client of the era before.
  struct Inquiry {
    explicit Inquiry(const asio::any_io_executor& loop) : changed(loop) {}
    SharedOpen open;
    asio::steady_timer changed;
    std::map<std::string, std::string> results;  // raw, by the upstream's names
    size_t awaited = 0;
    bool failed = false;
  };

  // A request of an upstream's that the client was asked.
  struct Asked {
    std::weak_ptr<Link> link;
    std::weak_ptr<UpstreamSession> upstream;
    std::string id;                              // raw, as the upstream's
    std::shared_ptr<Inquiry> inquiry = nullptr;  // the answer goes there instead
    std::string name = {};                       // in the inquiry
  };

  asio::awaitable<void> Work(SharedOpen open, mcp::Message request, std::vector<std::string> key_headers);
  asio::awaitable<void> Initialize(SharedOpen open, const mcp::Message& request);
  asio::awaitable<void> Discover(SharedOpen open);
  asio::awaitable<void> CallTool(SharedOpen open, const mcp::Message& request, std::vector<std::string> key_headers);
  asio::awaitable<void> GetPrompt(SharedOpen open, const mcp::Message& request);
  asio::awaitable<void> AskAboutResource(SharedOpen open, const mcp::Message& request);
  asio::awaitable<void> Subscribe(SharedOpen open, const mcp::Message& request, std::string uri);
  asio::awaitable<void> Unsubscribe(SharedOpen open, const mcp::Message& request, std::string uri);
  asio::awaitable<void> Complete(SharedOpen open, const mcp::Message& request);
  asio::awaitable<void> SetLevel(SharedOpen open, const mcp::Message& request);
  asio::awaitable<void> Listen(SharedOpen open, const mcp::Message& request);
  // CallOrder::ask, of a client of the era before 2026-07-28.
  asio::awaitable<std::optional<std::string>> AskClient(SharedOpen open, std::string input_requests,
                                                        std::chrono::milliseconds at_most);
  asio::awaitable<void> List(SharedOpen open, const mcp::Message& request, ListKind kind);

  // One request to one upstream, cancellable, its messages going to the client's outlet. Not for tools/call.
  asio::awaitable<UpstreamAnswer> Forward(SharedOpen open, SharedLink link, std::string method, std::string params);
  // The links in the order in which they may have the resource.
  asio::awaitable<std::vector<SharedLink>> LinksFor(std::string uri);
  asio::awaitable<std::vector<std::string>> Merged(ListKind kind);
  // The links of all upstreams that the permit grants anything on, connected as far as they can be in short time.
  void MakeLinks(const v1::PermitInfo& permit);
  asio::awaitable<void> Connect();
  SharedLink FindLink(std::string_view name) const;
  // A token that no other request of any client has at any upstream.
  static int64_t NewToken();
  std::string MergedCapabilities() const;
  bool AnyHas(std::string_view capability, std::string_view member) const;
  std::string MergedInstructions() const;
  // The client's declared capabilities, as far as an upstream may be told of them.
  void TakeCapabilities(std::string_view declared);

  void TakeFromUpstream(const SharedLink& link, const mcp::Message& message, const SharedExchange& during);
  void TakeUpstreamRequest(const SharedLink& link, const mcp::Message& request, const SharedExchange& during);
  // A change that an upstream tells of, to those who subscribed to it.
  void Publish(const SharedLink& link, const mcp::Message& notification);
  void EndSubscription(const SharedOpen& open);
  std::string SubscriptionEnd(const SharedOpen& open) const;
  void FailInquiries(const SharedOpen& open);
  void TakeProgress(const SharedLink& link, const mcp::Message& notification);
  void TakeUpstreamCancel(const SharedLink& link, const mcp::Message& notification);
  // The outlet of what a message belongs to; the general one where it belongs to no request. May be null.
  SharedOutlet OutletFor(const SharedLink& link, const SharedExchange& during) const;
  SharedOpen OpenFor(const SharedLink& link, const SharedExchange& during) const;
  // The same request's params with a progress token that is ours, where it had one.
  std::string WithOurToken(const SharedOpen& open, std::string params);

  void Answer(const SharedOpen& open, std::string_view raw_result, std::function<void()> undelivered = nullptr);
  void Fail(const SharedOpen& open, const mcp::RpcError& error, std::function<void()> undelivered = nullptr);
  void Fail(const SharedOpen& open, int64_t code, std::string message);
  void AnswerAs(const SharedOpen& open, const UpstreamAnswer& answer, const std::string& upstream);
  void Cancel(const SharedOpen& open);
  void CloseLinks();
  void Finish(const SharedOpen& open, std::string message, std::function<void()> undelivered);

  const FrontServices services_;
  const std::shared_ptr<const keys::Secret> token_;
  std::string version_;
  std::string permit_id_;
  bool initializing_ = false;
  bool modern_ = false;
  bool closed_ = false;
  int calls_ = 0;                                // tools/call under way, late answers included
  std::set<std::string, std::less<>> declared_;  // sampling, elicitation, roots
  std::string upstream_capabilities_ = "{}";
  std::map<std::string, SharedLink, std::less<>> links_;
  SharedOutlet general_;
  std::map<std::string, SharedOpen> open_;  // by id key
  std::map<int64_t, SharedOpen> by_token_;  // by upstream_token
  std::map<int64_t, Asked> asked_;          // by the id the client was given
  std::vector<std::shared_ptr<Subscription>> subscriptions_;
  int64_t last_asked_ = 0;
  int64_t last_request_ = 0;
  std::chrono::steady_clock::time_point last_used_ = std::chrono::steady_clock::now();
};

using SharedSession = std::shared_ptr<Session>;

}  // namespace tally::gateway
