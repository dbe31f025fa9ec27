#ifndef TALLY_TESTS_DECIDE_STORE_H_
#define TALLY_TESTS_DECIDE_STORE_H_

#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "lib/decide/decide.h"

// What a database would do around the decisions: load what decide.h asks for and nothing else, keep what changed, or,
// after a crash, keep nothing.
namespace tally::decide::testing {

using Request = std::variant<AuthorizeRequest, CommitRequest, ExtendRequest, ResolveRequest, CorrectRequest,
                             ClaimRequest, SweepRequest, ReplayRequest>;

// Ids and hashes made of small numbers, so that a failure can be read.
Id MakeId(uint8_t what, int number);
Hash MakeHash(uint8_t what, int number);
int NumberOf(const Id& id);
// The id that the receipt with this place in this permit's chain gets when it is sealed.
std::string ReceiptId(const Id& permit, int64_t sequence);

inline constexpr uint8_t kPermitId = 1, kCallId = 2, kAttemptId = 3, kClaimId = 4;
inline constexpr uint8_t kIntentHash = 5, kArgumentsHash = 6, kContentHash = 7, kExplicitHash = 8, kKeyHash = 9;

// A receipt as it was acknowledged, without what a history never looks at.
struct Link {
  v1::ReceiptKind kind = v1::RECEIPT_KIND_UNSPECIFIED;
  std::string code;
  std::optional<Id> call;
  int attempt_number = 0;
  v1::CallState attempt_state = v1::CALL_STATE_UNSPECIFIED;
};

class Store {
 public:
  std::map<Id, Permit> permits;
  std::map<Id, Call> calls;
  std::map<std::pair<Id, std::string>, Id> keys;
  std::map<Hash, Intent> intents;
  std::map<Id, AttemptUse> attempts;
  std::map<Id, std::vector<Link>> chains;

  // Its PERMIT_MINTED is the chain's first link.
  void Mint(std::shared_ptr<const PermitTerms> terms);

  // What decide.h says that these requests need, and no more.
  World Load(Time now, const std::vector<Request>& requests, const std::vector<Id>& permits_too = {}) const;

  // Keeps what changed. The answer is empty, or says which constraint of a database refuses it.
  std::string Keep(World world);

 private:
  void LoadPermit(World& world, const Id& id) const;
  void LoadCall(World& world, const Id& id) const;
  void LoadKey(World& world, const Id& permit, const std::string& key) const;
  void LoadIntent(World& world, const Hash& hash, const Id* done_in_permit) const;
  void LoadAttempt(World& world, const Id& id) const;
  void LoadNamed(World& world, const CallName& name) const;
};

}  // namespace tally::decide::testing

#endif  // TALLY_TESTS_DECIDE_STORE_H_
