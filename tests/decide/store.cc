#include "tests/decide/store.h"

#include <cstring>

namespace tally::decide::testing {

Id MakeId(uint8_t what, int number) {
  Id id{};
  id[0] = what;
  std::memcpy(id.data() + 4, &number, sizeof number);
  return id;
}

Hash MakeHash(uint8_t what, int number) {
  Hash hash{};
  hash[0] = what;
  std::memcpy(hash.data() + 4, &number, sizeof number);
  return hash;
}

int NumberOf(const Id& id) {
  int number = 0;
  std::memcpy(&number, id.data() + 4, sizeof number);
  return number;
}

std::string ReceiptId(const Id& permit, int64_t sequence) {
  std::string id(32, 'r');
  std::memcpy(id.data(), permit.data(), permit.size());
  std::memcpy(id.data() + permit.size(), &sequence, sizeof sequence);
  return id;
}

void Store::Mint(std::shared_ptr<const PermitTerms> terms) {
  Permit permit;
  permit.terms = terms;
  permit.sequence = 1;
  permit.head = ReceiptId(terms->permit_id, 1);
  permit.grants.resize(terms->grants.size());
  permit.grant_versions.assign(terms->grants.size(), 1);
  permit.grant_dirty.assign(terms->grants.size(), false);
  permit.version = 1;
  Link minted;
  minted.kind = v1::PERMIT_MINTED;
  chains[terms->permit_id].push_back(minted);
  permits.emplace(terms->permit_id, std::move(permit));
}

void Store::LoadPermit(World& world, const Id& id) const {
  if (const auto row = permits.find(id); row != permits.end()) world.permits.try_emplace(id, row->second);
}

void Store::LoadCall(World& world, const Id& id) const {
  const auto row = calls.find(id);
  if (row == calls.end() || !world.calls.try_emplace(id, row->second).second) return;
  const Call& call = row->second;
  world.keys.emplace(std::make_pair(call.permit_id, call.key), id);
  LoadPermit(world, call.permit_id);
  for (const Attempt& attempt : call.attempts) LoadAttempt(world, attempt.attempt_id);
  if (call.bound_to) LoadCall(world, *call.bound_to);
}

void Store::LoadKey(World& world, const Id& permit, const std::string& key) const {
  LoadPermit(world, permit);
  if (const auto row = keys.find({permit, key}); row != keys.end()) LoadCall(world, row->second);
}

void Store::LoadIntent(World& world, const Hash& hash, const Id* done_in_permit) const {
  const auto row = intents.find(hash);
  if (row == intents.end()) return;
  world.intents.try_emplace(hash, row->second).first->second.open_was = row->second.open_call;
  if (done_in_permit != nullptr && row->second.done_call && row->second.done_permit == *done_in_permit) {
    LoadCall(world, *row->second.done_call);
  }
}

void Store::LoadAttempt(World& world, const Id& id) const {
  if (const auto row = attempts.find(id); row != attempts.end()) world.attempts.emplace(id, row->second);
}

void Store::LoadNamed(World& world, const CallName& name) const {
  if (!name.call_id) return LoadKey(world, name.permit_id, name.key);
  LoadCall(world, *name.call_id);
}

World Store::Load(Time now, const std::vector<Request>& requests, const std::vector<Id>& permits_too) const {
  World world;
  world.now = now;
  for (const Id& permit : permits_too) LoadPermit(world, permit);
  for (const Request& request : requests) {
    std::visit(
        [&](const auto& r) {
          using R = std::decay_t<decltype(r)>;
          if constexpr (std::is_same_v<R, AuthorizeRequest>) {
            LoadKey(world, r.permit_id, r.key);
            LoadAttempt(world, r.attempt_id);
            LoadIntent(world, r.prepared.intent, &r.permit_id);
            if (r.prepared.explicit_intent) LoadIntent(world, *r.prepared.explicit_intent, &r.permit_id);
          } else if constexpr (std::is_same_v<R, CommitRequest> || std::is_same_v<R, ExtendRequest>) {
            LoadNamed(world, r.call);
            LoadAttempt(world, r.attempt_id);
          } else {
            LoadCall(world, r.call_id);
          }
        },
        request);
  }
  std::vector<Hash> of_calls;
  for (const auto& [id, call] : world.calls) {
    of_calls.push_back(call.intent);
    if (call.explicit_intent) of_calls.push_back(*call.explicit_intent);
  }
  for (const Hash& hash : of_calls) LoadIntent(world, hash, nullptr);
  return world;
}

std::string Store::Keep(World world) {
  for (Draft& draft : world.drafts) {
    std::vector<Link>& chain = chains[draft.permit_id];
    if (draft.sequence != static_cast<int64_t>(chain.size()) + 1) return "a chain that is not dense";
    Link link;
    link.kind = draft.payload.kind();
    link.code = std::move(*draft.payload.mutable_code());
    link.call = draft.call_id;
    link.attempt_number = draft.payload.attempt_number();
    link.attempt_state = draft.payload.attempt_state();
    chain.push_back(std::move(link));
  }
  for (auto& [id, permit] : world.permits) {
    Permit& row = permits.at(id);
    if (permit.sequence != static_cast<int64_t>(chains[id].size()))
      return "a permit whose sequence is not its chain's end";
    if (!permit.dirty && permit.sequence != row.sequence) return "a permit that changed without being marked";
    for (size_t i = 0; i < permit.grants.size(); ++i) {
      if (!permit.grant_dirty[i] && !(permit.grants[i] == row.grants[i]))
        return "a grant that changed without being marked";
      permit.grant_versions[i] += permit.grant_dirty[i] ? 1 : 0;
      permit.grant_dirty[i] = false;
    }
    permit.version += permit.dirty ? 1 : 0;
    permit.dirty = false;
    permit.head = ReceiptId(id, permit.sequence);
    row = std::move(permit);
  }
  for (auto& [id, call] : world.calls) {
    const bool known = calls.count(id) != 0;
    if (call.fresh == known) return call.fresh ? "calls_pkey" : "a call that was made without being marked fresh";
    if (call.fresh && !keys.emplace(std::make_pair(call.permit_id, call.key), id).second) return "calls_key_unique";
    bool changed = call.fresh || call.dirty;
    for (Attempt& attempt : call.attempts) {
      changed = changed || attempt.dirty;
      attempt.dirty = false;
      attempt.state_receipt = ReceiptId(call.permit_id, attempt.state_seq);
    }
    if (!changed) continue;
    call.version += 1;
    call.fresh = call.dirty = false;
    calls[id] = std::move(call);
  }
  for (auto& [id, use] : world.attempts) {
    if (!use.fresh) continue;
    use.fresh = false;
    if (!attempts.emplace(id, use).second) return "attempts_pkey";
  }
  for (auto& [hash, intent] : world.intents) {
    if (!intent.open_dirty && !intent.done_dirty) continue;
    Intent& row = intents[hash];
    row.hash = hash;
    if (intent.open_dirty) {
      if (row.open_call != intent.open_was) return "open_intents: whoever had it open no longer has";
      row.open_call = intent.open_call;
      row.open_permit = intent.open_permit;
      row.lease_end = intent.lease_end;
      row.own = intent.own;
    }
    if (intent.done_dirty) {
      row.done_call = intent.done_call;
      row.done_permit = intent.done_permit;
      row.done_at = intent.done_at;
      row.done_until = intent.done_until;
    }
    if (row.own && !row.open_call) intents.erase(hash);
  }
  return "";
}

}  // namespace tally::decide::testing
