#include "gateway/check_report.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "gateway/mcp/raw.h"
#include "lib/keys/text.h"

namespace tally::gateway {
namespace {

using Json = nlohmann::ordered_json;
using keys::Cat;
using Row = std::array<std::string, 4>;

constexpr int kFailed = 1;
constexpr int kUnavailable = 3;
constexpr int kChanged = 4;
constexpr size_t kNameShownMax = 200;
constexpr size_t kValueShownMax = 1000;

std::string WordOf(Bucket bucket) {
  switch (bucket) {
    case Bucket::kRead:
      return "read";
    case Bucket::kKeyed:
      return "keyed";
    case Bucket::kOnce:
      break;
  }
  return "once";
}

// A name that an upstream made up may hold anything; in quotes it moves no cursor.
std::string Shown(const std::string& name) { return mcp::Quote(name.substr(0, kNameShownMax)); }

void AppendRows(const std::vector<Row>& rows, std::string& out) {
  std::array<size_t, 4> widths{};
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  for (const Row& row : rows) {
    std::string line = " ";
    for (size_t i = 0; i < row.size(); ++i) line += Cat(" ", row[i], std::string(widths[i] - row[i].size() + 1, ' '));
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
}

std::vector<std::string> Uncovered(const CheckReport& report) {
  std::vector<std::string> tools;
  if (!report.permit || !report.permit->error.empty()) return tools;
  for (const CheckedUpstream& upstream : report.upstreams) {
    for (const CheckedTool& tool : upstream.tools) {
      if (!tool.tool.empty() && tool.grant.empty()) tools.push_back(tool.tool);
    }
  }
  return tools;
}

std::string MembersOf(const CheckedTool& tool) {
  std::string members;
  for (const auto& [member, value] : tool.changed) members += Cat(members.empty() ? "" : ", ", member);
  return members;
}

std::string PinOf(const CheckedUpstream& upstream, const CheckedTool& tool) {
  if (tool.pin != "changed") return tool.pin;
  return Cat(upstream.strict ? "REFUSED, changed: " : "changed: ", MembersOf(tool));
}

// For whoever is to accept it.
void AppendChanges(const CheckedTool& tool, std::string& out) {
  for (const auto& [member, value] : tool.changed) {
    const bool cut = value.size() > kValueShownMax;
    out += Cat("  ", tool.tool, ": ", member, value.empty() ? " is gone" : " is now ", value.substr(0, kValueShownMax),
               cut ? "…" : "", "\n");
  }
}

void AppendList(std::string_view title, const std::vector<std::string>& items, std::string& out) {
  if (items.empty()) return;
  out += Cat("  ", title, ":\n");
  for (const std::string& item : items) out += Cat("    ", item, "\n");
}

void AppendUpstream(const CheckedUpstream& upstream, bool permit, std::string& out) {
  if (!upstream.error.empty()) {
    out += Cat(upstream.name, ": ", upstream.error, "\n");
    return;
  }
  out += Cat(upstream.name, ": speaks MCP ", upstream.protocol_version, ", tools: ", upstream.tools.size(), "\n");
  std::vector<Row> rows = {{"TOOL", "BUCKET", "PIN", permit ? "GRANT" : ""}};
  for (const CheckedTool& tool : upstream.tools) {
    if (tool.tool.empty()) continue;
    rows.push_back({tool.tool, WordOf(tool.bucket), PinOf(upstream, tool),
                    !permit              ? ""
                    : tool.grant.empty() ? "not covered"
                                         : tool.grant});
  }
  if (rows.size() > 1) AppendRows(rows, out);
  for (const CheckedTool& tool : upstream.tools) AppendChanges(tool, out);
  AppendList("pinned, and no longer there", upstream.gone, out);
  for (const CheckedTool& tool : upstream.tools) {
    if (tool.tool.empty()) out += Cat("  left out: ", Shown(tool.own), ": ", tool.left_out, "\n");
  }
}

bool AnyChanged(const CheckReport& report) {
  return std::any_of(report.upstreams.begin(), report.upstreams.end(), [](const CheckedUpstream& upstream) {
    return std::any_of(upstream.tools.begin(), upstream.tools.end(),
                       [](const CheckedTool& tool) { return tool.pin == "changed"; });
  });
}

}  // namespace

int ExitCodeOf(const CheckReport& report) {
  const bool upstreams_well = std::all_of(report.upstreams.begin(), report.upstreams.end(),
                                          [](const CheckedUpstream& upstream) { return upstream.error.empty(); });
  if (!upstreams_well || !report.pins_error.empty()) return kFailed;
  if (report.permit && !report.permit->error.empty()) return report.permit->unavailable ? kUnavailable : kFailed;
  return AnyChanged(report) ? kChanged : 0;
}

std::string TableOf(const CheckReport& report) {
  std::string out;
  const bool permit = report.permit && report.permit->error.empty();
  for (const CheckedUpstream& upstream : report.upstreams) AppendUpstream(upstream, permit, out);
  if (!report.pins_error.empty()) out += Cat("pins: ", report.pins_error, "\n");
  if (AnyChanged(report)) out += "Accept what is meant to be so with: tally-gateway accept CONFIG UPSTREAM [TOOL]\n";
  if (report.upstreams.empty()) out += "The configuration has no upstreams.\n";
  if (!report.permit) return out;
  if (!report.permit->error.empty()) return out + Cat("permit: ", report.permit->error, "\n");
  const v1::PermitInfo& info = report.permit->info;
  out += Cat("permit ", info.permit_id(), " of ", Shown(info.terms().subject()), ": ",
             v1::PermitState_Name(info.state()), "\n");
  AppendList("tools that no grant covers", Uncovered(report), out);
  AppendList("grants that match no tool", report.permit->without_tool, out);
  AppendList("grants on upstreams that cannot be had", report.permit->untold, out);
  return out;
}

std::string JsonOf(const CheckReport& report) {
  Json json;
  json["ok"] = ExitCodeOf(report) == 0;
  if (!report.pins_error.empty()) json["pins_error"] = report.pins_error;
  json["upstreams"] = Json::array();
  const bool permit = report.permit && report.permit->error.empty();
  for (const CheckedUpstream& upstream : report.upstreams) {
    Json one;
    one["name"] = upstream.name;
    if (!upstream.error.empty()) one["error"] = upstream.error;
    if (!upstream.protocol_version.empty()) one["protocol_version"] = upstream.protocol_version;
    one["tools"] = Json::array();
    for (const CheckedTool& tool : upstream.tools) {
      Json item;
      item["name"] = tool.own;
      if (tool.tool.empty()) {
        item["left_out"] = tool.left_out;
      } else {
        item["tool"] = tool.tool;
        item["bucket"] = WordOf(tool.bucket);
        item["pin"] = tool.pin;
        if (tool.pin == "changed") {
          item["refused"] = upstream.strict;
          item["changed"] = Json::array();
          for (const auto& [member, value] : tool.changed) item["changed"].push_back(member);
        }
        if (permit) item["grant"] = tool.grant.empty() ? Json(nullptr) : Json(tool.grant);
      }
      one["tools"].push_back(std::move(item));
    }
    one["gone"] = upstream.gone;
    json["upstreams"].push_back(std::move(one));
  }
  if (report.permit) {
    Json one;
    if (!permit) {
      one["error"] = report.permit->error;
    } else {
      one["permit_id"] = report.permit->info.permit_id();
      one["subject"] = report.permit->info.terms().subject();
      one["state"] = v1::PermitState_Name(report.permit->info.state());
      one["not_covered"] = Uncovered(report);
      one["grants_without_tool"] = report.permit->without_tool;
      one["grants_untold"] = report.permit->untold;
    }
    json["permit"] = std::move(one);
  }
  // Names that are no UTF-8 must not end the program.
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace tally::gateway
