// Lists come in pages; a command shows as many entries as were asked for.
#pragma once

#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "cli/session.h"

namespace tally::cli {

struct PageOptions {
  int limit = 1000;
  std::string page_token;
};

inline std::shared_ptr<PageOptions> AddPageOptions(CLI::App& command) {
  auto options = std::make_shared<PageOptions>();
  command.add_option("--limit", options->limit, "entries at most (default 1000)")
      ->check(CLI::Range(1, 1'000'000))
      ->type_name("N");
  command.add_option("--page-token", options->page_token, "go on where an earlier list ended (its next_page_token)")
      ->type_name("TOKEN");
  return options;
}

// Fills `all` with entries of as many pages as the limit asks for; its next_page_token says whether there are more,
// which people are told on stderr. `entries(response)` is the repeated field.
template <typename Request, typename Response, typename Ask, typename Entries>
std::optional<client::Failure> AllPages(Request request, const PageOptions& options, Ask ask, Response* all,
                                        Entries entries) {
  constexpr int kPageMax = 1000;
  request.set_page_token(options.page_token);
  int left = options.limit;
  // Ends: a page holds at least one entry, or is the last.
  while (left > 0) {
    request.set_page_size(std::min(left, kPageMax));
    auto answer = ask(request);
    if (!answer.ok()) return answer.failure();
    Response& page = answer.value();
    const int count = entries(page)->size();
    for (auto& entry : *entries(page)) *entries(*all)->Add() = std::move(entry);
    all->set_next_page_token(page.next_page_token());
    request.set_page_token(page.next_page_token());
    left -= count;
    if (page.next_page_token().empty() || count == 0) break;
  }
  if (!all->next_page_token().empty()) Tell("There are more: raise --limit, or go on with --page-token.");
  return std::nullopt;
}

}  // namespace tally::cli
