// tally permit mint | show | list | revoke | close
#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/permit_file.h"
#include "cli/permit_text.h"
#include "cli/text.h"
#include "lib/keys/private_file.h"

namespace tally::cli {
namespace {

int Mint(Session& session, const std::string& file, const std::string& out_file) {
  const auto text = ReadFile(file, kPermitFileBytesMax);
  if (!text.ok()) return session.Usage(std::string(text.status().message()));
  const auto request = ParsePermitFile(*text);
  if (!request.ok()) {
    return session.Usage(absl::StrCat(file, ": ", request.status().message(), ". Nothing was minted."));
  }
  if (!out_file.empty() && std::filesystem::exists(std::filesystem::symlink_status(out_file))) {
    return session.Usage(absl::StrCat(out_file, " exists and is not overwritten. Nothing was minted."));
  }
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  auto answer = client->Mint(*request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure(), LostAnswer::kLookFirst);

  const v1::MintResponse& minted = answer.value();
  Json document = ToJson(minted);
  Fields fields;
  fields.Add("permit", minted.permit_id());
  if (!out_file.empty()) {
    const absl::Status written = keys::WritePrivateFile(out_file, minted.permit_token() + "\n");
    if (!written.ok()) {
      return session.Failed(absl::StrCat(
          "Permit ", minted.permit_id(), " was minted, but its token could not be saved (", written.message(),
          ") and is lost. Revoke it (tally permit revoke ", minted.permit_id(), ") and mint another."));
    }
    document["permit_token"] = nullptr;
    document["permit_token_file"] = out_file;
    fields.Add("token", "in " + out_file);
  } else {
    fields.Add("token", minted.permit_token());
    Tell("The token is shown this once. Hand it to the subject's host, and keep it out of command lines and logs.");
  }
  return session.Done(document, fields.Text());
}

int Show(Session& session, const std::string& id) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::GetPermitRequest request;
  request.set_permit_id(id);
  const auto answer = client->GetPermit(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  return session.Done(ToJson(answer.value()), PermitText(answer.value()));
}

int List(Session& session, const std::string& subject, const PageOptions& pages) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::ListPermitsRequest request;
  request.set_subject(subject);
  v1::ListPermitsResponse all;
  const auto failure = AllPages(
      request, pages, [&](const auto& page) { return client->ListPermits(page, session.call_options()); }, &all,
      [](auto& response) { return response.mutable_permits(); });
  if (failure) return session.Fail(*failure);
  Table table({"PERMIT", "SUBJECT", "STATE", "EXPIRES", "BUDGET", "OPEN"});
  for (const v1::PermitInfo& permit : all.permits()) {
    table.Add({permit.permit_id(), permit.terms().subject(), PermitStateText(permit),
               LocalTime(permit.terms().expires_at_us()), BudgetText(permit.budget(), permit.terms().unit()),
               absl::StrCat(permit.open_calls())});
  }
  return session.Done(ToJson(all), table.Text());
}

int Revoke(Session& session, const std::string& id) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::RevokePermitRequest request;
  request.set_permit_id(id);
  const auto answer = client->Revoke(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  return session.Done(
      ToJson(answer.value()),
      absl::StrCat("Permit ", id, " is revoked: nothing more is granted. ", answer.value().permit().open_calls(),
                   " open call(s) keep slot and hold, and may still be committed.\n"));
}

int Close(Session& session, const std::string& id) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::ClosePermitRequest request;
  request.set_permit_id(id);
  const auto answer = client->Close(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  const v1::PermitInfo& permit = answer.value().permit();
  return session.Done(ToJson(answer.value()),
                      permit.state() == v1::CLOSED
                          ? absl::StrCat("Permit ", id, " is closed; its last receipt has the final counts.\n")
                          : absl::StrCat("Permit ", id, " is closing: nothing more is granted, and it closes when its ",
                                         permit.open_calls(), " open call(s) have ended.\n"));
}

// The commands that name one permit and nothing else.
void AddOfOne(CLI::App& permit, Program& program, const char* name, const char* about,
              int (*act)(Session&, const std::string&)) {
  CLI::App* command = permit.add_subcommand(name, about);
  auto id = std::make_shared<std::string>();
  command->add_option("ID", *id, "the permit")->required();
  command->callback([&program, id, act] { program.run = [&program, id, act] { return act(program.session, *id); }; });
}

}  // namespace

void AddPermit(CLI::App& app, Program& program) {
  CLI::App* permit = app.add_subcommand("permit", "Authority for one subject (role: operator)");
  permit->require_subcommand(1);

  CLI::App* mint = permit->add_subcommand("mint", "Mint a permit from a file; its token is shown once");
  auto file = std::make_shared<std::string>();
  auto out = std::make_shared<std::string>();
  mint->add_option("-f,--file", *file, "TOML or JSON; - is standard input")->required()->type_name("FILE");
  mint->add_option("--out", *out, "write the token to this new file (0600) and do not show it")->type_name("FILE");
  mint->callback(
      [&program, file, out] { program.run = [&program, file, out] { return Mint(program.session, *file, *out); }; });

  AddOfOne(*permit, program, "show", "Terms and what is used of them", Show);

  CLI::App* list = permit->add_subcommand("list", "List permits");
  auto subject = std::make_shared<std::string>();
  list->add_option("--subject", *subject, "only this subject's");
  auto pages = AddPageOptions(*list);
  list->callback([&program, subject, pages] {
    program.run = [&program, subject, pages] { return List(program.session, *subject, *pages); };
  });

  AddOfOne(*permit, program, "revoke", "Grant nothing more, at once", Revoke);
  AddOfOne(*permit, program, "close", "Grant nothing more, and seal the permit when its last call ends", Close);
}

}  // namespace tally::cli
