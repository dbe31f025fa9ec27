#include <algorithm>
#include <map>
#include <memory>
#include <type_traits>

#include "lib/decide/terms.h"
#include "lib/keys/uuid.h"
#include "server/ledger/arrays.h"
#include "server/ledger/batch.h"
#include "server/ledger/load_calls.h"
#include "server/ledger/permit_row.h"

namespace tally::ledger {
namespace {

using decide::Call;
using decide::Hash;
using decide::Id;
using decide::World;

constexpr int kBoundHopsMax = 8;

class Loading {
 public:
  Loading(Tx& tx, Batch& batch, TermsCache& terms) : tx_(tx), batch_(batch), world_(batch.world), terms_(terms) {}

  void Run() {
    world_.now = tx_.now_us();
    Principals();
    NamedCalls();
    Permits();
    HeldIntents();
    ClaimIntents();
    Intents();
    DoneCalls();
    Grants();
    LoadEarlierAttempts(tx_, earlier_, world_);
  }

 private:
  template <typename Visitor>
  void ForEachRequest(Visitor&& visit) {
    for (lane::Job* job : batch_.jobs) std::visit([&](auto& request) { visit(*job, request); }, JobOf(job).request);
  }

  void Principals();
  void NamedCalls();
  void CallsById(const std::set<Id>& ids);
  void FollowBound();
  void Permits();
  void Terms(const std::set<Id>& missing);
  void Grants();
  void HeldIntents();
  void ClaimIntents();
  void Intents();
  void DoneCalls();

  const decide::GrantTerms* TermsOf(const Call& call) {
    const auto permit = world_.permits.find(call.permit_id);
    if (permit == world_.permits.end() || call.grant_index == 0) return nullptr;
    return &permit->second.terms->grants[static_cast<size_t>(call.grant_index - 1)];
  }
  // Intents of tenant scope lie apart from any subject's.
  int16_t IntentShard(const decide::PermitTerms& permit, const decide::GrantTerms& grant) {
    return grant.scope == v1::INTENT_SCOPE_TENANT ? ShardOf(permit.tenant, "") : permit.shard;
  }
  void Want(const Call& call) {
    const decide::GrantTerms* grant = TermsOf(call);
    if (grant == nullptr || call.intent == Hash{}) return;
    const int16_t shard = IntentShard(*world_.permits.at(call.permit_id).terms, *grant);
    for (const Hash& hash : decide::ClaimsOf(call)) {
      batch_.intent_shards[hash] = shard;
      wanted_.insert({shard, hash});
    }
  }

