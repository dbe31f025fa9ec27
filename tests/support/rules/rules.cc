#include "tests/support/rules/rules.h"

#include <pqxx/pqxx>

namespace tally::test {

std::string Query(const std::string& conninfo, const std::string& sql) {
  pqxx::connection connection(conninfo);
  pqxx::nontransaction work(connection);
  const pqxx::result rows = work.exec(sql);
  return rows.empty() || rows[0][0].is_null() ? "" : rows[0][0].c_str();
}

std::string BrokenRule(const std::string& conninfo) {
  // Every attempt with its state, whether it stands in its call's row or among the earlier ones.
  const std::string all =
      "WITH all_attempts AS ("
      " SELECT permit_id, grant_index, call_id, state, slot, held, charged FROM calls WHERE number > 0"
      " UNION ALL SELECT c.permit_id, c.grant_index, c.call_id, a.state, a.slot, a.held, a.charged"
      " FROM attempts a JOIN calls c ON c.call_id = a.call_id WHERE a.state IS NOT NULL) ";
  struct Check {
    const char* what;
    std::string sql;
  };
  const Check checks[] = {
      {"rule 1: more than one open attempt",
       all + "SELECT call_id FROM all_attempts WHERE state IN (2, 3) GROUP BY call_id HAVING count(*) > 1"},
      {"rule 2: slots differ from attempts that take one",
       all + "SELECT g.permit_id FROM grants g LEFT JOIN all_attempts a USING (permit_id, grant_index)"
             " GROUP BY g.permit_id, g.grant_index, g.slots, g.cap, g.slot_overrun"
             " HAVING g.slots <> count(*) FILTER (WHERE a.slot) OR g.slots > g.cap + g.slot_overrun"},
      {"rule 3: held and spent differ from what attempts hold and cost",
       all + "SELECT p.permit_id FROM permit_state p LEFT JOIN all_attempts a USING (permit_id)"
             " GROUP BY p.permit_id, p.held, p.spent, p.budget, p.overrun"
             " HAVING p.held <> coalesce(sum(a.held), 0) OR p.spent <> coalesce(sum(a.charged), 0)"
             " OR p.held + p.spent > p.budget + p.overrun"},
      {"rule 6: the chain has a gap",
       "SELECT p.permit_id FROM permit_state p LEFT JOIN receipts r ON r.chain_id = p.permit_id"
       " GROUP BY p.permit_id, p.sequence HAVING count(*) <> p.sequence OR max(r.sequence) <> p.sequence"},
      {"an open intent without its open call",
       "SELECT i.open_call FROM intents i LEFT JOIN calls c ON c.call_id = i.open_call"
       " WHERE i.open_call IS NOT NULL AND (c.state IS NULL OR c.state NOT IN (2, 3))"},
      {"an open call without its intent",
       "SELECT c.call_id FROM calls c LEFT JOIN intents i ON i.open_call = c.call_id"
       " WHERE c.state IN (2, 3) AND i.open_call IS NULL"},
      {"a leased call whose lease nobody watches",
       "SELECT c.call_id FROM calls c JOIN intents i ON i.open_call = c.call_id"
       " WHERE (c.state = 2) <> (i.lease_end_us IS NOT NULL)"
       " OR (c.state = 2 AND i.lease_end_us <> c.lease_end_us)"},
      {"open calls miscounted",
       "SELECT p.permit_id FROM permit_state p LEFT JOIN calls c ON c.permit_id = p.permit_id"
       " GROUP BY p.permit_id, p.open_calls HAVING p.open_calls <> count(*) FILTER (WHERE c.state IN (2, 3))"},
      {"a parked attempt without its open parking, or the other way round",
       "SELECT call_id FROM (SELECT call_id, number, true AS parked FROM calls WHERE state = 3) c"
       " FULL JOIN (SELECT call_id, number, true AS open FROM parkings WHERE closed_at_us IS NULL) k"
       " USING (call_id, number) WHERE c.parked IS NULL OR k.open IS NULL"},
      {"a parking that differs from its attempt",
       "SELECT k.call_id FROM parkings k LEFT JOIN ("
       " SELECT call_id, number, state, hold, charged FROM calls WHERE number > 0"
       " UNION ALL SELECT call_id, number, state, hold, charged FROM attempts WHERE state IS NOT NULL) a"
       " USING (call_id, number) WHERE a.state IS NULL OR a.state <> k.state OR a.hold <> k.hold OR a.charged <> "
       "k.charged"},
  };
  for (const Check& check : checks) {
    if (const std::string row = Query(conninfo, check.sql); !row.empty()) return std::string(check.what) + ": " + row;
  }
  return "";
}

}  // namespace tally::test
