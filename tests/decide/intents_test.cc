#include "tests/decide/fixture.h"

// Another key, same intent.
namespace tally::decide::testing {
namespace {

class Intents : public DecideTest {
 protected:
  static GrantTerms Scoped(v1::IntentScope scope) {
    GrantTerms grant = Open();
    grant.scope = scope;
    return grant;
  }
  int MintFor(const std::string& subject, GrantTerms grant) {
    PermitTerms terms;
    terms.subject = subject;
    terms.grants.push_back(std::move(grant));
    return MintPermit(std::move(terms));
  }
  void Do(const std::string& key, const Ask& ask = {}, const Say& say = {}) {
    ASSERT_EQ(Authorize(key, ask), kDispatch);
    Say at = say;
    at.permit = ask.permit;
    ASSERT_EQ(Commit(key, kSucceeded, at), kRecorded);
  }
};

// ---- Pending ----

TEST_F(Intents, WhileAuthorized_AnotherKeyIsPending) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  EXPECT_EQ(Authorize("k2"), kIntentPending);
  EXPECT_EQ(Info(kIntentPending).disposition, v1::PENDING);
  EXPECT_EQ(receipt().kind(), v1::CALL_DENIED);
  EXPECT_EQ(receipt().code(), "INTENT_PENDING");
  EXPECT_FALSE(answer().opaque_reference.empty());
  EXPECT_NE(answer().call_id, call("k1").call_id) << "it never carries the other call's id";
}

TEST_F(Intents, WhileParked_AnotherKeyIsPending_HoweverLong) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Commit("k1", kUncertain), kRecorded);
  Pass(90 * kDay);
  EXPECT_EQ(Authorize("k2"), kIntentPending);
}

TEST_F(Intents, PastTheLease_AnotherKeyIsPending_ThoughNobodyHasParkedIt) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  Pass(kHour);
  EXPECT_EQ(Authorize("k2"), kIntentPending);
}

TEST_F(Intents, RepeatDoesNotPassPending) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  EXPECT_EQ(Authorize("k2", {.repeat = true}), kIntentPending);
}

TEST_F(Intents, WhatIsIgnoredMakesNoOtherIntent) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1", {.noise = 1}), kDispatch);
  EXPECT_EQ(Authorize("k2", {.noise = 2}), kIntentPending) << "a fresh uuid in an argument does not escape";
}

TEST_F(Intents, OtherArgumentsAreAnotherIntent) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  EXPECT_EQ(Authorize("k2", {.arguments = 2}), kDispatch);
}

TEST_F(Intents, AreFreeAgainAfterEveryEndButSuccess) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Commit("k1", kNotSent), kRecorded);
  ASSERT_EQ(Authorize("k2"), kDispatch) << "RELEASED";
  ASSERT_EQ(Commit("k2", kToolError), kRecorded);
  ASSERT_EQ(Authorize("k3"), kDispatch) << "TOOL_ERROR";
  ASSERT_EQ(Commit("k3", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("k3", kNotHappened), kRecorded);
  EXPECT_EQ(Authorize("k4"), kDispatch) << "NOT_HAPPENED";
}

TEST_F(Intents, AClaimIsNotKeptByACrash) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  Crash();
  EXPECT_EQ(Authorize("k2"), kDispatch);
  EXPECT_EQ(Authorize("k1"), kIntentPending);
}

// ---- Done ----

TEST_F(Intents, AfterSuccess_AnotherKeyReplaysAndIsBound) {
  Mint(Open());
  Do("k1");
  EXPECT_EQ(Authorize("k2"), kReplay);
  EXPECT_EQ(answer().repeat_of, call("k1").call_id);
  EXPECT_EQ(answer().result_of, call("k1").call_id);
  EXPECT_EQ(receipt().kind(), v1::CALL_REPEATED);
  EXPECT_EQ(call("k2").bound_to, call("k1").call_id);
  EXPECT_EQ(grant().slots, 1);
}

