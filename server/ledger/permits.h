#ifndef TALLY_SERVER_LEDGER_PERMITS_H_
#define TALLY_SERVER_LEDGER_PERMITS_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "lib/decide/world.h"
#include "lib/keys/signer.h"
#include "server/ledger/terms_cache.h"
#include "server/ledger/transaction.h"
#include "tally/v1/permits.pb.h"

namespace tally::ledger {

// InvalidArgument says which term is wrong, or which live permit gives a tool another intent scope; nothing was minted
// then. NotFound: no such tenant. PermissionDenied: the principal was disabled meanwhile.
absl::StatusOr<v1::MintResponse> MintPermit(Connection& connection, const keys::Signer& signer, TermsCache& cache,
                                            const v1::MintRequest& request, const std::string& principal_id);

// The terms that belong to a permit token, read from the database and put into the cache. NotFound: no permit has it.
absl::StatusOr<std::shared_ptr<const decide::PermitTerms>> LoadTerms(Connection& connection, TermsCache& cache,
                                                                     const decide::Hash& token_sha256);

// `tenant` empty (admins): any. A permit of another tenant is NotFound.
absl::StatusOr<v1::PermitInfo> GetPermit(Connection& connection, const std::string& tenant, const decide::Id& id);

// In order of id, those after `after`, without the terms of their grants. `subject` empty: all.
absl::StatusOr<std::vector<v1::PermitInfo>> ListPermits(Connection& connection, const std::string& tenant,
                                                        const std::string& subject, const decide::Id& after, int limit);

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_PERMITS_H_
