#include "lib/receipt/verify_set.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/keys/text.h"
#include "lib/keys/uuid.h"
#include "lib/receipt/json.h"
#include "lib/receipt/replay.h"

namespace tally::receipt {
namespace {

using keys::Cat;

Outcome Worse(Outcome a, Outcome b) {
  if (a == Outcome::kBad || b == Outcome::kBad) return Outcome::kBad;
  return a == Outcome::kGood ? b : a;
}

// A chain's readable receipts by sequence. Those of unknown keys are in it too: their neighbours vouch for them by
// hash.
class Chain {
 public:
  explicit Chain(ChainReport report) : report_(std::move(report)) {}

  void Add(const ReceiptReport& receipt) {
    if (receipt.payload->kind() == v1::PERMIT_HEAD) {
      heads_.push_back(&receipt);
      return;
    }
    auto& same = links_[receipt.payload->sequence()];
    const auto known =
        std::find_if(same.begin(), same.end(), [&](const auto* other) { return other->id == receipt.id; });
    if (known == same.end()) {
      same.push_back(&receipt);
    } else if (receipt.outcome == Outcome::kGood) {
      *known = &receipt;  // the same receipt, and this copy's signature was checked
    }
  }

  ChainReport Report() {
    report_.receipts = links_.size();
    report_.first = links_.empty() ? 0 : links_.begin()->first;
    report_.last = links_.empty() ? 0 : links_.rbegin()->first;
    CheckForks();
    CheckLinks();
    CheckHeads();
    Replay();
    Tail();
    return std::move(report_);
  }

 private:
  const ReceiptReport& At(int64_t sequence) const { return *links_.at(sequence).front(); }
  bool IsPermit() const { return !report_.permit_id.empty(); }

  void Find(Outcome outcome, std::string fault) {
    report_.outcome = Worse(report_.outcome, outcome);
    report_.faults.push_back(std::move(fault));
  }

  void CheckForks() {
    for (const auto& [sequence, same] : links_) {
      if (same.size() > 1) {
        Find(Outcome::kBad, Cat("the chain is forked: ", same.size(), " different receipts have number ", sequence,
                                " (", same[0]->source, " and ", same[1]->source, ")"));
      }
    }
  }

  void CheckLinks() {
    const ReceiptReport* before = nullptr;
    for (const auto& [sequence, same] : links_) {
      const int64_t expected = before == nullptr ? 1 : before->payload->sequence() + 1;
      if (sequence != expected && (before != nullptr || links_.size() > 1)) {
        Find(Outcome::kInconclusive, Gap(expected, sequence - 1));
      }
      if (before != nullptr && sequence == expected && same.front()->payload->previous_receipt_id() != before->id) {
        Find(Outcome::kBad, Cat("number ", sequence, " (", same.front()->source, ") was not made after number ",
                                sequence - 1, " (", before->source, "): its previous_receipt_id is another"));
      }
      before = same.front();
    }
    if (links_.size() == 1 && report_.first > 1) {
      report_.not_checked.push_back("a single receipt was given, so its chain was not checked");
    }
  }

  static std::string Gap(int64_t from, int64_t to) {
    return from == to ? Cat("number ", from, " is missing") : Cat("numbers ", from, " to ", to, " are missing");
  }

  void CheckHeads() {
    for (const ReceiptReport* head : heads_) {
      const int64_t sequence = head->payload->sequence();
      const auto named = links_.find(sequence);
      if (named != links_.end()) {
        if (named->second.front()->id != head->payload->previous_receipt_id()) {
          Find(Outcome::kBad, Cat(head->source, " says that the chain ended in another receipt number ", sequence));
        }
      } else if (sequence > report_.last && !links_.empty()) {
        Find(Outcome::kInconclusive, Cat(Gap(report_.last + 1, sequence), " (", head->source,
                                         " says that the chain goes on to ", sequence, ")"));
      }
    }
  }

