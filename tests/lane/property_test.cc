// Whatever a store does, every job is answered once, and the answer is true.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <optional>
#include <random>
#include <set>
#include <stdexcept>

#include "server/lane/lane.h"
#include "tests/lane/fake.h"

namespace tally::lane {
namespace {

// A store of moods: in percent, how often a transaction ends how, and jobs that never can be stored or always lose.
struct Moods {
  int lost_race, down, in_doubt, throws;
  bool in_doubt_commits;
  std::set<int> poison, unlucky;
};

class MoodyStore : public Store {
 public:
  MoodyStore(Moods moods, unsigned seed, std::multiset<int>& committed, std::vector<int>& order, int& runs, Gate& gate)
      : moods_(std::move(moods)), random_(seed), committed_(committed), order_(order), runs_(runs), gate_(gate) {}

  BatchEnd Run(std::span<Job* const> batch, bool) override {
    if (runs_++ == 0) gate_.Pass();  // so that the jobs that come now make large batches
    int roll = static_cast<int>(random_() % 100);
    if ((roll -= moods_.down) < 0) return BatchEnd::kDown;
    for (Job* job : batch) {
      const int id = static_cast<FakeJob*>(job)->id;
      if (moods_.poison.contains(id)) return BatchEnd::kRejected;
      if (moods_.unlucky.contains(id)) return BatchEnd::kLostRace;
    }
    if ((roll -= moods_.lost_race) < 0) return BatchEnd::kLostRace;
    if ((roll -= moods_.in_doubt) < 0) {
      if (moods_.in_doubt_commits) Commit(batch);
      return BatchEnd::kInDoubt;
    }
    if ((roll -= moods_.throws) < 0) {
      if (moods_.in_doubt_commits) Commit(batch);
      throw std::runtime_error("a bug");
    }
    Commit(batch);
    return BatchEnd::kCommitted;
  }

 private:
  void Commit(std::span<Job* const> batch) {
    for (Job* job : batch) {
      committed_.insert(static_cast<FakeJob*>(job)->id);
      order_.push_back(static_cast<FakeJob*>(job)->id);
    }
  }

  const Moods moods_;
  std::minstd_rand random_;
  std::multiset<int>& committed_;
  std::vector<int>& order_;
  int& runs_;
  Gate& gate_;
};

struct Outcome {
  std::multiset<int> committed;
  std::vector<int> order;
  int runs = 0;
  Fates fates;
  Counts counts;
};

// Job i is a report if i is odd, and past its deadline if it is in `late`.
void CarryOut(int jobs, const std::set<int>& late, const Moods& moods, size_t batch_max, bool in_time, Outcome& out) {
  LaneOptions options;
  options.batch_max = batch_max;
  options.queue_max = 1000;
  options.pause_max = std::chrono::microseconds(0);
  options.patience = kLong;
  Gate gate;
  Lane lane(options, std::make_unique<MoodyStore>(moods, 1 + static_cast<unsigned>(jobs) * 7919u, out.committed,
                                                  out.order, out.runs, gate));
  for (int i = 0; i < jobs; ++i) {
    lane.Submit(MakeJob(i, out.fates, i % 2 == 1 ? Priority::kReport : Priority::kNew,
                        late.contains(i) ? Job::Clock::now() : kNever));
  }
  gate.Open();
  lane.Drain(in_time ? Job::Clock::now() + kLong : Job::Clock::now());
  out.counts = lane.counts();
}

std::set<int> SomeOf(int jobs) {
  const auto some = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, jobs + 3));
  return {some.begin(), some.end()};
}

RC_GTEST_PROP(LaneProperty, EveryJobIsFinishedOnceAndItsFateIsTrue, ()) {
  const int jobs = *rc::gen::inRange(1, 150);
  const auto late = SomeOf(jobs);
  const Moods moods{*rc::gen::inRange(0, 60),
                    *rc::gen::inRange(0, 15),
                    *rc::gen::inRange(0, 10),
                    *rc::gen::inRange(0, 10),
                    *rc::gen::arbitrary<bool>(),
                    SomeOf(5),
                    SomeOf(5)};
  Outcome out;
  CarryOut(jobs, late, moods, *rc::gen::inRange<size_t>(1, 65), *rc::gen::element(true, true, false), out);

  const auto fates = out.fates.Get();
  RC_ASSERT(fates.size() == static_cast<size_t>(jobs));
  uint64_t counted = 0;
  for (const auto n : out.counts.fates) counted += n;
  RC_ASSERT(counted == static_cast<uint64_t>(jobs));
  RC_ASSERT(out.counts.transactions == static_cast<uint64_t>(out.runs));
  for (const auto& [id, fate] : fates) {
    RC_ASSERT(fate.size() == 1u);
    const size_t committed = out.committed.count(id);
    switch (fate[0]) {
      case Fate::kDone:
        RC_ASSERT(committed == 1u);
        RC_ASSERT(!late.contains(id));
        break;
      case Fate::kInDoubt:
        RC_ASSERT(committed == (moods.in_doubt_commits ? 1u : 0u));
        break;
      case Fate::kFailed:
        RC_ASSERT(moods.poison.contains(id));
        RC_ASSERT(committed == 0u);
        break;
      default:  // nothing happened
        RC_ASSERT(committed == 0u);
    }
    if (late.contains(id)) RC_ASSERT(fate[0] == Fate::kExpired || fate[0] == Fate::kShuttingDown);
  }
}

RC_GTEST_PROP(LaneProperty, InASteadyStoreOnlyTheCulpritsSufferAndOrderIsKept, ()) {
  const int jobs = *rc::gen::inRange(1, 150);
  const Moods moods{0, 0, 0, 0, false, SomeOf(jobs), SomeOf(jobs)};
  const size_t batch_max = *rc::gen::inRange<size_t>(1, 65);
  Outcome out;
  CarryOut(jobs, {}, moods, batch_max, true, out);

  for (const auto& [id, fate] : out.fates.Get()) {
    const Fate wanted = moods.poison.contains(id)    ? Fate::kFailed
                        : moods.unlucky.contains(id) ? Fate::kContended
                                                     : Fate::kDone;
    RC_ASSERT(fate == std::vector<Fate>{wanted});
  }
  for (const int odd : {0, 1}) {
    std::vector<int> order;
    std::copy_if(out.order.begin(), out.order.end(), std::back_inserter(order), [&](int id) { return id % 2 == odd; });
    RC_ASSERT(std::is_sorted(order.begin(), order.end()));
  }
  const auto tries = static_cast<uint64_t>(LaneOptions().alone_tries) + 2;
  RC_ASSERT(out.counts.transactions <= out.counts.batch_jobs * tries);
}

RC_GTEST_PROP(LaneProperty, LosingNowAndThenCostsNobodyHisTurn, ()) {
  // One race in five is lost at random: that a job loses four in a row alone, after its batch lost twice, is rare, and
  // it never fails otherwise.
  const int jobs = *rc::gen::inRange(1, 150);
  Outcome out;
  CarryOut(jobs, {}, {20, 0, 0, 0, false, {}, {}}, *rc::gen::inRange<size_t>(1, 65), true, out);
  for (const auto& [id, fate] : out.fates.Get()) {
    RC_ASSERT(fate[0] == Fate::kDone || fate[0] == Fate::kContended);
  }
  RC_ASSERT(out.counts.of(Fate::kContended) <= static_cast<uint64_t>(jobs) / 5 + 2);
}

}  // namespace
}  // namespace tally::lane
