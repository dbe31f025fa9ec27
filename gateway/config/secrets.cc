#include "gateway/config/secrets.h"

#include <sodium.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "gateway/config/read.h"
#include "lib/keys/private_file.h"
#include "lib/keys/text.h"

namespace tally::gateway {
namespace {

using keys::Cat;

constexpr size_t kTokenBytesMax = 4096;
constexpr size_t kHeadersMax = 64;

std::string_view Trimmed(std::string_view text) {
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

// One word that can stand in a header.
absl::StatusOr<keys::Secret> OneToken(std::string_view where, std::string_view text) {
  const std::string_view token = Trimmed(text);
  const bool sound = !token.empty() && token.size() <= kTokenBytesMax &&
                     std::all_of(token.begin(), token.end(), [](char c) { return c > ' ' && c < 0x7f; });
  if (!sound) {
    return absl::InvalidArgumentError(
        Cat(where, " does not hold one token: a single line of printable characters without spaces"));
  }
  return keys::Secret::Copy(token);
}

absl::StatusOr<keys::Secret> TokenFile(const std::string& path) {
  auto content = keys::ReadPrivateFile(path);
  if (!content.ok()) return content.status();
  return OneToken(path, content->Expose());
}

}  // namespace

absl::StatusOr<keys::Secret> ReadCredential(const Config& config) {
  if (config.tallyd.credential_file.empty()) return keys::Secret();
  return TokenFile(config.tallyd.credential_file);
}

absl::StatusOr<keys::Secret> ReadStdioPermitToken(const Config& config) { return ReadPermitToken(config.permit.stdio); }

absl::StatusOr<keys::Secret> ReadPermitToken(const std::string& source) {
  if (source.starts_with("file:")) return TokenFile(source.substr(5));
  const std::string name = source.substr(source.find(':') + 1);
  char* value = std::getenv(name.c_str());
  if (value == nullptr || *value == '\0') {
    return absl::NotFoundError(
        Cat("there is no permit token: the environment has no ", name, ". Mint a permit and put its token there"));
  }
  auto token = OneToken(name, value);
  sodium_memzero(value, std::strlen(value));
  unsetenv(name.c_str());
  return token;
}

absl::StatusOr<std::vector<std::pair<std::string, keys::Secret>>> ReadEnvironmentFiles(const UpstreamConfig& upstream) {
  std::vector<std::pair<std::string, keys::Secret>> variables;
  for (const auto& [name, path] : upstream.env_files) {
    auto content = keys::ReadPrivateFile(path);
    if (!content.ok()) return content.status();
    const std::string_view value = keys::WithoutLineEnd(content->Expose());
    if (value.find('\0') != value.npos) return absl::InvalidArgumentError(Cat(path, " holds a NUL character"));
    variables.emplace_back(name, keys::Secret::Copy(value));
  }
  return variables;
}

absl::StatusOr<std::vector<std::pair<std::string, keys::Secret>>> ReadHeaders(const UpstreamConfig& upstream) {
  std::vector<std::pair<std::string, keys::Secret>> headers;
  if (upstream.headers_file.empty()) return headers;
  auto content = keys::ReadPrivateFile(upstream.headers_file);
  if (!content.ok()) return content.status();
  std::string_view rest = content->Expose();
  for (int line = 1; !rest.empty(); ++line) {
    const auto end = rest.find('\n');
    const std::string_view text = Trimmed(rest.substr(0, end));
    rest = end == rest.npos ? "" : rest.substr(end + 1);
    if (text.empty() || text[0] == '#') continue;
    const auto wrong = [&](std::string_view what) {
      return absl::InvalidArgumentError(Cat(upstream.headers_file, ":", line, ": ", what));
    };
    const auto colon = text.find(':');
    if (colon == text.npos || !IsHeaderName(text.substr(0, colon))) return wrong("must be \"Name: value\"");
    const std::string name(text.substr(0, colon));
    if (IsReservedHeader(name)) return wrong(Cat("the header ", name, " is not for a config to set"));
    const std::string_view value = Trimmed(text.substr(colon + 1));
    for (const char c : value) {
      if ((c < ' ' && c != '\t') || c == 0x7f) return wrong("the value holds a control character");
    }
    if (headers.size() == kHeadersMax) return wrong(Cat("more than ", kHeadersMax, " headers"));
    headers.emplace_back(name, keys::Secret::Copy(value));
  }
  return headers;
}

}  // namespace tally::gateway
