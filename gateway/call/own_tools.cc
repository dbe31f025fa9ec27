#include "gateway/call/own_tools.h"

#include <absl/strings/ascii.h>
#include <absl/strings/str_cat.h>

#include <nlohmann/json.hpp>

#include "gateway/mcp/names.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/refusal.h"

namespace tally::gateway {
namespace {

using Json = nlohmann::ordered_json;

std::string ResultOf(const Json& json, bool error = false) {
  Json result;
  result["content"] =
      Json::array({Json{{"type", "text"}, {"text", json.is_string() ? json.get<std::string>() : json.dump(2)}}});
  result["isError"] = error;
  return result.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string FailureResult(const client::Failure& failure) {
  mcp::Refusal refusal = mcp::MakeRefusal(failure.kind, failure.code);
  refusal.detail = failure.message;
  return mcp::RefusalResult(refusal);
}

Json LimitOf(const v1::Limit& limit) {
  if (limit.has_at_most()) return limit.at_most();
  return limit.has_unlimited() ? Json("unlimited") : Json(nullptr);
}

// What a model should make of a state: one sentence each.
std::string_view Meaning(const v1::CallInfo& call) {
  switch (call.state()) {
    case v1::AUTHORIZED:
      return "under way: it may have been sent; wait";
    case v1::UNCERTAIN:
      return "nobody knows yet whether it was carried out; it is being looked into; do not call the tool again";
    case v1::SUCCEEDED:
      return "it was carried out";
    case v1::TOOL_ERROR:
      return "the tool answered with an error, or a read was never answered";
    case v1::RELEASED:
      return "it was certainly not sent; the same key may be tried again";
    case v1::NOT_HAPPENED:
      return "it was looked into and was not carried out; the same key may be tried again";
    case v1::REFUSED:
      return "it was refused and never sent";
    default:
      return "unknown";
  }
}

Json CallJson(const v1::CallInfo& call) {
  Json json;
  json["call_id"] = call.call_id();
  json["key"] = call.key();
  json["tool"] = call.tool();
  json["state"] = v1::CallState_Name(call.state());
  json["means"] = Meaning(call);
  json["attempts"] = call.attempts_size();
  if (!call.refusal_code().empty()) json["refusal_code"] = call.refusal_code();
  if (!call.bound_to().empty()) json["same_call_as"] = call.bound_to();
  return json;
}

std::string StringArgument(std::string_view arguments, std::string_view name) {
  const auto object = mcp::RawObject::Parse(arguments);
  const std::string_view* value = object.ok() ? object->Find(name) : nullptr;
  return value ? mcp::StringOf(*value).value_or("") : "";
}

}  // namespace

std::string_view CallStatusDescription() {
  return R"({"name":"tally__call_status","title":"Status of an earlier tool call","description":"Tells what is known of an earlier tool call that this gateway reported as delivery_uncertain, pending or refused: whether it was carried out, was not, or is still unknown. Reads only. Give call_id or key, as they stood in the earlier answer's _meta.","inputSchema":{"type":"object","properties":{"call_id":{"type":"string","description":"The call's id"},"key":{"type":"string","description":"The call's idempotency key"}},"additionalProperties":false},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}})";
}

std::string_view PermitStatusDescription() {
  return R"({"name":"tally__permit_status","title":"What this permit allows","description":"Shows the permit under which you call tools: its state, the tools it grants, and what is left of calls and money. Reads only.","inputSchema":{"type":"object","properties":{},"additionalProperties":false},"annotations":{"readOnlyHint":true,"destructiveHint":false,"idempotentHint":true,"openWorldHint":false}})";
}

asio::awaitable<std::string> CallStatus(Authority& authority, std::string permit_token, mcp::ToolCall call) {
  const std::string call_id = StringArgument(call.arguments, "call_id");
  const std::string key = StringArgument(call.arguments, "key");
  if (call_id.empty() == key.empty()) {
    co_return ResultOf("invalid: give either call_id or key. Nothing was done.", true);
  }
  v1::GetCallRequest request;
  if (!key.empty()) {
    request.set_permit_token(permit_token);
    request.set_key(key);
  } else {
    request.set_call_id(call_id);
  }
  constexpr std::string_view kNone = "invalid: there is no such call under this permit. Nothing was done.";
  const auto answer = co_await authority.GetCall(std::move(request));
  if (!answer.ok() && answer.failure().code == "NOT_FOUND") co_return ResultOf(kNone, true);
  if (!answer.ok()) co_return FailureResult(answer.failure());
  const auto permit = co_await authority.GetPermit(std::move(permit_token));
  if (!permit.ok()) co_return FailureResult(permit.failure());
  // The gateway may read the calls of all permits that it serves; an agent may read those of its own.
  if (answer.value().permit_id() != permit.value()->permit_id()) {
    co_return ResultOf(kNone, true);
  }
  co_return ResultOf(CallJson(answer.value()));
}

asio::awaitable<std::string> PermitStatus(Authority& authority, std::string permit_token) {
  authority.ForgetPermit(permit_token);
  const auto permit = co_await authority.GetPermit(std::move(permit_token));
  if (!permit.ok()) co_return FailureResult(permit.failure());
  const v1::PermitInfo& info = *permit.value();
  Json json;
  json["permit_id"] = info.permit_id();
  json["state"] = v1::PermitState_Name(info.state());
  json["unit"] = info.terms().unit();
  json["budget"] =
      Json{{"limit", LimitOf(info.budget().limit())}, {"held", info.budget().held()}, {"spent", info.budget().spent()}};
  json["open_calls"] = info.open_calls();
  json["grants"] = Json::array();
  for (const v1::GrantUsage& grant : info.grants()) {
    json["grants"].push_back(
        Json{{"tool", grant.terms().tool()},
             {"calls", Json{{"limit", LimitOf(grant.cap().limit())}, {"used", grant.cap().used()}}},
             {"budget", Json{{"limit", LimitOf(grant.budget().limit())},
                             {"held", grant.budget().held()},
                             {"spent", grant.budget().spent()}}}});
  }
  co_return ResultOf(json);
}

}  // namespace tally::gateway
