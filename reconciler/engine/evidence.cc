#include "reconciler/engine/evidence.h"

#include "lib/keys/encoding.h"
#include "lib/keys/provider_names.h"
#include "lib/keys/text.h"
#include "reconciler/verdict/read.h"

namespace tally::reconciler {
namespace {

using keys::Cat;

constexpr size_t kBodyMax = 1 << 20;
constexpr size_t kReasonMax = 1024;
constexpr size_t kReferenceMax = 1024;
constexpr size_t kResultMax = 1 << 20;
constexpr std::string_view kGateway = "gateway_journal";

bool WasAsked(const Answer& answer) { return !answer.body.empty() || !answer.detail.empty(); }

// The gateway's own late word, as tallyd noted it.
void TakeGatewaysWord(const v1::ParkedCall& parked, v1::Evidence& evidence) {
  evidence.set_source(std::string(kGateway));
  for (const v1::EvidenceInfo& noted : parked.call().evidence()) {
    if (noted.source() == kGateway && !noted.body().empty()) evidence.set_body(noted.body());
  }
  if (evidence.body().empty())
    evidence.set_body("The gateway committed NOT_SENT for this attempt after its lease had ended.");
  const std::string attempt = parked.call().attempts().empty() ? "" : parked.call().attempts().rbegin()->attempt_id();
  evidence.set_reference(Cat("attempt ", keys::HexEncode(attempt)));
}

}  // namespace

v1::LookUp NoteOf(const Answer& answer, const ToolConfig& tool) {
  v1::LookUp note;
  note.set_kind(std::string(NameOf(tool.kind)));
  note.set_provider(tool.provider);
  note.set_finding(answer.finding);
  std::string detail = OneLine(answer.detail, kNoteDetailMax);
  if (answer.body.size() > kNoteBodyMax) {
    const std::string cut =
        Cat(" (the answer has ", answer.body.size(), " bytes; the first ", kNoteBodyMax, " are kept)");
    detail = OneLine(detail, kNoteDetailMax - cut.size()) + cut;
  }
  note.set_detail(detail);
  note.set_body(answer.body.substr(0, kNoteBodyMax));
  return note;
}

v1::Evidence EvidenceOf(const v1::ParkedCall& parked, const Decision& decision, const Answer& answer,
                        const ProviderConfig* provider) {
  v1::Evidence evidence;
  evidence.set_reason(
      OneLine(answer.detail.empty() ? decision.reason : Cat(decision.reason, ": ", answer.detail), kReasonMax));
  if (!WasAsked(answer) && decision.what == Decision::What::kNotHappened) {
    TakeGatewaysWord(parked, evidence);
    return evidence;
  }
  evidence.set_source(WasAsked(answer) && provider != nullptr ? provider->name : "tally-reconciler");
  evidence.set_reference(answer.reference.empty() ? keys::ProviderReference(parked.call().call_id())
                                                  : OneLine(answer.reference, kReferenceMax));
  // What was said where nothing came: a status without a body, a timeout.
  evidence.set_body(answer.body.empty() ? evidence.reason() : answer.body.substr(0, kBodyMax));
  if (decision.what == Decision::What::kHappened) {
    if (answer.amount) evidence.set_amount(*answer.amount);
    if (answer.result && answer.result->size() <= kResultMax) evidence.set_result(*answer.result);
  }
  return evidence;
}

}  // namespace tally::reconciler
