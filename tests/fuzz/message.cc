#include "gateway/mcp/message.h"

#include <optional>
#include <set>
#include <string>

#include "gateway/mcp/raw.h"
#include "gateway/mcp/tool_call.h"
#include "lib/json/parse.h"
#include "tests/fuzz/promise.h"
#include "tests/fuzz/targets.h"
#include "tests/mcp/probe.h"

namespace tally::fuzz {
namespace {

using namespace mcp;  // NOLINT: everything here is about it

void MembersCanBeTakenOutAndPutIn(std::string_view object) {
  const auto parsed = RawObject::Parse(object);
  if (!parsed.ok()) return;
  for (const Member& member : parsed->members()) {
    const std::string without = WithoutMember(object, member.name);
    const auto rest = RawObject::Parse(without);
    Promise(rest.ok() && rest->Find(member.name) == nullptr && rest->members().size() + 1 == parsed->members().size(),
            "a member that was left out is gone, and nothing else");
    const std::string with = WithMember(object, member.name, "[7]");
    const auto changed = RawObject::Parse(with);
    Promise(changed.ok() && changed->Find(member.name) != nullptr && *changed->Find(member.name) == "[7]",
            "a member that was replaced is there");
    Promise(changed->members().size() == parsed->members().size(), "and nothing was added");
  }
  const auto more = RawObject::Parse(WithMember(object, "\xC3\xA9 new", "null"));
  Promise(more.ok() && more->Find("\xC3\xA9 new") != nullptr, "a member that was added is there");
}

// What the permit judges is what is sent: the arguments that were taken from a client are strict JSON, in which no two
// members of an object fold to one.
void ArgumentsAreStrict(const Message& message) {
  const auto call = ParseToolCall(message.params);
  const auto* good = std::get_if<ToolCall>(&call);
  if (good == nullptr || good->arguments.empty()) return;
  Promise(json::Parse(good->arguments).ok() || good->arguments.size() > 256 * 1024,
          "arguments that the gateway takes are JSON that tallyd takes");
}

}  // namespace

void FuzzMessage(std::string_view bytes) {
  Probe(bytes);
  MembersCanBeTakenOutAndPutIn(bytes);
  for (const From from : {From::kClient, From::kUpstream}) {
    const auto parsed = ParseMessage(bytes, from, 1 << 20);
    const auto* message = std::get_if<Message>(&parsed);
    if (message == nullptr) continue;
    if (from == From::kClient) ArgumentsAreStrict(*message);
    if (!message->id.empty()) Promise(IdKey(message->id) == IdKey(message->id), "an id has one key");
  }
}

}  // namespace tally::fuzz