  // From the first receipt to the first gap, fork, broken link or fault; past that, nothing can be said.
  void Replay() {
    if (!IsPermit() || links_.empty()) return;
    if (report_.first != 1) {
      if (links_.size() > 1) StopReplay(report_.first, "the chain's start was not given");
      return;
    }
    PermitReplay replay;
    int64_t sequence = 1;
    std::string previous;
    for (; links_.contains(sequence); ++sequence) {
      const ReceiptReport& receipt = At(sequence);
      if (links_.at(sequence).size() > 1) return StopReplay(sequence, "the chain is forked there");
      if (receipt.payload->previous_receipt_id() != previous)
        return StopReplay(sequence, "the link before it is broken");
      if (auto fault = replay.Apply(*receipt.payload, receipt.id)) {
        Find(Outcome::kBad, Cat("number ", sequence, " (", receipt.source, ", ", KindName(receipt.payload->kind()),
                                ") is impossible: ", *fault));
        return StopReplay(sequence + 1, "what came before is not right");
      }
      for (const ReceiptReport* head : heads_) {
        if (head->payload->sequence() != sequence) continue;
        if (auto fault = replay.CheckHead(*head->payload)) Find(Outcome::kBad, Cat(head->source, ": ", *fault));
      }
      previous = receipt.id;
    }
    if (sequence <= report_.last) return StopReplay(sequence + 1, Cat("number ", sequence, " is missing"));
    report_.complete = replay.closed() || std::any_of(heads_.begin(), heads_.end(), [&](const auto* head) {
                         return head->payload->sequence() == report_.last && head->outcome == Outcome::kGood;
                       });
  }

  void StopReplay(int64_t from, std::string_view why) {
    if (from > report_.last) return;
    report_.not_checked.push_back(
        Cat("transitions, caps and budgets from number ", from, " on were not checked: ", why));
  }

  void Tail() {
    if (links_.empty()) {
      report_.not_checked.push_back("only a PERMIT_HEAD was given, and none of the receipts before it");
    } else if (!IsPermit()) {
      report_.not_checked.push_back(Cat("whether the tenant's chain goes on after number ", report_.last));
    } else if (!report_.complete && report_.outcome != Outcome::kBad) {
      const bool closed = At(report_.last).payload->kind() == v1::PERMIT_CLOSED;
      if (!closed) {
        report_.not_checked.push_back(Cat("whether the chain goes on after number ", report_.last,
                                          ": neither PERMIT_CLOSED nor a PERMIT_HEAD for it"));
      }
    }
  }

  ChainReport report_;
  std::map<int64_t, std::vector<const ReceiptReport*>> links_;
  std::vector<const ReceiptReport*> heads_;
};

std::vector<std::string> NeverChecked(const std::vector<ReceiptReport>& receipts) {
  bool intents = false;
  bool bodies = false;
  for (const ReceiptReport& receipt : receipts) {
    if (!receipt.payload) continue;
    intents |= !receipt.payload->intent_hash().empty();
    bodies |= !receipt.payload->arguments_commitment().empty() || !receipt.payload->result_commitment().empty() ||
              !receipt.payload->evidence_commitment().empty();
  }
  std::vector<std::string> out;
  if (intents) out.push_back("whether the same intent was open or done under permits that were not given");
  if (bodies) out.push_back("arguments, results and evidence: the receipts hold commitments to them, not the bytes");
  out.push_back("whether the outside world is as the receipts say");
  return out;
}

}  // namespace

SetReport VerifySet(const std::vector<Input>& inputs, const keys::KeyRing& ring) {
  SetReport out;
  out.receipts.reserve(inputs.size());  // chains point into it
  for (const Input& input : inputs) out.receipts.push_back(Verify(input.receipt, input.source, ring));

  std::map<std::pair<std::string, std::string>, Chain> chains;
  for (const ReceiptReport& receipt : out.receipts) {
    out.outcome = Worse(out.outcome, receipt.outcome);
    // A bad receipt is no link: where it should be, there is a gap.
    if (!receipt.payload || receipt.outcome == Outcome::kBad) continue;
    const v1::ReceiptPayload& payload = *receipt.payload;
    ChainReport fresh;
    fresh.tenant = payload.tenant();
    fresh.permit_id = payload.permit_id();
    auto [chain, first] = chains.try_emplace({payload.tenant(), payload.permit_id()}, std::move(fresh));
    chain->second.Add(receipt);
  }
  for (auto& [name, chain] : chains) {
    out.chains.push_back(chain.Report());
    out.outcome = Worse(out.outcome, out.chains.back().outcome);
  }
  out.not_checked = NeverChecked(out.receipts);
  return out;
}

}  // namespace tally::receipt
