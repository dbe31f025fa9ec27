#ifndef TALLY_SERVER_TALLYD_FIGURE_FAMILIES_H_
#define TALLY_SERVER_TALLYD_FIGURE_FAMILIES_H_

#include <prometheus/metric_family.h>

#include <vector>

#include "server/ledger/report_reads.h"

namespace tally::tallyd {

// So that nobody can make series without end: tenants by name, the first of them; units of a tenant likewise.
inline constexpr int kFigureTenantsMax = 100;
inline constexpr int kFigureUnitsMax = 8;

// What /metrics says of the database's figures. Null: only that there are none (tally_report_up 0); old values would
// look like true ones.
std::vector<prometheus::MetricFamily> FigureFamilies(const ledger::Figures* figures);

}  // namespace tally::tallyd

#endif  // TALLY_SERVER_TALLYD_FIGURE_FAMILIES_H_
