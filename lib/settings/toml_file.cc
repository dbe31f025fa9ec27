#include "lib/settings/toml_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "lib/keys/text.h"

namespace tally::settings {
namespace {

using keys::Cat;

std::string SyntaxError(const toml::parse_error& error, std::string_view text, std::string_view source,
                        std::initializer_list<std::string_view> confidential) {
  const auto line = error.source().begin.line;
  std::string_view rest = text;
  for (uint32_t i = 1; i < line; ++i) {
    const auto end = rest.find('\n');
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  const auto where = Cat(source, ":", line, ": ");
  // Values of several lines may have begun above.
  const auto end = rest.find('\n');
  const std::string_view so_far =
      text.substr(0, text.size() - rest.size() + (end == std::string_view::npos ? rest.size() : end));
  for (const std::string_view name : confidential) {
    if (so_far.find(name) != std::string_view::npos) {
      return Cat(where, "not valid TOML; what is wrong is not shown, since ", name,
                 " is set here or above and may hold a secret. Look for a text that is not in quotes");
    }
  }
  return Cat(where, "not valid TOML: ", error.description());
}

}  // namespace

absl::StatusOr<std::string> ReadSettingsFile(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    const int error = errno;
    return error == ENOENT ? absl::NotFoundError(Cat("there is no ", path))
                           : absl::PermissionDeniedError(Cat(path, " cannot be read: ", std::strerror(error)));
  }
  std::string text(kFileBytesMax + 1, '\0');
  size_t size = 0;
  ssize_t got = 0;
  while (size < text.size() && ((got = read(file, text.data() + size, text.size() - size)) > 0 || errno == EINTR)) {
    if (got > 0) size += static_cast<size_t>(got);
    if (got == 0) break;
  }
  const int error = errno;
  close(file);
  if (got < 0) return absl::UnavailableError(Cat(path, " cannot be read: ", std::strerror(error)));
  text.resize(size);
  return text;
}

absl::StatusOr<toml::table> ParseToml(std::string_view text, std::string_view source,
                                      std::initializer_list<std::string_view> confidential) {
  if (text.size() > kFileBytesMax) return absl::InvalidArgumentError(Cat(source, ": larger than 1 MiB"));
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& error) {
    return absl::InvalidArgumentError(SyntaxError(error, text, source, confidential));
  }
}

void MakeAbsolute(const std::string& folder, std::string& path) {
  if (!path.empty()) path = (std::filesystem::path(folder) / path).lexically_normal().string();
}

}  // namespace tally::settings
