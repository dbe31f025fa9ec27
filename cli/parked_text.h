// Parked calls as people read them, and what a person can do about each.
#pragma once

#include <optional>
#include <string>

#include "tally/v1/parked.pb.h"

namespace tally::cli {

// 45 s, 12 min, 3 h 20 min, 2 d 4 h; "0 s" for less.
std::string AgeText(int64_t us);

std::string ParkedListText(const v1::ListParkedResponse& list);

// One, with everything that is known and the commands that close it.
std::string ParkedText(const v1::ParkedCall& parked);

// The receipt that brought the attempt to the end it has, which a correction must name; nullopt: it is open, or the
// call's receipts do not tell.
std::optional<std::string> EndReceiptOf(const v1::CallInfo& call, const v1::AttemptInfo& attempt);

// Why a Resolve or Correct that named `receipt_id` was stale, told from the call as it stands now.
std::string StaleText(const v1::CallInfo& call, const std::string& receipt_id);

}  // namespace tally::cli
