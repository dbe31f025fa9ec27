// tally parked list | show | resolve
#include <CLI/CLI.hpp>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "cli/call_name.h"
#include "cli/commands.h"
#include "cli/evidence.h"
#include "cli/pages.h"
#include "cli/parked_text.h"
#include "cli/text.h"
#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "lib/receipt/payload.h"

namespace tally::cli {
namespace {

constexpr char kStaleCode[] = "STALE_RESOLUTION";

int List(Session& session, const std::string& permit, bool attention_only, const PageOptions& pages) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::ListParkedRequest request;
  request.set_permit_id(permit);
  request.set_attention_only(attention_only);
  v1::ListParkedResponse all;
  const auto failure = AllPages(
      request, pages, [&](const auto& page) { return client->ListParked(page, session.call_options()); }, &all,
      [](auto& response) { return response.mutable_parked(); });
  if (failure) return session.Fail(*failure);
  return session.Done(ToJson(all), ParkedListText(all));
}

// A call id, or the id of its CALL_UNCERTAIN receipt.
int Show(Session& session, const std::string& id) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::ListParkedRequest request;
  if (const auto receipt_id = ParseReceiptId(id); receipt_id.ok()) {
    request.set_uncertain_receipt_id(*receipt_id);
  } else {
    request.set_call_id(id);
  }
  request.set_page_size(1);
  const auto answer = client->ListParked(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  if (answer.value().parked().empty()) {
    return session.Failed(absl::StrCat(id, " names no parked call: it may have been resolved (tally call show)."));
  }
  return session.Done(ToJson(answer.value().parked(0)), ParkedText(answer.value().parked(0)));
}

// The attempt that a CALL_UNCERTAIN receipt of the call stands for, whether or not it is parked still: the same
// resolution given again gets its original receipt.
std::optional<std::string> AttemptOf(const v1::CallInfo& call, const std::string& receipt_id) {
  for (const v1::Receipt& receipt : call.receipts()) {
    if (receipt.receipt_id() != receipt_id) continue;
    const auto payload = receipt::Parse(receipt.payload());
    if (!payload.ok()) return std::nullopt;
    for (const v1::AttemptInfo& attempt : call.attempts()) {
      if (keys::AttemptIdHash(attempt.attempt_id()).view() == payload->attempt_id_hash()) return attempt.attempt_id();
    }
  }
  return std::nullopt;
}

std::string ResolvedText(const v1::ResolveResponse& response, const EvidenceOptions& options) {
  std::string text;
  if (options.verdict == "happened") {
    text = "Resolved: it was carried out. The hold is settled, and the key replays.\n";
  } else if (options.verdict == "not-happened") {
    text = "Resolved: it was not carried out. Hold and slot are given back, and the same key may try again.\n";
  } else {
    text = "Noted: it cannot be told. The call stays parked, hold and slot kept, and waits for a person.\n";
  }
  Fields fields;
  fields.Add("state", v1::CallState_Name(response.state()));
  for (const v1::Receipt& receipt : response.receipts()) fields.Add("receipt", keys::HexEncode(receipt.receipt_id()));
  return text + fields.Text();
}

// Another has resolved it meanwhile, or its next attempt is what is parked now.
void TellWhyStale(const Session& session, client::Client& client, const std::string& receipt_id) {
  v1::ListParkedRequest find;
  find.set_uncertain_receipt_id(receipt_id);
  const auto found = client.ListParked(find, session.call_options());
  if (found.ok() && !found.value().parked().empty()) {
    Tell("       " + StaleText(found.value().parked(0).call(), receipt_id));
  }
}

int Resolve(Session& session, const std::string& id, const EvidenceOptions& options) {
  const auto receipt_id = ParseReceiptId(id);
  if (!receipt_id.ok()) {
    return session.Usage(absl::StrCat("RECEIPT_ID names the CALL_UNCERTAIN receipt that is answered: ",
                                      receipt_id.status().message(), ". Nothing was resolved."));
  }
  auto evidence = ReadEvidence(options);
  if (!evidence.ok()) return session.Usage(absl::StrCat(evidence.status().message(), ". Nothing was resolved."));
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();

  v1::ListParkedRequest find;
  find.set_uncertain_receipt_id(*receipt_id);
  const auto found = client->ListParked(find, session.call_options());
  if (!found.ok()) return session.Fail(found.failure());
  const v1::CallInfo call = found.value().parked().empty() ? v1::CallInfo() : found.value().parked(0).call();
  const std::optional<std::string> attempt_id = AttemptOf(call, *receipt_id);
  if (!attempt_id) {
    return session.Failed(absl::StrCat(id,
                                       " is not the CALL_UNCERTAIN receipt of a call. Nothing was resolved. "
                                       "See tally parked list."));
  }
  v1::ResolveRequest request;
  request.set_call_id(call.call_id());
  request.set_attempt_id(*attempt_id);
  request.set_supersedes(*receipt_id);
  request.set_verdict(VerdictOf(options));
  *request.mutable_evidence() = *std::move(evidence);
  const auto answer = client->Resolve(request, session.call_options());
  if (!answer.ok()) {
    const int exit_code = session.Fail(answer.failure());
    if (answer.failure().code == kStaleCode) TellWhyStale(session, *client, *receipt_id);
    return exit_code;
  }
  Json document = ToJson(answer.value());
  document["call_id"] = request.call_id();
  return session.Done(document, ResolvedText(answer.value(), options));
}

}  // namespace

void AddParked(CLI::App& app, Program& program) {
  CLI::App* parked = app.add_subcommand("parked", "Calls whose outcome is not known (role: operator, reconciler)");
  parked->require_subcommand(1);

  CLI::App* list = parked->add_subcommand("list", "List parked calls, and those for which a person is called");
  auto permit = std::make_shared<std::string>();
  auto attention = std::make_shared<bool>(false);
  list->add_option("--permit", *permit, "only this permit's")->type_name("ID");
  list->add_flag("--attention", *attention, "only those that wait for a person");
  auto pages = AddPageOptions(*list);
  list->callback([&program, permit, attention, pages] {
    program.run = [&program, permit, attention, pages] { return List(program.session, *permit, *attention, *pages); };
  });

  CLI::App* show = parked->add_subcommand("show", "What is known of one, with its exact arguments");
  auto shown = std::make_shared<std::string>();
  show->add_option("ID", *shown, "the call, or its CALL_UNCERTAIN receipt")->required();
  show->callback([&program, shown] { program.run = [&program, shown] { return Show(program.session, *shown); }; });

  CLI::App* resolve = parked->add_subcommand("resolve", "Close one with evidence, or hand it to a person");
  auto receipt = std::make_shared<std::string>();
  resolve->add_option("RECEIPT_ID", *receipt, "the CALL_UNCERTAIN receipt that is answered")->required();
  auto evidence = AddEvidenceOptions(*resolve, {"happened", "not-happened", "cannot-tell"});
  resolve->callback([&program, receipt, evidence] {
    program.run = [&program, receipt, evidence] { return Resolve(program.session, *receipt, *evidence); };
  });
}

}  // namespace tally::cli
