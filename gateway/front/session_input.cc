// An upstream of 2026-07-28 behind a client of the era before: what it asks for in place of an answer is put to the
// client as requests of the server's, while the client waits for the answer to its call.
#include <absl/strings/str_cat.h>

#include <boost/asio/as_tuple.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "gateway/front/session.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"

namespace tally::gateway {
namespace {

constexpr size_t kInquiryMax = 32;  // requests at one time

}  // namespace

asio::awaitable<std::optional<std::string>> Session::AskClient(SharedOpen open, std::string input_requests,
                                                               std::chrono::milliseconds at_most) {
  const auto self = shared_from_this();
  const auto requests = mcp::RawObject::Parse(input_requests);
  if (!requests.ok() || requests->members().size() > kInquiryMax || open->cancelled || closed_) co_return std::nullopt;
  auto inquiry = std::make_shared<Inquiry>(services_.loop);
  inquiry->open = open;
  std::vector<std::string> texts;
  const auto forget = [this, &inquiry] {
    std::erase_if(asked_, [&](const auto& entry) { return entry.second.inquiry == inquiry; });
  };
  for (const mcp::Member& member : requests->members()) {
    const auto request = mcp::RawObject::Parse(member.value);
    const std::string_view* raw_method = request.ok() ? request->Find("method") : nullptr;
    const auto method = raw_method ? mcp::StringOf(*raw_method) : std::nullopt;
    const std::string_view capability = method ? CapabilityFor(*method) : "";
    if (capability.empty() || !declared_.contains(capability)) {
      forget();
      co_return std::nullopt;
    }
    const std::string_view* params = request->Find("params");
    const int64_t id = ++last_asked_;
    Asked asked;
    asked.inquiry = inquiry;
    asked.name = member.name;
    asked_[id] = std::move(asked);
    ++inquiry->awaited;
    texts.push_back(mcp::RequestText(absl::StrCat(id), *method, params ? *params : ""));
  }
  for (std::string& text : texts) open->outlet->Send(std::move(text));
  inquiry->changed.expires_after(at_most);
  const auto until = inquiry->changed.expiry();
  while (inquiry->awaited > 0 && !inquiry->failed && std::chrono::steady_clock::now() < until) {
    inquiry->changed.expires_at(until);
    co_await inquiry->changed.async_wait(asio::as_tuple(asio::use_awaitable));
  }
  forget();
  if (inquiry->awaited > 0 || inquiry->failed) co_return std::nullopt;
  std::string responses = "{";
  for (const auto& [name, result] : inquiry->results) {
    absl::StrAppend(&responses, responses.size() > 1 ? "," : "", mcp::Quote(name), ":", result);
  }
  responses.push_back('}');
  co_return responses;
}

void Session::FailInquiries(const SharedOpen& open) {
  for (const auto& [id, asked] : asked_) {
    if (!asked.inquiry || asked.inquiry->open != open) continue;
    asked.inquiry->failed = true;
    asked.inquiry->changed.cancel();
  }
}

}  // namespace tally::gateway
