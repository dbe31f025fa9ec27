#include "gateway/upstream/open.h"

#include <utility>

#include "gateway/config/secrets.h"
#include "gateway/upstream/http.h"
#include "gateway/upstream/stdio.h"

namespace tally::gateway {

absl::StatusOr<SharedUpstream> OpenUpstream(const asio::any_io_executor& loop, const std::string& name,
                                            const UpstreamConfig& config, int64_t answer_bytes_max, UpstreamSink sink) {
  UpstreamLimits limits;
  limits.message_bytes_max = static_cast<size_t>(answer_bytes_max);
  if (config.url.empty()) {
    process::Command command;
    command.argv.push_back(config.command);
    command.argv.insert(command.argv.end(), config.args.begin(), config.args.end());
    command.environment = config.env;
    const auto secrets = ReadEnvironmentFiles(config);
    if (!secrets.ok()) return secrets.status();
    for (const auto& [variable, value] : *secrets) command.environment[variable] = value.Expose();
    command.directory = config.cwd;
    return StartStdioUpstream(loop, name, command, std::move(sink), limits);
  }
  HttpUpstreamTarget target;
  absl::StatusOr<Url> url = ParseUrl(config.url);
  if (!url.ok()) return url.status();
  target.url = *std::move(url);
  target.url.ca_file = config.ca_file;
  const auto headers = ReadHeaders(config);
  if (!headers.ok()) return headers.status();
  for (const auto& [header, value] : *headers) target.headers[header] = value.Expose();
  return OpenHttpUpstream(loop, name, std::move(target), std::move(sink), limits);
}

ReadPolicy ReadPolicyOf(const UpstreamConfig& config) {
  return {.timeout = config.timeout, .tries = config.read_tries};
}

}  // namespace tally::gateway
