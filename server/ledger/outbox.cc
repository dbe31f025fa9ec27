#include "server/ledger/outbox.h"

#include "server/ledger/arrays.h"
#include "server/ledger/ids.h"

namespace tally::ledger {

// From webhook to webhook by the index: what waits for one costs the others nothing.
constexpr Statement kWaiting{
    "outbox_waiting",
    "WITH RECURSIVE w AS ((SELECT webhook_id FROM outbox ORDER BY webhook_id LIMIT 1) UNION ALL"
    " SELECT (SELECT o.webhook_id FROM outbox o WHERE o.webhook_id > w.webhook_id ORDER BY o.webhook_id LIMIT 1)"
    " FROM w WHERE w.webhook_id IS NOT NULL)"
    " SELECT w.webhook_id FROM w WHERE EXISTS (SELECT FROM outbox o WHERE o.webhook_id = w.webhook_id"
    " AND o.next_try_us <= $1::bigint) LIMIT 4096"};

TxResult FindWaiting(Connection& connection, std::vector<decide::Id>* webhooks) {
  return InTransaction(connection, Isolation::kReadOnly, [&](Tx& tx) {
    webhooks->clear();
    for (const pqxx::row& row : tx.Exec(kWaiting, tx.now_us())) {
      if (const auto id = OptionalId(row[0])) webhooks->push_back(*id);
    }
  });
}

// A row that a rival claims at this moment is skipped; one that it has claimed is seen as it is now, and is not due.
// The statement's snapshot may show an earlier message that is gone, never hide one that is there: both were written by
// transactions that followed one another on the call's row.
constexpr Statement kClaim{
    "outbox_claim",
    "WITH due AS MATERIALIZED (SELECT o.message FROM unnest($1::uuid[], $2::int[]) AS s(webhook_id, messages_max)"
    " CROSS JOIN LATERAL (SELECT o.message FROM outbox o WHERE o.webhook_id = s.webhook_id"
    " AND o.next_try_us <= $3::bigint AND NOT EXISTS (SELECT FROM outbox e WHERE e.webhook_id = o.webhook_id"
    " AND e.call_id = o.call_id AND e.message < o.message)"
    " ORDER BY o.next_try_us, o.message LIMIT s.messages_max FOR UPDATE OF o SKIP LOCKED) o)"
    " UPDATE outbox o SET tries = o.tries + 1, next_try_us = $4::bigint FROM due, webhooks w"
    " WHERE o.message = due.message AND w.webhook_id = o.webhook_id"
    " RETURNING o.message, o.message_id, o.call_id, o.created_at_us, o.body, o.tries, w.webhook_id, w.url,"
    " w.sealed_secret, w.sealed_former, w.former_until_us"};

TxResult ClaimMessages(Connection& connection, const std::vector<Share>& shares, std::chrono::microseconds lease,
                       std::vector<OutboxMessage>* messages, int64_t* now_us) {
  UuidArray webhooks;
  Int32Array most;
  for (const Share& share : shares) {
    webhooks.Add(share.webhook_id);
    most.Add(share.messages_max);
  }
  return InTransaction(connection, Isolation::kReadWrite, [&](Tx& tx) {
    messages->clear();
    *now_us = tx.now_us();
    const int64_t until_us = tx.now_us() + lease.count();
    for (const pqxx::row& row : tx.Exec(kClaim, webhooks.Param(), most.Param(), tx.now_us(), until_us)) {
      OutboxMessage& message = messages->emplace_back();
      message.message = row[0].as<int64_t>();
      message.message_id = OptionalId(row[1]).value();
      message.call_id = OptionalId(row[2]).value();
      message.created_at_us = row[3].as<int64_t>();
      message.body = Text(row[4]);
      message.tries = row[5].as<int32_t>();
      message.target = {OptionalId(row[6]).value(), Text(row[7]), Bytea(row[8]), Bytea(row[9]),
                        OptionalInt(row[10]).value_or(0)};
    }
  });
}

// What waited behind it may be tried at once.
constexpr Statement kGoes{"outbox_goes",
                          "WITH gone AS (DELETE FROM outbox WHERE message = $1::bigint"
                          " AND ($2::boolean OR tries = $3::int) RETURNING webhook_id, call_id, message),"
                          " next AS (UPDATE outbox o SET next_try_us = $4::bigint FROM gone g"
                          " WHERE o.webhook_id = g.webhook_id AND o.call_id = g.call_id AND o.message > g.message"
                          " AND o.next_try_us > $4::bigint)"
                          " UPDATE webhooks w SET delivered = delivered + $2::int, given_up = given_up + 1 - $2::int,"
                          " last_delivered_us = CASE WHEN $2 THEN $4 ELSE last_delivered_us END, last_error = $5"
                          " FROM gone g WHERE w.webhook_id = g.webhook_id"};

// What waits behind it waits with it.
constexpr Statement kWaits{
    "outbox_waits",
    "WITH tried AS (UPDATE outbox SET next_try_us = $3::bigint WHERE message = $1::bigint AND tries = $2::int"
    " RETURNING webhook_id, call_id, message),"
    " behind AS (UPDATE outbox o SET next_try_us = $3::bigint FROM tried t WHERE o.webhook_id = t.webhook_id"
    " AND o.call_id = t.call_id AND o.message > t.message AND o.next_try_us < $3::bigint)"
    " UPDATE webhooks w SET last_error = $4 FROM tried t WHERE w.webhook_id = t.webhook_id"};

TxResult EndMessages(Connection& connection, const std::vector<Outcome>& outcomes,
                     std::chrono::microseconds give_up_after, std::vector<bool>* given_up) {
  return InTransaction(connection, Isolation::kReadWrite, [&](Tx& tx) {
    given_up->clear();
    for (const Outcome& outcome : outcomes) {
      const int64_t now = tx.now_us();
      const bool late = now >= outcome.created_at_us + give_up_after.count();
      if (outcome.taken || outcome.gone || late) {
        const pqxx::result gone = tx.Exec(kGoes, outcome.message, outcome.taken, outcome.tries, now, outcome.error);
        given_up->push_back(!outcome.taken && gone.affected_rows() == 1);
      } else {
        tx.Exec(kWaits, outcome.message, outcome.tries, now + outcome.retry_after.count(), outcome.error);
        given_up->push_back(false);
      }
    }
  });
}

}  // namespace tally::ledger
