#ifndef TALLY_TESTS_MODEL_MODEL_H_
#define TALLY_TESTS_MODEL_MODEL_H_

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/numeric/int128.h"

// The life of calls, told a second time: from the contract's tables and docs/decisions.md alone, sharing nothing with
// lib/decide. Slow on purpose: nothing is counted that can be added up again from the attempts. Names are small ints.
namespace tally::model {

using Time = int64_t;       // microseconds
using Money = int64_t;      // minor units
using Wide = absl::int128;  // sums of money cannot leave it
using Limit = std::optional<int64_t>;

inline constexpr int kNobody = -1;
inline constexpr int kNoSuchCall = -2;
inline constexpr Time kDay = Time{24} * 3600 * 1'000'000;

enum class State { kNone, kRefused, kAuthorized, kUncertain, kSucceeded, kToolError, kReleased, kNotHappened, kVoided };

enum class Kind {
  kMinted,
  kRevoked,
  kClosing,
  kClosed,
  kAllowed,
  kDenied,
  kReleased,
  kSucceeded,
  kToolError,
  kUncertain,
  kEscalated,
  kHappened,
  kNotHappened,
  kRepeated,
  kVoided,
  kDenialLimit,
  kContradicted,
  kCorrected,
  kReplaySent
};

enum class Role { kAdmin, kOperator, kGateway, kReconciler, kAuditor };

struct Who {
  int id = 0;
  Role role = Role::kGateway;
  bool disabled = false;
  bool hard = false;
};

struct Grant {
  Limit cap{}, budget{}, per_call{};
  bool read = false;
  Time repeat_window = 0;
  bool keep_on_error = true;
  bool reported = false;
  Time lease = 0, send_within = 0;
  int max_attempts = 0;
};

// One link of a permit's chain. Its sequence number is its place, from 1.
struct Receipt {
  Kind kind = Kind::kMinted;
  std::string_view code{};
  int call = kNobody;
  int number = 0;
  State call_state = State::kNone, try_state = State::kNone;
  int supersedes = 0;
  Money held = 0, charged = 0;
  int64_t slots = 0;  // of the grant, then what is taken of its budget and of the permit's
  Wide of_tool = 0, of_permit = 0;
};

struct Permit {
  Limit budget{};
  Time from = 0, until = 0;
  std::vector<Grant> grants{};
  int revoked = 0, closing = 0, closed = 0, denial_limit = 0;  // receipts; 0: not
  int64_t refusals = 0;
  std::vector<Receipt> chain{};
};

enum class Finding { kHappened, kNotHappened, kCannotTell };

// What a Resolve said that was taken.
struct Verdict {
  int named = 0;  // the receipt it answered
  Finding finding = Finding::kCannotTell;
  int receipt = 0;
};

struct Try {
  int id = 0;
  int gateway = 0;
  State state = State::kAuthorized;
  bool by_verdict = false;               // brought to its present end by Resolve, Correct or a contradiction
  bool contradicted = false;             // its success came after it had been given back or had failed
  bool contradicted_by_gateway = false;  // and it was the gateway that said so
  bool no_answer = false;                // a READ that nobody answered
  std::optional<int> content{}, attached{};
  Kind attached_kind = Kind::kSucceeded;
  bool slot = true;
  Money hold = 0, held = 0, spent = 0;
  Time granted = 0, send_until = 0, lease = 0, lease_until = 0;
  bool undelivered = false;
  bool late_not_sent = false;
  int allowed = 0, end = 0, escalated = 0, attachment = 0;  // receipts; `end` brought the present state
  std::vector<Verdict> verdicts{};
  std::vector<int> intents{};  // derived, then explicit: held while open, marked done by success; empty: READ
};

// What a key stands for.
struct Meaning {
  int tool = 0, arguments = 0;
  std::optional<Money> amount{};
  std::optional<int> intent{};
  friend bool operator==(const Meaning&, const Meaning&) = default;
};

struct Call {
  int permit = 0, key = 0, grant = 0;
  Meaning meaning{};
  Time first_seen = 0;
  int same_as = kNobody;  // another name of that call
  int repeated = 0;       // CALL_REPEATED
  std::string_view refusal{};
  int refusal_receipt = 0;
  bool ever_uncertain = false;
  int answer_of = 0;  // the attempt whose answer's bytes are kept as the call's; 0: none
  bool person = false;
  int claim = kNobody, claimed_by = kNobody;
  Time claim_until = 0;
  std::vector<Try> tries{};
};

// Which call did an intent last.
struct Done {
  int call = kNobody;
  Time at = 0, until = 0;
};

// ---- What is said ----

struct CallName {
  int call = kNobody;  // or, where kNobody: permit and key
  int permit = 0, key = 0;
};

struct Authorize {
  Who who{};
  int permit = 0, key = 0, attempt = 0;
  Meaning meaning{};
  int grant = 0;  // from 1; 0: none
  bool unenforceable = false, violated = false;
  Money amount = 0;
  int intent = kNobody, explicit_intent = kNobody;
  bool repeat = false;
  std::optional<Time> lease{};
};

enum class Outcome { kNotSent, kUncertain, kSucceeded, kToolError };

struct Commit {
  Who who{};
  CallName call{};
  int attempt = 0;
  Outcome outcome = Outcome::kUncertain;
  int content = 0;
  bool has_result = false;
  std::optional<Money> amount{};
  bool no_effect = false, undelivered = false;
};

struct Extend {
  Who who{};
  CallName call{};
  int attempt = 0;
  Time lease = 0;
};

struct Judge {  // Resolve and Correct
  Who who{};
  int call = 0, attempt = 0;
  int receipt = 0;  // sequence of the one named; 0: one that does not exist
  int claim = kNobody;
  Finding finding = Finding::kCannotTell;
  std::optional<Money> amount{};
  bool has_result = false;
};

struct Claim {
  Who who{};
  int call = 0, claim = 0;
  Time length = 0;
};

struct SendAgain {  // a keyed tool is about to be asked again
  Who who{};
  int call = 0, attempt = 0;
  int receipt = 0;  // as in Judge
  int claim = kNobody;
};

// ---- What is answered ----

struct Answer {
  std::string_view code{};  // "" where the message was simply taken
  int call = kNobody;
  int number = 0;
  State call_state = State::kNone, try_state = State::kNone;
  Time send_within = 0, lease = 0, lease_until = 0;
  int repeat_of = kNobody, result_of = kNobody;
  int receipt = 0;       // the one that proves it, on the permit's chain; 0: none
  bool several = false;  // several attempts stand as successes: which of them speaks for the call is open
};

class Model {
 public:
  Time now = 0;
  std::vector<Permit> permits{};
  std::vector<Call> calls{};
  std::map<std::pair<int, int>, int> keys;        // (permit, key) → call
  std::map<int, Done> done;                       // intent → who did it
  std::map<int, std::pair<int, int>> tombstones;  // attempt → (permit, ATTEMPT_VOIDED)

