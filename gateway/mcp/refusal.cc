#include "gateway/mcp/refusal.h"

#include <utility>

#include "gateway/mcp/protocol.h"
#include "gateway/mcp/refusal_words.h"

namespace tally::mcp {
namespace {

// Codes of error_style = "jsonrpc". The first four are the contract's; all lie in JSON-RPC's range for servers and
// outside what MCP reserves (-32020 to -32099) or has used (-32002).
struct StyleCode {
  v1::Kind kind;
  int64_t code;
};
constexpr StyleCode kStyleCodes[] = {
    {v1::KIND_CONTENDED, -32005},    {v1::KIND_DENIED, -32003},       {v1::KIND_CAP_EXCEEDED, -32004},
    {v1::KIND_READ_FAILED, -32007},  {v1::KIND_UNAUTHORIZED, -32008}, {v1::KIND_UNAVAILABLE, -32009},
    {v1::KIND_ALREADY_DONE, -32010}, {v1::KIND_CONFLICT, -32011},     {v1::KIND_INVALID, code::kInvalidParams},
};
constexpr int64_t kUncertainCode = -32006;

int64_t CodeOf(v1::Kind kind) {
  for (const StyleCode& style : kStyleCodes) {
    if (style.kind == kind) return style.code;
  }
  return kUncertainCode;
}

void AppendMember(std::string_view name, std::string_view raw, std::string* object) {
  object->append(object->empty() ? "{" : ",").append(Quote(name)).append(":").append(raw);
}

void AppendText(std::string_view name, std::string_view text, std::string* object) {
  if (!text.empty()) AppendMember(name, Quote(text), object);
}

void AppendList(std::string_view name, const std::vector<std::string>& texts, std::string* object) {
  if (texts.empty()) return;
  std::string list = "[";
  for (const std::string& text : texts) list.append(list.size() > 1 ? "," : "").append(Quote(text));
  AppendMember(name, list + "]", object);
}

// {"dev.tallystick/error": {…}}
std::string MachineData(const Refusal& refusal) {
  std::string data;
  AppendText("kind", KindWord(refusal.kind), &data);
  AppendText("code", refusal.code, &data);
  AppendText("happened", HappenedWord(refusal.happened), &data);
  AppendText("retry", RetryWord(refusal.retry), &data);
  AppendText("message", refusal.detail.empty() ? refusal.what : refusal.detail, &data);
  AppendText("call_id", refusal.call_id, &data);
  AppendText("key", refusal.key, &data);
  AppendText("reference", refusal.reference, &data);
  AppendList("receipt_ids", refusal.receipt_ids, &data);
  std::string holder;
  AppendMember(meta::kError, data + "}", &holder);
  return holder + "}";
}

// The authority addresses some of its sentences to gateways ("ask again with the same key", "commit NOT_SENT"): those
// are for machines. What a model can use is why arguments or a request were refused, and what the gateway itself met.
bool ShowsDetail(const Refusal& refusal) {
  if (refusal.kind == v1::KIND_DENIED || refusal.kind == v1::KIND_INVALID) return true;
  return refusal.kind == v1::KIND_UNAVAILABLE &&
         (refusal.code == gateway_code::kNotSent || refusal.code == gateway_code::kUpstreamDown ||
          refusal.code == gateway_code::kAuthorityDown || refusal.code == gateway_code::kJournalDown);
}

std::string WholeText(const Refusal& refusal) {
  std::string text = FirstLine(refusal);
  if (!refusal.code.empty()) text.append("\nCode: ").append(refusal.code);
  if (!refusal.detail.empty() && ShowsDetail(refusal)) text.append("\nDetails: ").append(refusal.detail);
  if (!refusal.call_id.empty()) text.append("\nCall: ").append(refusal.call_id);
  if (!refusal.reference.empty()) text.append("\nOther call: ").append(refusal.reference);
  return text;
}

v1::Kind KindOf(const v1::AuthorizeResponse& response) {
  const v1::Kind kind = response.refusal().kind();
  const bool known = v1::Kind_IsValid(kind) && kind != v1::KIND_UNSPECIFIED;
  switch (response.disposition()) {
    case v1::DENIED:
    case v1::CAP_EXCEEDED:
      // A refusal: any kind but those of calls that may have been sent.
      return known ? kind : v1::KIND_DELIVERY_UNCERTAIN;
    case v1::REPLAY:
      return kind == v1::KIND_READ_FAILED ? kind : v1::KIND_ALREADY_DONE;
    default:
      return v1::KIND_DELIVERY_UNCERTAIN;  // PENDING, and what is newer than this program
  }
}

}  // namespace

Refusal MakeRefusal(v1::Kind kind, std::string_view code) {
  const RefusalWords& words = WordsOf(kind, code);
  Refusal refusal;
  refusal.kind = words.kind;
  refusal.code = code;
  refusal.what = words.what;
  refusal.advice = words.advice;
  refusal.happened = words.happened;
  refusal.retry = words.retry;
  return refusal;
}

Refusal RefusalOf(const v1::AuthorizeResponse& response) {
  const v1::Kind kind = KindOf(response);
  std::string code = response.refusal().code();
  if (code.empty() && kind == v1::KIND_ALREADY_DONE) code = "ALREADY_DONE";
  if (code.empty() && response.disposition() == v1::PENDING) code = "STILL_PENDING";
  Refusal refusal = MakeRefusal(kind, code);
  if (kind == v1::KIND_ALREADY_DONE && response.outcome() == v1::TOOL_ERROR) {
    refusal.what =
        "The same call was made before, and the tool answered with an error that is not kept. Nothing new was done.";
    refusal.advice = "Do not make the same call again. Tell the user, or do it another way.";
    refusal.happened = Happened::kRecorded;
  }
  refusal.detail = response.refusal().message();
  refusal.call_id = response.call_id();
  refusal.reference = response.reference();
  return refusal;
}

std::string FirstLine(const Refusal& refusal) {
  std::string line(KindWord(refusal.kind));
  line.append(": ").append(refusal.what).append(" ").append(refusal.advice);
  for (char& c : line) {
    if (c == '\n' || c == '\r') c = ' ';
  }
  return line;
}

std::string RefusalResult(const Refusal& refusal, bool modern) {
  std::string result;
  if (modern) AppendText("resultType", "complete", &result);
  AppendMember("content", "[{\"type\":\"text\",\"text\":" + Quote(WholeText(refusal)) + "}]", &result);
  AppendMember("isError", "true", &result);
  AppendMember("_meta", MachineData(refusal), &result);
  return result + "}";
}

RpcError RefusalError(const Refusal& refusal) {
  return {CodeOf(refusal.kind), FirstLine(refusal), MachineData(refusal)};
}

std::string WithCallMeta(std::string_view raw_result, std::string_view call_id,
                         const std::vector<std::string>& receipt_ids, bool replayed) {
  const auto result = RawObject::Parse(raw_result);
  if (!result.ok()) return std::string(raw_result);
  std::string call;
  AppendMember("call_id", Quote(call_id), &call);
  AppendList("receipt_ids", receipt_ids, &call);
  if (replayed) AppendMember("replayed", "true", &call);
  call.push_back('}');
  const std::string_view* meta = result->Find("_meta");
  if (meta == nullptr) return WithMember(raw_result, "_meta", "{" + Quote(meta::kCall) + ":" + call + "}");
  if (!RawObject::Parse(*meta).ok()) return std::string(raw_result);
  return WithMember(raw_result, "_meta", WithMember(*meta, meta::kCall, call));
}

std::optional<NestedError> NestedErrorOf(const RawObject& result_or_data) {
  std::optional<std::string_view> found;
  if (const std::string_view* direct = result_or_data.Find(meta::kError)) found = *direct;
  if (const std::string_view* meta = result_or_data.Find("_meta"); !found && meta != nullptr) {
    const auto members = RawObject::Parse(*meta);
    if (IsObject(*meta) && !members.ok()) return NestedError();  // equal members: which of them is meant?
    const std::string_view* inside = members.ok() ? members->Find(meta::kError) : nullptr;
    if (inside != nullptr) found = *inside;
  }
  if (!found) return std::nullopt;
  NestedError nested;
  const auto error = RawObject::Parse(*found);
  if (!error.ok()) return nested;
  const auto text = [&](std::string_view name) {
    const std::string_view* raw = error->Find(name);
    return raw == nullptr ? std::string() : StringOf(*raw).value_or("");
  };
  nested.kind = text("kind");
  nested.code = text("code");
  nested.happened = text("happened");
  return nested;
}

}  // namespace tally::mcp
