// The gateway's own two tools. Both only read; nothing here resolves anything.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <string>
#include <string_view>

#include "gateway/authority/authority.h"
#include "gateway/mcp/tool_call.h"

namespace tally::gateway {

namespace asio = boost::asio;

// As items of tools/list, raw.
std::string_view CallStatusDescription();
std::string_view PermitStatusDescription();

// A raw tool result each.
asio::awaitable<std::string> CallStatus(Authority& authority, std::string permit_token, mcp::ToolCall call);
asio::awaitable<std::string> PermitStatus(Authority& authority, std::string permit_token);

}  // namespace tally::gateway
