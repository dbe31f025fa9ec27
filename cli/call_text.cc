#include "cli/call_text.h"

#include "absl/strings/str_cat.h"
#include "cli/permit_text.h"
#include "cli/text.h"
#include "lib/keys/encoding.h"

namespace tally::cli {
namespace {

std::string Body(std::string_view heading, const std::string& bytes) {
  if (bytes.empty()) return "";
  return absl::StrCat("\n", absl::string_view(heading.data(), heading.size()), ":\n",
                      ForTerminal(bytes, LineFeeds::kKeep), "\n");
}

}  // namespace

std::string AttemptsText(const v1::CallInfo& call) {
  if (call.attempts_size() == 0) return "";
  Table table({"ATTEMPT", "STATE", "HELD", "CHARGED", "GRANTED", "LEASE TO", "SENT", "ATTEMPT ID"});
  for (const v1::AttemptInfo& attempt : call.attempts()) {
    table.Add({absl::StrCat(attempt.number()), v1::CallState_Name(attempt.state()),
               MoneyText(attempt.held(), call.unit()), MoneyText(attempt.charged(), call.unit()),
               LocalTime(attempt.granted_at_us()), LocalTime(attempt.lease_end_us()), LocalTime(attempt.sent_at_us()),
               keys::HexEncode(attempt.attempt_id())});
  }
  return "\n" + table.Text();
}

std::string BodiesText(const v1::CallInfo& call) {
  std::string text = Body("arguments", call.arguments());
  if (call.has_result()) text += Body("result", call.result());
  text += Body("partial answer", call.partial_answer());
  for (const v1::EvidenceInfo& evidence : call.evidence()) {
    Fields fields;
    fields.Add("source", evidence.source());
    fields.Add("reference", evidence.reference());
    fields.Add("reason", evidence.reason());
    fields.Add("time", LocalTime(evidence.time_us()));
    fields.Add("by", evidence.principal_id());
    text += "\nevidence:\n" + fields.Text();
    std::string body = ForTerminal(evidence.body(), LineFeeds::kKeep);
    if (!body.empty() && body.back() != '\n') body += '\n';
    text += body;
  }
  return text;
}

std::string CallText(const v1::CallInfo& call) {
  Fields fields;
  fields.Add("call", call.call_id());
  fields.Add("permit", call.permit_id());
  fields.Add("tool", call.tool());
  fields.Add("key", call.key());
  fields.Add("state", v1::CallState_Name(call.state()) + (call.contradicted() ? ", CONTRADICTED" : ""));
  fields.Add("attention", call.attention());
  fields.Add("first seen", LocalTime(call.first_seen_us()));
  fields.Add("last refusal", call.refusal_code());
  fields.Add("another name of", call.bound_to());
  fields.Add("state's receipt", call.state_receipt_id());
  return fields.Text() + AttemptsText(call) + BodiesText(call);
}

}  // namespace tally::cli
