// One HTTP request to the provider, and its answer read by [tool.answer].
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "reconciler/config/config.h"
#include "reconciler/config/secrets.h"
#include "reconciler/lookup/lookup.h"

namespace tally::reconciler {

class HttpLookUp : public LookUp {
 public:
  // Reads the secrets.
  static absl::StatusOr<std::unique_ptr<LookUp>> Make(const ToolConfig& tool, const ProviderConfig& provider);
  Answer Ask(const Case& asked) override;

 private:
  HttpLookUp(const ToolConfig& tool, const ProviderConfig& provider, NamedSecrets secrets)
      : tool_(tool), provider_(provider), secrets_(std::move(secrets)) {}

  const ToolConfig tool_;
  const ProviderConfig provider_;
  const NamedSecrets secrets_;
};

}  // namespace tally::reconciler
