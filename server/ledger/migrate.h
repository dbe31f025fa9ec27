#ifndef TALLY_SERVER_LEDGER_MIGRATE_H_
#define TALLY_SERVER_LEDGER_MIGRATE_H_

#include <span>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "server/ledger/transaction.h"

// The schema's history: forward only, one transaction a file, each with its checksum in schema_migrations.
namespace tally::ledger {

struct Migration {
  int version;  // the number its file name begins with, from 1 without gaps
  std::string_view name;
  std::string_view sql;
};

// migrations/*.sql as they were when this program was built.
std::span<const Migration> EmbeddedMigrations();

// Carries out what is missing, and returns how many that were. Migrators of other processes wait for each other. A
// crash leaves the last whole migration. FailedPrecondition: the database is newer than this program, or a migration it
// has had was altered since; nothing was done then.
absl::StatusOr<int> Migrate(Connection& connection, std::span<const Migration> migrations = EmbeddedMigrations());

// OK only if the database has had exactly these migrations; FailedPrecondition says what to do.
absl::Status CheckSchema(Connection& connection, std::span<const Migration> migrations = EmbeddedMigrations());

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_MIGRATE_H_
