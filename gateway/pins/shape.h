// What a tool looks like to a model: the members of its description that a pin holds.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace tally::gateway {

// By member (title, description, inputSchema, outputSchema, annotations), the SHA-256 of its value, hex; what the tool
// does not have is not there. Values that differ in white space, in the order of members or in how a number is written
// are the same.
using ToolShape = std::map<std::string, std::string>;

// `raw_tool`: an item of tools/list.
ToolShape ShapeOf(std::string_view raw_tool);

// The names of the members in which the two differ.
std::vector<std::string> Differences(const ToolShape& one, const ToolShape& other);

// What an upstream's list shows, by the tools' own names. A name that is listed twice has two.
using SeenTools = std::multimap<std::string, ToolShape>;
// Tools that no permit could name are left out.
SeenTools SeenIn(std::string_view upstream, const std::vector<std::string>& raw_tools);

}  // namespace tally::gateway
