#include <sys/stat.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iostream>

#include "lib/keys/key_encryption_key.h"
#include "lib/keys/private_file.h"
#include "lib/keys/sealed.h"
#include "lib/keys/text.h"
#include "server/ledger/keystore.h"
#include "server/ledger/migrate.h"
#include "server/ledger/principals.h"
#include "server/ops/config.h"
#include "server/tallyd/commands.h"
#include "server/tallyd/database.h"

namespace tally::tallyd {
namespace {

namespace fs = std::filesystem;

constexpr char kCredentialFile[] = "admin.credential";
constexpr char kFileSource[] = "file:";

absl::Status MakeFolder(const fs::path& folder) {
  if (mkdir(folder.c_str(), 0700) == 0 || errno == EEXIST) return absl::OkStatus();
  return absl::FailedPreconditionError(
      keys::Cat(folder.string(), " cannot be made: ", std::strerror(errno), ". Nothing was done."));
}

// Writes `content` unless the file is there already.
absl::Status WriteIfMissing(const fs::path& path, std::string_view content) {
  absl::Status status = keys::WritePrivateFile(path.string(), content);
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

absl::Status EnsureConfig(const fs::path& path) {
  absl::Status status = ops::WriteDefaultConfig(path.string());
  return absl::IsAlreadyExists(status) ? absl::OkStatus() : status;
}

// Where the key comes from elsewhere, whoever runs us has made it.
absl::Status EnsureKeyEncryptionKey(const ops::Config& config) {
  if (!config.key_encryption_key.starts_with(kFileSource)) return absl::OkStatus();
  const keys::Secret text = keys::KeyEncryptionKeyText(keys::Secret::Random(keys::kKeyEncryptionKeySize));
  return WriteIfMissing(config.key_encryption_key.substr(std::strlen(kFileSource)), text.Expose());
}

// The file comes first: a credential that nobody can read again would lock everybody out. A crash in between leaves a
// file that the next init puts into the database.
absl::StatusOr<bool> EnsureAdmin(ledger::Connection& connection, const fs::path& path, bool had_file) {
  absl::Status written = WriteIfMissing(path, keys::Cat(ledger::NewApiKey(), "\n"));
  if (!written.ok()) return written;
  const auto text = keys::ReadPrivateFile(path.string());
  if (!text.ok()) return text.status();
  const std::string_view key = keys::WithoutLineEnd(text->Expose());
  if (!ledger::IsApiKey(key)) {
    return absl::FailedPreconditionError(keys::Cat(path.string(), " holds no API key; move it away and try again"));
  }
  auto made = ledger::CreateFirstAdmin(connection, key);
  if (made.ok() && !*made && !had_file) fs::remove(path);  // written just now, for an admin that is not wanted
  return made;
}

}  // namespace

absl::Status Init(const std::string& data_dir) {
  std::error_code error;
  const fs::path folder = fs::absolute(data_dir, error);
  if (error) return absl::InvalidArgumentError(keys::Cat(data_dir, ": ", error.message()));
  const fs::path credential = folder / kCredentialFile;
  absl::Status status = MakeFolder(folder);
  if (status.ok()) status = EnsureConfig(folder / "tallyd.toml");
  if (!status.ok()) return status;
  const auto config = ops::LoadConfig(folder.string());
  if (!config.ok()) return config.status();
  ops::SetLogLevel(std::max(config->log_level, ops::Severity::kWarning));
  status = EnsureKeyEncryptionKey(*config);
  if (!status.ok()) return status;
  auto kek = ops::ReadKeyEncryptionKey(*config);
  if (!kek.ok()) return kek.status();
  auto sealer = keys::Sealer::FromKey(*std::move(kek));
  if (!sealer.ok()) return sealer.status();

  auto database = Database::Open(*config, folder.string());
  if (!database.ok()) return database.status();
  ledger::Connection connection(database->conninfo());
  const auto migrated = ledger::Migrate(connection);
  if (!migrated.ok()) return migrated.status();
  const auto key_made = ledger::EnsureSigningKey(connection, *sealer, config->issuer);
  if (!key_made.ok()) return key_made.status();
  // Says so now, not at the first serve, if the database belongs to another key-encryption key.
  const auto signer = ledger::LoadSigner(connection, *sealer);
  if (!signer.ok()) return signer.status();
  const bool had_file = fs::exists(credential);
  const auto admin_made = EnsureAdmin(connection, credential, had_file);
  if (!admin_made.ok()) return admin_made.status();
  status = database->Stop();
  if (!status.ok()) return status;
  if (!*admin_made && !*key_made && *migrated == 0) {
    return absl::AlreadyExistsError(keys::Cat(
        folder.string(), " is initialised already. Nothing was changed; run tallyd serve --data-dir ", data_dir));
  }
  std::cout << "Initialised " << folder.string() << ":\n  tallyd.toml       configuration\n"
            << "  kek               key-encryption key: keep a copy apart from the database's backups\n"
            << "  admin.credential  the first admin's API key\n"
            << "Next: tallyd serve --data-dir " << data_dir << "\n";
  return absl::OkStatus();
}

absl::Status Migrate(const std::string& data_dir) {
  const auto config = ops::LoadConfig(data_dir);
  if (!config.ok()) return config.status();
  ops::SetLogLevel(std::max(config->log_level, ops::Severity::kWarning));
  auto database = Database::Open(*config, fs::absolute(data_dir).string());
  if (!database.ok()) return database.status();
  ledger::Connection connection(database->conninfo());
  const auto migrated = ledger::Migrate(connection);
  if (!migrated.ok()) return migrated.status();
  std::cout << (*migrated == 0 ? "The schema is up to date; nothing was changed.\n"
                               : keys::Cat("Carried out ", *migrated, " migrations.\n"));
  return database->Stop();
}

}  // namespace tally::tallyd
