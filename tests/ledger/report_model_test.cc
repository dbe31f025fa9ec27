#include <algorithm>
#include <random>

#include "server/ledger/report_reads.h"
#include "tests/ledger/fixture.h"
#include "tests/model/model.h"

// Any sequence of what gateways, reconcilers and operators may say, to the ledger and to the model of the contract:
// what the database reports must be what the model's attempts add up to.
namespace tally::ledger {
namespace {

using Count = std::map<int, int64_t>;  // by enumerator
using model::State;

constexpr int kKeys = 24;
constexpr int kSteps = 160;
constexpr int64_t kAmount = 100;
constexpr decide::Outcome kOutcomes[] = {decide::Outcome::kNotSent, decide::Outcome::kUncertain,
                                         decide::Outcome::kSucceeded, decide::Outcome::kToolError};

v1::CallState Of(State state) {
  switch (state) {
    case State::kRefused:
      return v1::REFUSED;
    case State::kAuthorized:
      return v1::AUTHORIZED;
    case State::kUncertain:
      return v1::UNCERTAIN;
    case State::kSucceeded:
      return v1::SUCCEEDED;
    case State::kToolError:
      return v1::TOOL_ERROR;
    case State::kReleased:
      return v1::RELEASED;
    case State::kNotHappened:
      return v1::NOT_HAPPENED;
    default:
      return v1::CALL_STATE_UNSPECIFIED;
  }
}

// What a report counts, however it came to be known.
struct Numbers {
  Count calls, closed;
  int64_t attempts = 0, parked = 0, now = 0, escalated = 0, avoided = 0, money = 0, not_sent = 0;
  bool operator==(const Numbers&) const = default;
};

void PrintTo(const Numbers& n, std::ostream* out) {
  *out << "calls" << testing::PrintToString(n.calls) << " closed" << testing::PrintToString(n.closed) << " attempts "
       << n.attempts << " parked " << n.parked << " now " << n.now << " escalated " << n.escalated << " avoided "
       << n.avoided << " money " << n.money << " not sent " << n.not_sent;
}

class Walk {
 public:
  Walk(Ledger& ledger, uint32_t seed) : ledger_(ledger), replica_(ledger), random_(seed) {
    v1::MintRequest terms = OneGrant();
    terms.mutable_grants(0)->set_max_attempts(100);
    terms_ = ledger_.Mint(terms);
    model_.now = 1;
    model_.Mint(
        {.from = 0,
         .until = INT64_MAX,
         .grants = {
             {.repeat_window = 600'000'000, .lease = 120'000'000, .send_within = 10'000'000, .max_attempts = 100}}});
  }

  void Step() {
    ++model_.now;
    const int key = Below(kKeys);
    std::vector<decide::Id>& attempts = attempts_[key];
    const int what = attempts.empty() ? 0 : Below(10);
    if (what < 2) return Authorize(key);
    const int which = Below(3) > 0 ? static_cast<int>(attempts.size()) - 1 : Below(static_cast<int>(attempts.size()));
    const State before = model_.calls[Call(key)].tries[which].state;
    v1::Closer closer = v1::CLOSER_GATEWAY;
    if (what < 6) {
      Commit(key, which);
    } else if (what < 9) {
      closer = Resolve(key, which);
    } else {
      Correct(key, which);
    }
    const State after = model_.calls[Call(key)].tries[which].state;
    if (before == State::kUncertain && after != State::kUncertain) ++closed_[closer];
  }

  Numbers OfModel() const {
    Numbers n;
    n.closed = closed_;
    std::set<std::pair<int, int>> parked;
    for (const model::Receipt& receipt : model_.permits[0].chain) {
      if (receipt.kind == model::Kind::kUncertain) parked.insert({receipt.call, receipt.number});
    }
    n.parked = static_cast<int64_t>(parked.size());
    for (size_t c = 0; c < model_.calls.size(); ++c) {
      const model::Call& call = model_.calls[c];
      ++n.calls[Of(model_.StateOf(call))];
      for (size_t t = 0; t < call.tries.size(); ++t) {
        const model::Try& attempt = call.tries[t];
        ++n.attempts;
        n.now += attempt.state == State::kUncertain;
        n.escalated += attempt.state == State::kUncertain && attempt.escalated != 0;
        n.not_sent += attempt.state == State::kReleased;
        if (attempt.state != State::kSucceeded || !parked.contains({static_cast<int>(c), static_cast<int>(t) + 1}))
          continue;
        ++n.avoided;
        n.money += attempt.spent;
      }
    }
    return n;
  }

