#ifndef TALLY_SERVER_LEDGER_TRANSACTION_H_
#define TALLY_SERVER_LEDGER_TRANSACTION_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <pqxx/pqxx>
#include <set>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"

// The one way to the database. Every statement of the product runs inside InTransaction, which owns begin, commit, the
// classification of errors, and the question whether a COMMIT took effect whose reply was lost. pqxx is used for the
// wire only: its own transactions retry, start lazily, and can report a commit that the server rolled back.
namespace tally::ledger {

// SQL text stands directly above the function that uses it; `name` is that of the prepared statement.
struct Statement {
  const char* name;
  const char* sql;
};

enum class Isolation {
  kSerializable,
  kReadWrite,  // READ COMMITTED: for rows that are locked or compared one by one, and that no decision rests on
  kReadOnly,   // READ COMMITTED, READ ONLY: reads that decide nothing
  kSnapshot,   // REPEATABLE READ, READ ONLY: all statements see one moment; takes no predicate locks, aborts nobody
};

enum class TxEnd {
  kCommitted,
  kLostRace,    // 40001, 40P01, 55P03, or the transaction said so (LostRace): rolled back
  kConstraint,  // a constraint refused it (`constraint` says which): rolled back
  kError,       // another SQL error, an exception, or the transaction said so (Abandon): rolled back
  kDown,        // no connection; nothing was committed
  kInDoubt,     // the COMMIT's reply was lost and pg_xact_status gave no answer in time
};

struct TxResult {
  TxEnd end = TxEnd::kCommitted;
  std::string constraint;
  std::string sqlstate;
  std::string message;  // for the log, never for a client: may carry values
  bool ok() const { return end == TxEnd::kCommitted; }
};

// Thrown by a transaction's body to end it.
struct LostRace {};  // what it decided on has moved: roll back, try again
struct Abandon {};   // roll back, nothing to be done

// One PostgreSQL connection; not thread-safe. Connects when first needed and again after a break.
class Connection {
 public:
  // `conninfo` as libpq takes it.
  explicit Connection(std::string conninfo);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Takes session advisory locks outside any transaction, in the order given, and frees them when destroyed (or with
  // the session). Used so that replicas wait for each other instead of racing.
  class AdvisoryLocks {
   public:
    AdvisoryLocks(Connection& connection, int32_t space, const std::set<int16_t>& keys);
    ~AdvisoryLocks();
    bool held() const { return held_; }

   private:
    Connection& connection_;
    int32_t space_;
    bool held_ = false;
  };

 private:
  friend class Tx;
  friend TxResult InTransaction(Connection&, Isolation, absl::FunctionRef<void(class Tx&)>);
  pqxx::connection& Live();  // throws pqxx::broken_connection
  void Drop();
  void RefreshPlans();
  std::string Boot();
  TxResult SettleDoubt(const std::string& xid, const std::string& boot);

  const std::string conninfo_;
  std::unique_ptr<pqxx::connection> connection_;
  std::string boot_;  // of the server as connected to; empty before the first migration
  std::set<std::string_view> prepared_;
  int64_t transactions_ = 0;  // begun on this connection
};

// A transaction in progress.
class Tx {
 public:
  // The database's clock when the transaction began, microseconds since the Unix epoch.
  int64_t now_us() const { return now_us_; }

  template <typename... Args>
  pqxx::result Exec(const Statement& statement, Args&&... args) {
    Prepare(statement);
    return work_->exec_prepared(statement.name, std::forward<Args>(args)...);
  }

  // Like Exec, and ends the transaction as a lost race unless exactly `rows` rows were affected.
  template <typename... Args>
  pqxx::result ExecExpecting(size_t rows, const Statement& statement, Args&&... args) {
    pqxx::result result = Exec(statement, std::forward<Args>(args)...);
    if (result.affected_rows() != rows) throw LostRace{};
    return result;
  }

  // Several statements without parameters; for migrations.
  void Script(const std::string& sql) { work_->exec(sql); }

 private:
  friend TxResult InTransaction(Connection&, Isolation, absl::FunctionRef<void(Tx&)>);
  Tx(Connection& connection, pqxx::nontransaction* work) : connection_(connection), work_(work) {}
  void Prepare(const Statement& statement);

  Connection& connection_;
  pqxx::nontransaction* work_;
  int64_t now_us_ = 0;
};

// Runs `body` in one transaction. Any exception in it rolls back; nothing is retried here. After kDown, kInDoubt or a
// settled doubt the connection has been thrown away.
TxResult InTransaction(Connection& connection, Isolation isolation, absl::FunctionRef<void(Tx&)> body);

// Reads what pqxx hands out as text.
std::string Bytea(const pqxx::field& field);  // empty for null
std::optional<int64_t> OptionalInt(const pqxx::field& field);

// `bytes` as a parameter in binary form.
inline pqxx::binarystring Binary(std::string_view bytes) { return pqxx::binarystring(bytes.data(), bytes.size()); }

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_TRANSACTION_H_
