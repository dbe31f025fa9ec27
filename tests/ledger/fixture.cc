#include "tests/ledger/fixture.h"

#include <pqxx/pqxx>

#include "server/ledger/keystore.h"
#include "server/ledger/principals.h"
#include "server/ledger/tenants.h"
#include "tests/support/rules/rules.h"

namespace tally::ledger {
namespace {

template <typename T>
T Must(absl::StatusOr<T> value) {
  if (!value.ok()) {
    ADD_FAILURE() << value.status();
    std::abort();
  }
  return *std::move(value);
}

template <typename Array>
Array RandomArray() {
  Array array;
  const std::string bytes = keys::RandomBytes(array.size());
  std::copy(bytes.begin(), bytes.end(), array.begin());
  return array;
}

decide::Id NewCallId(int16_t shard) {
  decide::Id id;
  const std::string bytes = keys::NewUuid7(1'700'000'000'000, static_cast<uint16_t>(shard));
  std::copy(bytes.begin(), bytes.end(), id.begin());
  return id;
}

void Migrated(const std::string& conninfo) {
  Connection connection(conninfo);
  Must(Migrate(connection));
}

}  // namespace

decide::Id NewAttemptId() { return RandomArray<decide::Id>(); }

Ledger::Ledger(test::Postgres& server) : principals_(6) {
  server.MakeTemplate("migrated", Migrated);
  conninfo_ = server.CreateDatabase("migrated");
  Connection connection(conninfo_);
  const keys::Secret seed = keys::Secret::Random(keys::kSeedSize);
  signer_ = Must(keys::Ed25519Signer::Create("test.example", seed));
  const keys::Secret kek = keys::Secret::Random(32);
  secret_ = keys::RandomBytes(32);
  // The tenant's own chain is not what these tests are about: rows are enough.
  pqxx::connection raw(conninfo_);
  pqxx::work work(raw);
  work.exec_params(
      "INSERT INTO tenants (tenant, chain_id, sealed_secret, created_at_us, sequence, head) VALUES ($1, "
      "gen_random_uuid(), '', 0, 1, '')",
      std::string(kTenant));
  for (const v1::Role role : {v1::OPERATOR, v1::GATEWAY, v1::RECONCILER, v1::AUDITOR}) {
    principals_[role] =
        work.exec_params(
                "INSERT INTO principals (principal_id, tenant, role, name, credential_sha256, created_at_us) VALUES "
                "(gen_random_uuid(), $1, $2, '', decode(md5(random()::text), 'hex'), 0) RETURNING principal_id",
                std::string(kTenant), static_cast<int>(role))[0][0]
            .c_str();
  }
  work.commit();
}

std::shared_ptr<const decide::PermitTerms> Ledger::Mint(v1::MintRequest request) {
  Connection connection(conninfo_);
  request.set_tenant(kTenant);
  const v1::MintResponse minted = Must(MintPermit(connection, *signer_, terms_, request, Principal(v1::OPERATOR)));
  return Must(LoadTerms(connection, terms_, keys::Sha256(minted.permit_token()).bytes));
}

std::string Ledger::Query(const std::string& sql) { return test::Query(conninfo_, sql); }

std::string Ledger::BrokenRule() { return test::BrokenRule(conninfo_); }

v1::MintRequest OneGrant(std::optional<int64_t> cap, std::optional<int64_t> budget) {
  v1::MintRequest request;
  request.set_subject("agent");
  request.set_unit("USD/2");
  request.mutable_budget()->set_unlimited(true);
  request.set_expires_in_ms(3'600'000);
  v1::GrantTerms& grant = *request.add_grants();
  grant.set_tool("pay");
  cap ? grant.mutable_cap()->set_at_most(*cap) : grant.mutable_cap()->set_unlimited(true);
  budget ? grant.mutable_budget()->set_at_most(*budget) : grant.mutable_budget()->set_unlimited(true);
  grant.mutable_cost()->set_pointer("/amount");
  return request;
}

std::unique_ptr<CallJob> Replica::AuthorizeJob(const decide::PermitTerms& terms, const Ask& ask) {
  decide::PreparedCall prepared =
      Must(decide::Prepare(terms, ledger_.secret(), ask.key, ask.tool, ask.arguments, std::nullopt,
                           ask.intent ? std::optional<std::string_view>(*ask.intent) : std::nullopt, ask.repeat));
  Bodies bodies;
  bodies.arguments = prepared.canonical_arguments;
  bodies.arguments_salt = RandomArray<decide::Hash>();
  prepared.request.principal.id = ledger_.Principal(v1::GATEWAY);
  prepared.request.attempt_id = ask.attempt_id.value_or(NewAttemptId());
  prepared.request.new_call_id = NewCallId(terms.shard);
  prepared.request.lease = ask.lease;
  prepared.request.arguments_commitment =
      keys::Commit(keys::Domain::kArguments,
                   {reinterpret_cast<const char*>(bodies.arguments_salt.data()), bodies.arguments_salt.size()},
                   bodies.arguments)
          .bytes;
  return std::make_unique<CallJob>(terms.shard, lane::Priority::kNew, lane::Job::Clock::time_point::max(),
                                   std::move(prepared.request), std::move(bodies), [](lane::Fate, Reply&) {});
}

std::unique_ptr<CallJob> Replica::CommitJob(const decide::Id& call_id, const decide::Id& attempt_id,
                                            decide::Outcome outcome, const std::string& result) {
  decide::CommitRequest request;
  request.principal.id = ledger_.Principal(v1::GATEWAY);
  request.call = decide::CallName::OfCall(call_id);
  request.attempt_id = attempt_id;
  request.outcome = outcome;
  request.has_result = !result.empty();
  request.content = keys::Sha256(std::to_string(static_cast<int>(outcome)) + result).bytes;
  request.result_commitment = keys::Sha256(result).bytes;
  request.result_size = static_cast<int64_t>(result.size());
  Bodies bodies;
  bodies.result = result;
  bodies.result_salt = RandomArray<decide::Hash>();
  return std::make_unique<CallJob>(ShardOf(call_id), lane::Priority::kReport, lane::Job::Clock::time_point::max(),
                                   std::move(request), std::move(bodies), [](lane::Fate, Reply&) {});
}

lane::BatchEnd Replica::Run(const std::vector<std::unique_ptr<CallJob>>& jobs, int tries, bool under_lock) {
  std::vector<lane::Job*> batch;
  for (const auto& job : jobs) batch.push_back(job.get());
  lane::BatchEnd end = lane::BatchEnd::kLostRace;
  for (int i = 0; i < tries && end == lane::BatchEnd::kLostRace; ++i) end = store_.Run(batch, under_lock || i > 0);
  return end;
}

Reply Replica::Run(std::unique_ptr<CallJob> job) {
  std::vector<std::unique_ptr<CallJob>> batch;
  batch.push_back(std::move(job));
  EXPECT_EQ(Run(batch), lane::BatchEnd::kCommitted);
  return std::move(batch.front()->reply);
}

void Replica::Log(const TxResult& result) { ADD_FAILURE() << "not stored: " << result.message; }

}  // namespace tally::ledger
