#ifndef TALLY_TESTS_DECIDE_FIXTURE_H_
#define TALLY_TESTS_DECIDE_FIXTURE_H_

#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tests/decide/rules.h"
#include "tests/decide/store.h"

// A small language for what happens to calls:
//   Mint(Cap(1)); EXPECT_EQ(Authorize("k1"), kDispatch); Crash(); Pass(5 * kSecond); …
// Every message is a batch of its own and is stored when the next thing happens, unless Crash() comes first. The rules
// are checked after each. Tests are in the namespace of the decisions, so that verdicts read as in the contract.
namespace tally::decide::testing {

using enum Verdict;
using enum decide::Outcome;
using enum Finding;

inline constexpr Time kMinute = 60 * kSecond;

// A WRITE grant that costs what the caller says, without limits.
GrantTerms Open();
GrantTerms Cap(int64_t cap);
GrantTerms Read();

struct Ask {
  std::string attempt{};  // empty: one never used before
  int arguments = 1;      // tool and arguments make the intent
  int noise = 0;          // a part of the arguments that the intent ignores
  Money amount = 10;
  std::optional<int> intent{};
  bool repeat = false;
  std::optional<Time> lease{};
  std::string who = "gateway";
  int permit = 0;
  int grant = 1;  // 0: none for the tool
  std::string tool = "pay";
  Prepared::Check check = Prepared::Check::kPass;
  std::optional<Money> explicit_amount{};
};

struct Say {
  std::string attempt{};  // empty: the key's last that was asked for
  int result = 1;         // 0: none
  std::optional<Money> amount{};
  bool no_effect = false;
  bool undelivered = false;
  Time sent_at = 0;
  bool partial = false;
  std::string who = "gateway";
  int permit = 0;
  bool by_id = false;
};

struct Rule {
  std::string attempt{};
  std::string supersedes{};  // empty: the receipt on which the attempt stands
  std::optional<int> claim{};
  std::optional<Money> amount{};
  int result = 0;
  std::string who = "operator";
  int permit = 0;
};

class DecideTest : public ::testing::Test {
 public:
  Time now() const { return now_; }

 protected:
  DecideTest();
  void TearDown() override { Flush(); }

  // ---- What happens ----
  int Mint(GrantTerms grant, Limit budget = std::nullopt);  // the permit's number
  int MintPermit(PermitTerms terms);
  void Pass(Time time);
  void Crash();  // the last message was decided, and neither stored nor answered

  Verdict Authorize(const std::string& key, const Ask& ask = {});
  Verdict Commit(const std::string& key, Outcome outcome, const Say& say = {});
  Verdict Extend(const std::string& key, Time lease, const Say& say = {});
  Verdict Resolve(const std::string& key, Finding finding, const Rule& rule = {});
  Verdict Correct(const std::string& key, Finding finding, const Rule& rule = {});
  Verdict Replay(const std::string& key, const Rule& rule = {});
  Verdict Claim(const std::string& key, Time time, const std::string& who = "reconciler", int permit = 0);
  void Sweep(const std::string& key, int permit = 0);
  Verdict Revoke(const std::string& who = "operator", int permit = 0);
  Verdict Close(const std::string& who = "operator", int permit = 0);
  void Disable(const std::string& who, bool hard = false);
  // The answer to the last message.
  const Answer& answer() const { return answer_; }

  // For tests that set counters by hand.
  void CountersAreSetByHand() { check_rules_ = false; }

  // ---- How things stand ----
  Permit& permit(int index = 0);  // as stored: may be set by a test
  const Counters& grant(int index = 0);
  Call& call(const std::string& key, int permit = 0);
  v1::CallState StateOf(const std::string& key, int permit = 0) { return call(key, permit).state(); }
  bool Known(const std::string& key, int permit = 0);
  std::vector<v1::ReceiptKind> Chain(int permit = 0);
  size_t ChainLength(int permit = 0) { return Chain(permit).size(); }
  // The last receipt that was written.
  const v1::ReceiptPayload& receipt() const { return receipt_; }
  // Of the attempt's present end.
  std::string ReceiptOf(const std::string& key, int permit = 0);
  Id AttemptId(const std::string& name);
  bool Cites(int64_t sequence) const;

 private:
  void Flush();
  World& Begin(const std::vector<Request>& requests, const std::vector<Id>& permits = {});
  Verdict End(Answer answer);
  Principal Who(const std::string& name, int permit) const;
  Id PermitId(int permit) const { return MakeId(kPermitId, permit); }
  CallName Named(const std::string& key, int permit, bool by_id);
  Id IdOf(const std::string& key, int permit);
  Hash IntentHash(const std::string& what, int permit, int grant) const;

  Store store_;
  std::optional<World> pending_;
  Answer answer_;
  v1::ReceiptPayload receipt_;
  Time now_ = 1'000'000 * kSecond;
  std::map<std::string, int> attempts_;
  std::map<std::string, std::string> last_attempt_;  // by key
  std::map<std::string, Principal> principals_;
  int next_ = 1;
  bool check_rules_ = true;
};

}  // namespace tally::decide::testing

#endif  // TALLY_TESTS_DECIDE_FIXTURE_H_
