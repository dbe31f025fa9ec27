#include "bench/plain/carry.h"

#include <utility>

#include "bench/plain/work.h"
#include "lib/decide/decide.h"
#include "lib/receipt/chain.h"
#include "server/ledger/constraints.h"

namespace tally::plain {
namespace {

using ledger::CallJob;
using ledger::Statement;
using ledger::TxEnd;

constexpr int kRunsMax = 3;

decide::Answer Decide(decide::World& world, const ledger::Request& request) {
  if (const auto* authorize = std::get_if<decide::AuthorizeRequest>(&request)) {
    return decide::Authorize(world, *authorize);
  }
  return decide::Commit(world, std::get<decide::CommitRequest>(request));
}

Id AttemptIdOf(const ledger::Request& request) {
  if (const auto* authorize = std::get_if<decide::AuthorizeRequest>(&request)) return authorize->attempt_id;
  return std::get<decide::CommitRequest>(request).attempt_id;
}

void CheckSupported(const Work& work) {
  if (!work.world.notes.empty()) throw Unsupported("a note kept as evidence");
  for (const auto& [id, call] : work.world.calls) {
    if (call.attempts.size() > 1) throw Unsupported("a second attempt");
  }
}

void SealAndSign(Work& work, const keys::Signer& signer) {
  for (size_t i = 0; i < work.world.drafts.size(); ++i) {
    decide::Draft& draft = work.world.drafts[i];
    decide::Permit& permit = work.world.permits.at(draft.permit_id);
    receipt::ChainHead head{draft.sequence - 1, permit.head};
    if (draft.supersedes_seq > 0) {
      std::string id = draft.supersedes_receipt;
      for (size_t made = 0; id.empty() && made < i; ++made) {
        if (work.world.drafts[made].sequence == draft.supersedes_seq) id = work.receipts[made].receipt_id();
      }
      draft.payload.set_supersedes(id);
    }
    draft.payload.set_sequence(draft.sequence);
    auto sealed = receipt::Seal(std::move(draft.payload), head, signer);
    if (!sealed.ok()) throw std::logic_error(sealed.status().ToString());
    auto signed_receipt = receipt::Sign(*sealed, signer);
    if (!signed_receipt.ok()) throw std::runtime_error(signed_receipt.status().ToString());
    permit.head = head.id;
    work.receipts.push_back(*std::move(signed_receipt));
    for (auto& [id, call] : work.world.calls) {
      decide::Attempt* attempt = call.last();
      if (attempt != nullptr && attempt->state_receipt.empty() && attempt->state_seq == draft.sequence &&
          call.permit_id == draft.permit_id) {
        attempt->state_receipt = work.receipts.back().receipt_id();
      }
    }
  }
}

constexpr Statement kReceipt = {"plain_receipt",
                                "SELECT receipt_id, payload, signature FROM receipts"
                                " WHERE shard = $1::smallint AND chain_id = $2::uuid AND sequence = $3::bigint"};
constexpr Statement kResult = {"plain_result",
                               "SELECT result FROM calls WHERE shard = $1::smallint AND call_id = $2::uuid"
                               " AND result IS NOT NULL"};

void FillReply(ledger::Tx& tx, const Work& work) {
  ledger::Reply& reply = work.job.reply;
  for (const decide::ReceiptRef& ref : reply.answer.receipts) {
    const v1::Receipt* made = nullptr;
    for (size_t i = 0; i < work.receipts.size(); ++i) {
      const decide::Draft& draft = work.world.drafts[i];
      if (draft.permit_id == ref.permit_id && draft.sequence == ref.sequence) made = &work.receipts[i];
    }
    if (made != nullptr) {
      reply.receipts.push_back(*made);
      continue;
    }
    const pqxx::result rows =
        tx.Exec(kReceipt, ledger::ShardOf(ref.permit_id), ledger::IdText(ref.permit_id), ref.sequence);
    reply.receipts.push_back(
        ledger::ReceiptOf(ledger::Bytea(rows.at(0)[0]), ledger::Bytea(rows.at(0)[1]), ledger::Bytea(rows.at(0)[2])));
  }
  if (!reply.answer.result_of) return;
  const pqxx::result rows =
      tx.Exec(kResult, ledger::ShardOf(*reply.answer.result_of), ledger::IdText(*reply.answer.result_of));
  if (!rows.empty()) reply.result = ledger::Bytea(rows[0][0]);
}

}  // namespace

ledger::TxResult Carry(ledger::Connection& connection, const keys::Signer& signer, ledger::TermsCache& terms,
                       CallJob& job) {
  bool know_attempt_id = false;
  for (int run = 0; run < kRunsMax; ++run) {
    const ledger::TxResult result =
        ledger::InTransaction(connection, ledger::Isolation::kSerializable, [&](ledger::Tx& tx) {
          Work work{job, {}, {}, {}, {}, {}};
          Load(tx, work, terms);
          const Id attempt_id = AttemptIdOf(job.request);
          if (know_attempt_id && !work.world.attempts.contains(attempt_id)) LoadAttemptId(tx, work, attempt_id);
          job.reply = {};
          job.reply.answer = Decide(work.world, job.request);
          CheckSupported(work);
          // Its insert finds out whether it is used already; where nothing is inserted, it is looked up.
          if (!know_attempt_id && !work.world.attempts.contains(attempt_id) && LoadAttemptId(tx, work, attempt_id)) {
            know_attempt_id = true;
            throw ledger::LostRace{};
          }
          SealAndSign(work, signer);
          Store(tx, work);
          FillReply(tx, work);
        });
    if (result.end == TxEnd::kConstraint) {
      if (ledger::MeaningOf(result) == ledger::Refused::kRaced) return {TxEnd::kLostRace, "", "", result.message};
      if (ledger::MeaningOf(result) != ledger::Refused::kAttemptIdUsed) return result;
    } else if (result.end != TxEnd::kLostRace || !know_attempt_id || run > 0) {
      return result;
    }
    know_attempt_id = true;
  }
  return {TxEnd::kLostRace, "", "", "decided again too often"};
}

}  // namespace tally::plain
