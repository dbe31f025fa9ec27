#include "cli/authorize_answer.h"

#include "absl/strings/str_cat.h"
#include "cli/exit_codes.h"
#include "cli/text.h"
#include "lib/client/client.h"
#include "lib/client/error_map.h"
#include "lib/keys/encoding.h"

namespace tally::cli {
namespace {

// What the server would say if it were asked again.
void MakePending(std::string_view code, std::string_view message, v1::AuthorizeResponse* response) {
  response->set_disposition(v1::PENDING);
  v1::Refusal* refusal = response->mutable_refusal();
  refusal->set_kind(v1::KIND_DELIVERY_UNCERTAIN);
  refusal->set_code(std::string(code));
  refusal->set_message(std::string(message));
  refusal->set_retry(v1::RETRY_WAIT);
}

v1::AuthorizeResponse AsItStandsNow(const v1::AuthorizeRequest& request, v1::AuthorizeResponse response,
                                    const client::SendDeadline& started) {
  if (response.disposition() == v1::DISPATCH && !client::MaySend(request, response, started)) {
    MakePending("SEND_WINDOW_OVER",
                "The grant came too late: the time to send this attempt is over. Do not send; commit not-sent.",
                &response);
  } else if (!v1::Disposition_IsValid(response.disposition()) ||
             response.disposition() == v1::DISPOSITION_UNSPECIFIED) {
    MakePending("UNKNOWN_DISPOSITION",
                "The server answered in a way this program does not know, so it must not be sent. Update tally.",
                &response);
  }
  return response;
}

int ExitCode(const v1::AuthorizeResponse& response) {
  switch (response.disposition()) {
    case v1::DISPATCH:
      return kDispatch;
    case v1::DENIED:
      return client::FromRefusal(response.refusal()).info().authorize_exit;
    case v1::CAP_EXCEEDED:
      return kCapExceeded;
    case v1::REPLAY:
      return kReplay;
    default:
      return kPending;
  }
}

std::string Heading(const v1::AuthorizeResponse& response) {
  const std::string name = v1::Disposition_Name(response.disposition());
  if (response.has_refusal()) {
    return absl::StrCat(name, " ", response.refusal().code(), ": ", response.refusal().message());
  }
  if (response.disposition() == v1::DISPATCH) {
    return absl::StrCat(name, ": send the call once, within ", DurationText(response.send_within_ms()),
                        " of asking, and commit what became of it.");
  }
  return absl::StrCat(name, ": this was answered before; here is the stored answer. Do not send it again.");
}

std::string ForPeople(const v1::AuthorizeResponse& response) {
  Fields fields;
  fields.Add("call", response.call_id());
  if (response.disposition() == v1::DISPATCH) {
    fields.Add("attempt", absl::StrCat(keys::HexEncode(response.attempt_id()), " (", response.attempt_number(), ")"));
  }
  if (response.state() != v1::CALL_STATE_UNSPECIFIED) fields.Add("state", v1::CallState_Name(response.state()));
  if (response.disposition() == v1::DISPATCH) {
    fields.Add("lease", absl::StrCat(DurationText(response.lease_ms()), ", to ", LocalTime(response.lease_end_us())));
  }
  fields.Add("repeat of", response.repeat_of());
  fields.Add("reference", response.reference());
  for (const v1::Receipt& receipt : response.receipts()) fields.Add("receipt", keys::HexEncode(receipt.receipt_id()));
  std::string text = ForTerminal(Heading(response)) + "\n" + fields.Text();
  if (response.has_result()) {
    absl::StrAppend(&text, "result (", v1::CallState_Name(response.outcome()), "):\n",
                    ForTerminal(response.result(), LineFeeds::kKeep), "\n");
  }
  return text;
}

}  // namespace

AuthorizeAnswer Describe(const v1::AuthorizeRequest& request, const v1::AuthorizeResponse& response,
                         const client::SendDeadline& started) {
  const v1::AuthorizeResponse now = AsItStandsNow(request, response, started);
  Json document = ToJson(now);
  document["key"] = request.key();
  if (now.attempt_id().empty()) document["attempt_id"] = keys::HexEncode(request.attempt_id());
  return {ExitCode(now), std::move(document), ForPeople(now)};
}

}  // namespace tally::cli
