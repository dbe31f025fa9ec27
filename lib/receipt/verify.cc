#include "lib/receipt/verify.h"

#include <cstdlib>

#include "lib/keys/public_key.h"
#include "lib/receipt/dsse.h"
#include "lib/receipt/json.h"
#include "lib/receipt/payload.h"

namespace tally::receipt {
namespace {

void Judge(ReceiptReport& report, Outcome outcome, std::string fault) {
  report.outcome = outcome;
  report.fault = std::move(fault);
}

IssuerLine Trust(const keys::KnownKey* key, int64_t time_us) {
  if (key == nullptr) return IssuerLine::kUnknownKey;
  if (key->status == keys::KeyStatus::kRevoked) return IssuerLine::kRevoked;
  return key->Covers(time_us) ? IssuerLine::kTrusted : IssuerLine::kNotAtThatTime;
}

}  // namespace

ReceiptReport Verify(const v1::Receipt& receipt, std::string_view source, const keys::KeyRing& ring) {
  ReceiptReport report;
  report.source = source;
  report.id = ReceiptId(receipt.payload()).str();
  report.effect = "nothing: the receipt could not be read";
  const auto parsed = Parse(receipt.payload());
  if (!parsed.ok()) {
    const bool newer = parsed.status().code() == absl::StatusCode::kUnimplemented;
    Judge(report, newer ? Outcome::kInconclusive : Outcome::kBad, std::string(parsed.status().message()));
    return report;
  }
  report.payload = *parsed;
  report.effect = EffectText(*parsed);

  const keys::KnownKey* key = ring.Find(parsed->issuer(), parsed->key_id());
  report.issuer = Trust(key, parsed->time_us());
  if (key != nullptr) {
    const bool valid = keys::VerifySignature(key->bytes, PreAuthEncoding(receipt.payload()), receipt.signature());
    report.signature = valid ? SignatureLine::kValid : SignatureLine::kInvalid;
  }
  if (report.signature == SignatureLine::kInvalid) {
    Judge(report, Outcome::kBad, "the signature does not fit the receipt: one of them was altered");
  } else if (receipt.key_id() != parsed->key_id()) {
    Judge(report, Outcome::kBad, "the envelope names another key than the signed payload");
  } else if (!receipt.receipt_id().empty() && receipt.receipt_id() != report.id) {
    Judge(report, Outcome::kBad, "its receipt id is not the one that its bytes have");
  } else if (auto fault = FormFault(*parsed)) {
    Judge(report, Outcome::kBad, *fault);
  } else if (report.issuer == IssuerLine::kRevoked) {
    Judge(report, Outcome::kBad, "its key is revoked: nothing that it signed counts");
  } else if (report.issuer == IssuerLine::kNotAtThatTime) {
    Judge(report, Outcome::kBad, "its key was not valid at the time it gives");
  } else if (report.issuer == IssuerLine::kUnknownKey) {
    Judge(report, Outcome::kInconclusive, "its key is not among the trusted keys, so its signature was not checked");
  }
  return report;
}

std::string EffectText(const v1::ReceiptPayload& payload) {
  switch (payload.effect_known()) {
    case v1::NONE:
      return payload.kind() == v1::CALL_ALLOWED
                 ? "none known: the call was allowed, which does not say that it was sent"
                 : "none: this decision granted nothing";
    case v1::NOT_SENT:
      return "not sent, as the gateway reported; a report, not a proof";
    case v1::ANSWERED:
      return "the tool answered that it was done, as the gateway reported; a report, not a proof";
    case v1::ANSWERED_ERROR:
      return "the tool answered with an error, as the gateway reported; a report, not a proof";
    case v1::UNKNOWN:
      return "unknown: it may have happened";
    case v1::EFFECT_RESOLVED_HAPPENED:
      return "resolved as happened, on the evidence that the receipt commits to; not proven by this signature";
    case v1::EFFECT_RESOLVED_NOT_HAPPENED:
      return "resolved as not happened, on the evidence that the receipt commits to; not proven by this signature";
    case v1::CONTRADICTED:
      return "happened after all, against what was recorded before, as the gateway reported; a report, not a proof";
    default:
      return "nothing: this receipt is not about an effect";
  }
}

std::string_view OutcomeName(Outcome outcome) {
  switch (outcome) {
    case Outcome::kGood:
      return "good";
    case Outcome::kBad:
      return "bad";
    case Outcome::kUnreadable:
      return "unreadable";
    case Outcome::kInconclusive:
      return "inconclusive";
  }
  std::abort();
}

std::string_view SignatureLineText(SignatureLine line) {
  switch (line) {
    case SignatureLine::kValid:
      return "valid";
    case SignatureLine::kInvalid:
      return "invalid";
    case SignatureLine::kNotChecked:
      return "not checked";
  }
  std::abort();
}

std::string_view IssuerLineText(IssuerLine line) {
  switch (line) {
    case IssuerLine::kTrusted:
      return "trusted";
    case IssuerLine::kUnknownKey:
      return "not trusted: unknown key";
    case IssuerLine::kNotAtThatTime:
      return "not trusted: the key was not valid at that time";
    case IssuerLine::kRevoked:
      return "not trusted: the key is revoked";
  }
  std::abort();
}

}  // namespace tally::receipt
