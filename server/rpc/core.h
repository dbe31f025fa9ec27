#ifndef TALLY_SERVER_RPC_CORE_H_
#define TALLY_SERVER_RPC_CORE_H_

#include <atomic>

#include "lib/keys/signer.h"
#include "server/lane/intake.h"
#include "server/ledger/keystore.h"
#include "server/ledger/terms_cache.h"
#include "server/rpc/metrics.h"
#include "server/rpc/principal_cache.h"
#include "server/rpc/workers.h"

namespace tally::rpc {

// What all services share. Everything it refers to outlives the server.
struct Core {
  const keys::Signer& signer;
  lane::Intake& router;
  Workers& workers;
  ledger::TermsCache& terms;
  ledger::TenantSecrets& secrets;
  Metrics& metrics;
  PrincipalCache principals;
  std::atomic<bool> closing = false;  // from now on everything new is refused
};

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_CORE_H_
