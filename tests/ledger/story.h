#ifndef TALLY_TESTS_LEDGER_STORY_H_
#define TALLY_TESTS_LEDGER_STORY_H_

#include <map>
#include <string>

#include "tests/ledger/fixture.h"

// Calls that go wrong in every way, told a sentence at a time: `Park("a"); Resolve("a", kHappened, v1::OPERATOR)`.
namespace tally::ledger {

class Story {
 public:
  explicit Story(Ledger& ledger, v1::MintRequest terms = OneGrant())
      : ledger_(ledger), replica_(ledger), terms_(ledger.Mint(std::move(terms))) {}

  const decide::PermitTerms& terms() const { return *terms_; }
  Replica& replica() { return replica_; }

  // Each key is an act of its own, unless `arguments` say otherwise. The call's last attempt is what is meant later.
  Reply Authorize(const std::string& key, const std::string& arguments = "", const std::string& tool = "pay");
  Reply Commit(const std::string& key, decide::Outcome outcome);
  Reply Park(const std::string& key);
  // Of the attempt that Park parked last, even where another has been granted since.
  Reply CommitParked(const std::string& key, decide::Outcome outcome);
  std::unique_ptr<CallJob> ResolveJob(const std::string& key, decide::Finding finding, v1::Role role,
                                      std::optional<int64_t> amount = std::nullopt);
  Reply Resolve(const std::string& key, decide::Finding finding, v1::Role role,
                std::optional<int64_t> amount = std::nullopt) {
    return replica_.Run(ResolveJob(key, finding, role, amount));
  }
  // Of the end that `ended` brought.
  Reply Correct(const std::string& key, const Reply& ended, decide::Finding finding);

 private:
  void Claim(const std::string& key, const decide::Id& claim_id);

  Ledger& ledger_;
  Replica replica_;
  std::shared_ptr<const decide::PermitTerms> terms_;
  std::map<std::string, Reply> granted_;                         // by key
  std::map<std::string, std::pair<Reply, std::string>> parked_;  // by key: its grant, its CALL_UNCERTAIN
};

}  // namespace tally::ledger

#endif  // TALLY_TESTS_LEDGER_STORY_H_
