#include "server/ledger/transaction.h"

#include <chrono>
#include <exception>
#include <thread>
#include <vector>

#include "server/ledger/arrays.h"

namespace tally::ledger {
namespace {

// The planner has no statistics for tables that were empty a moment ago; sequential scans and hash joins would lock
// whole relations against other lanes, and compiling a statement costs more than running it. lock_timeout is a net
// under deadlocks: what waits longer is tried again.
constexpr char kSession[] =
    "SET search_path = public;"
    "SET client_min_messages = warning;"
    "SET jit = off;"
    "SET enable_seqscan = off;"
    "SET enable_hashjoin = off;"
    "SET enable_mergejoin = off;"
    "SET enable_memoize = off;"
    "SET plan_cache_mode = force_generic_plan;"
    "SET lock_timeout = '2s';"
    "SET statement_timeout = '20s';"
    "SET idle_in_transaction_session_timeout = '30s';"
    "SET synchronous_commit = on";

// Transactions between two looks at how large the tables have become.
constexpr int64_t kPlansKeptMax = 1024;

constexpr char kBeginSerializable[] =
    "BEGIN ISOLATION LEVEL SERIALIZABLE;"
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_current_xact_id()::text";
constexpr char kBeginReadWrite[] =
    "BEGIN ISOLATION LEVEL READ COMMITTED;"
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, pg_current_xact_id()::text";
constexpr char kBeginReadOnly[] =
    "BEGIN ISOLATION LEVEL READ COMMITTED READ ONLY;"
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, ''";
constexpr char kBeginSnapshot[] =
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
    "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint, ''";

const char* BeginOf(Isolation isolation) {
  switch (isolation) {
    case Isolation::kSerializable:
      return kBeginSerializable;
    case Isolation::kReadWrite:
      return kBeginReadWrite;
    case Isolation::kReadOnly:
      return kBeginReadOnly;
    case Isolation::kSnapshot:
      return kBeginSnapshot;
  }
  return kBeginSerializable;
}

bool MayWrite(Isolation isolation) {
  return isolation == Isolation::kSerializable || isolation == Isolation::kReadWrite;
}

// A server that was killed in the middle of a COMMIT is back within seconds, or this is for people.
constexpr std::chrono::milliseconds kDoubtPatience{8000};

TxResult FromSqlError(const pqxx::sql_error& error) {
  TxResult result{TxEnd::kError, "", error.sqlstate(), error.what()};
  if (result.sqlstate == "55P03") result.end = TxEnd::kLostRace;
  // 57P01–57P03: the server is going away or not yet there; nothing was committed.
  if (result.sqlstate.starts_with("57P0")) result.end = TxEnd::kDown;
  return result;
}

// libpqxx 6 does not hand out the constraint's name, but PostgreSQL's message quotes it last:
// … violates check constraint "grants_cap"
std::string ConstraintName(std::string_view message) {
  const size_t mark = message.find("constraint \"");
  if (mark == std::string_view::npos) return "";
  const size_t from = mark + 12;
  const size_t to = message.find('"', from);
  return to == std::string_view::npos ? "" : std::string(message.substr(from, to - from));
}

}  // namespace

Connection::Connection(std::string conninfo) : conninfo_(std::move(conninfo)) {}
Connection::~Connection() = default;

pqxx::connection& Connection::Live() {
  if (connection_ == nullptr) {
    connection_ = std::make_unique<pqxx::connection>(conninfo_);
    prepared_.clear();
    transactions_ = 0;
    pqxx::nontransaction(*connection_).exec(kSession);
    boot_ = Boot();
  }
  return *connection_;
}

// Which life of the server this is. See migrations/0001_tables.sql.
std::string Connection::Boot() {
  pqxx::nontransaction work(*connection_);
  if (work.exec("SELECT to_regclass('boots')")[0][0].is_null()) return "";
  work.exec("INSERT INTO boots VALUES (true, gen_random_uuid()) ON CONFLICT DO NOTHING");
  return work.exec("SELECT boot FROM boots")[0][0].c_str();
}

// A plan made while a table was all but empty may use an index by its shard alone, which costs nothing then and reads
// the whole shard later. Plans follow the tables' growth: made anew whenever this connection's work has doubled.
void Connection::RefreshPlans() {
  ++transactions_;
  const bool doubled = (transactions_ & (transactions_ - 1)) == 0;
  if (doubled || transactions_ % kPlansKeptMax == 0) pqxx::nontransaction(*connection_).exec("DISCARD PLANS");
}

void Connection::Drop() {
  prepared_.clear();
  try {
    connection_.reset();
  } catch (const std::exception&) {
    // A broken connection may fail to say goodbye.
  }
}

// The reply to COMMIT was lost. The transaction's own id tells what became of it: a committed or aborted id stays so,
// and `in progress` means that the server has not yet noticed, or is still committing. A crash of this process here
// loses only the answer: the caller asks again with the same key and attempt_id and finds the record, or none.
//
// An id that had not reached the disk when the server crashed is given out again after recovery. `aborted` is true of
// this transaction all the same; `committed` is believed only if the server has not crashed in between.
TxResult Connection::SettleDoubt(const std::string& xid, const std::string& boot) {
  const auto give_up = std::chrono::steady_clock::now() + kDoubtPatience;
  auto pause = std::chrono::milliseconds(5);
  do {
    try {
      pqxx::nontransaction work(Live());
      const pqxx::result row = work.exec_params("SELECT pg_xact_status($1::text::xid8)", xid);
      const std::string status = row[0][0].is_null() ? "" : row[0][0].c_str();
      if (status == "committed" && !boot.empty() && boot_ == boot) return {TxEnd::kCommitted, "", "", ""};
      if (status == "aborted") return {TxEnd::kLostRace, "", "", "the transaction was aborted with its connection"};
      if (status != "in progress") break;  // not to be known
    } catch (const std::exception&) {
      Drop();
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(pause * 2, std::chrono::milliseconds(250));
  } while (std::chrono::steady_clock::now() < give_up);
  return {TxEnd::kInDoubt, "", "", "the reply to COMMIT was lost and the transaction's status is not known"};
}

void Tx::Prepare(const Statement& statement) {
  if (connection_.prepared_.contains(statement.name)) return;
  connection_.connection_->prepare(statement.name, statement.sql);
  connection_.prepared_.insert(statement.name);
}

TxResult InTransaction(Connection& connection, Isolation isolation, absl::FunctionRef<void(Tx&)> body) {
  std::string xid;
  std::string boot;
  bool committing = false;
  try {
    connection.Live();
    connection.RefreshPlans();
    pqxx::nontransaction work(*connection.connection_);
    boot = connection.boot_;
    Tx tx(connection, &work);
    TxResult result;
    try {
      const pqxx::result began = work.exec(BeginOf(isolation));
      tx.now_us_ = began[0][0].as<int64_t>();
      xid = began[0][1].c_str();
      body(tx);
      committing = true;
      work.exec("COMMIT");
      return result;
    } catch (const pqxx::serialization_failure& error) {
      result = {TxEnd::kLostRace, "", "40001", error.what()};
    } catch (const pqxx::deadlock_detected& error) {
      result = {TxEnd::kLostRace, "", "40P01", error.what()};
    } catch (const pqxx::transaction_rollback& error) {
      result = {TxEnd::kLostRace, "", "40000", error.what()};
    } catch (const LostRace&) {
      result = {TxEnd::kLostRace, "", "", "what was decided on has moved"};
    } catch (const Abandon&) {
      result = {TxEnd::kError, "", "", "abandoned"};
    } catch (const pqxx::integrity_constraint_violation& error) {
      result = {TxEnd::kConstraint, ConstraintName(error.what()), error.sqlstate(), error.what()};
    } catch (const pqxx::broken_connection&) {
      throw;
    } catch (const pqxx::sql_error& error) {
      result = FromSqlError(error);
      if (result.sqlstate.empty()) throw pqxx::broken_connection(error.what());
    } catch (const std::exception& error) {
      result = {TxEnd::kError, "", "", error.what()};
    }
    // Refused before it took effect, COMMIT included (its error reply is an answer).
    if (result.end == TxEnd::kDown) {
      connection.Drop();
    } else {
      try {
        work.exec("ROLLBACK");
      } catch (const std::exception&) {
        connection.Drop();
      }
    }
    return result;
  } catch (const std::exception& error) {
    connection.Drop();
    if (!committing || !MayWrite(isolation)) return {TxEnd::kDown, "", "", error.what()};
    return connection.SettleDoubt(xid, boot);
  }
}

Connection::AdvisoryLocks::AdvisoryLocks(Connection& connection, int32_t space, const std::set<int16_t>& keys)
    : connection_(connection), space_(space) {
  Int64Array array;
  for (int16_t key : keys) array.Add(key);
  try {
    pqxx::nontransaction work(connection_.Live());
    work.exec_params("SELECT pg_advisory_lock($1::int, k::int) FROM unnest($2::bigint[]) k", space, array.Param());
    held_ = true;
  } catch (const std::exception&) {
    // Not had within lock_timeout, or no connection. With the session go the locks that it did get.
    connection_.Drop();
  }
}

Connection::AdvisoryLocks::~AdvisoryLocks() {
  if (!held_ || connection_.connection_ == nullptr) return;
  try {
    pqxx::nontransaction work(*connection_.connection_);
    work.exec("SELECT pg_advisory_unlock_all()");
  } catch (const std::exception&) {
    connection_.Drop();
  }
}

std::string Bytea(const pqxx::field& field) {
  if (field.is_null()) return "";
  const std::string_view text(field.c_str(), field.size());
  auto nibble = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  std::string bytes;
  bytes.reserve(text.size() / 2);
  for (size_t i = 2; i + 1 < text.size(); i += 2) {
    bytes.push_back(static_cast<char>(nibble(text[i]) << 4 | nibble(text[i + 1])));
  }
  return bytes;
}

std::optional<int64_t> OptionalInt(const pqxx::field& field) {
  if (field.is_null()) return std::nullopt;
  return field.as<int64_t>();
}

}  // namespace tally::ledger