  Tx& tx_;
  Batch& batch_;
  World& world_;
  TermsCache& terms_;
  Earlier earlier_;
  std::set<std::pair<int16_t, Hash>> wanted_;  // intents to be read
};

// ---- Principals ----

constexpr Statement kPrincipals = {"principals",
                                   "SELECT principal_id, tenant, role, disabled_at_us IS NOT NULL, hard"
                                   " FROM principals WHERE principal_id = ANY($1::uuid[])"};

// Read in the transaction that decides, so that disabling a principal stops Authorize at once, in every replica.
void Loading::Principals() {
  UuidArray ids;
  std::set<std::string> seen;
  for (lane::Job* job : batch_.jobs) {
    const decide::Principal* principal = PrincipalOf(JobOf(job).request);
    if (principal == nullptr || !seen.insert(principal->id).second) continue;
    const std::optional<std::string> bytes = keys::ParseUuid(principal->id);
    if (!bytes) continue;
    Id id;
    std::copy(bytes->begin(), bytes->end(), id.begin());
    ids.Add(id);
  }
  if (seen.empty()) return;
  std::map<std::string, decide::Principal> principals;
  for (const pqxx::row& row : tx_.Exec(kPrincipals, ids.Param())) {
    decide::Principal& principal = principals[row[0].c_str()];
    principal.id = row[0].c_str();
    principal.tenant = row[1].c_str();
    principal.role = static_cast<v1::Role>(row[2].as<int>());
    principal.disabled = row[3].as<bool>();
    principal.hard = row[4].as<bool>();
  }
  for (lane::Job* job : batch_.jobs) {
    decide::Principal* principal = PrincipalOf(JobOf(job).request);
    if (principal == nullptr) continue;
    const auto found = principals.find(principal->id);
    if (found != principals.end()) {
      *principal = found->second;
    } else {
      principal->disabled = principal->hard = true;
    }
  }
}

// ---- Calls ----

void Loading::NamedCalls() {
  Int16Array shards;
  UuidArray permits;
  TextArray keys;
  std::set<std::pair<Id, std::string>> seen;
  std::set<Id> ids;
  auto by_key = [&](const lane::Job& job, const Id& permit_id, const std::string& key) {
    if (!seen.insert({permit_id, key}).second) return;
    shards.Add(job.shard());
    permits.Add(permit_id);
    keys.Add(key);
  };
  auto by_name = [&](const lane::Job& job, const decide::CallName& name) {
    name.call_id ? void(ids.insert(*name.call_id)) : by_key(job, name.permit_id, name.key);
  };
  ForEachRequest([&](lane::Job& job, auto& request) {
    using T = std::decay_t<decltype(request)>;
    if constexpr (std::is_same_v<T, decide::AuthorizeRequest>) {
      by_key(job, request.permit_id, request.key);
    } else if constexpr (requires { request.call; }) {
      by_name(job, request.call);
    } else if constexpr (requires { request.call_id; }) {
      ids.insert(request.call_id);
    }
  });
  if (keys.size() > 0) {
    LoadCallsByKey(tx_, shards, permits, keys, world_, earlier_);
  }
  CallsById(ids);
  FollowBound();
}

void Loading::CallsById(const std::set<Id>& ids) {
  Int16Array shards;
  UuidArray calls;
  for (const Id& id : ids) {
    if (world_.calls.contains(id)) continue;
    shards.Add(ShardOf(id));
    calls.Add(id);
  }
  if (calls.size() > 0) LoadCallsById(tx_, shards, calls, world_, earlier_);
}

void Loading::FollowBound() {
  for (int hop = 0; hop < kBoundHopsMax; ++hop) {
    std::set<Id> missing;
    for (const auto& [id, call] : world_.calls) {
      if (call.bound_to && !world_.calls.contains(*call.bound_to)) missing.insert(*call.bound_to);
    }
    if (missing.empty()) return;
    CallsById(missing);
  }
}

// ---- Permits ----

constexpr Statement kPermitStates = {"permit_states",
                                     "SELECT p.permit_id, " TALLY_PERMIT_STATE_COLUMNS
                                     " FROM unnest($1::smallint[], $2::uuid[]) AS u(shard, permit_id)"
                                     " JOIN permit_state p ON p.shard = u.shard AND p.permit_id = u.permit_id"};

void Loading::Permits() {
  std::set<Id> ids;
  for (const auto& [id, call] : world_.calls) ids.insert(call.permit_id);
  ForEachRequest([&](lane::Job&, auto& request) {
    if constexpr (requires { request.permit_id; }) ids.insert(request.permit_id);
    if constexpr (requires { request.call; }) {
      if (!request.call.call_id) ids.insert(request.call.permit_id);
    }
  });
  if (ids.empty()) return;
  Terms(ids);
  Int16Array shards;
  UuidArray permits;
  for (const Id& id : ids) {
    shards.Add(ShardOf(id));
    permits.Add(id);
  }
  for (const pqxx::row& row : tx_.Exec(kPermitStates, shards.Param(), permits.Param())) {
    const Id id = IdOf(row[0]);
    decide::Permit& permit = world_.permits[id];
    permit.terms = terms_.ById(id);
    if (permit.terms == nullptr) throw LostRace{};  // more permits in one batch than the cache holds
    ReadPermitState(row, 1, permit);
  }
}

constexpr Statement kTerms = {"terms",
                              "SELECT p.permit_id, p.tenant, p.token_sha256, p.terms"
                              " FROM unnest($1::smallint[], $2::uuid[]) AS u(shard, permit_id)"
                              " JOIN permits p ON p.shard = u.shard AND p.permit_id = u.permit_id"};

void Loading::Terms(const std::set<Id>& ids) {
  Int16Array shards;
  UuidArray missing;
  for (const Id& id : ids) {
    if (terms_.ById(id) != nullptr) continue;
    shards.Add(ShardOf(id));
    missing.Add(id);
  }
  if (missing.size() == 0) return;
  for (const pqxx::row& row : tx_.Exec(kTerms, shards.Param(), missing.Param())) {
    const Id id = IdOf(row[0]);
    v1::PermitTerms terms;
    if (!terms.ParseFromString(Bytea(row[3]))) throw std::runtime_error("a permit's terms cannot be read");
    auto made = decide::FromProto(terms, id, ShardOf(id), row[1].c_str());
    if (!made.ok()) throw std::runtime_error("a permit's terms cannot be enforced: " + made.status().ToString());
    terms_.Put(HashOf(row[2]), *std::move(made));
  }
}

constexpr Statement kGrants = {
    "grants",
    "SELECT g.permit_id, g.grant_index, g.version, g.slots, g.slot_overrun, g.held, g.spent, g.overrun"
    " FROM unnest($1::smallint[], $2::uuid[], $3::int[]) AS u(shard, permit_id, grant_index)"
    " JOIN grants g ON g.shard = u.shard AND g.permit_id = u.permit_id AND g.grant_index = u.grant_index"};

// Only the grants that the batch's calls are about: a permit may have 256.
void Loading::Grants() {
  std::set<std::pair<Id, int32_t>> wanted;
  for (const auto& [id, call] : world_.calls) {
    if (call.grant_index > 0) wanted.insert({call.permit_id, call.grant_index});
  }
  ForEachRequest([&](lane::Job&, auto& request) {
    if constexpr (requires { request.prepared; }) {
      if (request.prepared.grant_index > 0) wanted.insert({request.permit_id, request.prepared.grant_index});
    }
  });
  if (wanted.empty()) return;
  Int16Array shards;
  UuidArray permits;
  Int32Array indexes;
  for (const auto& [permit_id, index] : wanted) {
    shards.Add(ShardOf(permit_id));
    permits.Add(permit_id);
    indexes.Add(index);
  }
  for (const pqxx::row& row : tx_.Exec(kGrants, shards.Param(), permits.Param(), indexes.Param())) {
    decide::Permit& permit = world_.permits.at(IdOf(row[0]));
    const size_t index = row[1].as<size_t>() - 1;
    permit.grant_versions.at(index) = row[2].as<int64_t>();
    decide::Counters& grant = permit.grants.at(index);
    grant.slots = row[3].as<int64_t>();
    grant.slot_overrun = row[4].as<int64_t>();
    grant.held = row[5].as<int64_t>();
    grant.spent = row[6].as<int64_t>();
    grant.overrun = row[7].as<int64_t>();
  }
}

// ---- Intents ----

// An open call has its intents open: known without a look. What reports on ended calls may change is read.
void Loading::HeldIntents() {
  for (const auto& [id, call] : world_.calls) {
    const decide::GrantTerms* grant = TermsOf(call);
    if (grant == nullptr || !call.open()) continue;
    const bool own = call.intent == Hash{};
    const int16_t shard = own ? ShardOf(call.call_id) : IntentShard(*world_.permits.at(call.permit_id).terms, *grant);
    for (const Hash& hash : decide::ClaimsOf(call)) {
      batch_.intent_shards[hash] = shard;
      decide::Intent& row = world_.intents[hash];
      row.hash = hash;
      row.own = own;
      row.open_call = row.open_was = id;
      row.open_permit = call.permit_id;
      row.lease_end = call.last()->state == v1::AUTHORIZED ? call.last()->lease_end : 0;
    }
  }
  ForEachRequest([&](lane::Job&, auto& request) {
    using T = std::decay_t<decltype(request)>;
    const Call* call = nullptr;
    auto find = [&](const Id& id) {
      const auto found = world_.calls.find(id);
      call = found == world_.calls.end() ? nullptr : &found->second;
    };
    if constexpr (std::is_same_v<T, decide::CommitRequest>) {
      if (request.call.call_id) {
        find(*request.call.call_id);
      } else if (auto key = world_.keys.find({request.call.permit_id, request.call.key}); key != world_.keys.end()) {
        find(key->second);
      }
      // The attempt may be that of a call which this key has become another name of.
      for (int hop = 0; call != nullptr && hop < kBoundHopsMax; ++hop) {
        if (!call->open() || call->last()->attempt_id != request.attempt_id) Want(*call);
        call->bound_to ? find(*call->bound_to) : void(call = nullptr);
      }
    } else if constexpr (std::is_same_v<T, decide::ResolveRequest> || std::is_same_v<T, decide::CorrectRequest>) {
      find(request.call_id);
      if (call != nullptr) Want(*call);
    }
  });
}

constexpr Statement kClaimIntents = {
    "claim_intents",
    "INSERT INTO intents (shard, intent, open_call, open_permit, lease_end_us)"
    " SELECT * FROM unnest($1::smallint[], $2::bytea[], $3::uuid[], $4::uuid[], $5::bigint[])"
    " ON CONFLICT DO NOTHING RETURNING intent"};

// Claimed by insert, before anything is read of them: of two transactions that want the same intent one waits here for
// the other, and nobody decides on an absence that is no longer true. In key order, so that two of them seldom wait for
// each other. Claims of requests that are refused after all are taken back by the store.
void Loading::ClaimIntents() {
  std::map<std::pair<int16_t, Hash>, ClaimRow> claims;
  ForEachRequest([&](lane::Job&, auto& request) {
    using T = std::decay_t<decltype(request)>;
    if constexpr (std::is_same_v<T, decide::AuthorizeRequest>) {
      const auto permit = world_.permits.find(request.permit_id);
      if (permit == world_.permits.end() || request.prepared.intent == Hash{}) return;
      const decide::PermitTerms& terms = *permit->second.terms;
      const decide::GrantTerms& grant = terms.grants[static_cast<size_t>(request.prepared.grant_index - 1)];
      const int16_t shard = IntentShard(terms, grant);
      ClaimRow claim{request.new_call_id, request.permit_id,
                     world_.now + std::min(request.lease.value_or(grant.lease), grant.lease)};
      bool may_be_granted = request.prepared.check == decide::Prepared::Check::kPass && !permit->second.closed;
      if (const auto key = world_.keys.find({request.permit_id, request.key}); key != world_.keys.end()) {
        const Call* call = &world_.calls.at(key->second);
        while (call->bound_to && world_.calls.contains(*call->bound_to)) call = &world_.calls.at(*call->bound_to);
        const v1::CallState state = call->state();
        may_be_granted &= state == v1::REFUSED || state == v1::RELEASED || state == v1::NOT_HAPPENED;
        claim.call_id = call->call_id;
      }
      std::vector<Hash> hashes = {request.prepared.intent};
      if (request.prepared.explicit_intent) hashes.push_back(*request.prepared.explicit_intent);
      for (const Hash& hash : hashes) {
        batch_.intent_shards[hash] = shard;
        if (!may_be_granted) continue;
        // Open by a call of this batch: nothing to claim, but what was done before may have to be known.
        if (!world_.intents.contains(hash)) claims.try_emplace({shard, hash}, claim);
        wanted_.insert({shard, hash});
      }
    }
  });
  if (claims.empty()) return;
  Int16Array shards;
  ByteaArray intents;
  UuidArray calls, permits;
  Int64Array leases;
  for (const auto& [key, claim] : claims) {
    shards.Add(key.first);
    intents.Add(key.second);
    calls.Add(claim.call_id);
    permits.Add(claim.permit_id);
    leases.Add(claim.lease_end);
  }
  const pqxx::result inserted =
      tx_.Exec(kClaimIntents, shards.Param(), intents.Param(), calls.Param(), permits.Param(), leases.Param());
  for (const pqxx::row& row : inserted) {
    const Hash hash = HashOf(row[0]);
    const std::pair<int16_t, Hash> key{batch_.intent_shards.at(hash), hash};
    batch_.claimed[hash] = claims.at(key);
    wanted_.erase(key);
  }
}

constexpr Statement kIntents = {
    "intents",
    "SELECT i.intent, i.open_call, i.open_permit, i.lease_end_us, i.done_call, i.done_permit, i.done_at_us,"
    " i.done_until_us FROM unnest($1::smallint[], $2::bytea[]) AS u(shard, intent)"
    " JOIN intents i ON i.shard = u.shard AND i.intent = u.intent"};

void Loading::Intents() {
  if (wanted_.empty()) return;
  Int16Array shards;
  ByteaArray intents;
  for (const auto& [shard, hash] : wanted_) {
    shards.Add(shard);
    intents.Add(hash);
  }
  for (const pqxx::row& row : tx_.Exec(kIntents, shards.Param(), intents.Param())) {
    const Hash hash = HashOf(row[0]);
    decide::Intent& intent = world_.intents[hash];
    intent.hash = hash;
    intent.open_call = intent.open_was = OptionalId(row[1]);
    intent.open_permit = IdOf(row[2]);
    intent.lease_end = OptionalInt(row[3]).value_or(0);
    intent.done_call = OptionalId(row[4]);
    intent.done_permit = IdOf(row[5]);
    intent.done_at = OptionalInt(row[6]).value_or(0);
    intent.done_until = OptionalInt(row[7]).value_or(0);
  }
}

// A key may become another name of the call that did it last, in the same permit.
void Loading::DoneCalls() {
  std::set<Id> done;
  for (const auto& [hash, intent] : world_.intents) {
    if (intent.done_call && world_.permits.contains(intent.done_permit)) done.insert(*intent.done_call);
  }
  CallsById(done);
}

}  // namespace

void Load(Tx& tx, Batch& batch, TermsCache& terms) { Loading(tx, batch, terms).Run(); }

constexpr Statement kAttemptIds = {
    "attempt_ids",
    "SELECT a.attempt_id, a.call_id, a.permit_id, a.voided_seq"
    " FROM unnest($1::uuid[]) AS u(attempt_id) JOIN attempts a ON a.attempt_id = u.attempt_id"};

bool LoadAttemptIds(Tx& tx, Batch& batch, const std::set<Id>& attempt_ids) {
  UuidArray ids;
  for (const Id& id : attempt_ids) ids.Add(id);
  const pqxx::result rows = tx.Exec(kAttemptIds, ids.Param());
  for (const pqxx::row& row : rows) {
    batch.world.attempts[IdOf(row[0])] = {OptionalId(row[1]), IdOf(row[2]), row[3].as<int64_t>(), false};
  }
  return !rows.empty();
}

decide::Principal* PrincipalOf(Request& request) {
  return std::visit(
      [](auto& named) -> decide::Principal* {
        if constexpr (requires { named.principal; }) {
          return &named.principal;
        } else {
          return nullptr;
        }
      },
      request);
}

}  // namespace tally::ledger