TEST_F(Intents, TheWindowEndsToTheMicrosecond) {
  Mint(Open());
  Do("k1");
  Pass(10 * kMinute - 1);
  EXPECT_EQ(Authorize("k2"), kReplay);
  Pass(1);
  EXPECT_EQ(Authorize("k3"), kDispatch);
}

TEST_F(Intents, TheWindowRunsFromTheMomentOfSuccess) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  Pass(100 * kSecond);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  Pass(10 * kMinute - 1);
  EXPECT_EQ(Authorize("k2"), kReplay);
}

TEST_F(Intents, TheWindowIsADayIfItWasEverUncertain) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Commit("k1", kUncertain), kRecorded);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  Pass(kDay - 1);
  EXPECT_EQ(Authorize("k2"), kReplay);
  Pass(1);
  EXPECT_EQ(Authorize("k3"), kDispatch);
}

TEST_F(Intents, TheWindowIsADayFromTheResolution) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Commit("k1", kUncertain), kRecorded);
  Pass(3 * kDay);
  ASSERT_EQ(Resolve("k1", kHappened), kRecorded);
  Pass(kDay - 1);
  EXPECT_EQ(Authorize("k2"), kReplay);
}

TEST_F(Intents, TheWindowIsADayIfItsAnswerWasUndelivered) {
  Mint(Open());
  Do("k1", {}, {.undelivered = true});
  Pass(kDay - 1);
  EXPECT_EQ(Authorize("k2"), kReplay);
}

TEST_F(Intents, UndeliveredMayBeAddedLater) {
  Mint(Open());
  Do("k1");
  Pass(kMinute);
  ASSERT_EQ(Commit("k1", kSucceeded, {.undelivered = true}), kRecorded);
  Pass(kDay - kMinute - 1);
  EXPECT_EQ(Authorize("k2"), kReplay) << "a day from the success";
  Pass(1);
  EXPECT_EQ(Authorize("k3"), kDispatch);
}

TEST_F(Intents, WindowZero_AnAnswerInTimeHasNoWindow) {
  GrantTerms grant = Open();
  grant.repeat_window = 0;
  Mint(grant);
  Do("k1");
  EXPECT_EQ(Authorize("k2"), kDispatch);
}

TEST_F(Intents, WindowZero_IsADayAllTheSameWhereThereWasDoubt) {
  GrantTerms grant = Open();
  grant.repeat_window = 0;
  Mint(grant);
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Commit("k1", kUncertain), kRecorded);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  Pass(kDay - 1);
  EXPECT_EQ(Authorize("k2"), kReplay);
}

TEST_F(Intents, AWindowLongerThanADayIsNotShortened) {
  GrantTerms grant = Open();
  grant.repeat_window = 3 * kDay;
  Mint(grant);
  Do("k1", {}, {.undelivered = true});
  Pass(3 * kDay - 1);
  EXPECT_EQ(Authorize("k2"), kReplay);
}

TEST_F(Intents, AKeySeenBeforeTheSuccessIsInsideTheWindowForGood) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Authorize("k2"), kIntentPending);
  Pass(kSecond);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  Pass(30 * kDay);
  EXPECT_EQ(Authorize("k2"), kReplay) << "the agent that timed out comes back with the key it had";
}

TEST_F(Intents, AKeySeenInTheInstantOfTheSuccessCountsAsBefore) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Authorize("k2"), kIntentPending);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  Pass(30 * kDay);
  EXPECT_EQ(Authorize("k2"), kReplay);
}

TEST_F(Intents, OldKeysThatDecideAgainMeetTheWindow) {
  Mint(Open());
  ASSERT_EQ(Authorize("old"), kDispatch);
  ASSERT_EQ(Commit("old", kNotSent), kRecorded);
  Do("k1");
  Pass(30 * kDay);
  EXPECT_EQ(Authorize("old"), kReplay);
  EXPECT_EQ(call("old").bound_to, call("k1").call_id);
}

