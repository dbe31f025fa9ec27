#include <absl/strings/escaping.h>
#include <absl/strings/str_cat.h>

#include <utility>

#include "gateway/call/call.h"
#include "gateway/mcp/raw.h"

namespace tally::gateway {
namespace {

namespace codes = mcp::gateway_code;

}  // namespace

void Call::AddReceipts(const google::protobuf::RepeatedPtrField<v1::Receipt>& receipts) {
  for (const v1::Receipt& receipt : receipts) receipt_ids_.push_back(absl::BytesToHexString(receipt.receipt_id()));
}

void Call::RefuseUncertain(const std::optional<v1::CommitResponse>& committed, std::string_view code,
                           const std::string& why) {
  // A READ never parks: tallyd has ended it.
  const bool read = committed ? committed->attempt_state() == v1::TOOL_ERROR : order_.effect == v1::READ;
  mcp::Refusal refusal =
      read ? Refusal(v1::KIND_READ_FAILED, "READ_NO_ANSWER") : Refusal(v1::KIND_DELIVERY_UNCERTAIN, code);
  if (!why.empty()) refusal.detail = absl::StrCat("Of the tool server: ", why, ".");
  refusal.call_id = grant_.call_id();
  refusal.key = request_.key();
  refusal.receipt_ids = receipt_ids_;
  Refuse(std::move(refusal));
}

void Call::RefuseCapability(mcp::RpcError error) {
  mcp::Refusal refusal = Refusal(v1::KIND_DELIVERY_UNCERTAIN, "UPSTREAM_AMBIGUOUS");
  refusal.call_id = grant_.call_id();
  refusal.key = request_.key();
  refusal.receipt_ids = receipt_ids_;
  const mcp::RpcError told = mcp::RefusalError(refusal);
  const auto data = mcp::RawObject::Parse(told.data);
  const std::string_view* ours = data.ok() ? data->Find(mcp::meta::kError) : nullptr;
  if (ours != nullptr && mcp::RawObject::Parse(error.data).ok()) {
    error.data = mcp::WithMember(error.data, mcp::meta::kError, *ours);
  } else {
    error.data = told.data;
  }
  error.message = absl::StrCat(told.message, " Of the tool server: ", error.message);
  Answer({.error = std::move(error)});
}

mcp::Refusal Call::CannotSend(const absl::Status& why) {
  return absl::IsFailedPrecondition(why) ? Refusal(v1::KIND_DENIED, codes::kToolChanged)
                                         : Refusal(v1::KIND_UNAVAILABLE, codes::kUpstreamDown);
}

void Call::Refuse(const mcp::Refusal& refusal) {
  if (caller_.config_.mcp.error_style == Config::ErrorStyle::kJsonRpc && refusal.kind != v1::KIND_ALREADY_DONE) {
    Answer({.error = mcp::RefusalError(refusal)});
  } else {
    Answer({.result = mcp::RefusalResult(refusal)});
  }
}

void Call::Answer(ToolAnswer answer, std::function<void()> undelivered) {
  const auto hand_over = std::exchange(order_.answer, nullptr);
  if (!hand_over) return;
  --caller_.unanswered_;
  hand_over(std::move(answer), std::move(undelivered));
}

void Call::Audit(std::string_view outcome, std::chrono::steady_clock::time_point began,
                 const SharedExchange& exchange) {
  AuditSend(outcome, Sent{nullptr, exchange, began, send_});
}

void Call::AuditSend(std::string_view outcome, const Sent& sent) {
  const SharedExchange& exchange = sent.exchange;
  AuditEntry entry;
  entry.time_us = exchange->sent_at_us();
  entry.method = std::string(mcp::method::kToolsCall);
  entry.upstream = order_.upstream_name;
  entry.tool = order_.tool;
  entry.permit_id = order_.permit_id;
  entry.call_id = grant_.call_id();
  entry.attempt_id = request_.attempt_id();
  entry.attempt = grant_.attempt_number();
  entry.send = sent.number;
  entry.outcome = outcome;
  entry.latency_us =
      std::chrono::duration_cast<std::chrono::microseconds>(std::chrono::steady_clock::now() - sent.began).count();
  caller_.audit_.Write(entry);
}

}  // namespace tally::gateway
