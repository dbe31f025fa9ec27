#include "server/rpc/exchange.h"

#include <cstdlib>

#include "server/ledger/ids.h"
#include "server/ledger/permits.h"
#include "server/ops/log.h"
#include "server/rpc/credentials.h"
#include "server/rpc/status.h"

namespace tally::rpc {
namespace {

// Nothing is worked on longer than this, whatever the caller allows.
constexpr std::chrono::seconds kPatience{30};

const Rule& RuleOf(std::string_view method) {
  const Rule* rule = FindRule(method);
  if (rule == nullptr) std::abort();  // an RPC without a rule must not be served
  return *rule;
}

Exchange::Clock::time_point DeadlineOf(const grpc::CallbackServerContext& context) {
  const auto left = context.deadline() - std::chrono::system_clock::now();
  return Exchange::Clock::now() + std::min<std::chrono::system_clock::duration>(left, kPatience);
}

}  // namespace

Exchange::Exchange(Core& core, std::string_view method, grpc::CallbackServerContext* context,
                   std::function<void(grpc::Status)> finish)
    : core_(core),
      rule_(RuleOf(method)),
      context_(context),
      finish_(std::move(finish)),
      began_(Clock::now()),
      deadline_(DeadlineOf(*context)),
      credential_(CredentialOf(*context)) {}

grpc::Status Exchange::Check(const ledger::PrincipalRow& principal) {
  caller_ = {principal.id, principal.tenant, principal.role};
  if (principal.disabled && (principal.hard || !rule_.when_disabled)) return Unauthenticated();
  return rule_.roles.Has(principal.role) ? grpc::Status::OK : PermissionDenied();
}

grpc::Status Exchange::Admit(ledger::Connection& connection) {
  if (!credential_) return Unauthenticated();
  const auto principal = ledger::FindPrincipal(connection, *credential_);
  if (absl::IsNotFound(principal.status())) {
    core_.principals.Drop(*credential_);
    return Unauthenticated();
  }
  if (!principal.ok()) return FromLedger(principal.status());
  core_.principals.Put(*credential_, *principal, Clock::now());
  return Check(*principal);
}

std::optional<grpc::Status> Exchange::AdmitFromCache() {
  if (!credential_) return Unauthenticated();
  const auto principal = core_.principals.Find(*credential_, Clock::now());
  if (!principal) return std::nullopt;
  return Check(*principal);
}

void Exchange::Record(const grpc::Status& status) const {
  const double seconds = std::chrono::duration<double>(Clock::now() - began_).count();
  core_.metrics.Rpc(rule_, status.error_code(), seconds);
  const bool quiet = status.ok() && rule_.hot;
  ops::Log(quiet ? ops::Severity::kDebug : ops::Severity::kInfo, "rpc",
           {{"method", rule_.method},
            {"status", static_cast<int>(status.error_code())},
            {"code", CodeOf(status)},
            {"principal", caller_.principal_id},
            {"tenant", caller_.tenant},
            {"milliseconds", seconds * 1000}});
}

void Exchange::Finish(const grpc::Status& status) {
  Record(status);
  finish_(status);
}

SharedExchange UnaryExchange(Core& core, std::string_view method, grpc::CallbackServerContext* context,
                             grpc::ServerUnaryReactor* reactor) {
  return std::make_shared<Exchange>(core, method, context,
                                    [reactor](grpc::Status status) { reactor->Finish(std::move(status)); });
}

void Submit(const SharedExchange& exchange, absl::AnyInvocable<void(ledger::Connection&)> task) {
  if (exchange->core().closing) return exchange->Finish(ShuttingDown());
  const Workers::Post post =
      exchange->core().workers.Submit([exchange, task = std::move(task)](ledger::Connection* connection) mutable {
        if (connection == nullptr) return exchange->Finish(ShuttingDown());
        if (Exchange::Clock::now() >= exchange->deadline()) return exchange->Finish(DeadlineOver());
        task(*connection);
      });
  if (post == Workers::Post::kFull) exchange->Finish(Overloaded());
  if (post == Workers::Post::kClosed) exchange->Finish(ShuttingDown());
}

grpc::ServerUnaryReactor* OnWorker(Core& core, std::string_view method, grpc::CallbackServerContext* context,
                                   Work work) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const SharedExchange exchange = UnaryExchange(core, method, context, reactor);
  Submit(exchange, [exchange, work = std::move(work)](ledger::Connection& connection) mutable {
    const grpc::Status admitted = exchange->Admit(connection);
    exchange->Finish(admitted.ok() ? work(exchange->caller(), connection) : admitted);
  });
  return reactor;
}

namespace {

// A token is as good as none where the permit is another tenant's.
grpc::Status CheckPermit(const Exchange& exchange, const Ready& ready) {
  if (ready.terms == nullptr || ready.terms->tenant == exchange.caller().tenant) return grpc::Status::OK;
  return Unauthenticated("the permit token is unknown");
}

grpc::Status Load(Exchange& exchange, const std::optional<decide::Hash>& token, Ready& ready,
                  ledger::Connection& connection) {
  grpc::Status admitted = exchange.Admit(connection);
  if (!admitted.ok()) return admitted;
  Core& core = exchange.core();
  if (token && (ready.terms = core.terms.ByToken(*token)) == nullptr) {
    auto terms = ledger::LoadTerms(connection, core.terms, *token);
    if (absl::IsNotFound(terms.status())) return Unauthenticated("the permit token is unknown");
    if (!terms.ok()) return FromLedger(terms.status());
    ready.terms = *std::move(terms);
  }
  auto secret = core.secrets.Load(connection, exchange.caller().tenant);
  if (!secret.ok()) return FromLedger(secret.status());
  ready.secret = *std::move(secret);
  return CheckPermit(exchange, ready);
}

}  // namespace

void WhenReady(const SharedExchange& exchange, std::optional<std::string_view> permit_token,
               absl::AnyInvocable<void(const SharedExchange&, const Ready&)> then) {
  Core& core = exchange->core();
  if (core.closing) return exchange->Finish(ShuttingDown());
  std::optional<decide::Hash> token;
  if (permit_token) token = ledger::ToHash(keys::Sha256(*permit_token));
  Ready ready;
  if (token) ready.terms = core.terms.ByToken(*token);
  const std::optional<grpc::Status> admitted = exchange->AdmitFromCache();
  if (admitted && !admitted->ok()) return exchange->Finish(*admitted);
  if (admitted) ready.secret = core.secrets.Find(exchange->caller().tenant);
  if (admitted && ready.secret != nullptr && (ready.terms != nullptr || !token)) {
    const grpc::Status permitted = CheckPermit(*exchange, ready);
    return permitted.ok() ? then(exchange, ready) : exchange->Finish(permitted);
  }
  Submit(exchange, [exchange, token, then = std::move(then)](ledger::Connection& connection) mutable {
    Ready loaded;
    const grpc::Status status = Load(*exchange, token, loaded, connection);
    status.ok() ? then(exchange, loaded) : exchange->Finish(status);
  });
}

}  // namespace tally::rpc
