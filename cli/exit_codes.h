// What the process says to a shell script. Stable.
#pragma once

namespace tally::cli {

inline constexpr int kDone = 0;
inline constexpr int kFailed = 1;       // refused, in conflict, unauthorized: the message says what was done
inline constexpr int kUsage = 2;        // nothing was sent to a server
inline constexpr int kUnavailable = 3;  // no answer: ask again with the same key and attempt id, which are printed

// `tally call authorize` alone. 0 is DISPATCH: send. A refusal given again exits as the refusal did.
inline constexpr int kDispatch = 0;
inline constexpr int kDenied = 10;
inline constexpr int kContended = 11;
inline constexpr int kCapExceeded = 12;
inline constexpr int kPending = 13;  // PENDING, or delivery_uncertain
inline constexpr int kReplay = 14;   // REPLAY, or already_done

// `tally receipt verify` alone.
inline constexpr int kReceiptsGood = 0;
inline constexpr int kReceiptBad = 1;
inline constexpr int kUnreadable = 2;
inline constexpr int kInconclusive = 3;  // a gap, an unknown key, a newer format

}  // namespace tally::cli
