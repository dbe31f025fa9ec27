#include "reconciler/lookup/exec.h"

#include <absl/time/time.h>
#include <unistd.h>

#include "lib/json/canonical.h"
#include "lib/json/parse.h"
#include "lib/keys/text.h"
#include "lib/process/run.h"
#include "reconciler/lookup/make.h"
#include "reconciler/verdict/read.h"

namespace tally::reconciler {
namespace {

using keys::Cat;

json::Value Time(int64_t us) {
  if (us == 0) return json::Value();
  return json::Value(absl::FormatTime("%Y-%m-%d%ET%H:%M:%E6SZ", absl::FromUnixMicros(us), absl::UTCTimeZone()));
}

}  // namespace

std::string ProgramInput(const Case& asked) {
  const v1::ParkedCall& parked = asked.parked;
  const v1::CallInfo& call = parked.call();
  json::Object input;
  input.Set("call_id", json::Value(call.call_id()));
  input.Set("reference", json::Value(asked.reference));
  input.Set("provider_key", json::Value(asked.provider_key));
  input.Set("tool", json::Value(call.tool()));
  input.Set("key", json::Value(call.key()));
  const auto arguments = json::Parse(call.arguments());
  input.Set("arguments", arguments.ok() ? *arguments : json::Value());
  input.Set("unit", json::Value(call.unit()));
  input.Set("amount", json::Value(parked.hold()));
  input.Set("granted_at", Time(parked.granted_at_us()));
  input.Set("send_before", Time(parked.send_before_us()));
  const v1::AttemptInfo* last = call.attempts().empty() ? nullptr : &*call.attempts().rbegin();
  input.Set("attempt", last ? json::Value(int64_t{last->number()}) : json::Value());
  input.Set("sent_at", last ? Time(last->sent_at_us()) : json::Value());
  return Cat(json::Canonical(json::Value(std::move(input))), "\n");
}

absl::StatusOr<std::unique_ptr<LookUp>> ExecLookUp::Make(const ToolConfig& tool, const std::string& folder) {
  if (access(tool.exec.program.c_str(), X_OK) != 0) {
    return absl::NotFoundError(
        Cat(tool.exec.program, ", which looks up ", tool.tool, ", is not there or cannot be run"));
  }
  auto secrets = ReadEnvironmentFiles(tool.exec);
  if (!secrets.ok()) return secrets.status();
  return std::unique_ptr<LookUp>(new ExecLookUp(tool, folder, *std::move(secrets)));
}

Answer ExecLookUp::Ask(const Case& asked) {
  process::Command command;
  command.argv = {tool_.exec.program};
  command.argv.insert(command.argv.end(), tool_.exec.args.begin(), tool_.exec.args.end());
  command.environment = tool_.exec.env;
  for (const auto& [name, value] : secrets_) command.environment[name] = std::string(value.Expose());
  command.directory = folder_;
  auto ended = process::Run(command, ProgramInput(asked), tool_.timeout, kAnswerBytesMax);
  if (!ended.ok()) return Unclear(Cat("the program failed: ", ended.status().message()));
  if (ended->exit_code != 0) {
    const std::string how = ended->exit_code < 0 ? "was ended by a signal" : Cat("ended with ", ended->exit_code);
    // Its words may say why; they are kept with the note, which only operators read, and stand in no log.
    return Unclear(Cat("the program ", how), ended->output.empty() ? ended->errors : ended->output);
  }
  Reading reading = ReadProgramAnswer(tool_.answer.result_form, ended->output);
  return AnswerOf(std::move(reading), std::move(ended->output));
}

}  // namespace tally::reconciler
