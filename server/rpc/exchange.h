#ifndef TALLY_SERVER_RPC_EXCHANGE_H_
#define TALLY_SERVER_RPC_EXCHANGE_H_

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/functional/any_invocable.h"
#include "lib/keys/secret.h"
#include "server/rpc/access.h"
#include "server/rpc/core.h"

namespace tally::rpc {

struct Caller {
  std::string principal_id;
  std::string tenant;  // empty: all (admins)
  v1::Role role = v1::ROLE_UNSPECIFIED;
};

// One RPC under way, from its arrival to its one Finish, where it is counted and logged. Whoever is to finish it holds
// it.
class Exchange {
 public:
  using Clock = std::chrono::steady_clock;

  // `method`: full name, as in Rules(). `finish` answers the caller; after it the context is gone.
  Exchange(Core& core, std::string_view method, grpc::CallbackServerContext* context,
           std::function<void(grpc::Status)> finish);

  Core& core() const { return core_; }
  const Rule& rule() const { return rule_; }
  grpc::CallbackServerContext& context() const { return *context_; }
  const Caller& caller() const { return caller_; }
  Clock::time_point deadline() const { return deadline_; }

  // Looks the caller up in the database, checks it against the rule, and remembers it.
  grpc::Status Admit(ledger::Connection& connection);
  // The same from the cache; nullopt where that does not know.
  std::optional<grpc::Status> AdmitFromCache();

  // Exactly once.
  void Finish(const grpc::Status& status);

 private:
  grpc::Status Check(const ledger::PrincipalRow& principal);
  void Record(const grpc::Status& status) const;

  Core& core_;
  const Rule& rule_;
  grpc::CallbackServerContext* const context_;
  const std::function<void(grpc::Status)> finish_;
  const Clock::time_point began_;
  const Clock::time_point deadline_;
  std::optional<ledger::Credential> credential_;
  Caller caller_;
};

using SharedExchange = std::shared_ptr<Exchange>;

// Runs `work` with an admitted caller on a worker; its status finishes the RPC.
using Work = absl::AnyInvocable<grpc::Status(const Caller&, ledger::Connection&)>;
grpc::ServerUnaryReactor* OnWorker(Core& core, std::string_view method, grpc::CallbackServerContext* context,
                                   Work work);

// For a worker's task that finishes the RPC itself, later perhaps. Refused ones are finished here.
void Submit(const SharedExchange& exchange, absl::AnyInvocable<void(ledger::Connection&)> task);

// ---- The hot path ----

// What it needs besides the request; from memory as a rule.
struct Ready {
  std::shared_ptr<const decide::PermitTerms> terms;  // null where no token was given
  std::shared_ptr<const keys::Secret> secret;        // the tenant's
};

// Admits the caller, finds the permit of the token (nullopt: none is needed) and the tenant's secret, and goes on with
// `then`: at once where memory has it all, on a worker otherwise. What fails finishes the RPC.
void WhenReady(const SharedExchange& exchange, std::optional<std::string_view> permit_token,
               absl::AnyInvocable<void(const SharedExchange&, const Ready&)> then);

// An exchange whose answer is the reactor's: the context's default one, which may be asked for only once.
SharedExchange UnaryExchange(Core& core, std::string_view method, grpc::CallbackServerContext* context,
                             grpc::ServerUnaryReactor* reactor);

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_EXCHANGE_H_
