#include <set>

#include "lib/decide/terms.h"
#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "lib/keys/text.h"
#include "server/ledger/arrays.h"
#include "server/ledger/calls.h"
#include "server/ledger/control.h"
#include "server/ledger/ids.h"
#include "server/ledger/permits.h"
#include "server/ledger/tenant_chain.h"

namespace tally::ledger {
namespace {

constexpr size_t kTokenRandomBytes = 32;
constexpr int32_t kMintLockSpace = 0x7a12;  // of advisory locks: mints, by tenant

using Terms = std::shared_ptr<const decide::PermitTerms>;

constexpr int kScopesEnd = 1 << (v1::IntentScope_MAX + 1);

constexpr Statement kUnexpired{"unexpired_permits",
                               "SELECT permit_id FROM permits WHERE tenant = $1 AND scopes = ANY ($2::smallint[])"
                               " AND expires_at_us > $3"};
constexpr Statement kTermsById{
    "terms_by_id", "SELECT shard, tenant, terms, token_sha256 FROM permits WHERE permit_id = $1 AND tenant = $2"};
constexpr Statement kIsLive{"permit_is_live",
                            "SELECT closed_seq = 0 AND (revoked_seq = 0 OR open_calls > 0) FROM permit_state WHERE "
                            "shard = $1 AND permit_id = $2"};

absl::StatusOr<Terms> TermsById(Tx& tx, TermsCache& cache, const decide::Id& id, const std::string& tenant) {
  if (Terms cached = cache.ById(id)) return cached;
  const pqxx::row row = tx.Exec(kTermsById, IdText(id), tenant)[0];
  v1::PermitTerms proto;
  if (!proto.ParseFromString(Bytea(row[2]))) return absl::InternalError("permits.terms does not parse");
  auto terms = decide::FromProto(proto, id, row[0].as<int16_t>(), tenant);
  if (!terms.ok()) return absl::InternalError(terms.status().message());
  cache.Put(ToHash(Bytea(row[3])), *terms);
  return *terms;
}

// The intent scopes of grants with effects, a bit each.
int16_t ScopesOf(const decide::PermitTerms& terms) {
  unsigned scopes = 0;
  for (const decide::GrantTerms& grant : terms.grants) {
    if (grant.effect != v1::READ) scopes |= 1U << grant.scope;
  }
  return static_cast<int16_t>(scopes);
}

// Permits of one and the same scope throughout agree; those of a tenant that never sets a scope are not even read.
// Terms never change, so they are compared from memory; whether a permit is still live is asked only where it matters,
// since that row changes with every call.
absl::Status CheckScopes(Tx& tx, TermsCache& cache, const decide::PermitTerms& minted) {
  const int16_t scopes = ScopesOf(minted);
  if (scopes == 0) return absl::OkStatus();
  const bool one_scope = (scopes & (scopes - 1)) == 0;
  Int16Array others;
  for (int16_t other = 1; other < kScopesEnd; ++other) {
    if (!one_scope || other != scopes) others.Add(other);
  }
  for (const pqxx::row& row : tx.Exec(kUnexpired, minted.tenant, others.Param(), tx.now_us())) {
    const auto live = TermsById(tx, cache, *OptionalId(row[0]), minted.tenant);
    if (!live.ok()) return live.status();
    absl::Status same = decide::CheckSameScope(minted, **live);
    if (same.ok() || !tx.Exec(kIsLive, (*live)->shard, IdText((*live)->permit_id))[0][0].as<bool>()) continue;
    return absl::InvalidArgumentError(keys::Cat(same.message(), " (live permit ", IdText((*live)->permit_id), ")"));
  }
  return absl::OkStatus();
}

constexpr Statement kMinter{"minter", "SELECT 1 FROM principals WHERE principal_id = $1 AND disabled_at_us IS NULL"};
constexpr Statement kTenant{"mint_tenant", "SELECT 1 FROM tenants WHERE tenant = $1"};
constexpr Statement kInsertPermit{
    "insert_permit",
    "INSERT INTO permits (shard, permit_id, tenant, subject, token_sha256, terms, expires_at_us, created_at_us,"
    " scopes) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)"};
constexpr Statement kInsertState{
    "insert_permit_state",
    "INSERT INTO permit_state (shard, permit_id, version, sequence, head, budget) VALUES ($1, $2, 1, $3, $4, $5)"};
constexpr Statement kInsertGrant{
    "insert_grant",
    "INSERT INTO grants (shard, permit_id, grant_index, version, cap, budget) VALUES ($1, $2, $3, 1, $4, $5)"};

void Insert(Tx& tx, const decide::PermitTerms& terms, const std::string& proto, const decide::Hash& token_sha256,
            const receipt::ChainHead& head) {
  const std::string id = IdText(terms.permit_id);
  tx.ExecExpecting(1, kInsertPermit, terms.shard, id, terms.tenant, terms.subject, Binary(Bytes(token_sha256)),
                   Binary(proto), terms.expires_at, tx.now_us(), ScopesOf(terms));
  tx.ExecExpecting(1, kInsertState, terms.shard, id, head.sequence, Binary(head.id), terms.budget);
  int index = 0;
  for (const decide::GrantTerms& grant : terms.grants) {
    tx.ExecExpecting(1, kInsertGrant, terms.shard, id, ++index, grant.cap, grant.budget);
  }
}

// Mints of one tenant wait for each other here instead of losing races over what they all read.
int16_t MintLock(std::string_view tenant) {
  const keys::Digest digest = keys::Sha256(tenant);
  return static_cast<int16_t>(digest.bytes[0] << 8 | digest.bytes[1]);
}

}  // namespace

absl::StatusOr<v1::MintResponse> MintPermit(Connection& connection, const keys::Signer& signer, TermsCache& cache,
                                            const v1::MintRequest& request, const std::string& principal_id) {
  const std::string token = keys::Base64UrlEncode(keys::RandomBytes(kTokenRandomBytes));
  const decide::Hash token_sha256 = ToHash(keys::Sha256(token));
  const int16_t shard = ShardOf(request.tenant(), request.subject());
  v1::MintResponse response;
  Terms minted;

  const Connection::AdvisoryLocks one_by_one(connection, kMintLockSpace, {MintLock(request.tenant())});
  absl::Status status = Write(connection, [&](Tx& tx) -> absl::Status {
    response.Clear();
    if (tx.Exec(kMinter, principal_id).empty()) return absl::PermissionDeniedError("the principal is disabled");
    if (tx.Exec(kTenant, request.tenant()).empty()) return absl::NotFoundError("no such tenant");
    auto proto = decide::TermsOfMint(request, tx.now_us());
    if (!proto.ok()) return proto.status();
    proto->set_token_hash(std::string(Bytes(token_sha256)));
    const decide::Id id = ToId(keys::NewUuid7(tx.now_us() / 1000, static_cast<uint16_t>(shard)));
    auto terms = decide::FromProto(*proto, id, shard, request.tenant());
    if (!terms.ok()) return terms.status();
    minted = *terms;
    absl::Status scopes = CheckScopes(tx, cache, *minted);
    if (!scopes.ok()) return scopes;

    v1::ReceiptPayload payload;
    payload.set_kind(v1::PERMIT_MINTED);
    payload.set_tenant(request.tenant());
    payload.set_permit_id(std::string(Bytes(id)));
    payload.set_time_us(tx.now_us());
    payload.set_unit(proto->unit());
    *payload.mutable_permit_terms() = *proto;
    SetSpeaker(payload, principal_id, v1::OPERATOR);
    receipt::ChainHead head;
    auto receipt = SealAndSign(signer, std::move(payload), head);
    if (!receipt.ok()) return receipt.status();

    Insert(tx, *minted, proto->SerializeAsString(), token_sha256, head);
    InsertReceipt(tx, shard, IdText(id), head.sequence, *receipt);
    response.set_permit_id(IdText(id));
    *response.add_receipts() = std::move(*receipt);
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  response.set_permit_token(token);
  cache.Put(token_sha256, minted);
  return response;
}

namespace {
constexpr Statement kTermsByToken{"terms_by_token",
                                  "SELECT shard, permit_id, tenant, terms FROM permits WHERE token_sha256 = $1"};
}  // namespace

absl::StatusOr<Terms> LoadTerms(Connection& connection, TermsCache& cache, const decide::Hash& token_sha256) {
  Terms found;
  absl::Status status = Read(connection, [&](Tx& tx) -> absl::Status {
    const pqxx::result rows = tx.Exec(kTermsByToken, Binary(Bytes(token_sha256)));
    if (rows.empty()) return absl::NotFoundError("no permit has this token");
    v1::PermitTerms proto;
    if (!proto.ParseFromString(Bytea(rows[0][3]))) return absl::InternalError("permits.terms does not parse");
    auto terms = decide::FromProto(proto, *OptionalId(rows[0][1]), rows[0][0].as<int16_t>(), Text(rows[0][2]));
    if (!terms.ok()) return absl::InternalError(terms.status().message());
    found = *terms;
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  cache.Put(token_sha256, found);
  return found;
}

}  // namespace tally::ledger
