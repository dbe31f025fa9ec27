// One parked call, once: claimed, asked about, noted, and resolved where the answer allows it.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include "lib/client/client.h"
#include "reconciler/config/config.h"
#include "reconciler/engine/judge.h"
#include "reconciler/engine/memory.h"
#include "reconciler/engine/metrics.h"
#include "reconciler/lookup/lookup.h"

namespace tally::reconciler {

Limits LimitsOf(const Config& config, const ToolConfig& tool);

// Thread-safe. What it refers to outlives it.
class Work {
 public:
  // By ToolConfig::tool; a tool without one is a person's.
  using LookUps = std::map<std::string, std::unique_ptr<LookUp>>;

  Work(const Config& config, client::Client& tallyd, LookUps look_ups, Metrics& metrics)
      : config_(config), tallyd_(tallyd), look_ups_(std::move(look_ups)), metrics_(metrics) {}

  // Blocks for at most about the length of a claim. Nothing is left half done that a claim's end does not put right.
  void Handle(const std::string& call_id);

  // Whether a call on tallyd's list may need anything from us at all.
  bool MayNeed(const v1::ParkedCall& listed) const;

 private:
  struct Held;  // a call that is ours for now

  LookUp* LookUpOf(const ToolConfig& tool) const;
  void Settle(const Held& held, const Decision& decision, const Answer& answer);
  bool Note(const Held& held, const Answer& answer, const Decision& decision);
  // Asks tallyd until it answers or the claim is about to end. Nullopt: it did not answer, or the race is lost.
  template <typename Response>
  std::optional<Response> Deliver(const Held& held, std::string_view rpc,
                                  const std::function<client::Answer<Response>(const client::CallOptions&)>& ask);

  const Config& config_;
  client::Client& tallyd_;
  const LookUps look_ups_;
  Metrics& metrics_;
  Memory memory_;
};

}  // namespace tally::reconciler
