// Receipts to test with: a fixed key, fixed ids, fixed times.
#pragma once

#include <string>

#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "lib/keys/signer.h"
#include "lib/keys/uuid.h"
#include "tally/v1/receipt.pb.h"

namespace tally::receipt::samples {

namespace v1 = ::tally::v1;

// Seed: the bytes 0, 1, 2, … 31.
inline const keys::Signer& Key() {
  static const auto signer = [] {
    std::string seed;
    for (char c = 0; c < 32; ++c) seed.push_back(c);
    return *keys::Ed25519Signer::Create("tally.example", keys::Secret::Take(seed));
  }();
  return *signer;
}

inline const keys::Signer& OtherKey() {
  static const auto signer =
      *keys::Ed25519Signer::Create("tally.example", keys::Secret::Copy("another seed, also of 32 bytes.."));
  return *signer;
}

inline std::string Uuid(std::string_view text) { return *keys::ParseUuid(text); }
inline std::string PermitId() { return Uuid("019b76da-a800-7000-8000-000000000001"); }
inline std::string Hash(std::string_view of) { return keys::Sha256(of).str(); }
inline constexpr int64_t kTime = 1767225600000000;  // 2026-01-01T00:00:00Z

inline v1::ReceiptPayload Allowed() {
  v1::ReceiptPayload out;
  out.set_kind(v1::CALL_ALLOWED);
  out.set_tenant("acme");
  out.set_permit_id(PermitId());
  out.set_time_us(kTime + 1);
  out.set_call_id(Uuid("019b76da-a800-7000-8000-00000000000a"));
  out.set_attempt_number(1);
  out.set_attempt_id_hash(Hash("attempt 1"));
  out.set_key_hash(Hash("key"));
  out.set_fingerprint_hash(Hash("fingerprint"));
  out.set_intent_hash(Hash("intent"));
  out.set_tool("payments__refund");
  out.set_grant_index(1);
  out.set_arguments_commitment(Hash("arguments"));
  out.set_effect(v1::WRITE);
  out.set_unit("USD/2");
  out.set_held(1000);
  out.mutable_cap()->set_used(1);
  out.mutable_cap()->mutable_limit()->set_at_most(3);
  out.mutable_tool_budget()->set_held(1000);
  out.mutable_tool_budget()->mutable_limit()->set_at_most(30000);
  out.mutable_permit_budget()->set_held(1000);
  out.mutable_permit_budget()->mutable_limit()->set_unlimited(true);
  out.set_disposition(v1::DISPATCH);
  out.set_effect_known(v1::NONE);
  out.set_state(v1::AUTHORIZED);
  out.set_attempt_state(v1::AUTHORIZED);
  out.set_principal_id("019b76da-a800-7000-8000-0000000000ff");
  out.set_principal_role(v1::GATEWAY);
  out.set_lease_end_us(kTime + 120000001);
  out.set_send_within_ms(10000);
  return out;
}

}  // namespace tally::receipt::samples
