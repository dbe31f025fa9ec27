// tally key list | export
#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/export_files.h"
#include "cli/text.h"
#include "lib/keys/encoding.h"

namespace tally::cli {
namespace {

int List(Session& session) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  const auto answer = client->Keys({}, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  Table table({"KEY ID", "ISSUER", "FROM", "TO"});
  for (const v1::PublishedKey& key : answer.value().keys()) {
    table.Add({keys::HexEncode(key.key_id()), key.name(), LocalTime(key.not_before_us()),
               key.not_after_us() == 0 ? "in use" : LocalTime(key.not_after_us())});
  }
  return session.Done(ToJson(answer.value()), table.Text());
}

int Export(Session& session, const std::string& folder) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  const auto answer = client->Keys({}, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  const auto known = KnownKeys(answer.value());
  if (!known.ok()) return session.Failed(std::string(known.status().message()));
  if (const absl::Status made = MakeFolder(folder); !made.ok()) return session.Failed(std::string(made.message()));
  const auto files = WriteKeys(folder, *known);
  if (!files.ok()) return session.Failed(std::string(files.status().message()));
  std::string text = absl::StrCat(known->size(),
                                  " public key(s). Compare their ids over another channel before you trust "
                                  "them.\n");
  for (const std::string& file : *files) absl::StrAppend(&text, file, "\n");
  return session.Done({{"files", *files}}, text);
}

}  // namespace

void AddKey(CLI::App& app, Program& program) {
  CLI::App* key = app.add_subcommand("key", "Public keys that receipts verify with (role: auditor, admin)");
  key->require_subcommand(1);
  CLI::App* list = key->add_subcommand("list", "List them");
  list->callback([&program] { program.run = [&program] { return List(program.session); }; });
  CLI::App* write = key->add_subcommand("export", "Write keys.json and keys.pem");
  auto folder = std::make_shared<std::string>(".");
  write->add_option("--out", *folder, "folder (default: the current one)")->type_name("DIR");
  write->callback(
      [&program, folder] { program.run = [&program, folder] { return Export(program.session, *folder); }; });
}

}  // namespace tally::cli
