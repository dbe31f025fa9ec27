#include "bench/driver/stage.h"

#include <libpq-fe.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "lib/keys/key_encryption_key.h"
#include "lib/keys/private_file.h"
#include "lib/keys/sealed.h"
#include "lib/keys/signer.h"
#include "server/ledger/keystore.h"
#include "server/ledger/migrate.h"
#include "server/ledger/permits.h"
#include "server/ledger/principals.h"
#include "server/ledger/tenants.h"
#include "server/postgres/settings.h"

namespace tally::bench {
namespace {

constexpr char kTenant[] = "acme";
constexpr char kTemplate[] = "prepared";
constexpr char kRun[] = "run";
constexpr int64_t kDayMs = 24 * 3600 * 1000;

// The permit of the README, with room for any number of calls.
v1::MintRequest Refunds(const std::string& subject) {
  v1::MintRequest request;
  request.set_tenant(kTenant);
  request.set_subject(subject);
  request.set_unit("USD/2");
  request.mutable_budget()->set_at_most(1'000'000'000'000);
  request.set_expires_in_ms(kDayMs);
  v1::GrantTerms& grant = *request.add_grants();
  grant.set_tool("payments__refund");
  grant.mutable_cap()->set_at_most(1'000'000'000);
  grant.mutable_budget()->set_at_most(1'000'000'000'000);
  grant.mutable_per_call()->set_at_most(10'000);
  grant.mutable_cost()->set_pointer("/amount");
  grant.set_arguments_schema(
      R"({"type":"object","required":["customer","amount"],"additionalProperties":false,"properties":{)"
      R"("customer":{"type":"string"},"amount":{"type":"integer","maximum":10000},"reason":{"type":"string"}}})");
  return request;
}

}  // namespace

absl::StatusOr<std::unique_ptr<Stage>> Stage::Set(int permits) {
  std::unique_ptr<Stage> stage(new Stage);
  auto postgres = postgres::PrivatePostgres::Start(stage->folder_.data_dir());
  if (!postgres.ok()) return postgres.status();
  stage->postgres_ = *std::move(postgres);
  stage->data_dir_ = (stage->folder_.path() / "service").string();
  if (mkdir(stage->data_dir_.c_str(), 0700) != 0) return absl::ErrnoToStatus(errno, "cannot make a folder");
  absl::Status status = stage->WriteConfig({});
  if (status.ok()) status = stage->Execute(absl::StrCat("CREATE DATABASE ", kTemplate, " OWNER ", postgres::kRole));
  if (status.ok()) status = stage->Prepare(permits);
  if (!status.ok()) return status;
  return stage;
}

absl::Status Stage::Prepare(int permits) {
  keys::Secret key = keys::Secret::Random(keys::kKeyEncryptionKeySize);
  absl::Status status = keys::WritePrivateFile(data_dir_ + "/kek", keys::KeyEncryptionKeyText(key).Expose());
  if (!status.ok()) return status;
  const auto sealer = keys::Sealer::FromKey(std::move(key));
  if (!sealer.ok()) return sealer.status();

  ledger::Connection connection(postgres_->ConnectionString(postgres::kRole, kTemplate));
  if (const auto migrated = ledger::Migrate(connection); !migrated.ok()) return migrated.status();
  if (const auto made = ledger::EnsureSigningKey(connection, *sealer, "bench"); !made.ok()) return made.status();
  const auto signer = ledger::LoadSigner(connection, *sealer);
  if (!signer.ok()) return signer.status();
  const ledger::TenantSecrets secrets(*sealer);
  if (const auto made = ledger::CreateTenant(connection, **signer, secrets, kTenant, ""); !made.ok()) {
    return made.status();
  }
  v1::CreatePrincipalRequest principal;
  principal.set_tenant(kTenant);
  principal.set_role(v1::OPERATOR);
  const auto operator_made = ledger::CreatePrincipal(connection, **signer, principal, "");
  if (!operator_made.ok()) return operator_made.status();
  principal.set_role(v1::GATEWAY);
  const auto gateway_made = ledger::CreatePrincipal(connection, **signer, principal, "");
  if (!gateway_made.ok()) return gateway_made.status();
  gateway_credential_ = gateway_made->credential;

  ledger::TermsCache terms(1);
  for (int i = 0; i <= permits; ++i) {
    const auto minted = ledger::MintPermit(connection, **signer, terms, Refunds(absl::StrCat("agent-", i)),
                                           operator_made->info.principal_id());
    if (!minted.ok()) return minted.status();
    (i < permits ? spread_tokens_ : hot_tokens_).push_back(minted->permit_token());
  }
  return absl::OkStatus();
}

absl::Status Stage::WriteConfig(const std::vector<std::string>& settings) const {
  const std::string path = data_dir_ + "/tallyd.toml";
  std::ofstream file(path, std::ios::trunc);
  file << "issuer = \"bench\"\nlog_level = \"warning\"\n";
  for (const std::string& setting : settings) file << setting << "\n";
  file.close();
  return file.good() ? absl::OkStatus() : absl::UnavailableError(absl::StrCat("cannot write ", path));
}

absl::StatusOr<std::string> Stage::NewDatabase() {
  absl::Status status =
      Execute(absl::StrCat("CREATE DATABASE ", kRun, " OWNER ", postgres::kRole, " TEMPLATE ", kTemplate));
  if (status.ok()) status = Execute("CHECKPOINT");
  if (!status.ok()) return status;
  return postgres_->ConnectionString(postgres::kRole, kRun);
}

absl::Status Stage::DropDatabase() { return Execute(absl::StrCat("DROP DATABASE ", kRun)); }

absl::Status Stage::Execute(const std::string& sql) const {
  PGconn* connection = PQconnectdb(postgres_->ConnectionString(postgres::kSuperuser, "postgres").c_str());
  PGresult* result = PQstatus(connection) == CONNECTION_OK ? PQexec(connection, sql.c_str()) : nullptr;
  const bool done = PQresultStatus(result) == PGRES_COMMAND_OK;
  const std::string why = done ? "" : PQerrorMessage(connection);
  PQclear(result);
  PQfinish(connection);
  return done ? absl::OkStatus() : absl::UnavailableError(absl::StrCat(sql, ": ", why));
}

}  // namespace tally::bench