  Numbers OfDatabase() const {
    Connection connection(ledger_.conninfo());
    const auto report = GetReport(connection, Ledger::kTenant, 2);  // midnight may have passed
    EXPECT_TRUE(report.ok()) << report.status();
    Numbers n;
    n.now = report->parked().now();
    n.escalated = report->escalations_open();
    n.avoided = report->avoided().calls();
    for (const v1::OutcomeCount& outcome : report->calls()) n.calls[outcome.state()] = outcome.calls();
    for (const v1::ClosedBy& closed : report->closed()) n.closed[closed.closer()] = closed.calls();
    for (const v1::UnknownDay& day : report->unknown()) {
      n.attempts += day.attempts();
      n.parked += day.parked();
    }
    for (const v1::Money& money : report->avoided().money()) n.money += money.amount();
    for (const v1::GatewayShare& gateway : report->gateways()) n.not_sent += gateway.not_sent();
    return n;
  }

 private:
  int Below(int limit) { return std::uniform_int_distribution<int>(0, limit - 1)(random_); }
  int Call(int key) const { return model_.keys.at({0, key}); }

  void Authorize(int key) {
    model::Authorize m{.who = {.id = 0},
                       .key = key,
                       .attempt = ++attempts_made_,
                       .meaning = {.arguments = key},
                       .grant = 1,
                       .amount = kAmount,
                       .intent = key};
    const Reply reply = replica_.Authorize(
        *terms_,
        {.key = "k" + std::to_string(key), .arguments = R"({"amount":100,"act":)" + std::to_string(key) + "}"});
    const size_t had = model_.keys.contains({0, key}) ? model_.calls[Call(key)].tries.size() : 0;
    model_.Say(m);
    const bool granted = model_.calls[Call(key)].tries.size() > had;
    ASSERT_EQ(reply.answer.verdict == decide::Verdict::kDispatch, granted);
    if (!granted) return;
    attempts_[key].push_back(reply.answer.attempt_id);
    call_ids_[key] = *reply.answer.call_id;
  }

  void Commit(int key, int which) {
    const int outcome = Below(4);
    replica_.Run(
        replica_.CommitJob(call_ids_[key], attempts_[key][which], kOutcomes[outcome], outcome == 2 ? "result" : ""));
    model_.Say(model::Commit{.who = {.id = 0},
                             .call = {.call = Call(key)},
                             .attempt = Try(key, which).id,
                             .outcome = static_cast<model::Outcome>(outcome),
                             .content = outcome,
                             .has_result = outcome == 2});
  }

  model::Try& Try(int key, int which) { return model_.calls[Call(key)].tries[which]; }

  // Of the receipt that the attempt stands on.
  std::string ReceiptOf(const decide::Id& attempt) {
    const std::string id = "'" + keys::UuidText({reinterpret_cast<const char*>(attempt.data()), attempt.size()}) + "'";
    const std::string hex = ledger_.Query(
        "SELECT encode(state_receipt, 'hex') FROM (SELECT attempt_id, state_receipt FROM"
        " calls UNION ALL SELECT attempt_id, state_receipt FROM attempts WHERE state IS"
        " NOT NULL) a WHERE attempt_id = " +
        id);
    return keys::HexDecode(hex).value_or("");
  }

  template <typename Request>
  void Run(Request request, int key) {
    Bodies bodies;
    bodies.evidence = "said";
    bodies.reference = "ref";
    bodies.reason = "asked";
    replica_.Run(std::make_unique<CallJob>(ShardOf(call_ids_[key]), lane::Priority::kReport,
                                           lane::Job::Clock::time_point::max(), std::move(request), std::move(bodies),
                                           [](lane::Fate, Reply&) {}));
  }

