#include "gateway/check.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <iostream>
#include <memory>

#include "gateway/front/link.h"
#include "gateway/mcp/names.h"
#include "gateway/mcp/raw.h"

namespace tally::gateway {
namespace {

asio::awaitable<bool> CheckUpstream(SharedLink link) {
  const auto upstream = co_await link->Ready();
  if (!upstream.ok()) {
    std::cout << link->name() << ": cannot be had: " << upstream.status().message() << "\n";
    co_return false;
  }
  std::cout << link->name() << ": speaks MCP " << link->handshake()->protocol_version << "\n";
  const auto tools = co_await link->List(ListKind::kTools);
  if (!tools.ok()) {
    std::cout << "  its tools cannot be listed: " << tools.status().message() << "\n";
    co_return false;
  }
  for (const std::string& tool : **tools) {
    const auto item = mcp::RawObject::Parse(tool);
    const std::string_view* raw = item.ok() ? item->Find("name") : nullptr;
    const std::string name = raw ? mcp::StringOf(*raw).value_or("") : "";
    const auto joined = mcp::JoinName(link->name(), name);
    const bool keyed = link->config().ForTool(name).keyed;
    std::cout << "  " << (joined ? *joined : name + " (left out: no name that a permit could say)") << ": sent once"
              << (keyed ? ", with a key of the provider's" : "") << "\n";
  }
  co_return true;
}

}  // namespace

int Check(const Config& config) {
  asio::io_context io(1);
  bool good = true;
  for (const auto& [name, upstream] : config.upstreams) {
    const auto link =
        std::make_shared<Link>(io.get_executor(), name, upstream, config.limits.answer_bytes_max, std::string("{}"));
    asio::co_spawn(
        io,
        [link, &good]() -> asio::awaitable<void> {
          const bool one = co_await CheckUpstream(link);
          good = good && one;
          link->Close();
        },
        asio::detached);
    io.run();
    io.restart();
  }
  return good ? 0 : 1;
}

}  // namespace tally::gateway
