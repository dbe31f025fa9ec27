#include "reconciler/config/read.h"

#include <algorithm>
#include <set>

#include "lib/keys/text.h"

namespace tally::reconciler {
namespace {

using keys::Cat;
using settings::TomlReader;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

constexpr size_t kProvidersMax = 64;
constexpr size_t kToolsMax = 1024;
constexpr milliseconds kGiveUpMax = hours(24 * 30);

bool IsProviderName(std::string_view name) {
  return !name.empty() && name.size() <= 64 &&
         name.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-") == name.npos;
}

bool IsToolPattern(std::string_view tool) {
  if (tool.ends_with('*')) tool.remove_suffix(1);
  return !tool.empty() && tool.size() <= 128 &&
         tool.find_first_not_of("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_.-/") == tool.npos;
}

void ReadTallyd(TomlReader& reader, Config::Tallyd& tallyd) {
  reader.Text("tallyd.server", tallyd.server);
  reader.Text("tallyd.credential_file", tallyd.credential_file);
  reader.Text("tallyd.ca_file", tallyd.ca_file);
  reader.Text("tallyd.certificate_file", tallyd.certificate_file);
  reader.Text("tallyd.key_file", tallyd.key_file);
  reader.Duration("tallyd.timeout", tallyd.timeout, milliseconds(100), minutes(2));
  const std::string_view server = tallyd.server;
  const auto colon = server.rfind(':');
  if (server == "unix:" || colon == server.npos || colon == 0 || colon + 1 == server.size() ||
      server.find("//") != server.npos) {
    reader.Complain("tallyd.server", R"(must be "unix:PATH" or "HOST:PORT")");
  }
  if (tallyd.certificate_file.empty() != tallyd.key_file.empty()) {
    reader.Complain(tallyd.key_file.empty() ? "tallyd.certificate_file" : "tallyd.key_file",
                    "stands alone: tallyd.certificate_file and tallyd.key_file are given together");
  }
  if (tallyd.credential_file.empty() && tallyd.certificate_file.empty()) {
    reader.Complain("tallyd.credential_file", "is empty and there is no client certificate: tallyd would serve nobody");
  }
}

void ReadReconciler(TomlReader& reader, Config::Reconciler& own) {
  reader.Whole("reconciler.workers", own.workers, 1, 256);
  reader.Duration("reconciler.poll", own.poll, milliseconds(100), minutes(10));
  reader.Duration("reconciler.claim", own.claim, seconds(2), hours(1));
  reader.Duration("reconciler.backoff_min", own.backoff_min, milliseconds(100), hours(24));
  reader.Duration("reconciler.backoff_max", own.backoff_max, milliseconds(100), hours(24));
  reader.Duration("reconciler.absent_spacing", own.absent_spacing, milliseconds(500), hours(24));
  reader.Duration("reconciler.give_up_after", own.give_up_after, seconds(1), kGiveUpMax);
  reader.Duration("reconciler.look_after_escalation", own.look_after_escalation, seconds(0), hours(24 * 90));
  reader.Text("reconciler.metrics", own.metrics);
  if (own.backoff_min > own.backoff_max) {
    reader.Complain("reconciler.backoff_max", "must not be below reconciler.backoff_min");
  }
}

// [tool.answer] says how its answer is read.
bool IsRead(Kind kind) { return kind == Kind::kHttp || kind == Kind::kMcp; }

void CheckSections(TomlReader& reader, Kind kind) {
  for (const Kind other : {Kind::kHttp, Kind::kExec, Kind::kMcp, Kind::kReplay}) {
    const std::string name(NameOf(other));
    if (kind == other && !reader.Has(name)) reader.Complain(name, Cat("must be written: [tool.", name, "]"));
    if (kind != other && reader.Has(name)) reader.Complain(name, Cat("belongs to look_up = \"", name, "\""));
  }
}

void CheckAcross(TomlReader& reader, Config& config) {
  std::set<std::string> names;
  for (const ProviderConfig& provider : config.providers) {
    if (!names.insert(provider.name).second) reader.Complain("provider", Cat("has two named ", provider.name));
  }
  std::set<std::string> tools;
  for (ToolConfig& tool : config.tools) {
    const auto complain = [&](std::string_view what) { reader.Complain("tool", Cat("\"", tool.tool, "\" ", what)); };
    if (!tools.insert(tool.tool).second) complain("has two entries");
    if (tool.give_up_after.count() == 0) tool.give_up_after = config.reconciler.give_up_after;
    if (tool.kind == Kind::kHuman) continue;
    const ProviderConfig* provider = config.Provider(tool.provider);
    if (provider == nullptr) {
      complain("names a provider that there is no [[provider]] of");
    } else if (tool.kind == Kind::kHttp && !tool.http.url.IsHttps() && !provider->allow_http) {
      complain("is asked without TLS: its url must be https://, or its provider have allow_http = true");
    }
    if (tool.timeout * 2 > config.reconciler.claim) {
      complain("has a timeout above half of reconciler.claim: its answer could come when the call is another's");
    }
    if (tool.absent_is_final_after >= tool.give_up_after) {
      complain("would be given up before an absence is final: give_up_after must be above absent_is_final_after");
    }
  }
}

}  // namespace

std::string_view NameOf(Kind kind) {
  switch (kind) {
    case Kind::kHttp:
      return "http";
    case Kind::kExec:
      return "exec";
    case Kind::kMcp:
      return "mcp";
    case Kind::kReplay:
      return "replay";
    case Kind::kHuman:
      break;
  }
  return "human";
}

void ReadProvider(TomlReader& reader, ProviderConfig& provider) {
  reader.Text("name", provider.name);
  if (!IsProviderName(provider.name)) reader.Complain("name", "must be 1 to 64 of a-z, 0-9 and '-'");
  reader.Whole("concurrency", provider.concurrency, 1, 256);
  reader.Number("per_second", provider.per_second, 0.01, 10'000);
  reader.Flag("allow_private", provider.allow_private);
  reader.Flag("allow_http", provider.allow_http);
  reader.Text("ca_file", provider.ca_file);
}

void ReadTool(TomlReader& reader, ToolConfig& tool) {
  reader.Text("tool", tool.tool);
  if (!IsToolPattern(tool.tool)) {
    reader.Complain("tool", "must be a tool's name, [A-Za-z0-9_.-/]{1,128}, or a prefix of one followed by '*'");
  }
  reader.Choice<Kind>("look_up", tool.kind,
                      {{"human", Kind::kHuman},
                       {"http", Kind::kHttp},
                       {"exec", Kind::kExec},
                       {"mcp", Kind::kMcp},
                       {"replay", Kind::kReplay}});
  if (!reader.Has("look_up")) reader.Complain("look_up", "must be written");
  reader.Text("provider", tool.provider);
  reader.Duration("timeout", tool.timeout, milliseconds(100), minutes(5));
  reader.Duration("absent_is_final_after", tool.absent_is_final_after, seconds(1), kGiveUpMax);
  reader.Duration("give_up_after", tool.give_up_after, seconds(1), kGiveUpMax);
  reader.Table("http", [&](TomlReader& table) { ReadHttp(table, tool.http); });
  reader.Table("exec", [&](TomlReader& table) { ReadExec(table, tool.exec); });
  reader.Table("mcp", [&](TomlReader& table) { ReadMcp(table, tool.mcp); });
  reader.Table("replay", [&](TomlReader& table) { ReadReplay(table, tool.replay); });
  reader.Table("answer", [&](TomlReader& table) {
    if (IsRead(tool.kind)) return ReadAnswer(table, tool.answer);
    table.Choice<ResultForm>("result_form", tool.answer.result_form,
                             {{"tool_result", ResultForm::kToolResult}, {"raw", ResultForm::kRaw}});
  });
  CheckSections(reader, tool.kind);
  if (IsRead(tool.kind) && !reader.Has("answer")) {
    reader.Complain("answer", "must be written: [tool.answer], how the provider's answer is to be read");
  }
  if (tool.kind == Kind::kReplay) {
    if (tool.tool.ends_with('*')) {
      reader.Complain("tool", "must be one tool by its exact name: what is sent again is not left to a prefix");
    }
    for (const char* name : {"absent_is_final_after", "answer"}) {
      if (reader.Has(name)) reader.Complain(name, "has no meaning for a replay, whose answer is the call's own");
    }
  }
  const bool asks = tool.kind != Kind::kHuman;
  if (asks && tool.kind != Kind::kReplay && !reader.Has("absent_is_final_after")) {
    reader.Complain(
        "absent_is_final_after",
        "must be written: how long a call that was sent may still turn up at the provider, in queues and in a "
        "search that lags. Before that, \"no such record\" says nothing");
  }
  if (!asks) {
    for (const char* name : {"provider", "timeout", "absent_is_final_after", "give_up_after", "answer"}) {
      if (reader.Has(name)) reader.Complain(name, "has no meaning where a person is called at once");
    }
  }
}

void ReadTop(TomlReader& reader, Config& config) {
  reader.Choice<std::string>("log_level", config.log_level,
                             {{"debug", "debug"}, {"info", "info"}, {"warning", "warning"}, {"error", "error"}});
  ReadTallyd(reader, config.tallyd);
  ReadReconciler(reader, config.reconciler);
  reader.Text("audit.path", config.audit.path);
  if (config.audit.path.empty()) reader.Complain("audit.path", "must name a file");
  reader.Whole("audit.file_bytes_max", config.audit.file_bytes_max, 64 << 10, int64_t{1} << 40);
  reader.Whole("audit.files_max", config.audit.files_max, 1, 1000);
  reader.TableArray("provider", kProvidersMax,
                    [&](TomlReader& table) { ReadProvider(table, config.providers.emplace_back()); });
  reader.TableArray("tool", kToolsMax, [&](TomlReader& table) { ReadTool(table, config.tools.emplace_back()); });
  CheckAcross(reader, config);
  config.unlisted.give_up_after = config.reconciler.give_up_after;
}

}  // namespace tally::reconciler
