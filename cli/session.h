// What every command shares: the options before the noun, the connection, and how an end is told to people and scripts.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "cli/exit_codes.h"
#include "cli/json_form.h"
#include "lib/client/client.h"

namespace CLI {
class App;
}

namespace tally::cli {

struct Options {
  client::Endpoint endpoint;
  std::string credential_file;
  bool json = false;
  std::chrono::milliseconds timeout{10'000};
};

// How a command words what it cannot know.
enum class LostAnswer {
  kAskAgain,  // the same request again is safe and tells
  kLookFirst  // a second one would do it twice
};

class Session {
 public:
  Options options;

  bool json() const { return options.json; }
  client::CallOptions call_options() const;
  // For streams: a long chain may take longer than any one answer, as long as its receipts keep coming.
  client::CallOptions stream_options() const;

  // The client, or null after the reason has been told; the command then returns `exit_code()`.
  client::Client* Connect();

  // Ends. Each tells what there is to tell and returns the exit code. On stdout stands the document and nothing else:
  // with -o json also an error's: kind, code, message, happened, retry, and `more` of the command's own.
  int Done(const Json& document, std::string_view for_people);
  int Fail(const client::Failure& failure, LostAnswer lost = LostAnswer::kAskAgain, const Json& more = Json::object());
  // As Fail, with the exit code already decided.
  int FailWith(int exit_code, const client::Failure& failure, LostAnswer lost, const Json& more);
  int Usage(std::string_view message);   // nothing was done
  int Failed(std::string_view message);  // the message says what was done

  int exit_code() const { return exit_code_; }

 private:
  int TellLocal(int exit_code, std::string_view code, std::string_view message);

  std::unique_ptr<client::Client> client_;
  int exit_code_ = kDone;
};

// To stderr, made harmless for a terminal.
void Tell(std::string_view line);

// `text`, or the contents of the file that `@FILE` names (`@-`: stdin).
absl::StatusOr<std::string> TextOrFile(const std::string& text, size_t bytes_max);
absl::StatusOr<std::string> ReadFile(const std::string& path, size_t bytes_max);  // `-`: stdin

}  // namespace tally::cli