TEST_F(Intents, ABoundKeysOwnAttemptsCanStillBeCommittedByKey) {
  Mint(Open());
  ASSERT_EQ(Authorize("old", {.attempt = "a"}), kDispatch);
  ASSERT_EQ(Commit("old", kNotSent), kRecorded);
  Do("k1");
  ASSERT_EQ(Authorize("old"), kReplay);
  EXPECT_EQ(Commit("old", kSucceeded, {.attempt = "a"}), kRecorded);
  EXPECT_EQ(receipt().kind(), v1::CALL_CONTRADICTED);
  EXPECT_FALSE(call("old").bound_to.has_value()) << "what has happened itself is no other call's name";
  EXPECT_EQ(Authorize("old"), kReplay);
  EXPECT_EQ(answer().call_id, call("old").call_id);
}

TEST_F(Intents, TwoCallsNeverBecomeEachOthersNames) {
  Mint(Open());
  ASSERT_EQ(Authorize("a", {.attempt = "a1"}), kDispatch);
  ASSERT_EQ(Commit("a", kNotSent), kRecorded);
  ASSERT_EQ(Authorize("b"), kDispatch);
  ASSERT_EQ(Commit("b", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("b", kHappened), kRecorded);
  ASSERT_EQ(Authorize("a"), kReplay) << "another name of b";
  ASSERT_EQ(Correct("a", kHappened, {.attempt = "a1"}), kRecorded) << "but it had happened too";
  ASSERT_EQ(Correct("b", kNotHappened), kRecorded) << "and b had not";
  EXPECT_EQ(Authorize("b"), kReplay) << "another name of a";
  EXPECT_EQ(Authorize("a"), kReplay);
  EXPECT_EQ(answer().call_id, call("a").call_id);
}

TEST_F(Intents, RepeatPassesTheWindow) {
  Mint(Open());
  Do("k1");
  EXPECT_EQ(Authorize("k2", {.repeat = true}), kDispatch);
  EXPECT_EQ(grant().slots, 2);
}

TEST_F(Intents, RepeatNeverPassesABoundKey) {
  Mint(Open());
  Do("k1");
  ASSERT_EQ(Authorize("k2"), kReplay);
  EXPECT_EQ(Authorize("k2", {.repeat = true}), kReplay);
}

TEST_F(Intents, AToolErrorLeavesNoWindow) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Commit("k1", kToolError), kRecorded);
  EXPECT_EQ(Authorize("k2"), kDispatch);
}

TEST_F(Intents, ABoundKeyDecidesForItsCallWhenThatIsCorrectedAway) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Commit("k1", kUncertain), kRecorded);
  ASSERT_EQ(Resolve("k1", kHappened), kRecorded);
  ASSERT_EQ(Authorize("k2"), kReplay);
  ASSERT_EQ(Correct("k1", kNotHappened), kRecorded);
  EXPECT_EQ(Authorize("k2", {.attempt = "b"}), kDispatch);
  EXPECT_EQ(answer().call_id, call("k1").call_id);
  EXPECT_EQ(answer().attempt_number, 2);
  EXPECT_EQ(Commit("k2", kSucceeded, {.attempt = "b"}), kRecorded) << "named by the key it was asked under";
  EXPECT_EQ(StateOf("k1"), v1::SUCCEEDED);
}

// ---- READ ----

TEST_F(Intents, ReadsClaimNoneAndMeetNone) {
  Mint(Read());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  EXPECT_EQ(Authorize("k2"), kDispatch);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  EXPECT_EQ(Authorize("k3"), kDispatch);
}

TEST_F(Intents, ALateAnswerToAReadGivesNothingFreeTwice) {
  Mint(Read());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  Pass(kHour);
  Sweep("k1");
  EXPECT_EQ(Commit("k1", kSucceeded), kRecorded);  // the store would refuse to free what is no longer held
  EXPECT_EQ(StateOf("k1"), v1::SUCCEEDED);
}

// ---- Explicit ----

