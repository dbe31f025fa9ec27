#ifndef TALLY_TESTS_LEDGER_FIXTURE_H_
#define TALLY_TESTS_LEDGER_FIXTURE_H_

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "lib/decide/prepare.h"
#include "lib/decide/terms.h"
#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "lib/keys/secret.h"
#include "lib/keys/uuid.h"
#include "server/ledger/calls.h"
#include "server/ledger/control.h"
#include "server/ledger/migrate.h"
#include "server/ledger/permits.h"
#include "tests/support/postgres/postgres.h"

// A ledger on a real PostgreSQL, driven without gRPC: `Mint(…); Authorize("k1"); Commit("k1", …)`.
namespace tally::ledger {

decide::Id NewAttemptId();

// The parts of a ledger that replicas share: a database with one tenant, a signing key and a principal of each role.
class Ledger {
 public:
  static constexpr char kTenant[] = "acme";

  explicit Ledger(test::Postgres& server = test::Postgres::Shared());

  const std::string& conninfo() const { return conninfo_; }
  const keys::Signer& signer() const { return *signer_; }
  const std::string& secret() const { return secret_; }
  TermsCache& terms() { return terms_; }

  // The terms of a freshly minted permit.
  std::shared_ptr<const decide::PermitTerms> Mint(v1::MintRequest request);

  const std::string& Principal(v1::Role role) const { return principals_[role]; }

  // One value of one row, as text.
  std::string Query(const std::string& sql);
  // What must hold at any moment; empty: it does. Says what does not otherwise.
  std::string BrokenRule();

 private:
  std::string conninfo_;
  std::unique_ptr<keys::Signer> signer_;
  std::string secret_;
  TermsCache terms_{1000};
  std::vector<std::string> principals_;
};

// A grant for tool "pay" that costs what "/amount" says; fields may be changed before minting.
v1::MintRequest OneGrant(std::optional<int64_t> cap = std::nullopt, std::optional<int64_t> budget = std::nullopt);

// One replica's store, and requests to it one at a time or in batches.
class Replica {
 public:
  explicit Replica(Ledger& ledger) : ledger_(ledger), store_(ledger.conninfo(), ledger.signer(), ledger.terms(), Log) {}

  struct Ask {
    std::string key = "k";
    std::string arguments = R"({"amount":100})";
    std::optional<decide::Id> attempt_id = std::nullopt;  // absent: a new one
    bool repeat = false;
    std::optional<std::string> intent = std::nullopt;
    std::optional<decide::Time> lease = std::nullopt;
    std::string tool = "pay";
  };
  std::unique_ptr<CallJob> AuthorizeJob(const decide::PermitTerms& terms, const Ask& ask);
  std::unique_ptr<CallJob> CommitJob(const decide::Id& call_id, const decide::Id& attempt_id, decide::Outcome outcome,
                                     const std::string& result = "");

  // Runs a batch until it is committed, at most `tries` times.
  lane::BatchEnd Run(const std::vector<std::unique_ptr<CallJob>>& jobs, int tries = 20, bool under_lock = false);
  // Alone. Fails the test if it does not commit.
  Reply Run(std::unique_ptr<CallJob> job);

  Reply Authorize(const decide::PermitTerms& terms, const Ask& ask) { return Run(AuthorizeJob(terms, ask)); }
  Reply Commit(const Reply& granted, decide::Outcome outcome, const std::string& result = "") {
    return Run(CommitJob(*granted.answer.call_id, granted.answer.attempt_id, outcome, result));
  }

 private:
  static void Log(const TxResult& result);

  Ledger& ledger_;
  CallStore store_;
};

}  // namespace tally::ledger

#endif  // TALLY_TESTS_LEDGER_FIXTURE_H_
