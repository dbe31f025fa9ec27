#include <random>

#include "tests/decide/fixture.h"

// What it is all for: gateways that keep to the contract, a provider that now and then does not answer, a network that
// loses, repeats and delays, processes and transactions that die at any point, a reconciler that asks the provider, and
// agents that try again under old and new keys. Whatever happens, nothing is done twice.
namespace tally::decide::testing {
namespace {

constexpr Time kSendWithin = 10 * kSecond;
constexpr Time kProviderDelay = 20 * kSecond;  // it acts that long after it was asked, at most

struct Dispatch {
  enum class Journal { kAsking, kSending, kNotSent, kUncertain, kAnswered };
  std::string key, attempt;
  Time first_asked = 0;
  Journal journal = Journal::kAsking;
  bool alive = true;  // the process that made it
  bool acts = false;  // the provider carries it out, at:
  Time acts_at = 0;
  bool answer_comes = false;
  bool committed = false;  // the last thing to be said was acknowledged
  bool late_answer_said = false;
};

struct Message {
  size_t dispatch = 0;
  bool authorize = false;
  Outcome outcome = kUncertain;
};

class HonestWorld : public DecideTest {
 public:
  explicit HonestWorld(uint64_t seed) : dice_(seed) {
    GrantTerms terms = Open();
    terms.repeat_window = 1000 * kDay;
    terms.max_attempts = 20;
    Mint(terms);
  }
  void TestBody() override {}

  void Live() {
    for (int i = 0; i < 80; ++i) Step();
  }

  // Everything is said at last and everything that is parked is asked about.
  void SettleDown() {
    for (int round = 0; round < 6; ++round) {
      for (size_t i = 0; i < dispatches_.size(); ++i) {
        Dispatch& d = dispatches_[i];
        if (d.journal == Dispatch::Journal::kAsking) d.journal = Dispatch::Journal::kNotSent;
        if (d.journal == Dispatch::Journal::kSending) d.journal = Dispatch::Journal::kUncertain;
        Deliver({i, false, OutcomeOf(d)}, false);
      }
      Pass(kHour);
      for (const std::string& key : keys_) Reconcile(key, false);
    }
  }

  int Done() const {
    int done = 0;
    for (const Dispatch& d : dispatches_) done += d.acts && d.acts_at <= now();
    return done;
  }

  void ExpectTheTruth() {
    int succeeded = 0;
    for (const std::string& key : keys_) {
      if (!Known(key)) continue;
      EXPECT_FALSE(call(key).open()) << key;
      succeeded += !call(key).bound_to && StateOf(key) == v1::SUCCEEDED;
    }
    EXPECT_EQ(succeeded, Done()) << "as many calls stand as successes as things were done";
    EXPECT_EQ(permit().open_calls, 0);
    EXPECT_EQ(grant().held, 0);
  }

 private:
  int Below(int n) { return static_cast<int>(dice_() % static_cast<uint64_t>(n)); }
  bool Percent(int p) { return Below(100) < p; }

  void Step() {
    const int roll = Below(100);
    if (roll < 15) {
      Ask();
    } else if (roll < 55) {
      if (!network_.empty()) DeliverOne();
    } else if (roll < 65) {
      Restart();
    } else if (roll < 80) {
      SayWhatIsToBeSaid();
    } else if (roll < 92) {
      Pass(Below(4) == 0 ? 200 * kSecond : Below(30) * kSecond);
    } else {
      Reconcile(keys_[static_cast<size_t>(Below(3))], true);
    }
  }

  void Ask() {
    Dispatch d;
    d.key = keys_[static_cast<size_t>(Below(3))];
    d.attempt = "dispatch " + std::to_string(dispatches_.size());
    d.first_asked = now();
    dispatches_.push_back(d);
    network_.push_back({dispatches_.size() - 1, true});
  }

  void DeliverOne() {
    const size_t i = static_cast<size_t>(Below(static_cast<int>(network_.size())));
    const Message message = network_[i];
    if (!Percent(25)) network_.erase(network_.begin() + static_cast<std::ptrdiff_t>(i));  // else it comes twice
    if (!Percent(10)) Deliver(message, true);                                             // else it is lost
  }

