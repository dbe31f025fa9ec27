#include "gateway/check.h"

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <iostream>
#include <memory>

#include "gateway/authority/authority.h"
#include "gateway/check_report.h"
#include "gateway/config/secrets.h"
#include "gateway/front/link.h"
#include "gateway/mcp/names.h"
#include "gateway/mcp/raw.h"
#include "gateway/pins/pin_file.h"
#include "lib/keys/text.h"

namespace tally::gateway {
namespace {

using keys::Cat;

constexpr int kUsage = 2;
constexpr char kTokenVariable[] = "env:TALLY_PERMIT_TOKEN";

CheckedTool ToolOf(const Link& link, const std::string& raw) {
  CheckedTool tool;
  const auto item = mcp::RawObject::Parse(raw);
  const std::string_view* name = item.ok() ? item->Find("name") : nullptr;
  tool.own = name ? mcp::StringOf(*name).value_or("") : "";
  if (const auto joined = mcp::JoinName(link.name(), tool.own)) {
    tool.tool = *joined;
  } else if (tool.own.empty()) {
    tool.left_out = "it has no name";
  } else if (!mcp::IsToolName(tool.own) && tool.own.size() <= mcp::kToolNameBytesMax) {
    tool.left_out = "its name has characters that no permit can name; [A-Za-z0-9_.-/] are allowed";
  } else {
    tool.left_out =
        Cat("with its upstream's name it is over ", mcp::kToolNameBytesMax, " bytes long, which no permit can name");
  }
  if (link.config().ForTool(tool.own).keyed) tool.bucket = Bucket::kKeyed;
  return tool;
}

void ComparePin(const PinTable& table, const std::string& raw, const std::string& upstream, CheckedTool& tool) {
  const auto pinned = table.find(upstream);
  if (pinned == table.end() || !pinned->second.contains(tool.own)) {
    tool.pin = "new";
    return;
  }
  const auto item = mcp::RawObject::Parse(raw);
  for (const std::string& member : Differences(pinned->second.at(tool.own).shape, ShapeOf(raw))) {
    const std::string_view* now = item.ok() ? item->Find(member) : nullptr;
    tool.changed.emplace_back(member, now ? std::string(*now) : "");
  }
  tool.pin = tool.changed.empty() ? "same" : "changed";
}

void FindGone(const PinTable& table, CheckedUpstream& found) {
  const auto pinned = table.find(found.name);
  if (pinned == table.end()) return;
  for (const auto& [own, pin] : pinned->second) {
    const bool there = std::any_of(found.tools.begin(), found.tools.end(),
                                   [&own = own](const CheckedTool& tool) { return tool.own == own; });
    if (!there) found.gone.push_back(own);
  }
}

asio::awaitable<void> CheckUpstream(SharedLink link, const PinTable& pins, CheckedUpstream& found) {
  const auto upstream = co_await link->Ready();
  if (!upstream.ok()) {
    found.error = Cat("cannot be had: ", upstream.status().message());
    co_return;
  }
  found.protocol_version = link->handshake()->protocol_version;
  const auto tools = co_await link->List(ListKind::kTools);
  if (!tools.ok()) {
    found.error = Cat("its tools cannot be listed: ", tools.status().message());
    co_return;
  }
  const Pin pin = link->config().pin;
  found.strict = pin == Pin::kStrict;
  for (const std::string& raw : **tools) {
    CheckedTool tool = ToolOf(*link, raw);
    tool.pin = "off";
    if (pin != Pin::kOff && !tool.tool.empty()) ComparePin(pins, raw, found.name, tool);
    found.tools.push_back(std::move(tool));
  }
  if (pin != Pin::kOff) FindGone(pins, found);
}

asio::awaitable<void> LookUp(Authority& authority, std::string token, CheckedPermit& found) {
  auto permit = co_await authority.GetPermit(std::move(token));
  if (!permit.ok()) {
    const client::Failure& failure = permit.failure();
    found.unavailable = failure.kind == v1::KIND_UNAVAILABLE;
    found.error = found.unavailable ? Cat("tallyd cannot be asked (", failure.code, ": ", failure.message,
                                          "). Nothing was compared with the permit; try again.")
                                    : Cat("it cannot be looked up (", failure.code, ": ", failure.message,
                                          "). The token, or tallyd.credential_file, is not accepted.");
    co_return;
  }
  found.info = *permit.value();
  if (found.info.state() != v1::ACTIVE) {
    found.error = Cat(found.info.permit_id(), " is ", v1::PermitState_Name(found.info.state()), ": it grants nothing.");
  }
}

// Whether a grant may name a tool of this upstream.
bool MayBeOn(std::string_view pattern, std::string_view upstream) {
  const std::string begin = Cat(upstream, mcp::kNameSeparator);
  if (!pattern.ends_with('*')) return pattern.starts_with(begin);
  pattern.remove_suffix(1);
  return pattern.starts_with(begin) || std::string_view(begin).starts_with(pattern);
}

bool Matches(std::string_view pattern, std::string_view tool) {
  if (!pattern.ends_with('*')) return pattern == tool;
  pattern.remove_suffix(1);
  return tool.starts_with(pattern);
}

void Compare(CheckReport& report) {
  CheckedPermit& permit = *report.permit;
  for (CheckedUpstream& upstream : report.upstreams) {
    for (CheckedTool& tool : upstream.tools) {
      const v1::GrantUsage* grant = tool.tool.empty() ? nullptr : GrantFor(permit.info, tool.tool);
      if (grant == nullptr) continue;
      tool.grant = grant->terms().tool();
      if (tool.bucket == Bucket::kOnce && grant->terms().effect() == v1::READ) tool.bucket = Bucket::kRead;
    }
  }
  for (const v1::GrantUsage& grant : permit.info.grants()) {
    const std::string& pattern = grant.terms().tool();
    bool matches = false;
    bool untold = false;
    for (const CheckedUpstream& upstream : report.upstreams) {
      untold = untold || (!upstream.error.empty() && MayBeOn(pattern, upstream.name));
      for (const CheckedTool& tool : upstream.tools) matches = matches || Matches(pattern, tool.tool);
    }
    if (!matches) (untold ? permit.untold : permit.without_tool).push_back(pattern);
  }
}

// Nullopt: none was given.
absl::StatusOr<std::optional<keys::Secret>> PermitToken(const std::string& source) {
  const bool given = !source.empty();
  auto token = ReadPermitToken(given ? source : kTokenVariable);
  if (token.ok()) return std::optional<keys::Secret>(*std::move(token));
  if (!given && absl::IsNotFound(token.status())) return std::optional<keys::Secret>();
  return token.status();
}

absl::StatusOr<std::unique_ptr<Authority>> AuthorityOf(const Config& config, asio::any_io_executor loop) {
  auto credential = ReadCredential(config);
  if (!credential.ok()) return credential.status();
  AuthorityOptions options;
  options.endpoint = {config.tallyd.server, config.tallyd.ca_file, config.tallyd.certificate_file,
                      config.tallyd.key_file};
  options.call = {config.tallyd.timeout, config.tallyd.try_timeout};
  return Authority::Create(std::move(options), *std::move(credential), std::move(loop));
}

}  // namespace

int Check(const Config& config, const CheckOptions& options) {
  auto token = PermitToken(options.permit);
  if (!token.ok()) {
    std::cerr << "tally-gateway: " << token.status().message() << ". Nothing was asked.\n";
    return kUsage;
  }
  asio::io_context io(1);
  CheckReport report;
  auto pins = PinFile(config.pin_file).Read();
  if (!pins.ok()) report.pins_error = std::string(pins.status().message());
  const PinTable table = pins.ok() ? *std::move(pins) : PinTable();
  std::unique_ptr<Authority> authority;
  if (*token) {
    report.permit.emplace();
    auto created = AuthorityOf(config, io.get_executor());
    if (created.ok()) {
      authority = *std::move(created);
      asio::co_spawn(io, LookUp(*authority, std::string((*token)->Expose()), *report.permit), asio::detached);
    } else {
      report.permit->error = std::string(created.status().message());
    }
  }
  report.upstreams.resize(config.upstreams.size());
  auto found = report.upstreams.begin();
  for (const auto& [name, upstream] : config.upstreams) {
    found->name = name;
    const auto link =
        std::make_shared<Link>(io.get_executor(), name, upstream, config.limits.answer_bytes_max, std::string("{}"));
    asio::co_spawn(
        io,
        [link, &table, &one = *found]() -> asio::awaitable<void> {
          co_await CheckUpstream(link, table, one);
          link->Close();
        },
        asio::detached);
    ++found;
  }
  io.run();
  authority = nullptr;
  if (report.permit && report.permit->error.empty()) Compare(report);
  std::cout << (options.json ? JsonOf(report) : TableOf(report));
  return ExitCodeOf(report);
}

}  // namespace tally::gateway
