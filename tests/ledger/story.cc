#include "tests/ledger/story.h"

namespace tally::ledger {
namespace {

std::unique_ptr<CallJob> Job(const decide::Id& call_id, Request request) {
  Bodies bodies;
  bodies.evidence = "what the provider said";
  bodies.reference = "ref";
  bodies.reason = "asked";
  return std::make_unique<CallJob>(ShardOf(call_id), lane::Priority::kReport, lane::Job::Clock::time_point::max(),
                                   std::move(request), std::move(bodies), [](lane::Fate, Reply&) {});
}

}  // namespace

Reply Story::Authorize(const std::string& key, const std::string& arguments, const std::string& tool) {
  Reply reply = replica_.Authorize(
      *terms_, {.key = key,
                .arguments = arguments.empty() ? R"({"amount":100,"act":")" + key + "\"}" : arguments,
                .tool = tool});
  if (reply.answer.verdict == decide::Verdict::kDispatch) granted_[key] = reply;
  return reply;
}

Reply Story::Commit(const std::string& key, decide::Outcome outcome) {
  return replica_.Commit(granted_.at(key), outcome, outcome == decide::Outcome::kSucceeded ? "done" : "");
}

Reply Story::Park(const std::string& key) {
  const Reply granted = Authorize(key);
  EXPECT_EQ(granted.answer.verdict, decide::Verdict::kDispatch) << key;
  Reply parked = Commit(key, decide::Outcome::kUncertain);
  EXPECT_EQ(parked.answer.state, v1::UNCERTAIN) << key;
  parked_[key] = {granted, parked.receipts.at(0).receipt_id()};
  return parked;
}

Reply Story::CommitParked(const std::string& key, decide::Outcome outcome) {
  return replica_.Commit(parked_.at(key).first, outcome, outcome == decide::Outcome::kSucceeded ? "late" : "");
}

void Story::Claim(const std::string& key, const decide::Id& claim_id) {
  decide::ClaimRequest request;
  request.principal.id = ledger_.Principal(v1::RECONCILER);
  request.call_id = *parked_.at(key).first.answer.call_id;
  request.new_claim_id = claim_id;
  request.claim = decide::kSecond * 60;
  EXPECT_EQ(replica_.Run(Job(request.call_id, request)).answer.verdict, decide::Verdict::kRecorded) << key;
}

std::unique_ptr<CallJob> Story::ResolveJob(const std::string& key, decide::Finding finding, v1::Role role,
                                           std::optional<int64_t> amount) {
  const auto& [granted, uncertain] = parked_.at(key);
  decide::ResolveRequest request;
  request.principal.id = ledger_.Principal(role);
  request.call_id = *granted.answer.call_id;
  request.attempt_id = granted.answer.attempt_id;
  request.supersedes = uncertain;
  request.finding = finding;
  request.evidence.source = "provider";
  request.evidence.amount = amount;
  if (role == v1::RECONCILER) {
    request.claim_id = NewAttemptId();
    Claim(key, *request.claim_id);
  }
  return Job(request.call_id, request);
}

Reply Story::Correct(const std::string& key, const Reply& ended, decide::Finding finding) {
  const Reply& granted = parked_.contains(key) ? parked_.at(key).first : granted_.at(key);
  decide::CorrectRequest request;
  request.principal.id = ledger_.Principal(v1::OPERATOR);
  request.call_id = *granted.answer.call_id;
  request.attempt_id = granted.answer.attempt_id;
  request.supersedes = ended.receipts.at(0).receipt_id();
  request.finding = finding;
  request.evidence.source = "provider";
  Reply reply = replica_.Run(Job(request.call_id, request));
  EXPECT_EQ(reply.answer.verdict, decide::Verdict::kRecorded) << key;
  return reply;
}

}  // namespace tally::ledger