  void Deliver(const Message& message, bool troubled) {
    Dispatch& d = dispatches_[message.dispatch];
    const Verdict verdict = message.authorize ? Authorize(d.key, {.attempt = d.attempt})
                                              : Commit(d.key, message.outcome, {.attempt = d.attempt});
    if (troubled && Percent(12)) return Crash();  // decided, neither stored nor answered
    if (troubled && Percent(12)) return;          // stored, the reply lost
    if (!message.authorize) {
      d.committed = d.committed || OutcomeOf(d) == message.outcome;
      return;
    }
    if (!d.alive || d.journal != Dispatch::Journal::kAsking) return;
    if (verdict == kDispatch && now() - d.first_asked < kSendWithin) {
      d.journal = Dispatch::Journal::kSending;
      d.acts = Percent(60);
      d.acts_at = now() + Below(20) * kSecond;
      d.answer_comes = Percent(60);
    } else if (Info(verdict).disposition == v1::DISPATCH || Info(verdict).disposition == v1::PENDING) {
      d.journal = Dispatch::Journal::kNotSent;  // not one byte was written
    }
  }

  // A gateway dies. Its journal says what it had begun; what it had only asked for it will not send.
  void Restart() {
    if (dispatches_.empty()) return;
    Dispatch& d = dispatches_[static_cast<size_t>(Below(static_cast<int>(dispatches_.size())))];
    if (!d.alive) return;
    d.alive = false;
    if (d.journal == Dispatch::Journal::kSending) {
      d.journal = Dispatch::Journal::kUncertain;
      d.answer_comes = false;
    }
  }

  static Outcome OutcomeOf(const Dispatch& d) {
    if (d.journal == Dispatch::Journal::kNotSent) return kNotSent;
    if (d.journal == Dispatch::Journal::kUncertain) return kUncertain;
    return d.acts ? kSucceeded : kToolError;  // an error is an answer: it did not happen
  }

  void SayWhatIsToBeSaid() {
    for (size_t i = 0; i < dispatches_.size(); ++i) {
      Dispatch& d = dispatches_[i];
      if (d.journal == Dispatch::Journal::kAsking) {
        const bool over = now() - d.first_asked >= kSendWithin;
        if (!d.alive && over) d.journal = Dispatch::Journal::kNotSent;
        if (d.alive && !over) network_.push_back({i, true});  // its first reply may have been lost
        if (d.alive && over) d.journal = Dispatch::Journal::kNotSent;
      }
      const bool acted = now() >= d.acts_at;
      if (d.journal == Dispatch::Journal::kSending && acted) {
        d.journal = d.answer_comes ? Dispatch::Journal::kAnswered : Dispatch::Journal::kUncertain;
      }
      if (d.journal == Dispatch::Journal::kUncertain && d.alive && acted && !d.late_answer_said && Percent(20)) {
        d.late_answer_said = true;
        network_.push_back({i, false, d.acts ? kSucceeded : kToolError});
      }
      const bool something = d.journal != Dispatch::Journal::kAsking && d.journal != Dispatch::Journal::kSending;
      if (something && !d.committed) network_.push_back({i, false, OutcomeOf(d)});
    }
  }

  // An honest look-up: "not found" is final only once nothing can be under way any more.
  void Reconcile(const std::string& key, bool troubled) {
    if (!Known(key) || call(key).attempts.empty()) return;
    Sweep(key);
    if (StateOf(key) != v1::UNCERTAIN) return;
    const decide::Attempt last = call(key).attempts.back();
    if (now() < last.lease_end + kProviderDelay) return;
    std::string name;
    bool happened = false;
    for (const Dispatch& d : dispatches_) {
      if (AttemptId(d.attempt) != last.attempt_id) continue;
      name = d.attempt;
      happened = d.acts;
    }
    const Finding finding = troubled && Percent(15) ? kCannotTell : happened ? kHappened : kNotHappened;
    EXPECT_EQ(Resolve(key, finding, {.attempt = name}), kRecorded);
    if (troubled && Percent(15)) Crash();
  }

  std::mt19937_64 dice_;
  std::vector<Dispatch> dispatches_;
  std::vector<Message> network_;
  const std::vector<std::string> keys_ = {"first key", "second key", "third key"};  // all for the same act
};

TEST(HonestWorld, NothingIsDoneTwice) {
  int done = 0;
  constexpr int kHistories = 500;
  for (uint64_t seed = 0; seed < kHistories; ++seed) {
    SCOPED_TRACE(seed);
    HonestWorld world(seed);
    world.Live();
    ASSERT_LE(world.Done(), 1);
    world.SettleDown();
    ASSERT_LE(world.Done(), 1);
    world.ExpectTheTruth();
    done += world.Done();
    if (::testing::Test::HasFailure()) return;
  }
  EXPECT_GT(done, kHistories / 2) << "the world is too cautious to show anything";
}

}  // namespace
}  // namespace tally::decide::testing
