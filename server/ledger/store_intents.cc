#include <algorithm>
#include <stdexcept>

#include "server/ledger/arrays.h"
#include "server/ledger/batch.h"

// Who has an intent open, and which call did it last.
namespace tally::ledger {
namespace {

using decide::Hash;
using decide::Id;

// ---- Intents ----

constexpr Statement kUpdateIntents = {
    "update_intents",
    "UPDATE intents i SET"
    " open_call = CASE WHEN u.open_dirty THEN u.open_call ELSE i.open_call END,"
    " open_permit = CASE WHEN u.open_dirty THEN u.open_permit ELSE i.open_permit END,"
    " lease_end_us = CASE WHEN u.open_dirty THEN u.lease_end ELSE i.lease_end_us END,"
    " done_call = CASE WHEN u.done_dirty THEN u.done_call ELSE i.done_call END,"
    " done_permit = CASE WHEN u.done_dirty THEN u.done_permit ELSE i.done_permit END,"
    " done_at_us = CASE WHEN u.done_dirty THEN u.done_at ELSE i.done_at_us END,"
    " done_until_us = CASE WHEN u.done_dirty THEN u.done_until ELSE i.done_until_us END"
    " FROM unnest($1::smallint[], $2::bytea[], $3::uuid[], $4::uuid[], $5::uuid[], $6::bigint[], $7::boolean[],"
    " $8::uuid[], $9::uuid[], $10::bigint[], $11::bigint[], $12::boolean[])"
    " AS u(shard, intent, open_was, open_call, open_permit, lease_end, open_dirty, done_call, done_permit, done_at,"
    " done_until, done_dirty)"
    " WHERE i.shard = u.shard AND i.intent = u.intent"
    " AND (NOT u.open_dirty OR i.open_call IS NOT DISTINCT FROM u.open_was)"};

constexpr Statement kInsertIntents = {
    "insert_intents",
    "INSERT INTO intents (shard, intent, open_call, open_permit, lease_end_us)"
    " SELECT * FROM unnest($1::smallint[], $2::bytea[], $3::uuid[], $4::uuid[], $5::bigint[])"};

constexpr Statement kDeleteIntents = {
    "delete_intents",
    "DELETE FROM intents i USING unnest($1::smallint[], $2::bytea[]) AS u(shard, intent)"
    " WHERE i.shard = u.shard AND i.intent = u.intent"};

class StoringIntents {
 public:
  StoringIntents(Tx& tx, Batch& batch) : tx_(tx), batch_(batch) {}

  void Run() {
    for (const auto& [hash, intent] : batch_.world.intents) {
      if (intent.open_dirty || intent.done_dirty) Store(intent);
    }
    // Claimed for a request that was refused after all, or that another of the batch came before.
    for (const auto& [hash, claim] : batch_.claimed) {
      const auto found = batch_.world.intents.find(hash);
      if (found == batch_.world.intents.end() || !(found->second.open_dirty || found->second.done_dirty)) Delete(hash);
    }
    if (insert_shards_.size() > 0) {
      tx_.Exec(kInsertIntents, insert_shards_.Param(), insert_hashes_.Param(), insert_calls_.Param(),
               insert_permits_.Param(), insert_leases_.Param());
    }
    if (shards_.size() > 0) {
      tx_.ExecExpecting(shards_.size(), kUpdateIntents, shards_.Param(), hashes_.Param(), open_was_.Param(),
                        open_calls_.Param(), open_permits_.Param(), leases_.Param(), open_dirty_.Param(),
                        done_calls_.Param(), done_permits_.Param(), done_at_.Param(), done_until_.Param(),
                        done_dirty_.Param());
    }
    if (delete_shards_.size() > 0) {
      tx_.ExecExpecting(delete_shards_.size(), kDeleteIntents, delete_shards_.Param(), delete_hashes_.Param());
    }
  }

 private:
  int16_t Shard(const decide::Intent& intent) const {
    const auto found = batch_.intent_shards.find(intent.hash);
    if (found != batch_.intent_shards.end()) return found->second;
    if (!intent.own) throw std::logic_error("an intent was changed that no loaded call has");
    Id call_id;
    std::copy_n(intent.hash.begin(), call_id.size(), call_id.begin());
    return ShardOf(call_id);
  }

  static void AddLease(Int64Array& leases, const decide::Intent& intent) {
    intent.lease_end > 0 ? leases.Add(intent.lease_end) : leases.AddNull();
  }

  void Delete(const Hash& hash) {
    delete_shards_.Add(batch_.intent_shards.at(hash));
    delete_hashes_.Add(hash);
  }

  void Store(const decide::Intent& intent) {
    std::optional<Id> open_was = intent.open_was;
    if (const auto claim = batch_.claimed.find(intent.hash); claim != batch_.claimed.end()) {
      const ClaimRow& row = claim->second;
      if (!intent.done_dirty && intent.open_call == row.call_id && intent.lease_end == row.lease_end) return;  // stands
      if (!intent.open_call && !intent.done_call) return Delete(intent.hash);
      open_was = row.call_id;
    } else if (intent.own && !intent.open_was) {  // a READ's, granted in this batch
      if (!intent.open_call) return;              // and ended in it
      insert_shards_.Add(Shard(intent));
      insert_hashes_.Add(intent.hash);
      insert_calls_.Add(intent.open_call);
      insert_permits_.Add(intent.open_permit);
      AddLease(insert_leases_, intent);
      return;
    } else if (intent.own && !intent.open_call) {
      delete_shards_.Add(Shard(intent));
      delete_hashes_.Add(intent.hash);
      return;
    }
    shards_.Add(Shard(intent));
    hashes_.Add(intent.hash);
    open_was_.Add(open_was);
    open_calls_.Add(intent.open_call);
    open_permits_.Add(intent.open_call ? std::optional(intent.open_permit) : std::nullopt);
    AddLease(leases_, intent);
    open_dirty_.Add(intent.open_dirty);
    done_calls_.Add(intent.done_call);
    done_permits_.Add(intent.done_call ? std::optional(intent.done_permit) : std::nullopt);
    done_at_.Add(intent.done_call ? std::optional(intent.done_at) : std::nullopt);
    done_until_.Add(intent.done_call ? std::optional(intent.done_until) : std::nullopt);
    done_dirty_.Add(intent.done_dirty);
  }

  Tx& tx_;
  Batch& batch_;
  Int16Array shards_, insert_shards_, delete_shards_;
  ByteaArray hashes_, insert_hashes_, delete_hashes_;
  UuidArray open_was_, open_calls_, open_permits_, done_calls_, done_permits_, insert_calls_, insert_permits_;
  Int64Array leases_, done_at_, done_until_, insert_leases_;
  BoolArray open_dirty_, done_dirty_;
};

}  // namespace

void StoreIntents(Tx& tx, Batch& batch) { StoringIntents(tx, batch).Run(); }

}  // namespace tally::ledger
