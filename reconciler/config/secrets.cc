#include "reconciler/config/secrets.h"

#include <algorithm>
#include <cstdlib>

#include "lib/keys/private_file.h"
#include "lib/keys/text.h"

namespace tally::reconciler {
namespace {

using keys::Cat;

constexpr size_t kValueBytesMax = 8 * 1024;

absl::StatusOr<keys::Secret> HeaderValue(std::string_view where, std::string_view content) {
  const std::string_view value = keys::WithoutLineEnd(content);
  const bool sound = !value.empty() && value.size() <= kValueBytesMax &&
                     std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c < 0x7f; });
  if (!sound) {
    return absl::InvalidArgumentError(Cat(where, " does not hold a header's value: one line of printable ASCII"));
  }
  return keys::Secret::Copy(value);
}

absl::StatusOr<keys::Secret> ReadSource(const std::string& source) {
  if (source.starts_with("file:")) {
    const std::string path = source.substr(5);
    auto content = keys::ReadPrivateFile(path);
    if (!content.ok()) return content.status();
    return HeaderValue(path, content->Expose());
  }
  const std::string name = source.substr(source.find(':') + 1);
  // Left in the environment, since another entry may name it too; programs of exec look-ups do not inherit it.
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return absl::NotFoundError(Cat("the environment has no ", name, ", which a config names"));
  return HeaderValue(Cat("the variable ", name), value);
}

}  // namespace

absl::StatusOr<keys::Secret> ReadCredential(const Config& config) {
  if (config.tallyd.credential_file.empty()) return keys::Secret();
  auto content = keys::ReadPrivateFile(config.tallyd.credential_file);
  if (!content.ok()) return content.status();
  const std::string_view credential = keys::WithoutLineEnd(content->Expose());
  const bool sound = !credential.empty() &&
                     std::all_of(credential.begin(), credential.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!sound) {
    return absl::InvalidArgumentError(
        Cat(config.tallyd.credential_file,
            " does not hold one credential: a single line of printable characters without "
            "spaces"));
  }
  return keys::Secret::Copy(credential);
}

absl::StatusOr<NamedSecrets> ReadSecretHeaders(const HttpConfig& http) {
  NamedSecrets headers;
  for (const auto& [name, source] : http.secret_headers) {
    auto value = ReadSource(source);
    if (!value.ok()) return value.status();
    headers.emplace_back(name, *std::move(value));
  }
  return headers;
}

absl::StatusOr<NamedSecrets> ReadEnvironmentFiles(const ExecConfig& exec) {
  NamedSecrets variables;
  for (const auto& [name, path] : exec.env_files) {
    auto content = keys::ReadPrivateFile(path);
    if (!content.ok()) return content.status();
    const std::string_view value = keys::WithoutLineEnd(content->Expose());
    if (value.find('\0') != value.npos) return absl::InvalidArgumentError(Cat(path, " holds a NUL character"));
    variables.emplace_back(name, keys::Secret::Copy(value));
  }
  return variables;
}

}  // namespace tally::reconciler
