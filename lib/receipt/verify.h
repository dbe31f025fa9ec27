// Verification: pure, offline, with nothing but receipts and the keys that are trusted.
//
// Three questions about each receipt are answered apart and never merged: is the signature valid; is whoever signed
// trusted; and what does the receipt say of the effect, which no signature proves. For receipts of one chain also: is
// anything missing, changed, forked, or impossible.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lib/keys/key_file.h"
#include "lib/receipt/form.h"
#include "tally/v1/receipt.pb.h"

namespace tally::receipt {

namespace v1 = ::tally::v1;

// Also the exit codes of `tally receipt verify`.
enum class Outcome {
  kGood = 0,
  kBad = 1,           // a receipt is not what it claims to be, or receipts contradict each other
  kUnreadable = 2,    // not a receipt at all
  kInconclusive = 3,  // nothing found wrong, but something is missing: a receipt, a key, a newer program
};
std::string_view OutcomeName(Outcome outcome);  // good, bad, unreadable, inconclusive

enum class SignatureLine { kValid, kInvalid, kNotChecked };                 // valid, invalid, not checked
enum class IssuerLine { kTrusted, kUnknownKey, kNotAtThatTime, kRevoked };  // trusted, unknown key, …
std::string_view SignatureLineText(SignatureLine line);
std::string_view IssuerLineText(IssuerLine line);

struct ReceiptReport {
  std::string source;                         // where it came from, for the reader
  std::string id;                             // 32 bytes, computed
  std::optional<v1::ReceiptPayload> payload;  // nullopt: it could not be read
  SignatureLine signature = SignatureLine::kNotChecked;
  IssuerLine issuer = IssuerLine::kUnknownKey;
  std::string effect;  // what the receipt says of the effect, in a sentence
  Outcome outcome = Outcome::kGood;
  Fault fault;  // what is wrong or missing, as a sentence without its full stop
};

// One receipt by itself: signature, key, form.
ReceiptReport Verify(const v1::Receipt& receipt, std::string_view source, const keys::KeyRing& ring);

// What a receipt says of the effect, and that it does not prove it.
std::string EffectText(const v1::ReceiptPayload& payload);

}  // namespace tally::receipt
