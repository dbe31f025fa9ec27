#include "gateway/front/modern_outlet.h"

#include <absl/strings/str_cat.h>

#include <utility>

#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"

namespace tally::gateway {
namespace {

// How long a client may go by a list or a resource without asking again.
constexpr int kTtlMs = 5'000;

// Whether the request asks for log messages; without that there must be none.
bool WantsLog(const mcp::Message& request) {
  const auto params = mcp::RawObject::Parse(request.params);
  const std::string_view* meta = params.ok() ? params->Find("_meta") : nullptr;
  const auto members = meta ? mcp::RawObject::Parse(*meta) : absl::NotFoundError("");
  return members.ok() && members->Find(mcp::meta::kLogLevel) != nullptr;
}

bool IsMissingCapability(std::string_view raw_error) {
  const auto error = mcp::RawObject::Parse(raw_error);
  const std::string_view* code = error.ok() ? error->Find("code") : nullptr;
  return code != nullptr && mcp::IntegerOf(*code) == mcp::code::kMissingClientCapability;
}

}  // namespace

bool IsCacheable(std::string_view method) {
  namespace m = mcp::method;
  return method == m::kToolsList || method == m::kResourcesList || method == m::kResourcesTemplatesList ||
         method == m::kPromptsList || method == m::kResourcesRead || method == m::kDiscover;
}

ModernOutlet::ModernOutlet(SharedOutlet to, const mcp::Message& request, std::function<void(int status)> status)
    : to_(std::move(to)), method_(request.method), wants_log_(WantsLog(request)), status_(std::move(status)) {}

void ModernOutlet::Send(std::string message) {
  if (!wants_log_) {
    const auto parsed = mcp::RawObject::Parse(message);
    const std::string_view* method = parsed.ok() ? parsed->Find("method") : nullptr;
    if (method != nullptr && mcp::StringOf(*method) == mcp::notification::kMessage) return;
  }
  to_->Send(std::move(message));
}

void ModernOutlet::Finish(std::string message, std::function<void()> undelivered) {
  to_->Finish(Completed(message), std::move(undelivered));
}

std::string ModernOutlet::Completed(const std::string& message) const {
  const auto parsed = mcp::RawObject::Parse(message);
  if (!parsed.ok()) return message;
  const std::string_view* error = parsed->Find("error");
  // The specification's status for this one; others are said with 200, so that clients keep the words.
  if (error != nullptr && status_ && IsMissingCapability(*error)) status_(400);
  const std::string_view* result = parsed->Find("result");
  const auto members = result ? mcp::RawObject::Parse(*result) : absl::NotFoundError("");
  if (!members.ok()) return message;
  std::string whole(*result);
  if (members->Find("resultType") == nullptr) whole = mcp::WithMember(whole, "resultType", R"("complete")");
  if (IsCacheable(method_)) {
    whole = mcp::WithMember(whole, "ttlMs", absl::StrCat(kTtlMs));
    whole = mcp::WithMember(whole, "cacheScope", R"("private")");
  }
  return mcp::WithMember(message, "result", whole);
}

}  // namespace tally::gateway
