#include "server/ledger/migrate.h"

#include <chrono>
#include <string>
#include <thread>

#include "lib/keys/hash.h"
#include "lib/keys/text.h"
#include "server/ledger/control.h"

namespace tally::ledger {
namespace {

constexpr int32_t kLockSpace = 0x7a11;  // of advisory locks: migrators
constexpr int kLockTriesMax = 30;       // of lock_timeout each

struct Applied {
  int version;
  std::string sha256;
};

constexpr char kCreateHistory[] =
    "CREATE TABLE IF NOT EXISTS schema_migrations ("
    "  version integer CONSTRAINT schema_migrations_version PRIMARY KEY,"
    "  name text NOT NULL, sha256 bytea NOT NULL, applied_at_us bigint NOT NULL)";

constexpr Statement kHasHistory{"has_history", "SELECT to_regclass('public.schema_migrations') IS NOT NULL"};
constexpr Statement kHistory{"history", "SELECT version, sha256 FROM schema_migrations ORDER BY version"};

absl::Status ReadHistory(Tx& tx, std::vector<Applied>& applied) {
  applied.clear();
  if (!tx.Exec(kHasHistory)[0][0].as<bool>()) return absl::OkStatus();
  for (const pqxx::row& row : tx.Exec(kHistory)) applied.push_back({row[0].as<int>(), Bytea(row[1])});
  return absl::OkStatus();
}

// The history must be a beginning of what this program knows.
absl::Status CheckHistory(const std::vector<Applied>& applied, std::span<const Migration> migrations) {
  if (applied.size() > migrations.size()) {
    return absl::FailedPreconditionError(keys::Cat("the database's schema is version ", applied.back().version,
                                                   ", newer than this program, which knows ", migrations.size(),
                                                   "; use the newer tallyd. Nothing was changed."));
  }
  for (size_t i = 0; i < applied.size(); ++i) {
    if (applied[i].version != migrations[i].version || applied[i].sha256 != keys::Sha256(migrations[i].sql).view()) {
      return absl::FailedPreconditionError(keys::Cat("migration ", applied[i].version,
                                                     " of the database is not the one this program was built with (",
                                                     migrations[i].name, "); was it altered? Nothing was changed."));
    }
  }
  return absl::OkStatus();
}

constexpr Statement kRecord{"record_migration", "INSERT INTO schema_migrations VALUES ($1, $2, $3, $4)"};

absl::Status Apply(Connection& connection, const Migration& migration) {
  const TxResult result = InTransaction(connection, Isolation::kSerializable, [&](Tx& tx) {
    tx.Script(std::string(migration.sql));
    tx.Exec(kRecord, migration.version, std::string(migration.name), Binary(keys::Sha256(migration.sql).view()),
            tx.now_us());
  });
  if (result.ok()) return absl::OkStatus();
  // A migration holds no values that must not be shown.
  return absl::Status(ToStatus(result).code(),
                      keys::Cat("migration ", migration.name, " failed and was rolled back: ", result.message));
}

}  // namespace

absl::StatusOr<int> Migrate(Connection& connection, std::span<const Migration> migrations) {
  for (int tries = 0; tries < kLockTriesMax; ++tries) {
    // Taken before BEGIN, so that what another migrator did is seen.
    const Connection::AdvisoryLocks lock(connection, kLockSpace, {0});
    if (!lock.held()) {
      // Another migrator is at work, or the server is away.
      absl::Status reachable = Read(connection, [](Tx&) { return absl::OkStatus(); });
      if (!reachable.ok()) return reachable;
      continue;
    }
    absl::Status status = Write(connection, [](Tx& tx) {
      tx.Script(kCreateHistory);
      return absl::OkStatus();
    });
    std::vector<Applied> applied;
    if (status.ok()) status = Read(connection, [&](Tx& tx) { return ReadHistory(tx, applied); });
    if (status.ok()) status = CheckHistory(applied, migrations);
    if (!status.ok()) return status;
    for (const Migration& migration : migrations.subspan(applied.size())) {
      status = Apply(connection, migration);
      if (!status.ok()) return status;
    }
    return static_cast<int>(migrations.size() - applied.size());
  }
  return absl::UnavailableError("another migrator holds the lock; try again when it is done");
}

absl::Status CheckSchema(Connection& connection, std::span<const Migration> migrations) {
  std::vector<Applied> applied;
  absl::Status status = Read(connection, [&](Tx& tx) { return ReadHistory(tx, applied); });
  if (status.ok()) status = CheckHistory(applied, migrations);
  if (!status.ok()) return status;
  if (applied.size() < migrations.size()) {
    return absl::FailedPreconditionError(keys::Cat("the database's schema is version ", applied.size(),
                                                   " and this program needs ", migrations.size(),
                                                   "; run tallyd migrate --data-dir D, then serve"));
  }
  return absl::OkStatus();
}

}  // namespace tally::ledger
