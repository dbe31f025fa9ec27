// Commits that reach tallyd whatever happens in between: kept on disk, and said again until tallyd has answered.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/steady_timer.hpp>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "gateway/authority/authority.h"
#include "gateway/journal/journal.h"
#include "tally/v1/calls.pb.h"

namespace tally::gateway {

namespace asio = boost::asio;

// One commit on its way.
class Settlement {
 public:
  explicit Settlement(const asio::any_io_executor& loop) : changed_(loop, asio::steady_timer::time_point::max()) {}

  // Tallyd's answer, or nullopt if it has not come in this time, or was refused for good.
  asio::awaitable<std::optional<v1::CommitResponse>> Wait(std::chrono::milliseconds at_most);

 private:
  friend class Settler;
  asio::steady_timer changed_;
  bool ended_ = false;
  bool replaced_ = false;
  std::optional<v1::CommitResponse> response_;
};

using SharedSettlement = std::shared_ptr<Settlement>;

class Settler {
 public:
  Settler(asio::any_io_executor loop, Authority& authority, Journal& journal)
      : loop_(std::move(loop)), authority_(authority), journal_(journal) {}
  Settler(const Settler&) = delete;

  // A later commit for the same attempt takes the place of one that is still on its way.
  SharedSettlement Settle(v1::CommitRequest commit);
  // What the process before left in the journal. Once, at the start.
  void TakeLeftovers();
  // Tells tallyd that an attempt is void whose Authorize was never answered. As good as it can: what cannot be told now
  // is ended by its lease.
  void Void(const std::string& permit_token, const std::string& key, const std::string& attempt_id);

  size_t under_way() const { return under_way_.size(); }

 private:
  asio::awaitable<void> Deliver(v1::CommitRequest commit, SharedSettlement settlement, std::chrono::milliseconds wait,
                                bool journaled);
  asio::awaitable<void> Keep(v1::CommitRequest commit);
  void Start(v1::CommitRequest commit, SharedSettlement settlement, std::chrono::milliseconds wait, bool journaled);

  const asio::any_io_executor loop_;
  Authority& authority_;
  Journal& journal_;
  std::map<std::string, SharedSettlement> under_way_;  // by attempt id
};

}  // namespace tally::gateway
