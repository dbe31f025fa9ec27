#include "lib/receipt/chain.h"

#include <utility>

#include "lib/keys/text.h"
#include "lib/receipt/dsse.h"
#include "lib/receipt/payload.h"

namespace tally::receipt {
namespace {

Unsigned Finish(v1::ReceiptPayload draft, int64_t sequence, const std::string& previous, const keys::Signer& signer) {
  draft.set_format_version(kFormatVersion);
  draft.set_issuer(signer.public_key().name());
  draft.set_key_id(signer.public_key().id().str());
  draft.set_sequence(sequence);
  draft.set_previous_receipt_id(previous);
  Unsigned out;
  const std::string payload = Serialize(draft);
  out.pre_auth = PreAuthEncoding(payload);
  out.payload_offset = out.pre_auth.size() - payload.size();
  out.id = keys::Sha256(out.pre_auth);
  out.fields = std::move(draft);
  return out;
}

}  // namespace

absl::StatusOr<Unsigned> Seal(v1::ReceiptPayload draft, ChainHead& head, const keys::Signer& signer) {
  const int64_t sequence = head.sequence + 1;
  if (draft.sequence() != 0 && draft.sequence() != sequence) {
    return absl::InvalidArgumentError(
        keys::Cat("a receipt drafted as number ", draft.sequence(), " where the chain's next is ", sequence));
  }
  Unsigned out = Finish(std::move(draft), sequence, head.id, signer);
  head = {sequence, out.id.str()};
  return out;
}

Unsigned SealPermitHead(v1::ReceiptPayload draft, const ChainHead& head, const keys::Signer& signer) {
  return Finish(std::move(draft), head.sequence, head.id, signer);
}

absl::StatusOr<v1::Receipt> Sign(const Unsigned& sealed, const keys::Signer& signer) {
  if (sealed.fields.key_id() != signer.public_key().id().view()) {
    return absl::InvalidArgumentError("a receipt sealed for another key than the one that is to sign it");
  }
  const auto signature = signer.Sign(sealed.pre_auth);
  if (!signature.ok()) return signature.status();
  v1::Receipt out;
  out.set_receipt_id(sealed.id.str());
  out.set_payload(std::string(sealed.payload()));
  out.set_key_id(sealed.fields.key_id());
  out.set_signature(signature->data(), signature->size());
  return out;
}

}  // namespace tally::receipt
