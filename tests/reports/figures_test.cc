#include "server/tallyd/figures.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <set>
#include <thread>

#include "server/tallyd/figure_families.h"

namespace tally::tallyd {
namespace {

using prometheus::MetricFamily;

std::shared_ptr<const ledger::Figures> Ask(Figures& figures) {
  std::promise<Figures::Shared> answer;
  figures.Get([&answer](Figures::Shared shared) { answer.set_value(std::move(shared)); });
  return answer.get_future().get();
}

TEST(Figures, AStormOfScrapesReadsOnce) {
  std::atomic<int> reads = 0;
  Figures figures([&]() -> absl::StatusOr<ledger::Figures> {
    ++reads;
    return ledger::Figures{};
  });
  std::vector<std::thread> scrapers;
  for (int i = 0; i < 8; ++i) {
    scrapers.emplace_back([&] {
      for (int n = 0; n < 100; ++n) EXPECT_NE(Ask(figures), nullptr);
    });
  }
  for (std::thread& scraper : scrapers) scraper.join();
  // Two, should the eight have taken over five seconds to ask.
  EXPECT_GE(reads, 1);
  EXPECT_LE(reads, 2);
}

TEST(Figures, ThoseWhoComeWhileTheyAreReadGetThatReading) {
  std::atomic<int> reads = 0;
  std::promise<void> may_end;
  std::shared_future<void> end = may_end.get_future().share();
  Figures figures([&]() -> absl::StatusOr<ledger::Figures> {
    ++reads;
    end.wait();
    return ledger::Figures{};
  });
  std::promise<void> all;
  std::atomic<int> answered = 0;
  for (int i = 0; i < 10; ++i) {
    figures.Get([&](const Figures::Shared& shared) {
      EXPECT_NE(shared, nullptr);
      if (++answered == 10) all.set_value();
    });
  }
  EXPECT_EQ(figures.Recent(), nullptr) << "there are none yet, late or not";
  may_end.set_value();
  all.get_future().wait();
  EXPECT_EQ(reads, 1);
  EXPECT_NE(figures.Recent(), nullptr);
}

TEST(Figures, AFailureIsToldAtOnceAndOldValuesAreNot) {
  std::atomic<bool> away = true;
  Figures figures([&]() -> absl::StatusOr<ledger::Figures> {
    if (away) return absl::UnavailableError("away");
    return ledger::Figures{};
  });
  EXPECT_EQ(Ask(figures), nullptr);
  EXPECT_EQ(figures.Recent(), nullptr);
  away = false;
  Figures::Shared got;
  for (int tries = 0; tries < 500 && got == nullptr; ++tries) {  // a failure is kept for a second
    got = Ask(figures);
    if (got == nullptr) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_NE(got, nullptr);
}

TEST(Figures, AnEndDoesNotWaitForWhoAsks) {
  std::atomic<int> answered = 0;
  {
    Figures figures([]() -> absl::StatusOr<ledger::Figures> { return absl::UnavailableError("away"); });
    figures.Get([&](const Figures::Shared&) { ++answered; });
  }
  EXPECT_LE(answered, 1);
}

const MetricFamily* Find(const std::vector<MetricFamily>& families, const std::string& name) {
  for (const MetricFamily& family : families) {
    if (family.name == name) return &family;
  }
  return nullptr;
}

TEST(FigureFamilies, WithoutFiguresSayOnlyThatThereAreNone) {
  const auto families = FigureFamilies(nullptr);
  ASSERT_EQ(families.size(), 1u);
  EXPECT_EQ(families[0].name, "tally_report_up");
  EXPECT_EQ(families[0].metric.at(0).gauge.value, 0);
}

TEST(FigureFamilies, AreBoundedByTenantAndUnitAndSayWhatIsLeftOut) {
  ledger::Figures figures;
  figures.tenants_left_out = 3;
  for (int t = 0; t < kFigureTenantsMax; ++t) {
    ledger::TenantFigures& tenant = figures.tenants["t" + std::to_string(t)];
    for (int u = 0; u < kFigureUnitsMax + (t == 0 ? 2 : 0); ++u) tenant.money["U" + std::to_string(u) + "/2"] = u + 1;
    for (int state = v1::AUTHORIZED; state <= v1::NOT_HAPPENED; ++state) {
      tenant.attempts[static_cast<v1::CallState>(state)] = state;
    }
    for (const v1::Closer closer : {v1::CLOSER_GATEWAY, v1::CLOSER_RECONCILER, v1::CLOSER_OPERATOR}) {
      tenant.report.add_closed()->set_closer(closer);
    }
  }
  const auto families = FigureFamilies(&figures);
  std::set<std::string> names;
  size_t series = 0;
  for (const MetricFamily& family : families) {
    EXPECT_TRUE(names.insert(family.name).second) << family.name;
    EXPECT_FALSE(family.help.empty());
    EXPECT_EQ(family.name.ends_with("_total"), family.type == prometheus::MetricType::Counter) << family.name;
    std::set<std::string> labels;
    for (const auto& metric : family.metric) {
      std::string text;
      for (const auto& label : metric.label) text += label.name + "=" + label.value + ",";
      EXPECT_TRUE(labels.insert(text).second) << family.name << " " << text;
    }
    series += family.metric.size();
  }
  EXPECT_LE(series, size_t{40} * kFigureTenantsMax);
  EXPECT_EQ(Find(families, "tally_parked_happened_money")->metric.size(), size_t{kFigureUnitsMax} * kFigureTenantsMax);
  const MetricFamily& left_out = *Find(families, "tally_report_left_out");
  EXPECT_EQ(left_out.metric.at(0).gauge.value, 3);
  EXPECT_EQ(left_out.metric.at(1).gauge.value, 2);
}

}  // namespace
}  // namespace tally::tallyd