  template <typename Request>
  Request Judging(int key, int which, v1::Role role, decide::Finding finding, std::optional<int64_t> amount) {
    Request request;
    request.principal.id = ledger_.Principal(role);
    request.call_id = call_ids_[key];
    request.attempt_id = attempts_[key][which];
    request.supersedes = ReceiptOf(request.attempt_id);
    request.finding = finding;
    request.evidence.source = "provider";
    request.evidence.amount = amount;
    return request;
  }

  v1::Closer Resolve(int key, int which) {
    const v1::Role role = Below(2) == 0 ? v1::OPERATOR : v1::RECONCILER;
    const model::Who who{.id = role, .role = role == v1::OPERATOR ? model::Role::kOperator : model::Role::kReconciler};
    const int finding = Below(3);
    const std::optional<int64_t> amount = Below(2) == 0 ? std::optional<int64_t>(250) : std::nullopt;
    auto request = Judging<decide::ResolveRequest>(key, which, role, static_cast<decide::Finding>(finding), amount);
    model::Judge m{.who = who,
                   .call = Call(key),
                   .attempt = Try(key, which).id,
                   .receipt = Try(key, which).end,
                   .finding = static_cast<model::Finding>(finding),
                   .amount = amount};
    if (role == v1::RECONCILER) {
      decide::ClaimRequest claim;
      claim.principal.id = ledger_.Principal(role);
      claim.call_id = request.call_id;
      claim.new_claim_id = NewAttemptId();
      claim.claim = decide::kHour;
      request.claim_id = claim.new_claim_id;
      Run(claim, key);
      m.claim = ++claims_made_;
      model_.Say(model::Claim{.who = who, .call = Call(key), .claim = m.claim, .length = decide::kHour});
    }
    Run(request, key);
    model_.Resolve(m);
    return role == v1::OPERATOR ? v1::CLOSER_OPERATOR : v1::CLOSER_RECONCILER;
  }

  void Correct(int key, int which) {
    const int finding = Below(2);
    Run(Judging<decide::CorrectRequest>(key, which, v1::OPERATOR, static_cast<decide::Finding>(finding), std::nullopt),
        key);
    model_.Correct({.who = {.id = v1::OPERATOR, .role = model::Role::kOperator},
                    .call = Call(key),
                    .attempt = Try(key, which).id,
                    .receipt = Try(key, which).end,
                    .finding = static_cast<model::Finding>(finding)});
  }

  Ledger& ledger_;
  Replica replica_;
  std::minstd_rand random_;
  std::shared_ptr<const decide::PermitTerms> terms_;
  model::Model model_;
  std::map<int, std::vector<decide::Id>> attempts_;  // by key, in order
  std::map<int, decide::Id> call_ids_;
  Count closed_;
  int attempts_made_ = 0, claims_made_ = 0;
};

TEST(ReportModel, AnyStoryIsReportedAsTheModelAddsItUp) {
  Count seen;
  for (uint32_t seed = 1; seed <= 3; ++seed) {
    Ledger ledger;
    Walk walk(ledger, seed);
    for (int step = 0; step < kSteps; ++step) {
      walk.Step();
      if (testing::Test::HasFatalFailure()) FAIL() << "seed " << seed << ", step " << step;
      if (step % 10 == 9) {
        ASSERT_EQ(walk.OfDatabase(), walk.OfModel()) << "seed " << seed << ", step " << step;
      }
    }
    EXPECT_EQ(ledger.BrokenRule(), "");
    const Numbers end = walk.OfModel();
    for (const auto& [closer, count] : end.closed) seen[closer] += count;
    seen[100] += end.avoided;
    seen[101] += end.not_sent;
  }
  // A walk that stops reaching something is noticed.
  for (const int what : {1, 2, 3, 100, 101}) EXPECT_GE(seen[what], 2) << what;
}

}  // namespace
}  // namespace tally::ledger
