// tally call authorize: may this call be sent? Its exit code is a shell script's gateway.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "absl/strings/str_cat.h"
#include "cli/authorize_answer.h"
#include "cli/call_name.h"
#include "cli/commands.h"
#include "cli/permit_file.h"
#include "cli/text.h"
#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"

namespace tally::cli {
namespace {

struct AuthorizeOptions {
  std::string permit_token_file;
  std::string key;
  std::string tool;
  std::string args = "{}";
  std::string attempt_id;
  std::string lease;
  std::optional<int64_t> amount;
  std::optional<std::string> intent;
  bool repeat = false;
};

absl::StatusOr<v1::AuthorizeRequest> MakeRequest(const AuthorizeOptions& options) {
  v1::AuthorizeRequest request;
  if (options.permit_token_file == "-" && options.args == "@-") {
    return absl::InvalidArgumentError("standard input holds the permit token or the arguments, not both");
  }
  auto token = ReadPermitToken(options.permit_token_file);
  if (!token.ok()) return token.status();
  request.set_permit_token(*std::move(token));
  request.set_key(options.key);
  request.set_tool(options.tool);
  auto args = TextOrFile(options.args, kArgumentsBytesMax);
  if (!args.ok()) return args.status();
  request.set_arguments(*std::move(args));
  if (options.attempt_id.empty()) {
    request.set_attempt_id(keys::RandomBytes(16));
  } else {
    auto attempt_id = ParseAttemptId(options.attempt_id);
    if (!attempt_id.ok()) return attempt_id.status();
    request.set_attempt_id(*std::move(attempt_id));
  }
  if (!options.lease.empty()) {
    const auto lease = ParseDuration(options.lease);
    if (!lease.ok()) return absl::InvalidArgumentError(absl::StrCat("--lease: ", lease.status().message()));
    request.set_lease_ms(*lease);
  }
  if (options.amount) request.set_amount(*options.amount);
  if (options.intent) request.set_intent(*options.intent);
  request.set_repeat(options.repeat);
  return request;
}

int Authorize(Session& session, const AuthorizeOptions& options) {
  const auto request = MakeRequest(options);
  if (!request.ok()) return session.Usage(absl::StrCat(request.status().message(), ". Nothing was asked."));
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();

  // Started before the first try: however long the retries take, they come off the time to send.
  const client::SendDeadline started = client::SendDeadline::Start();
  const auto answer = client->Authorize(*request, started, session.call_options());
  if (!answer.ok()) {
    const client::Failure& failure = answer.failure();
    const std::string attempt_id = keys::HexEncode(request->attempt_id());
    if (failure.retry == v1::RETRY_SAME_KEY) {
      Tell(absl::StrCat("Ask again with: --key ", options.key, " --attempt-id ", attempt_id));
    }
    return session.FailWith(failure.info().authorize_exit, failure, LostAnswer::kAskAgain,
                            {{"disposition", nullptr}, {"key", options.key}, {"attempt_id", attempt_id}});
  }
  const AuthorizeAnswer told = Describe(*request, answer.value(), started);
  const int written = session.Done(told.document, told.for_people);
  return written == kDone ? told.exit_code : written;
}

}  // namespace

void AddCallAuthorize(CLI::App& call, Program& program) {
  CLI::App* command = call.add_subcommand(
      "authorize",
      "May this call be sent? Exit code 0: send it once, now. 10 denied, 11 contended, 12 cap exceeded, 13 pending: do "
      "not send, 14 done before, 3 unavailable: ask again with the same key and attempt id, 1 invalid or unauthorized");
  auto options = std::make_shared<AuthorizeOptions>();
  command
      ->add_option("--permit-token-file", options->permit_token_file,
                   "file with the permit token, - is standard input; or set TALLY_PERMIT_TOKEN")
      ->type_name("FILE");
  command->add_option("--key", options->key, "idempotency key: the name of this one call, 1-255 bytes")->required();
  command->add_option("--tool", options->tool, "the tool's exact name")->required();
  command->add_option("--args", options->args, "the tool's arguments, JSON (default {}); @- is standard input")
      ->type_name("JSON|@FILE");
  command->add_option("--attempt-id", options->attempt_id,
                      "16 random bytes in hex, for this attempt only (made if absent)");
  command->add_option("--lease", options->lease, "how long the attempt may take, such as 60s")->type_name("TIME");
  command->add_option("--amount", options->amount, "minor units, where the grant's cost is the caller's to say");
  command->add_option("--intent", options->intent, "what is to be done, checked beside what the arguments say");
  command->add_flag("--repeat", options->repeat, "the same act is meant a second time");
  command->callback(
      [&program, options] { program.run = [&program, options] { return Authorize(program.session, *options); }; });
}

}  // namespace tally::cli
