#include "lib/keys/encoding.h"
#include "lib/webhook/format.h"
#include "server/ledger/arrays.h"
#include "server/ledger/batch.h"
#include "server/ledger/ids.h"

// Messages for webhooks, written by the transaction that decides, so that none is lost and none is sent of what was
// rolled back. A batch in which nothing is or was uncertain does nothing here.
namespace tally::ledger {
namespace {

using decide::Call;
using decide::Draft;

const char* CloserName(v1::Role role) {
  switch (role) {
    case v1::RECONCILER:
      return "reconciler";
    case v1::OPERATOR:
      return "operator";
    default:
      return "gateway";
  }
}

// What the receipt is to be told as; null: not at all. `ended`: attempts that the batch's receipts before this one have
// ended.
using Ended = std::set<std::pair<decide::Id, int32_t>>;
const char* TypeOf(const Batch& batch, const Draft& draft, Ended& ended) {
  if (!draft.call_id || draft.payload.attempt_number() == 0) return nullptr;
  const std::pair attempt(*draft.call_id, draft.payload.attempt_number());
  switch (draft.payload.kind()) {
    case v1::CALL_UNCERTAIN:
      return webhook::kParked;
    case v1::CALL_ESCALATED:
      return webhook::kEscalated;
    case v1::CALL_RESOLVED_HAPPENED:
    case v1::CALL_RESOLVED_NOT_HAPPENED:
      ended.insert(attempt);
      return webhook::kResolved;
    case v1::CALL_CONTRADICTED:
      ended.insert(attempt);
      return webhook::kContradicted;
    case v1::CALL_CORRECTED:
      ended.insert(attempt);
      return webhook::kCorrected;
    case v1::CALL_SUCCEEDED:
    case v1::CALL_TOOL_ERROR: {
      // A late answer, if it ended an attempt that was parked; what comes after an end is added to it.
      if (!ended.insert(attempt).second) return nullptr;
      const auto parking = batch.parkings.find(attempt);
      return parking != batch.parkings.end() && parking->second.ended ? webhook::kResolved : nullptr;
    }
    default:
      return nullptr;
  }
}

// Nothing that an agent, a tool or a provider wrote, except the tool's name; and the subject, which the operator chose.
json::Object DataOf(const char* type, const Batch& batch, const Draft& draft) {
  const Call& call = batch.world.calls.at(*draft.call_id);
  const decide::PermitTerms& terms = *batch.world.permits.at(call.permit_id).terms;
  const int32_t number = draft.payload.attempt_number();
  json::Object data;
  data.Set("call_id", json::Value(IdText(call.call_id)));
  data.Set("permit_id", json::Value(IdText(call.permit_id)));
  data.Set("subject", json::Value(terms.subject));
  data.Set("tool", json::Value(call.tool));
  data.Set("unit", json::Value(terms.unit));
  data.Set("hold", json::Value(call.attempts[static_cast<size_t>(number) - 1].hold));
  data.Set("charged", json::Value(draft.payload.charged()));
  data.Set("attempt", json::Value(int64_t{number}));
  data.Set("state", json::Value(v1::CallState_Name(draft.payload.attempt_state())));
  if (type != webhook::kParked && type != webhook::kEscalated) {
    data.Set("closed_by", json::Value(CloserName(draft.payload.principal_role())));
  }
  return data;
}

}  // namespace

void NoteMessages(Batch& batch) {
  Ended ended;
  for (size_t i = 0; i < batch.world.drafts.size(); ++i) {
    const Draft& draft = batch.world.drafts[i];
    if (const char* type = TypeOf(batch, draft, ended)) batch.messages.push_back({i, type, DataOf(type, batch, draft)});
  }
}

constexpr Statement kInsertOutbox = {
    "insert_outbox",
    "INSERT INTO outbox (webhook_id, message_id, call_id, created_at_us, body, next_try_us)"
    " SELECT w.webhook_id, gen_random_uuid(), u.call_id, $4::bigint, u.body, $4::bigint"
    " FROM unnest($1::text[], $2::uuid[], $3::text[]) WITH ORDINALITY AS u(tenant, call_id, body, n)"
    " JOIN webhooks w ON w.tenant = u.tenant ORDER BY u.n, w.webhook_id"};

void StoreOutbox(Tx& tx, Batch& batch) {
  if (batch.messages.empty()) return;
  TextArray tenants, bodies;
  UuidArray calls;
  for (Message& message : batch.messages) {
    const Draft& draft = batch.world.drafts[message.draft];
    message.data.Set("receipt_id", json::Value(keys::HexEncode(batch.receipts[message.draft].receipt_id())));
    tenants.Add(batch.world.permits.at(draft.permit_id).terms->tenant);
    calls.Add(*draft.call_id);
    bodies.Add(webhook::Body(message.type, batch.world.now, std::move(message.data)));
  }
  tx.Exec(kInsertOutbox, tenants.Param(), calls.Param(), bodies.Param(), batch.world.now);
}

}  // namespace tally::ledger
