// tally principal create | list | disable
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <CLI/CLI.hpp>
#include <filesystem>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/pages.h"
#include "cli/text.h"
#include "lib/keys/private_file.h"

namespace tally::cli {
namespace {

constexpr size_t kCertificateBytesMax = 1 << 20;

const std::pair<const char*, v1::Role> kRoles[] = {{"admin", v1::ADMIN},
                                                   {"operator", v1::OPERATOR},
                                                   {"gateway", v1::GATEWAY},
                                                   {"reconciler", v1::RECONCILER},
                                                   {"auditor", v1::AUDITOR}};

std::string RoleWord(v1::Role role) {
  for (const auto& [word, known] : kRoles) {
    if (known == role) return word;
  }
  return "unknown";
}

// SHA-256 of the certificate's DER form; empty if the PEM holds none.
std::string CertificateDigest(const std::string& pem) {
  std::unique_ptr<BIO, int (*)(BIO*)> bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())), BIO_free);
  std::unique_ptr<X509, void (*)(X509*)> certificate(PEM_read_bio_X509(bio.get(), nullptr, nullptr, nullptr),
                                                     X509_free);
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  if (!certificate || X509_digest(certificate.get(), EVP_sha256(), digest, &size) != 1) return "";
  return std::string(reinterpret_cast<const char*>(digest), size);
}

struct CreateOptions {
  std::string role;
  std::string tenant;
  std::string name;
  std::string certificate_file;
  std::string out_file;
};

int Create(Session& session, const CreateOptions& options) {
  v1::CreatePrincipalRequest request;
  request.set_tenant(options.tenant);
  request.set_name(options.name);
  for (const auto& [word, role] : kRoles) {
    if (options.role == word) request.set_role(role);
  }
  if (request.role() != v1::ADMIN && options.tenant.empty()) {
    return session.Usage("--tenant is needed: only an admin belongs to no tenant. Nothing was done.");
  }
  if (!options.certificate_file.empty()) {
    const auto pem = ReadFile(options.certificate_file, kCertificateBytesMax);
    if (!pem.ok()) return session.Usage(std::string(pem.status().message()));
    request.set_certificate_sha256(CertificateDigest(*pem));
    if (request.certificate_sha256().empty()) {
      return session.Usage(absl::StrCat(options.certificate_file, " holds no PEM certificate. Nothing was done."));
    }
  }
  if (!options.out_file.empty() && std::filesystem::exists(std::filesystem::symlink_status(options.out_file))) {
    return session.Usage(absl::StrCat(options.out_file, " exists and is not overwritten. Nothing was done."));
  }
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  auto answer = client->CreatePrincipal(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure(), LostAnswer::kLookFirst);

  v1::CreatePrincipalResponse& created = answer.value();
  const v1::PrincipalInfo& principal = created.principal();
  Json document = ToJson(principal);
  document["credential"] = created.credential().empty() ? Json(nullptr) : Json(created.credential());
  document["receipt_ids"] = ToJson(created)["receipt_ids"];
  Fields fields;
  fields.Add("principal", principal.principal_id());
  fields.Add("role", RoleWord(principal.role()));
  fields.Add("tenant", principal.tenant().empty() ? "all" : principal.tenant());
  if (!options.out_file.empty() && !created.credential().empty()) {
    const absl::Status written = keys::WritePrivateFile(options.out_file, created.credential() + "\n");
    if (!written.ok()) {
      return session.Failed(absl::StrCat("Principal ", principal.principal_id(),
                                         " was created, but its credential could not be saved (", written.message(),
                                         ") and is lost. Disable it (tally principal disable ",
                                         principal.principal_id(), ") and create another."));
    }
    document["credential"] = nullptr;
    document["credential_file"] = options.out_file;
    fields.Add("credential", "in " + options.out_file);
  } else if (!created.credential().empty()) {
    fields.Add("credential", created.credential());
    Tell("The credential is shown this once. Keep it in a file that only its user may read.");
  }
  return session.Done(document, fields.Text());
}

int List(Session& session, const std::string& tenant, const PageOptions& pages) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::ListPrincipalsRequest request;
  request.set_tenant(tenant);
  v1::ListPrincipalsResponse all;
  const auto failure = AllPages(
      request, pages, [&](const auto& page) { return client->ListPrincipals(page, session.call_options()); }, &all,
      [](auto& response) { return response.mutable_principals(); });
  if (failure) return session.Fail(*failure);
  Table table({"PRINCIPAL", "TENANT", "ROLE", "NAME", "BY", "CREATED", "DISABLED"});
  for (const v1::PrincipalInfo& p : all.principals()) {
    table.Add({p.principal_id(), p.tenant().empty() ? "all" : p.tenant(), RoleWord(p.role()), p.name(),
               p.by_certificate() ? "certificate" : "API key", LocalTime(p.created_at_us()),
               p.disabled() ? LocalTime(p.disabled_at_us()) + (p.hard() ? " (hard)" : "") : "-"});
  }
  return session.Done(ToJson(all), table.Text());
}

int Disable(Session& session, const std::string& id, bool hard) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::DisablePrincipalRequest request;
  request.set_principal_id(id);
  request.set_hard(hard);
  const auto answer = client->DisablePrincipal(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  return session.Done(
      ToJson(answer.value()),
      absl::StrCat(
          "Principal ", id, " is disabled. ",
          hard ? "Nothing is taken from it any more; its open calls park when their leases end.\n"
               : "It is granted nothing more; commits of its open attempts are taken until their leases end.\n"));
}

}  // namespace

void AddPrincipal(CLI::App& app, Program& program) {
  CLI::App* principal = app.add_subcommand("principal", "Who may call the service (role: admin)");
  principal->require_subcommand(1);

  CLI::App* create = principal->add_subcommand("create", "Create a principal; its credential is shown once");
  auto options = std::make_shared<CreateOptions>();
  create->add_option("--role", options->role, "admin, operator, gateway, reconciler or auditor")
      ->check(CLI::IsMember({"admin", "operator", "gateway", "reconciler", "auditor"}))
      ->required();
  create->add_option("--tenant", options->tenant, "the tenant it belongs to; none for an admin of all");
  create->add_option("--name", options->name, "for people, up to 128 bytes");
  create->add_option("--certificate", options->certificate_file, "PEM client certificate that stands for an API key")
      ->type_name("FILE");
  create->add_option("--out", options->out_file, "write the credential to this new file (0600) and do not show it")
      ->type_name("FILE");
  create->callback(
      [&program, options] { program.run = [&program, options] { return Create(program.session, *options); }; });

  CLI::App* list = principal->add_subcommand("list", "List principals");
  auto tenant = std::make_shared<std::string>();
  list->add_option("--tenant", *tenant, "only this tenant's");
  auto pages = AddPageOptions(*list);
  list->callback([&program, tenant, pages] {
    program.run = [&program, tenant, pages] { return List(program.session, *tenant, *pages); };
  });

  CLI::App* disable = principal->add_subcommand("disable", "Take a principal's right to ask for anything new");
  auto id = std::make_shared<std::string>();
  auto hard = std::make_shared<bool>(false);
  disable->add_option("ID", *id, "the principal")->required();
  disable->add_flag("--hard", *hard, "refuse its commits as well");
  disable->callback(
      [&program, id, hard] { program.run = [&program, id, hard] { return Disable(program.session, *id, *hard); }; });
}

}  // namespace tally::cli
