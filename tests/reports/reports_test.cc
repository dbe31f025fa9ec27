#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <regex>
#include <set>
#include <sstream>
#include <thread>

#include "tally/v1/reports.grpc.pb.h"
#include "tests/cli/run_tally.h"
#include "tests/support/tallyd/tallyd.h"

namespace tally::test {
namespace {

using nlohmann::json;
using testing::HasSubstr;

std::string ReadText(const std::string& path) {
  std::stringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

// Two tallyd on one database, and a story whose numbers are known.
class ReportsOfFleet : public testing::Test {
 protected:
  // On a server of its own, since it is killed.
  static Postgres& Server() {
    static Postgres* server = new Postgres;
    return *server;
  }

  ReportsOfFleet() : fleet_(Server(), 2, "count = 2\n[listen]\nsocket = \"tallyd.sock\"\nhttp = \"127.0.0.1:0\"") {
    v1::MintRequest terms;
    terms.set_subject("agent");
    terms.set_unit("USD/2");
    terms.mutable_budget()->set_unlimited(true);
    terms.set_expires_in_ms(3'600'000);
    v1::GrantTerms& grant = *terms.add_grants();
    grant.set_tool("pay");
    grant.mutable_cap()->set_unlimited(true);
    grant.mutable_budget()->set_unlimited(true);
    grant.mutable_cost()->set_pointer("/amount");
    permit_ = fleet_.Mint(terms);
  }

  v1::AuthorizeResponse Authorize(const std::string& key) {
    v1::AuthorizeRequest request;
    request.set_permit_token(permit_.permit_token());
    request.set_key(key);
    request.set_attempt_id(RandomAttemptId());
    request.set_tool("pay");
    request.set_arguments("{\"amount\":500,\"act\":\"" + key + "\"}");
    v1::AuthorizeResponse response;
    grpc::ClientContext context;
    Prepare(context, fleet_.credential(v1::GATEWAY));
    const auto status = v1::Calls::NewStub(fleet_.replica(0).Channel())->Authorize(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    EXPECT_EQ(response.disposition(), v1::DISPATCH) << response.ShortDebugString();
    return response;
  }

  v1::CommitResponse Commit(const v1::AuthorizeResponse& granted, v1::CommitOutcome outcome) {
    v1::CommitRequest request;
    request.set_call_id(granted.call_id());
    request.set_attempt_id(granted.attempt_id());
    request.set_outcome(outcome);
    v1::CommitResponse response;
    grpc::ClientContext context;
    Prepare(context, fleet_.credential(v1::GATEWAY));
    const auto status = v1::Calls::NewStub(fleet_.replica(1).Channel())->Commit(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  void Resolve(const v1::AuthorizeResponse& granted, const v1::CommitResponse& parked, v1::Verdict verdict) {
    v1::ResolveRequest request;
    request.set_call_id(granted.call_id());
    request.set_attempt_id(granted.attempt_id());
    request.set_supersedes(parked.receipts(0).receipt_id());
    request.set_verdict(verdict);
    request.mutable_evidence()->set_source("provider");
    request.mutable_evidence()->set_reference("ref");
    request.mutable_evidence()->set_reason("asked");
    request.mutable_evidence()->set_body("said");
    v1::ResolveResponse response;
    grpc::ClientContext context;
    Prepare(context, fleet_.credential(v1::OPERATOR));
    const auto status = v1::ParkedCalls::NewStub(fleet_.replica(0).Channel())->Resolve(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
  }

  // 2 done, 1 not sent, 5 parked: one answered late, one had happened, one had not, one escalated, one just parked.
  void Tell() {
    for (const char* key : {"done-1", "done-2"}) Commit(Authorize(key), v1::OUTCOME_SUCCEEDED);
    Commit(Authorize("not-sent"), v1::OUTCOME_NOT_SENT);
    const auto park = [this](const std::string& key) {
      const v1::AuthorizeResponse granted = Authorize(key);
      return std::pair(granted, Commit(granted, v1::OUTCOME_UNCERTAIN));
    };
    Commit(park("late").first, v1::OUTCOME_SUCCEEDED);
    const auto happened = park("happened");
    Resolve(happened.first, happened.second, v1::VERDICT_HAPPENED);
    const auto not_happened = park("not-happened");
    Resolve(not_happened.first, not_happened.second, v1::VERDICT_NOT_HAPPENED);
    const auto escalated = park("escalated");
    Resolve(escalated.first, escalated.second, v1::VERDICT_CANNOT_TELL);
    park("parked");
  }

  grpc::Status Get(size_t replica, v1::Role role, int days, v1::Report& report) {
    v1::GetReportRequest request;
    request.set_days(days);
    grpc::ClientContext context;
    Prepare(context, fleet_.credential(role));
    return v1::Reports::NewStub(fleet_.replica(replica).Channel())->Get(&context, request, &report);
  }

  // Without what changes from one moment to the next.
  std::string Numbers(size_t replica) {
    v1::Report report;
    const grpc::Status status = Get(replica, v1::AUDITOR, 7, report);
    EXPECT_TRUE(status.ok()) << status.error_message();
    report.clear_now_us();
    report.mutable_parked()->clear_age_median_ms();
    report.mutable_parked()->clear_age_p99_ms();
    return report.DebugString();
  }

  std::string Address(size_t replica) {
    const std::string log = fleet_.replica(replica).Log();
    const std::string mark = "metrics on http://";
    const size_t at = log.rfind(mark);
    if (at == std::string::npos) return "";
    return log.substr(at + mark.size(), log.find("/metrics", at + mark.size()) - at - mark.size());
  }

  std::string Http(size_t replica, const std::string& request) {
    const std::string address = Address(replica);
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_port = htons(static_cast<uint16_t>(std::stoi(address.substr(address.rfind(':') + 1))));
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<const sockaddr*>(&to), sizeof(to)), 0);
    EXPECT_EQ(send(fd, request.data(), request.size(), MSG_NOSIGNAL), static_cast<ssize_t>(request.size()));
    std::string reply;
    char buffer[4096];
    for (ssize_t n; (n = recv(fd, buffer, sizeof(buffer), 0)) > 0;) reply.append(buffer, static_cast<size_t>(n));
    close(fd);
    const size_t head = reply.find("\r\n\r\n");
    return head == std::string::npos ? reply : reply.substr(head + 4);
  }

  // Series of the database's figures → value.
  std::map<std::string, double> Metrics(size_t replica) {
    std::map<std::string, double> series;
    std::stringstream lines(Http(replica, "GET /metrics HTTP/1.0\r\n\r\n"));
    for (std::string line; std::getline(lines, line);) {
      if (line.empty() || line.starts_with('#')) continue;
      const size_t space = line.rfind(' ');
      series[line.substr(0, space)] = std::stod(line.substr(space + 1));
    }
    return series;
  }

  static bool IsFigure(const std::string& series) {
    return series.find("{tenant=") != std::string::npos || series.starts_with("tally_report_");
  }

  // Those of the database, but for ages.
  std::map<std::string, double> Figures(size_t replica) {
    std::map<std::string, double> figures;
    for (const auto& [name, value] : Metrics(replica)) {
      if (IsFigure(name) && !name.starts_with("tally_parked_age_seconds")) figures[name] = value;
    }
    return figures;
  }

  Fleet fleet_;
  v1::MintResponse permit_;
};

TEST_F(ReportsOfFleet, AreTheSameFromEveryReplicaAndAfterRestarts) {
  Tell();
  const std::string numbers = Numbers(0);
  EXPECT_EQ(Numbers(1), numbers);
  const std::map<std::string, double> figures = Figures(0);
  EXPECT_EQ(Figures(1), figures);
  EXPECT_EQ(figures.at("tally_report_up"), 1);

  fleet_.replica(0).Stop();
  fleet_.replica(1).Kill();
  fleet_.replica(0).Start();
  fleet_.replica(1).Start();
  EXPECT_EQ(Numbers(0), numbers);
  EXPECT_EQ(Numbers(1), numbers);
  EXPECT_EQ(Figures(0), figures);
  EXPECT_EQ(Figures(1), figures);

  v1::Report report;
  ASSERT_TRUE(Get(0, v1::OPERATOR, 0, report).ok());
  EXPECT_EQ(report.days(), 7);
  EXPECT_EQ(report.unknown(6).parked(), 5);
  EXPECT_EQ(report.unknown(6).attempts(), 8);
  EXPECT_EQ(report.parked().now(), 2);
  EXPECT_EQ(report.escalations_open(), 1);
  EXPECT_EQ(report.avoided().calls(), 2);
  ASSERT_EQ(report.avoided().money_size(), 1);
  EXPECT_EQ(report.avoided().money(0).amount(), 1000);
  EXPECT_EQ(report.gateways(0).not_sent(), 1);
  // What Prometheus gets is what the report says.
  EXPECT_EQ(figures.at(R"(tally_parked_total{tenant="acme"})"), 5);
  EXPECT_EQ(figures.at(R"(tally_attempts_total{tenant="acme"})"), 8);
  EXPECT_EQ(figures.at(R"(tally_parked_now{tenant="acme"})"), 2);
  EXPECT_EQ(figures.at(R"(tally_escalations_open{tenant="acme"})"), 1);
  EXPECT_EQ(figures.at(R"(tally_parked_happened{tenant="acme"})"), 2);
  EXPECT_EQ(figures.at(R"(tally_parked_happened_money{tenant="acme",unit="USD/2"})"), 1000);
  EXPECT_EQ(figures.at(R"(tally_parked_closed_total{tenant="acme",closer="gateway"})"), 1);
  EXPECT_EQ(figures.at(R"(tally_parked_closed_total{tenant="acme",closer="operator"})"), 2);
  EXPECT_EQ(figures.at(R"(tally_attempts_by_state{tenant="acme",state="RELEASED"})"), 1);
  for (const v1::ClosedBy& closed : report.closed()) {
    const std::string by = closed.closer() == v1::CLOSER_GATEWAY ? "gateway" : "operator";
    EXPECT_EQ(figures.at(R"(tally_parked_close_seconds{tenant="acme",closer=")" + by + R"(",stat="p99"})"),
              static_cast<double>(closed.p99_ms()) / 1000);
  }
}

TEST_F(ReportsOfFleet, AreForOperatorsAndAuditorsWithinTheirLimits) {
  v1::Report report;
  for (const v1::Role role : {v1::ADMIN, v1::GATEWAY, v1::RECONCILER}) {
    EXPECT_EQ(Get(0, role, 7, report).error_code(), grpc::StatusCode::PERMISSION_DENIED) << role;
  }
  for (const int days : {1, 366}) {
    ASSERT_TRUE(Get(0, v1::AUDITOR, days, report).ok()) << days;
    EXPECT_EQ(report.unknown_size(), days);
  }
  for (const int days : {-1, 367}) {
    const grpc::Status refused = Get(0, v1::OPERATOR, days, report);
    EXPECT_EQ(refused.error_code(), grpc::StatusCode::INVALID_ARGUMENT) << days;
    EXPECT_EQ(ReasonOf(refused), "LIMIT");
    EXPECT_THAT(refused.error_message(), HasSubstr("1 to 366"));
  }
  // By HTTP as well.
  const std::string body = "{\"days\": 2}";
  const auto post = [&](v1::Role role) {
    return json::parse(
        Http(0, "POST /tally.v1.Reports/Get HTTP/1.0\r\nContent-Type: application/json\r\nAuthorization: Bearer " +
                    fleet_.credential(role) + "\r\nContent-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body),
        nullptr, false);
  };
  EXPECT_EQ(post(v1::OPERATOR)["unknown"].size(), 2u);
  EXPECT_EQ(post(v1::GATEWAY)["code"], "permission_denied");
}

TEST_F(ReportsOfFleet, TheCommandTellsPeopleAndScripts) {
  const cli::Folder folder;
  const std::map<std::string, std::string> environment{
      {"TALLY_SERVER", fleet_.replica(0).socket()},
      {"TALLY_CREDENTIAL", folder.Write("credential", fleet_.credential(v1::OPERATOR))}};
  Commit(Authorize("first"), v1::OUTCOME_SUCCEEDED);
  const cli::Ran zero = cli::RunTally({"report"}, environment);
  EXPECT_EQ(zero.exit_code, 0) << zero.err;
  EXPECT_THAT(zero.out, HasSubstr("do not fold unknown outcomes into failures"));
  const json advised = json::parse(cli::RunTally({"report", "-o", "json"}, environment).out);
  EXPECT_THAT(advised["advice"].get<std::string>(), HasSubstr("do not fold"));

  Tell();
  const cli::Ran told = cli::RunTally({"report", "--days", "2"}, environment);
  EXPECT_EQ(told.exit_code, 0) << told.err;
  EXPECT_THAT(told.out, HasSubstr("parked now        2\n"));
  EXPECT_THAT(told.out, HasSubstr("Of the calls parked in these days 2 had happened"));
  EXPECT_THAT(told.out, HasSubstr("worth 10.00 USD"));
  EXPECT_THAT(told.out, testing::Not(HasSubstr("do not fold")));
  const json document = json::parse(cli::RunTally({"report", "-o", "json"}, environment).out);
  EXPECT_EQ(document["advice"], nullptr);
  EXPECT_EQ(document["days"], 7);
  EXPECT_EQ(document["unknown"].size(), 7u);
  EXPECT_EQ(document["unknown"][6]["parked"], 5);
  EXPECT_EQ(document["closed"][0]["closer"], "GATEWAY");
  EXPECT_EQ(document["avoided"]["money"][0]["unit"], "USD/2");

  for (const char* days : {"0", "367", "x"}) {
    EXPECT_EQ(cli::RunTally({"report", "--days", days}, environment).exit_code, 2) << days;
  }
}

TEST_F(ReportsOfFleet, WithoutTheDatabaseMetricsSayThatTheyDoNotKnow) {
  Tell();
  EXPECT_EQ(Figures(0).at("tally_report_up"), 1);
  Server().Kill();
  // What was read a moment ago may be given for a moment.
  std::map<std::string, double> metrics;
  for (int tries = 0; tries < 300; ++tries) {
    metrics = Metrics(0);
    if (metrics.at("tally_report_up") == 0) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(metrics.at("tally_report_up"), 0);
  for (const auto& [name, value] : metrics) EXPECT_EQ(name.find("{tenant="), std::string::npos) << name;
  EXPECT_TRUE(metrics.contains(R"(tally_lane_queue_depth{lane="0"})")) << "others are told all the same";
  Server().Restart();
  for (int tries = 0; tries < 300 && metrics.at("tally_report_up") == 0; ++tries) {
    metrics = Metrics(0);
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
  }
  EXPECT_EQ(metrics.at(R"(tally_parked_total{tenant="acme"})"), 5);
}

TEST_F(ReportsOfFleet, HaveEveryMetricThatDashboardAndAlertsName) {
  Tell();
  std::set<std::string> exported;
  for (const auto& [series, value] : Metrics(0)) exported.insert(series.substr(0, series.find('{')));
  const std::regex name("tally_[a-z0-9_]+");
  for (const char* path : {"deploy/grafana-dashboard.json", "deploy/prometheus-alerts.yml"}) {
    const std::string text = ReadText(path);
    std::set<std::string> named;
    for (std::sregex_iterator at(text.begin(), text.end(), name), end; at != end; ++at) named.insert(at->str());
    EXPECT_GT(named.size(), 8u) << path;
    for (const std::string& metric : named) EXPECT_TRUE(exported.contains(metric)) << path << ": " << metric;
  }
  const json dashboard = json::parse(ReadText("deploy/grafana-dashboard.json"));
  std::set<int> ids;
  for (const json& panel : dashboard["panels"]) {
    EXPECT_TRUE(ids.insert(panel["id"].get<int>()).second) << panel["title"];
    EXPECT_LE(panel["gridPos"]["x"].get<int>() + panel["gridPos"]["w"].get<int>(), 24) << panel["title"];
  }
}

}  // namespace
}  // namespace tally::test
