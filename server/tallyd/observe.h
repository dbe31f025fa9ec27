#ifndef TALLY_SERVER_TALLYD_OBSERVE_H_
#define TALLY_SERVER_TALLYD_OBSERVE_H_

#include <prometheus/registry.h>

#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "server/lane/router.h"
#include "server/ops/http.h"
#include "server/tallyd/figures.h"

namespace tally::tallyd {

// Serves /metrics (Prometheus text format 0.0.4) and /healthz (200 while the database answers, else 503). A scrape
// waits at most 4 seconds for the database's figures. What it refers to must outlive it.
absl::StatusOr<std::unique_ptr<ops::HttpServer>> Observe(const std::string& address, prometheus::Registry& registry,
                                                         const lane::Router& router, Figures& figures,
                                                         std::function<bool()> healthy,
                                                         ops::HttpServer::Posts posts = {});

}  // namespace tally::tallyd

#endif  // TALLY_SERVER_TALLYD_OBSERVE_H_
