// tally report
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "cli/commands.h"
#include "cli/permit_text.h"
#include "cli/text.h"

namespace tally::cli {
namespace {

constexpr int kDaysMax = 366;
constexpr int kDaysAllShown = 31;  // of more, those on which nothing was granted or parked are left out

constexpr char kZeroAdvice[] =
    "No attempt ended unknown in these days. Where calls leave a machine, some do: check that gateways do not fold "
    "unknown outcomes into failures (a timeout, a cut connection, a 5xx committed as tool-error or not-sent).";

std::string About(int64_t ms) {
  const int64_t s = ms / 1000;
  if (ms < 1000) return absl::StrCat(ms, " ms");
  if (s < 60) return absl::StrFormat("%d.%d s", s, ms % 1000 / 100);
  if (s < 3600) return absl::StrCat(s / 60, " min ", s % 60, " s");
  if (s < 86'400) return absl::StrCat(s / 3600, " h ", s % 3600 / 60, " min");
  return absl::StrCat(s / 86'400, " d ", s % 86'400 / 3600, " h");
}

std::string Share(int64_t part, int64_t whole) {
  if (whole == 0) return "-";
  return absl::StrFormat("%.2f %%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string UtcDay(int64_t time_us) {
  return absl::FormatTime("%Y-%m-%d", absl::FromUnixMicros(time_us), absl::UTCTimeZone());
}

struct Sums {
  int64_t attempts = 0;
  int64_t parked = 0;
};

Sums SumsOf(const v1::Report& report) {
  Sums sums;
  for (const v1::UnknownDay& day : report.unknown()) {
    sums.attempts += day.attempts();
    sums.parked += day.parked();
  }
  return sums;
}

// Empty: none is needed.
std::string AdviceOf(const Sums& sums) { return sums.parked == 0 && sums.attempts > 0 ? kZeroAdvice : ""; }

std::string CallsText(const v1::Report& report) {
  if (report.calls().empty()) return "No call was first seen in these days.\n";
  Table table({"CALLS FIRST SEEN IN THESE DAYS", "NOW"});
  for (const v1::OutcomeCount& outcome : report.calls()) {
    table.Add({absl::StrCat(outcome.calls()), v1::CallState_Name(outcome.state())});
  }
  return table.Text();
}

std::string UnknownText(const v1::Report& report, const Sums& sums) {
  Table table({"DAY (UTC)", "ATTEMPTS", "ENDED UNKNOWN", "SHARE"});
  for (const v1::UnknownDay& day : report.unknown()) {
    if (report.days() > kDaysAllShown && day.attempts() == 0 && day.parked() == 0) continue;
    table.Add({UtcDay(day.day_start_us()), absl::StrCat(day.attempts()), absl::StrCat(day.parked()),
               Share(day.parked(), day.attempts())});
  }
  table.Add({"all", absl::StrCat(sums.attempts), absl::StrCat(sums.parked), Share(sums.parked, sums.attempts)});
  const std::string advice = AdviceOf(sums);
  return table.Text() + (advice.empty() ? "" : advice + "\n");
}

std::string ParkedText(const v1::Report& report) {
  const v1::Parked& parked = report.parked();
  Fields fields;
  fields.Add("parked now", absl::StrCat(parked.now()));
  if (parked.now() > 0) {
    fields.Add("the oldest since", LocalTime(parked.oldest_us()));
    fields.Add("for", absl::StrCat("median ", About(parked.age_median_ms()), ", p99 ", About(parked.age_p99_ms())));
  }
  fields.Add("escalations open", absl::StrCat(report.escalations_open()));
  std::string text = fields.Text();
  if (report.closed().empty()) return text + "None that was parked in these days has been closed.\n";
  Table table({"PARKED IN THESE DAYS, CLOSED BY", "CALLS", "AFTER, MEDIAN", "P99"});
  for (const v1::ClosedBy& closed : report.closed()) {
    const std::string closer = closed.closer() == v1::CLOSER_GATEWAY      ? "a late answer"
                               : closed.closer() == v1::CLOSER_RECONCILER ? "a reconciler"
                               : closed.closer() == v1::CLOSER_OPERATOR   ? "a person"
                                                                          : "?";
    table.Add({closer, absl::StrCat(closed.calls()), About(closed.median_ms()), About(closed.p99_ms())});
  }
  return text + "\n" + table.Text();
}

std::string AvoidedText(const v1::Avoided& avoided) {
  std::string money;
  for (const v1::Money& sum : avoided.money()) {
    absl::StrAppend(&money, money.empty() ? ", worth " : ", ",
                    sum.unit().empty() ? absl::StrCat(sum.amount(), " of a unit that is not known")
                                       : MoneyText(sum.amount(), sum.unit()));
  }
  return absl::StrCat("Of the calls parked in these days ", avoided.calls(),
                      " had happened: as many duplicates a naive retry would have made", money, ".\n");
}

std::string GatewaysText(const v1::Report& report) {
  if (report.gateways().empty()) return "";
  std::vector<const v1::GatewayShare*> gateways;
  for (const v1::GatewayShare& gateway : report.gateways()) gateways.push_back(&gateway);
  std::stable_sort(gateways.begin(), gateways.end(),
                   [](const auto* a, const auto* b) { return a->attempts() > b->attempts(); });
  Table table({"GATEWAY", "NAME", "ATTEMPTS", "SAID NOT SENT", "SHARE"});
  for (const v1::GatewayShare* gateway : gateways) {
    table.Add({gateway->principal_id(), gateway->name(), absl::StrCat(gateway->attempts()),
               absl::StrCat(gateway->not_sent()), Share(gateway->not_sent(), gateway->attempts())});
  }
  return "\n" + table.Text();
}

int Report(Session& session, int days) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::GetReportRequest request;
  request.set_days(days);
  const auto answer = client->GetReport(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  const v1::Report& report = answer.value();
  const Sums sums = SumsOf(report);
  Json document = ToJson(report);
  const std::string advice = AdviceOf(sums);
  document["advice"] = advice.empty() ? Json(nullptr) : Json(advice);
  const std::string first = report.unknown().empty() ? "?" : UtcDay(report.unknown(0).day_start_us());
  return session.Done(
      document, absl::StrCat("The days from ", first, " to ", UtcDay(report.now_us()), " (UTC), as of ",
                             LocalTime(report.now_us()), ".\n\n", CallsText(report), "\n", UnknownText(report, sums),
                             "\n", ParkedText(report), "\n", AvoidedText(report.avoided()), GatewaysText(report)));
}

}  // namespace

void AddReport(CLI::App& app, Program& program) {
  CLI::App* report = app.add_subcommand("report", "How unknown outcomes are dealt with (role: operator, auditor)");
  auto days = std::make_shared<int>(7);
  report->add_option("--days", *days, "today and the days before it, in UTC (default 7, at most 366)")
      ->check(CLI::Range(1, kDaysMax))
      ->type_name("N");
  report->callback([&program, days] { program.run = [&program, days] { return Report(program.session, *days); }; });
}

}  // namespace tally::cli