TEST_F(Intents, AnExplicitIntentIsCheckedInAddition) {
  Mint(Open());
  ASSERT_EQ(Authorize("k1", {.intent = 7}), kDispatch);
  EXPECT_EQ(Authorize("k2", {.arguments = 2, .intent = 7}), kIntentPending) << "other arguments, same explicit intent";
  EXPECT_EQ(Authorize("k3", {.intent = 8}), kIntentPending) << "same arguments: never instead";
  EXPECT_EQ(Authorize("k4", {.arguments = 2, .intent = 8}), kDispatch);
}

TEST_F(Intents, AnExplicitIntentThatIsDoneGivesNoResultAndBindsNothing) {
  Mint(Open());
  Do("k1", {.intent = 7});
  EXPECT_EQ(Authorize("k2", {.arguments = 2, .intent = 7}), kAlreadyDone);
  EXPECT_EQ(Info(kAlreadyDone).disposition, v1::REPLAY);
  EXPECT_FALSE(answer().result_of.has_value());
  EXPECT_FALSE(answer().opaque_reference.empty());
  EXPECT_FALSE(call("k2").bound_to.has_value());
  EXPECT_EQ(receipt().code(), "ALREADY_DONE");
  Pass(11 * kMinute);
  EXPECT_EQ(Authorize("k3", {.arguments = 3, .intent = 7}), kDispatch) << "a new key, after the window";
}

TEST_F(Intents, AlreadyDoneIsAPassingRefusal) {
  Mint(Open());
  Do("k1", {.intent = 7});
  Pass(kSecond);
  ASSERT_EQ(Authorize("k2", {.arguments = 2, .intent = 7}), kAlreadyDone);
  const size_t length = ChainLength();
  EXPECT_EQ(Authorize("k2", {.arguments = 2, .intent = 7}), kAlreadyDone);
  EXPECT_EQ(ChainLength(), length);
  Pass(11 * kMinute);
  EXPECT_EQ(Authorize("k2", {.arguments = 2, .intent = 7}), kDispatch);
}

// ---- Scope ----

TEST_F(Intents, SubjectScope_ReachesAcrossPermitsOfTheSubject) {
  MintFor("agent", Open());
  const int second = MintFor("agent", Open());
  const int other = MintFor("other agent", Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  EXPECT_EQ(Authorize("k2", {.permit = second}), kIntentPending);
  EXPECT_EQ(Authorize("k2", {.permit = other}), kDispatch);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  EXPECT_EQ(Authorize("k3", {.permit = second}), kAlreadyDone) << "across permits: no result, nothing bound";
  EXPECT_FALSE(answer().result_of.has_value());
  EXPECT_FALSE(call("k3", second).bound_to.has_value());
}

TEST_F(Intents, PermitScope_EndsAtThePermit) {
  MintFor("agent", Scoped(v1::INTENT_SCOPE_PERMIT));
  const int second = MintFor("agent", Scoped(v1::INTENT_SCOPE_PERMIT));
  ASSERT_EQ(Authorize("k1"), kDispatch);
  EXPECT_EQ(Authorize("k2"), kIntentPending);
  EXPECT_EQ(Authorize("k2", {.permit = second}), kDispatch);
}

TEST_F(Intents, TenantScope_ReachesAcrossSubjects) {
  MintFor("agent", Scoped(v1::INTENT_SCOPE_TENANT));
  const int other = MintFor("other agent", Scoped(v1::INTENT_SCOPE_TENANT));
  ASSERT_EQ(Authorize("k1"), kDispatch);
  EXPECT_EQ(Authorize("k2", {.permit = other}), kIntentPending);
  ASSERT_EQ(Commit("k1", kSucceeded), kRecorded);
  EXPECT_EQ(Authorize("k3", {.permit = other}), kAlreadyDone);
}

TEST_F(Intents, ARevokedPermitsParkedCallStillHoldsItsIntent) {
  MintFor("agent", Open());
  const int second = MintFor("agent", Open());
  ASSERT_EQ(Authorize("k1"), kDispatch);
  ASSERT_EQ(Commit("k1", kUncertain), kRecorded);
  ASSERT_EQ(Revoke(), kRecorded);
  EXPECT_EQ(Authorize("k2", {.permit = second}), kIntentPending);
}

}  // namespace
}  // namespace tally::decide::testing
