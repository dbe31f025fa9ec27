#include "lib/keys/text.h"
#include "server/ledger/control.h"
#include "server/ledger/ids.h"
#include "server/ledger/permits.h"

namespace tally::ledger {
namespace {

void SetLimit(const std::optional<int64_t>& limit, v1::Limit* out) {
  if (limit) {
    out->set_at_most(*limit);
  } else {
    out->set_unlimited(true);
  }
}

// As every statement below lists them.
#define TALLY_PERMIT_COLUMNS                                                                                 \
  "p.permit_id, p.tenant, p.terms, s.revoked_seq, s.closing_seq, s.closed_seq, s.held, s.spent, s.overrun, " \
  "s.budget, s.open_calls, s.refusals, s.sequence, p.shard"

v1::PermitState StateOf(const v1::PermitInfo& info, bool closing, bool closed, int64_t now_us) {
  if (closed) return v1::CLOSED;
  if (closing) return v1::CLOSING;
  if (info.revoked()) return v1::REVOKED;
  if (now_us >= info.terms().expires_at_us()) return v1::EXPIRED;
  return now_us < info.terms().not_before_us() ? v1::NOT_YET_VALID : v1::ACTIVE;
}

absl::Status ToInfo(const pqxx::row& row, int64_t now_us, v1::PermitInfo& info) {
  info.set_permit_id(Text(row[0]));
  info.set_tenant(Text(row[1]));
  if (!info.mutable_terms()->ParseFromString(Bytea(row[2]))) {
    return absl::InternalError(keys::Cat("permits.terms of ", info.permit_id(), " does not parse"));
  }
  info.set_revoked(row[3].as<int64_t>() > 0);
  info.mutable_budget()->set_held(row[6].as<int64_t>());
  info.mutable_budget()->set_spent(row[7].as<int64_t>());
  info.mutable_budget()->set_overrun(row[8].as<int64_t>());
  SetLimit(OptionalInt(row[9]), info.mutable_budget()->mutable_limit());
  info.set_open_calls(row[10].as<int64_t>());
  info.set_refusals(row[11].as<int64_t>());
  info.set_sequence(row[12].as<int64_t>());
  info.set_state(StateOf(info, row[4].as<int64_t>() > 0, row[5].as<int64_t>() > 0, now_us));
  return absl::OkStatus();
}

constexpr Statement kGetPermit{"get_permit",
                               "SELECT " TALLY_PERMIT_COLUMNS
                               " FROM permits p JOIN permit_state s ON s.shard = p.shard AND s.permit_id = p.permit_id "
                               "WHERE p.permit_id = $1 AND ($2 = '' OR p.tenant = $2)"};
constexpr Statement kGetGrants{"get_grants",
                               "SELECT slots, slot_overrun, cap, held, spent, overrun, budget FROM grants "
                               "WHERE shard = $1 AND permit_id = $2 ORDER BY grant_index"};

absl::Status AddGrants(Tx& tx, int shard, v1::PermitInfo& info) {
  const pqxx::result rows = tx.Exec(kGetGrants, shard, info.permit_id());
  if (static_cast<int>(rows.size()) != info.terms().grants_size()) {
    return absl::InternalError(keys::Cat("grants of ", info.permit_id(), " are not those of its terms"));
  }
  for (const pqxx::row& row : rows) {
    v1::GrantUsage& grant = *info.add_grants();
    *grant.mutable_terms() = info.terms().grants(info.grants_size() - 1);
    grant.mutable_cap()->set_used(row[0].as<int64_t>());
    grant.mutable_cap()->set_overrun(row[1].as<int64_t>());
    SetLimit(OptionalInt(row[2]), grant.mutable_cap()->mutable_limit());
    grant.mutable_budget()->set_held(row[3].as<int64_t>());
    grant.mutable_budget()->set_spent(row[4].as<int64_t>());
    grant.mutable_budget()->set_overrun(row[5].as<int64_t>());
    SetLimit(OptionalInt(row[6]), grant.mutable_budget()->mutable_limit());
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<v1::PermitInfo> GetPermit(Connection& connection, const std::string& tenant, const decide::Id& id) {
  v1::PermitInfo info;
  absl::Status status = Read(connection, [&](Tx& tx) -> absl::Status {
    info.Clear();
    const pqxx::result rows = tx.Exec(kGetPermit, IdText(id), tenant);
    if (rows.empty()) return absl::NotFoundError("no such permit");
    absl::Status converted = ToInfo(rows[0], tx.now_us(), info);
    return converted.ok() ? AddGrants(tx, rows[0][13].as<int>(), info) : converted;
  });
  if (!status.ok()) return status;
  return info;
}

namespace {
constexpr Statement kListPermits{
    "list_permits",
    "SELECT " TALLY_PERMIT_COLUMNS
    " FROM permits p JOIN permit_state s ON s.shard = p.shard AND s.permit_id = p.permit_id "
    "WHERE p.tenant = $1 AND p.permit_id > $2 AND ($3 = '' OR p.subject = $3) ORDER BY p.permit_id LIMIT $4"};
}  // namespace

absl::StatusOr<std::vector<v1::PermitInfo>> ListPermits(Connection& connection, const std::string& tenant,
                                                        const std::string& subject, const decide::Id& after,
                                                        int limit) {
  std::vector<v1::PermitInfo> list;
  absl::Status status = Read(connection, [&](Tx& tx) {
    list.clear();
    for (const pqxx::row& row : tx.Exec(kListPermits, tenant, IdText(after), subject, limit)) {
      absl::Status converted = ToInfo(row, tx.now_us(), list.emplace_back());
      if (!converted.ok()) return converted;
      list.back().mutable_terms()->clear_grants();
    }
    return absl::OkStatus();
  });
  if (!status.ok()) return status;
  return list;
}

}  // namespace tally::ledger
