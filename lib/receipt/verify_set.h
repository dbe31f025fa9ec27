// Verification of receipts that belong together: whole chains, or pieces of them, in any order.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "lib/receipt/verify.h"

namespace tally::receipt {

struct Input {
  std::string source;  // a file's name
  v1::Receipt receipt;
};

struct ChainReport {
  std::string tenant;
  std::string permit_id;  // 16 bytes; empty: the tenant's own chain
  int64_t first = 0;      // lowest and highest sequence given
  int64_t last = 0;
  size_t receipts = 0;    // links, without duplicates and heads
  bool complete = false;  // from its first receipt to PERMIT_CLOSED or the receipt that PERMIT_HEAD names
  Outcome outcome = Outcome::kGood;
  std::vector<std::string> faults;       // what is wrong or missing, a sentence each
  std::vector<std::string> not_checked;  // what nothing was said about, a sentence each
};

struct SetReport {
  std::vector<ReceiptReport> receipts;   // in the order given
  std::vector<ChainReport> chains;       // by tenant and permit
  std::vector<std::string> not_checked;  // of the whole set
  Outcome outcome = Outcome::kGood;      // the worst: bad, then inconclusive, then good
};

// Each receipt by itself, then each chain: dense sequence, previous ids, forks, and from the first receipt on whether
// each transition is legal and each number adds up. A single receipt of a chain is judged by itself; of several, a
// missing one in between or at the start makes the chain inconclusive.
SetReport VerifySet(const std::vector<Input>& inputs, const keys::KeyRing& ring);

}  // namespace tally::receipt
