// tally call commit | extend | show | list | correct
#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/call_name.h"
#include "cli/call_text.h"
#include "cli/commands.h"
#include "cli/evidence.h"
#include "cli/pages.h"
#include "cli/parked_text.h"
#include "cli/permit_file.h"
#include "cli/text.h"
#include "lib/keys/encoding.h"

namespace tally::cli {
namespace {

constexpr size_t kPartialBytesMax = 1 << 20;

std::string ReceiptLines(const google::protobuf::RepeatedPtrField<v1::Receipt>& receipts) {
  Fields fields;
  for (const v1::Receipt& receipt : receipts) fields.Add("receipt", keys::HexEncode(receipt.receipt_id()));
  return fields.Text();
}

// A refusal that was an answer: told as an error, with what else the answer says.
template <typename Response>
int Refused(Session& session, const Response& response) {
  Json more = ToJson(response);
  for (const char* told : {"kind", "code", "message", "retry"}) more.erase(told);
  return session.FailWith(kFailed, client::FromRefusal(response.refusal()), LostAnswer::kAskAgain, more);
}

struct CommitOptions {
  std::shared_ptr<CallName> call;
  std::string attempt_id;
  std::string outcome;
  std::optional<std::string> result;
  std::optional<int64_t> amount;
  bool no_effect = false;
  bool undelivered = false;
  std::string sent_at;
  std::string partial_answer;
};

absl::StatusOr<v1::CommitRequest> MakeCommit(const CommitOptions& options) {
  v1::CommitRequest request;
  if (const absl::Status named = NameCall(*options.call, &request); !named.ok()) return named;
  auto attempt_id = ParseAttemptId(options.attempt_id);
  if (!attempt_id.ok()) return attempt_id.status();
  request.set_attempt_id(*std::move(attempt_id));
  request.set_outcome(options.outcome == "succeeded"    ? v1::OUTCOME_SUCCEEDED
                      : options.outcome == "tool-error" ? v1::OUTCOME_TOOL_ERROR
                      : options.outcome == "not-sent"   ? v1::OUTCOME_NOT_SENT
                                                        : v1::OUTCOME_UNCERTAIN);
  if (options.result) {
    auto result = TextOrFile(*options.result, kResultBytesMax);
    if (!result.ok()) return result.status();
    request.set_result(*std::move(result));
  }
  if (!options.partial_answer.empty()) {
    auto partial = TextOrFile(options.partial_answer, kPartialBytesMax);
    if (!partial.ok()) return partial.status();
    request.set_partial_answer(*std::move(partial));
  }
  if (!options.sent_at.empty()) {
    absl::Time time;
    std::string error;
    if (!absl::ParseTime(absl::RFC3339_full, options.sent_at, &time, &error)) {
      return absl::InvalidArgumentError("--sent-at must be a time such as 2027-01-31T12:00:00Z");
    }
    request.set_sent_at_us(absl::ToUnixMicros(time));
  }
  if (options.amount) request.set_amount(*options.amount);
  request.set_no_effect(options.no_effect);
  request.set_undelivered(options.undelivered);
  return request;
}

std::string CommitText(const v1::CommitResponse& response) {
  Fields fields;
  fields.Add("call", response.call_id());
  if (response.state() != v1::CALL_STATE_UNSPECIFIED) fields.Add("state", v1::CallState_Name(response.state()));
  if (response.attempt_state() != response.state()) {
    fields.Add("attempt's state", v1::CallState_Name(response.attempt_state()));
  }
  for (const v1::Receipt& receipt : response.receipts()) fields.Add("receipt", keys::HexEncode(receipt.receipt_id()));
  return "Recorded.\n" + fields.Text();
}

int Commit(Session& session, const CommitOptions& options) {
  const auto request = MakeCommit(options);
  if (!request.ok()) return session.Usage(absl::StrCat(request.status().message(), ". Nothing was recorded."));
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  const auto answer = client->Commit(*request, session.call_options());
  const Json attempt = {{"attempt_id", keys::HexEncode(request->attempt_id())}};
  if (!answer.ok()) return session.Fail(answer.failure(), LostAnswer::kAskAgain, attempt);
  if (answer.value().has_refusal()) return Refused(session, answer.value());
  if (request->has_result() && !answer.value().result_kept()) {
    Tell("The result is larger than 1 MiB: its hash is kept, the body is not.");
  }
  Json document = ToJson(answer.value());
  document.update(attempt);
  return session.Done(document, CommitText(answer.value()));
}

int Extend(Session& session, const CallName& call, const std::string& attempt, const std::string& lease) {
  v1::ExtendRequest request;
  if (const absl::Status named = NameCall(call, &request); !named.ok()) {
    return session.Usage(std::string(named.message()));
  }
  const auto attempt_id = ParseAttemptId(attempt);
  if (!attempt_id.ok()) return session.Usage(std::string(attempt_id.status().message()));
  request.set_attempt_id(*attempt_id);
  const auto ms = ParseDuration(lease);
  if (!ms.ok()) return session.Usage(absl::StrCat("--lease: ", ms.status().message()));
  request.set_lease_ms(*ms);
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  const auto answer = client->Extend(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  if (answer.value().has_refusal()) return Refused(session, answer.value());
  return session.Done(ToJson(answer.value()),
                      absl::StrCat("The lease runs to ", LocalTime(answer.value().lease_end_us()),
                                   ". The time to send is not moved by this.\n"));
}

int Show(Session& session, const CallName& call) {
  v1::GetCallRequest request;
  if (const absl::Status named = NameCall(call, &request); !named.ok()) {
    return session.Usage(std::string(named.message()));
  }
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  const auto answer = client->GetCall(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  return session.Done(ToJson(answer.value()), CallText(answer.value()));
}

int List(Session& session, const std::string& permit, const std::string& state, const PageOptions& pages) {
  v1::ListCallsRequest request;
  request.set_permit_id(permit);
  if (!state.empty()) {
    v1::CallState wanted;
    if (!v1::CallState_Parse(state, &wanted)) {
      return session.Usage(
          "--state is one of REFUSED, AUTHORIZED, UNCERTAIN, SUCCEEDED, TOOL_ERROR, RELEASED, NOT_HAPPENED");
    }
    request.set_state(wanted);
  }
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::ListCallsResponse all;
  const auto failure = AllPages(
      request, pages, [&](const auto& page) { return client->ListCalls(page, session.call_options()); }, &all,
      [](auto& response) { return response.mutable_calls(); });
  if (failure) return session.Fail(*failure);
  Table table({"CALL", "TOOL", "KEY", "STATE", "ATTEMPTS", "FIRST SEEN", "ATTENTION"});
  for (const v1::CallInfo& call : all.calls()) {
    table.Add({call.call_id(), call.tool(), call.key(), v1::CallState_Name(call.state()),
               absl::StrCat(call.attempts_size()), LocalTime(call.first_seen_us()), call.attention()});
  }
  return session.Done(ToJson(all), table.Text());
}

int Correct(Session& session, const std::string& id, const std::string& attempt, const std::string& supersedes,
            const EvidenceOptions& options) {
  v1::CorrectRequest request;
  request.set_call_id(id);
  const auto attempt_id = ParseAttemptId(attempt);
  if (!attempt_id.ok()) return session.Usage(std::string(attempt_id.status().message()));
  request.set_attempt_id(*attempt_id);
  const auto receipt_id = ParseReceiptId(supersedes);
  if (!receipt_id.ok()) return session.Usage(absl::StrCat("--supersedes: ", receipt_id.status().message()));
  request.set_supersedes(*receipt_id);
  request.set_verdict(VerdictOf(options));
  auto evidence = ReadEvidence(options);
  if (!evidence.ok()) return session.Usage(absl::StrCat(evidence.status().message(), ". Nothing was changed."));
  *request.mutable_evidence() = *std::move(evidence);
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  const auto answer = client->Correct(request, session.call_options());
  if (!answer.ok()) {
    const int exit_code = session.Fail(answer.failure());
    if (answer.failure().code != "STALE_RESOLUTION") return exit_code;
    v1::GetCallRequest present;
    present.set_call_id(id);
    const auto call = client->GetCall(present, session.call_options());
    if (call.ok()) Tell("       " + StaleText(call.value(), *receipt_id));
    return exit_code;
  }
  return session.Done(
      ToJson(answer.value()),
      absl::StrCat("Corrected: the call is now ", v1::CallState_Name(answer.value().state()),
                   ". What was recorded before stays, superseded.\n", ReceiptLines(answer.value().receipts())));
}

void AddCommit(CLI::App& call, Program& program) {
  CLI::App* command = call.add_subcommand("commit", "Report what became of an attempt; may be repeated");
  auto options = std::make_shared<CommitOptions>();
  options->call = AddCallName(*command);
  command->add_option("--attempt-id", options->attempt_id, "as authorize gave it")->required();
  command->add_option("--outcome", options->outcome, "not-sent only if not one byte was written; in doubt uncertain")
      ->check(CLI::IsMember({"succeeded", "tool-error", "not-sent", "uncertain"}))
      ->required();
  command->add_option("--result", options->result, "the tool's answer; @- is standard input")->type_name("JSON|@FILE");
  command->add_option("--amount", options->amount, "what it cost, where the grant settles by report; minor units");
  command->add_flag("--no-effect", options->no_effect, "tool-error: the error says that nothing was done");
  command->add_flag("--undelivered", options->undelivered, "nobody took the answer");
  command->add_option("--sent-at", options->sent_at, "when the first byte was written, RFC 3339")->type_name("TIME");
  command->add_option("--partial-answer", options->partial_answer, "uncertain: what came of an answer")
      ->type_name("TEXT|@FILE");
  command->callback(
      [&program, options] { program.run = [&program, options] { return Commit(program.session, *options); }; });
}

void AddExtend(CLI::App& call, Program& program) {
  CLI::App* command = call.add_subcommand("extend", "Move the end of an attempt's lease, never the time to send");
  auto name = AddCallName(*command);
  auto attempt = std::make_shared<std::string>();
  auto lease = std::make_shared<std::string>();
  command->add_option("--attempt-id", *attempt, "as authorize gave it")->required();
  command->add_option("--lease", *lease, "from now, such as 60s")->type_name("TIME")->required();
  command->callback([&program, name, attempt, lease] {
    program.run = [&program, name, attempt, lease] { return Extend(program.session, *name, *attempt, *lease); };
  });
}

void AddCorrect(CLI::App& call, Program& program) {
  CLI::App* command = call.add_subcommand("correct", "Put a wrong verdict right, with evidence (role: operator)");
  auto id = std::make_shared<std::string>();
  auto attempt = std::make_shared<std::string>();
  auto supersedes = std::make_shared<std::string>();
  command->add_option("ID", *id, "the call")->required();
  command->add_option("--attempt-id", *attempt, "the attempt whose end was wrong")->required();
  command->add_option("--supersedes", *supersedes, "the receipt that ended it (call show: the state's receipt)")
      ->type_name("RECEIPT_ID")
      ->required();
  auto evidence = AddEvidenceOptions(*command, {"happened", "not-happened"});
  command->callback([&program, id, attempt, supersedes, evidence] {
    program.run = [&program, id, attempt, supersedes, evidence] {
      return Correct(program.session, *id, *attempt, *supersedes, *evidence);
    };
  });
}

}  // namespace

void AddCall(CLI::App& app, Program& program) {
  CLI::App* call = app.add_subcommand("call", "Calls and their attempts (role: gateway; show, list: operator too)");
  call->require_subcommand(1);
  AddCallAuthorize(*call, program);
  AddCommit(*call, program);
  AddExtend(*call, program);

  CLI::App* show = call->add_subcommand("show", "A call with its attempts, answer and evidence");
  auto name = AddCallName(*show);
  show->callback([&program, name] { program.run = [&program, name] { return Show(program.session, *name); }; });

  CLI::App* list = call->add_subcommand("list", "List calls");
  auto permit = std::make_shared<std::string>();
  auto state = std::make_shared<std::string>();
  list->add_option("--permit", *permit, "only this permit's")->type_name("ID");
  list->add_option("--state", *state, "only in this state, such as UNCERTAIN");
  auto pages = AddPageOptions(*list);
  list->callback([&program, permit, state, pages] {
    program.run = [&program, permit, state, pages] { return List(program.session, *permit, *state, *pages); };
  });

  AddCorrect(*call, program);
  AddCallEvidence(*call, program);
}

}  // namespace tally::cli
