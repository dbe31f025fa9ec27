#include "cli/call_name.h"

#include <cstdlib>

#include "absl/strings/str_cat.h"
#include "lib/keys/encoding.h"
#include "lib/keys/uuid.h"

namespace tally::cli {
namespace {

constexpr size_t kTokenBytesMax = 4096;
constexpr size_t kAttemptIdBytes = 16;
constexpr size_t kReceiptIdBytes = 32;

std::string Trimmed(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

}  // namespace

absl::StatusOr<std::string> ParseAttemptId(const std::string& text) {
  auto bytes = keys::HexDecode(text);
  if (!bytes) bytes = keys::ParseUuid(text);
  if (!bytes || bytes->size() != kAttemptIdBytes) {
    return absl::InvalidArgumentError("--attempt-id must be 16 random bytes as 32 hex digits, or as UUID text");
  }
  return *bytes;
}

absl::StatusOr<std::string> ParseReceiptId(const std::string& text) {
  const auto bytes = keys::HexDecode(text);
  if (!bytes || bytes->size() != kReceiptIdBytes) {
    return absl::InvalidArgumentError("a receipt id is 64 hex digits");
  }
  return *bytes;
}

absl::StatusOr<std::string> ReadPermitToken(const std::string& file) {
  std::string token;
  if (!file.empty()) {
    const auto text = ReadFile(file, kTokenBytesMax);
    if (!text.ok()) return text.status();
    token = Trimmed(*text);
  } else if (const char* environment = std::getenv("TALLY_PERMIT_TOKEN")) {
    token = Trimmed(environment);
  } else {
    return absl::InvalidArgumentError(
        "no permit token: give --permit-token-file FILE (or -), or set TALLY_PERMIT_TOKEN");
  }
  if (token.empty() || token.find_first_of(" \t\r\n") != std::string::npos) {
    return absl::InvalidArgumentError(absl::StrCat(file.empty()  ? "TALLY_PERMIT_TOKEN"
                                                   : file == "-" ? "standard input"
                                                                 : file,
                                                   " does not hold one permit token"));
  }
  return token;
}

std::shared_ptr<CallName> AddCallName(CLI::App& command) {
  auto name = std::make_shared<CallName>();
  command.add_option("ID", name->id, "the call; or name it by permit token and --key");
  command.add_option("--permit-token-file", name->permit_token_file, "file with the permit token; - is standard input")
      ->type_name("FILE");
  command.add_option("--key", name->key, "idempotency key")->type_name("KEY");
  return name;
}

}  // namespace tally::cli
