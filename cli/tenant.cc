// tally tenant create | list
#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/text.h"

namespace tally::cli {
namespace {

int Create(Session& session, const std::string& name) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::CreateTenantRequest request;
  request.set_name(name);
  const auto answer = client->CreateTenant(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure(), LostAnswer::kLookFirst);
  return session.Done(ToJson(answer.value()),
                      absl::StrCat("Tenant ", ForTerminal(answer.value().tenant().name()), " created.\n"));
}

int List(Session& session, const PageOptions& pages) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::ListTenantsResponse all;
  const auto failure = AllPages<v1::ListTenantsRequest>(
      {}, pages, [&](const auto& request) { return client->ListTenants(request, session.call_options()); }, &all,
      [](auto& response) { return response.mutable_tenants(); });
  if (failure) return session.Fail(*failure);
  Table table({"TENANT", "CREATED"});
  for (const v1::Tenant& tenant : all.tenants()) table.Add({tenant.name(), LocalTime(tenant.created_at_us())});
  return session.Done(ToJson(all), table.Text());
}

}  // namespace

void AddTenant(CLI::App& app, Program& program) {
  CLI::App* tenant = app.add_subcommand("tenant", "Isolated customers (role: admin)");
  tenant->require_subcommand(1);

  CLI::App* create = tenant->add_subcommand("create", "Create a tenant");
  auto name = std::make_shared<std::string>();
  create->add_option("NAME", *name, "[a-z0-9][a-z0-9._-]{0,62}")->required();
  create->callback([&program, name] { program.run = [&program, name] { return Create(program.session, *name); }; });

  CLI::App* list = tenant->add_subcommand("list", "List tenants");
  auto pages = AddPageOptions(*list);
  list->callback([&program, pages] { program.run = [&program, pages] { return List(program.session, *pages); }; });
}

}  // namespace tally::cli
