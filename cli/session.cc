#include "cli/session.h"

#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "cli/text.h"

namespace tally::cli {
namespace {

void Write(std::FILE* to, std::string_view text) { std::fwrite(text.data(), 1, text.size(), to); }

std::string Message(const client::Failure& failure, const std::string& server) {
  if (failure.code == client::kTransportCode) {
    return absl::StrCat("no answer from ", server, ": ", failure.message.empty() ? "connection lost" : failure.message);
  }
  return failure.message.empty() ? std::string(failure.code) : failure.message;
}

}  // namespace

void Tell(std::string_view line) { Write(stderr, ForTerminal(line, LineFeeds::kKeep) + "\n"); }

client::CallOptions Session::call_options() const {
  return {.timeout = options.timeout, .try_timeout = std::min(options.timeout, std::chrono::milliseconds(5'000))};
}

client::CallOptions Session::stream_options() const {
  constexpr std::chrono::minutes kLongest{30};
  return {.timeout = std::max<std::chrono::milliseconds>(options.timeout, kLongest),
          .try_timeout = call_options().try_timeout};
}

client::Client* Session::Connect() {
  if (client_) return client_.get();
  if (options.endpoint.server.empty()) {
    exit_code_ = Usage("no server named: give --server unix:PATH or HOST:PORT, or set TALLY_SERVER");
    return nullptr;
  }
  keys::Secret credential;
  if (!options.credential_file.empty()) {
    auto read = client::ReadCredentialFile(options.credential_file);
    if (!read.ok()) {
      exit_code_ = Usage(absl::StrCat("credential: ", read.status().message()));
      return nullptr;
    }
    credential = *std::move(read);
  } else if (options.endpoint.certificate_file.empty()) {
    exit_code_ = Usage("no credential named: give --credential FILE, or set TALLY_CREDENTIAL to the file's name");
    return nullptr;
  }
  auto client = client::Client::Create(options.endpoint, std::move(credential));
  if (!client.ok()) {
    exit_code_ = Usage(std::string(client.status().message()));
    return nullptr;
  }
  client_ = *std::move(client);
  return client_.get();
}

int Session::Done(const Json& document, std::string_view for_people) {
  Write(stdout, json() ? Document(document) : std::string(for_people));
  // What nobody could read was not said: a full disk must not look like success.
  if (std::fflush(stdout) != 0 || std::ferror(stdout)) {
    Tell(absl::StrCat("tally: the command was carried out, but its output could not be written (error ", errno, ")"));
    return kFailed;
  }
  return kDone;
}

int Session::Fail(const client::Failure& failure, LostAnswer lost, const Json& more) {
  const bool again = failure.kind == v1::KIND_UNAVAILABLE || failure.kind == v1::KIND_CONTENDED;
  return FailWith(again ? kUnavailable : kFailed, failure, lost, more);
}

int Session::FailWith(int exit_code, const client::Failure& failure, LostAnswer lost, const Json& more) {
  const std::string message = Message(failure, options.endpoint.server);
  std::string advice(failure.info().advice);
  // The service's own sentences say what was done and what to do next; where it did not speak, or may be asked again,
  // we do.
  const bool spoken =
      !failure.message.empty() && failure.code != client::kTransportCode && failure.retry != v1::RETRY_SAME_KEY;
  if (failure.kind == v1::KIND_UNAVAILABLE && lost == LostAnswer::kLookFirst) {
    advice =
        "It is not known whether it was done. List what there is before doing it again: a second one would be new.";
  }
  Tell(absl::StrCat("tally: ", failure.code, ": ", message, spoken ? "" : "\n       ", spoken ? "" : advice));
  if (json()) {
    Json document = {
        {"kind", failure.info().name},
        {"code", failure.code},
        {"message", message},
        {"advice", advice},
        {"happened", HappenedName(failure.kind)},
        {"retry", lost == LostAnswer::kLookFirst && failure.kind == v1::KIND_UNAVAILABLE ? RetryName(v1::RETRY_NEVER)
                                                                                         : RetryName(failure.retry)}};
    document.update(more);
    Write(stdout, Document(document));
  }
  return exit_code;
}

int Session::TellLocal(int exit_code, std::string_view code, std::string_view message) {
  Tell(absl::StrCat("tally: ", absl::string_view(message.data(), message.size())));
  if (json()) {
    Write(stdout, Document({{"kind", "invalid"}, {"code", code}, {"message", message}, {"retry", "never"}}));
  }
  return exit_code;
}

int Session::Usage(std::string_view message) { return TellLocal(kUsage, "USAGE", message); }

int Session::Failed(std::string_view message) { return TellLocal(kFailed, "FAILED", message); }

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max) {
  const bool standard = path == "-";
  std::unique_ptr<std::FILE, void (*)(std::FILE*)> file(standard ? stdin : std::fopen(path.c_str(), "rbe"),
                                                        [](std::FILE* f) {
                                                          if (f != nullptr && f != stdin) std::fclose(f);
                                                        });
  if (!file) return absl::ErrnoToStatus(errno, absl::StrCat("cannot open ", path));
  std::string text;
  char buffer[16384];
  while (const size_t count = std::fread(buffer, 1, sizeof buffer, file.get())) {
    text.append(buffer, count);
    if (text.size() > bytes_max) {
      return absl::InvalidArgumentError(
          absl::StrCat(standard ? "standard input" : path, " is larger than ", bytes_max, " bytes"));
    }
  }
  if (std::ferror(file.get())) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  return text;
}

absl::StatusOr<std::string> TextOrFile(const std::string& text, size_t bytes_max) {
  if (text.rfind('@', 0) == 0) return ReadFile(text.substr(1), bytes_max);
  return text;
}

}  // namespace tally::cli