  int Mint(Permit permit);
  // Each ends with a look whether a closing permit has lost its last open call.
  Answer Say(const Authorize& m) { return Closing(Hear(m)); }
  Answer Say(const Commit& m) { return Closing(Hear(m)); }
  Answer Say(const Extend& m) { return Closing(Hear(m)); }
  Answer Say(const Claim& m) { return Closing(Hear(m)); }
  Answer Say(const SendAgain& m) { return Closing(Hear(m)); }
  Answer Resolve(const Judge& m) { return Closing(HearResolve(m)); }
  Answer Correct(const Judge& m) { return Closing(HearCorrect(m)); }
  Answer Sweep(int call);
  Answer Revoke(const Who& who, int permit);
  Answer Close(const Who& who, int permit);

  State StateOf(const Call& call) const;
  bool Open(const Call& call) const;
  bool Contradicted(const Call& call) const;
  int64_t Slots(int permit, int grant) const;
  Wide Taken(int permit, int grant) const;  // held + spent; grant 0: of the whole permit
  int OpenCalls(int permit) const;
  int OwnerOf(int attempt) const;      // the call, or kNobody
  int IntentHeldBy(int intent) const;  // the call, or kNobody

 private:
  Answer Hear(const Authorize& m);
  Answer Hear(const Commit& m);
  Answer Hear(const Extend& m);
  Answer Hear(const Claim& m);
  Answer Hear(const SendAgain& m);
  Answer HearResolve(const Judge& m);
  Answer HearCorrect(const Judge& m);
  std::string_view Guard(const Authorize& m, int known, int* done_call);
  Answer Decide(const Authorize& m, int known);
  Answer Refuse(const Authorize& m, int known, std::string_view code);
  Answer Bind(const Authorize& m, int known, int to);
  Answer Grants(const Authorize& m, int known);
  Answer SameKey(const Authorize& m, int call, int named);
  Answer Replay(int call, int named) const;
  int Record(const Authorize& m, int known);

  int Find(const CallName& name, int attempt) const;
  Try* FindTry(int call, int attempt);
  Answer About(int call, const Try& t, std::string_view code) const;
  Answer AboutCall(int call, std::string_view code) const {
    return {.code = code, .call = call, .call_state = StateOf(calls[call])};
  }
  Answer Unseen(const Commit& m, int permit);
  Answer Succeed(const Commit& m, int call, Try& t);
  Answer ToolError(const Commit& m, int call, Try& t);
  Answer NotSent(const Commit& m, int call, Try& t);
  Answer Attach(const Commit& m, int call, Try& t, Kind kind);

  const Grant& GrantOf(const Call& call) const { return permits[call.permit].grants[call.grant - 1]; }
  int Write(int permit, Kind kind, std::string_view code, int call = kNobody, const Try* t = nullptr,
            int supersedes = 0);
  void Touch(int call);
  void Park(int call, Try& t, std::string_view code);
  void GiveBack(Try& t);
  void Charge(Try& t, Money amount);
  Money Price(const Grant& grant, const Try& t, std::optional<Money> stated) const;
  const Verdict* Standing(const Try& t, const Judge& m) const;
  Money Stated(const Try& t, std::optional<Money> amount) const;
  // A key that was another call's name is one no more once its own attempt has turned out to have happened.
  void StandsForItself(Call& call) const { call.same_as = kNobody; }
  void KeepAnswer(int call, const Try& t, bool has_result);
  void MarkDone(int call, const Try& t);
  Answer Closing(Answer answer);
};

}  // namespace tally::model

#endif  // TALLY_TESTS_MODEL_MODEL_H_
