// One tools/call, from Authorize to Commit and beyond. Of use to Caller alone.
//
// It owns itself: what runs it holds it, and it ends when nothing more can come of it.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "gateway/call/answers.h"
#include "gateway/call/caller.h"
#include "gateway/call/placement.h"
#include "gateway/call/sends.h"
#include "gateway/mcp/judge.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/refusal.h"
#include "lib/client/send_deadline.h"

namespace tally::gateway {

// How long an answer is kept back for tallyd's receipt of it. It is delivered later, by the journal if need be.
inline constexpr std::chrono::milliseconds kReceiptPatience{5'000};

class Call : public std::enable_shared_from_this<Call> {
 public:
  Call(Caller& caller, CallOrder order);
  ~Call();
  asio::awaitable<void> Run();

 private:
  // ---- To the send ----

  bool MayStart();
  void MakeRequest(const CallParts& parts);
  // False: there is no grant to send, and the agent has its answer.
  bool Granted(const client::Answer<v1::AuthorizeResponse>& answer);
  // Arguments that a tool of 2026-07-28 wants to see in headers, too. Before Authorize, since it may ask the upstream.
  asio::awaitable<void> FindParamHeaders(const UpstreamSession& upstream);
  // What the upstream asks for before it goes on; nullopt: the call was concluded.
  asio::awaitable<std::optional<InputAsked>> SendOnce(SharedUpstream upstream, Gate gate, CallParts parts,
                                                      std::string state);
  std::string Params(const CallParts& parts, const std::string& state) const;

  // ---- Rounds of input: call_rounds.cc ----

  // The call is sent once; where the upstream asks for input, once more for each answer that the agent brings.
  asio::awaitable<void> SendRounds(SharedUpstream upstream, client::SendDeadline started, CallParts parts);
  // True: the answer to what was asked is in order_, and its agent waits. False: the call was parked.
  asio::awaitable<bool> AskForInput(InputAsked asked);
  // The agent's answer takes the place of what it asked first; what the permit judged stays.
  void Take(CallOrder next);
  struct Lease {
    client::SendDeadline since;
    int64_t ms = 0;
  };
  // How long the agent may take: as long as is wanted if tallyd moves the lease, else what is left of it.
  asio::awaitable<std::chrono::milliseconds> Extended(std::chrono::milliseconds wanted);
  // The last look before another round: an attempt that is over, or a permit that is, sends nothing more.
  asio::awaitable<bool> MayContinue();
  static bool MayCome(const client::Failure& failure);
  v1::ExtendRequest ExtendBy(int64_t lease_ms) const;
  // An earlier round was written, so what became of the call is not known. The agent is told, if it waits.
  asio::awaitable<void> CannotContinue(std::string why);

  // ---- Sent again, of a keyed tool: call_resend.cc ----

  bool MayAskAgain(const UpstreamAnswer& answer) const;
  // A keyed tool whose first send may have been carried out, or not: the same bytes go again under the same key, until
  // one of them is answered with success. Meanwhile the attempt stays open; the agent waits no longer than for one.
  asio::awaitable<void> SendAgain(Sent first, OutgoingRequest request);
  // In this order: what ends the sending comes last.
  enum class Heard { kNothing, kUncertain, kError, kSuccess };
  // The next answer to any of the sends. When the agent's time is over it is told meanwhile.
  asio::awaitable<Heard> Hear(Sends& sends, Sends::Clock::time_point until);
  // Another send of this attempt is always unanswered: only success ends it.
  asio::awaitable<Heard> Weigh(const Sent& sent);
  void TakePartial(const UpstreamAnswer& answer);
  ReplayLimits Limits() const;
  static std::optional<std::chrono::milliseconds> ElapsedOf(const client::SendDeadline& started);
  // The provider still remembers the key, the permit is active, and tallyd has moved the lease's end to where an answer
  // will have come. Whatever cannot be told is no.
  asio::awaitable<bool> MaySendAgain();

  // ---- What came, committed ----

  mcp::Meaning MeaningOf(const UpstreamAnswer& answer) const;
  v1::CommitRequest CommitOf(v1::CommitOutcome outcome) const;
  v1::CommitRequest CommitOf(mcp::Meaning meaning, const UpstreamAnswer& answer) const;
  // An answer came in time.
  asio::awaitable<void> Conclude(const UpstreamAnswer& answer, mcp::Meaning meaning);
  asio::awaitable<void> Uncertain(std::chrono::steady_clock::time_point began, const SharedExchange& exchange);
  void Late(const UpstreamAnswer& answer, std::chrono::steady_clock::time_point began, const SharedExchange& exchange);
  // Certain: not one byte of it was written.
  void NotSent(mcp::Refusal refusal);

  // ---- To the agent, and to the audit log: call_answer.cc ----

  void AddReceipts(const google::protobuf::RepeatedPtrField<v1::Receipt>& receipts);
  void RefuseUncertain(const std::optional<v1::CommitResponse>& committed, std::string_view code,
                       const std::string& why);
  // The client is to see the tool server's own error, by which it knows what to declare, and the model that the call
  // may have been carried out.
  void RefuseCapability(mcp::RpcError error);
  static mcp::Refusal CannotSend(const absl::Status& why);
  static mcp::Refusal Refusal(v1::Kind kind, std::string_view code) { return mcp::MakeRefusal(kind, code); }
  void Refuse(const mcp::Refusal& refusal);
  void Answer(ToolAnswer answer, std::function<void()> undelivered = nullptr);
  void Audit(std::string_view outcome, std::chrono::steady_clock::time_point began, const SharedExchange& exchange);
  void AuditSend(std::string_view outcome, const Sent& sent);

  Caller& caller_;
  CallOrder order_;
  v1::AuthorizeRequest request_;
  v1::AuthorizeResponse grant_;
  std::vector<std::string> receipt_ids_;
  std::vector<mcp::ParamHeader> param_headers_;
  std::optional<Lease> lease_;  // the last that tallyd confirmed
  std::string asked_result_;    // the last that asked for input
  int send_ = 1;
  int64_t sent_at_us_ = 0;
  bool modern_ = false;  // the upstream's era
  // Of a call that is sent again:
  std::optional<client::SendDeadline> started_;  // before Authorize
  Sends::Clock::time_point agent_until_{};       // then the agent is told that nobody knows
  std::string partial_;                          // what came last in place of success
  int64_t lease_ms_ = 0;                         // after started_
  bool late_ = false;                            // it was committed as uncertain
};

}  // namespace tally::gateway
