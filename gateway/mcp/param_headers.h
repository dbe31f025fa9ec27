// Era 2026-07-28 over HTTP: arguments that a tool's schema marks with x-mcp-header are repeated as Mcp-Param-NAME.
#ifndef TALLY_GATEWAY_MCP_PARAM_HEADERS_H_
#define TALLY_GATEWAY_MCP_PARAM_HEADERS_H_

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "gateway/mcp/message.h"

namespace tally::mcp {

struct ParamHeader {
  std::string header;             // Mcp-Param-Region
  std::vector<std::string> path;  // members from the arguments inward

  friend bool operator==(const ParamHeader&, const ParamHeader&) = default;
};

// Those of one inputSchema, in order. InvalidArgument where a mark breaks the specification's rules: such a tool is not
// to be listed by a client that speaks HTTP to its server.
absl::StatusOr<std::vector<ParamHeader>> ParamHeadersOf(std::string_view raw_input_schema);

// The header's value, encoded, for a call with these arguments; nullopt: no such header is sent.
std::optional<std::string> ParamHeaderValue(const ParamHeader& param, std::string_view raw_arguments);

// kHeaderMismatch if one is missing, should not be there or says other than the arguments. `header` gives the value of
// a header of the request by its name, whatever its case.
std::optional<RpcError> CheckParamHeaders(const std::vector<ParamHeader>& params, std::string_view raw_arguments,
                                          const std::function<std::optional<std::string>(std::string_view)>& header);

}  // namespace tally::mcp

#endif  // TALLY_GATEWAY_MCP_PARAM_HEADERS_H_
