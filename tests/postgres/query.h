// One statement on one connection, for tests.
#pragma once

#include <libpq-fe.h>

#include <string>

namespace tally::test {

// The first column of the first row, or "error: …".
inline std::string Query(const std::string& connection_string, const std::string& sql) {
  PGconn* connection = PQconnectdb(connection_string.c_str());
  std::string answer;
  if (PQstatus(connection) != CONNECTION_OK) {
    answer = std::string("error: ") + PQerrorMessage(connection);
  } else {
    PGresult* result = PQexec(connection, sql.c_str());
    const ExecStatusType status = PQresultStatus(result);
    if (status != PGRES_TUPLES_OK && status != PGRES_COMMAND_OK) {
      answer = std::string("error: ") + PQerrorMessage(connection);
    } else if (PQntuples(result) > 0) {
      answer = PQgetvalue(result, 0, 0);
    }
    PQclear(result);
  }
  PQfinish(connection);
  return answer;
}

}  // namespace tally::test
