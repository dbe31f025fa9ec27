#include <gtest/gtest.h>

#include "lib/keys/hash.h"
#include "lib/keys/uuid.h"
#include "tests/rpc/service.h"

namespace tally::test {
namespace {

// Everything that names something by id, asked by another tenant's principals: it must answer for `acme`'s id exactly
// as for an id that nobody has.
class Isolation : public testing::Test {
 protected:
  Isolation() {
    permit_ = service_.Mint(service_.Terms("acme"));
    granted_ = service_.Granted(permit_, "k1");
    parked_ = service_.Granted(permit_, "k2");
    v1::CommitRequest commit;
    commit.set_call_id(parked_.call_id());
    commit.set_attempt_id(parked_.attempt_id());
    commit.set_outcome(v1::OUTCOME_UNCERTAIN);
    v1::CommitResponse response;
    EXPECT_TRUE(service_.Commit(service_.Of("acme", v1::GATEWAY), commit, response).ok());
    uncertain_ = response.receipts(0).receipt_id();
    missing_ = keys::UuidText(keys::NewUuid7(1'700'000'000'000, 3));
  }

  // The same refusal for both: status, message and details.
  template <typename Stub, typename Request, typename Response, typename Set>
  void Alike(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*), Stub& stub, v1::Role role,
             Request request, const std::string& foreign, const std::string& missing, Set set) {
    grpc::Status answers[2];
    for (int i = 0; i < 2; ++i) {
      set(request, i == 0 ? foreign : missing);
      Response response;
      answers[i] = Call(method, stub, service_.Of("globex", role), request, response).status;
      EXPECT_EQ(response.ByteSizeLong(), 0u) << Request::descriptor()->name();
    }
    EXPECT_EQ(answers[0].error_code(), grpc::StatusCode::NOT_FOUND) << Request::descriptor()->name();
    EXPECT_EQ(answers[0].error_code(), answers[1].error_code()) << Request::descriptor()->name();
    EXPECT_EQ(answers[0].error_message(), answers[1].error_message()) << Request::descriptor()->name();
    EXPECT_EQ(answers[0].error_details(), answers[1].error_details()) << Request::descriptor()->name();
  }

  v1::Evidence Proof() {
    v1::Evidence evidence;
    evidence.set_source("ledger");
    evidence.set_reference("row 7");
    evidence.set_reason("seen");
    evidence.set_body("proof");
    return evidence;
  }

  Service service_;
  v1::MintResponse permit_;
  v1::AuthorizeResponse granted_, parked_;
  std::string uncertain_;
  std::string missing_;
};

constexpr auto kPermitId = [](auto& request, const std::string& id) { request.set_permit_id(id); };
constexpr auto kCallId = [](auto& request, const std::string& id) { request.set_call_id(id); };
constexpr auto kReceiptId = [](auto& request, const std::string& id) { request.set_receipt_id(id); };

TEST_F(Isolation, PermitsOfAnotherTenantLookMissing) {
  Alike(&v1::Permits::Stub::Get, *service_.permits, v1::OPERATOR, v1::GetPermitRequest(), permit_.permit_id(), missing_,
        kPermitId);
  Alike(&v1::Permits::Stub::Revoke, *service_.permits, v1::OPERATOR, v1::RevokePermitRequest(), permit_.permit_id(),
        missing_, kPermitId);
  Alike(&v1::Permits::Stub::Close, *service_.permits, v1::OPERATOR, v1::ClosePermitRequest(), permit_.permit_id(),
        missing_, kPermitId);
  Alike(&v1::Receipts::Stub::Head, *service_.receipts, v1::AUDITOR, v1::HeadRequest(), permit_.permit_id(), missing_,
        kPermitId);
}

TEST_F(Isolation, APermitTokenShowsItsPermitToGatewaysOfItsTenantOnly) {
  v1::GetPermitByTokenRequest request;
  v1::PermitInfo info;
  const auto ask = [&](const std::string& tenant, const std::string& token) {
    request.set_permit_token(token);
    info.Clear();
    return Call(&v1::Permits::Stub::GetByToken, *service_.permits, service_.Of(tenant, v1::GATEWAY), request, info);
  };
  ASSERT_TRUE(ask("acme", permit_.permit_token()).ok());
  EXPECT_EQ(info.permit_id(), permit_.permit_id());
  ASSERT_EQ(info.grants_size(), 1);
  EXPECT_EQ(info.grants(0).terms().tool(), "refund");

  const Outcome foreign = ask("globex", permit_.permit_token());
  const Outcome unknown = ask("globex", std::string(43, 'A'));
  EXPECT_EQ(foreign.code(), "UNAUTHENTICATED");
  EXPECT_EQ(foreign.code(), unknown.code());
  EXPECT_EQ(foreign.status.error_message(), unknown.status.error_message());
  EXPECT_FALSE(info.has_terms());
}

TEST_F(Isolation, CallsOfAnotherTenantLookMissing) {
  Alike(&v1::Calls::Stub::GetCall, *service_.calls, v1::OPERATOR, v1::GetCallRequest(), granted_.call_id(), missing_,
        kCallId);
  Alike(&v1::Calls::Stub::GetCall, *service_.calls, v1::GATEWAY, v1::GetCallRequest(), granted_.call_id(), missing_,
        kCallId);
  v1::CommitRequest commit;
  commit.set_attempt_id(granted_.attempt_id());
  for (const auto outcome : {v1::OUTCOME_SUCCEEDED, v1::OUTCOME_NOT_SENT}) {
    commit.set_outcome(outcome);
    Alike(&v1::Calls::Stub::Commit, *service_.calls, v1::GATEWAY, commit, granted_.call_id(), missing_, kCallId);
  }
  v1::ExtendRequest extend;
  extend.set_attempt_id(granted_.attempt_id());
  extend.set_lease_ms(60'000);
  Alike(&v1::Calls::Stub::Extend, *service_.calls, v1::GATEWAY, extend, granted_.call_id(), missing_, kCallId);
  v1::CorrectRequest correct;
  correct.set_attempt_id(granted_.attempt_id());
  correct.set_supersedes(uncertain_);
  correct.set_verdict(v1::VERDICT_HAPPENED);
  *correct.mutable_evidence() = Proof();
  Alike(&v1::Calls::Stub::Correct, *service_.calls, v1::OPERATOR, correct, parked_.call_id(), missing_, kCallId);
}

TEST_F(Isolation, ParkedCallsAndReceiptsOfAnotherTenantLookMissing) {
  Alike(&v1::ParkedCalls::Stub::List, *service_.parked, v1::RECONCILER, v1::ListParkedRequest(), parked_.call_id(),
        missing_, kCallId);
  v1::ClaimRequest claim;
  claim.set_claim_ms(60'000);
  Alike(&v1::ParkedCalls::Stub::Claim, *service_.parked, v1::RECONCILER, claim, parked_.call_id(), missing_, kCallId);
  v1::NoteLookUpRequest note;
  note.set_attempt_id(parked_.attempt_id());
  note.set_supersedes(uncertain_);
  note.set_claim_id(keys::RandomBytes(16));
  note.mutable_look_up()->set_kind("http");
  note.mutable_look_up()->set_provider("bank");
  note.mutable_look_up()->set_finding(v1::FINDING_ABSENT);
  Alike(&v1::ParkedCalls::Stub::NoteLookUp, *service_.parked, v1::RECONCILER, note, parked_.call_id(), missing_,
        kCallId);
  v1::BeginReplayRequest replay;
  replay.set_attempt_id(parked_.attempt_id());
  replay.set_supersedes(uncertain_);
  replay.set_claim_id(keys::RandomBytes(16));
  Alike(&v1::ParkedCalls::Stub::BeginReplay, *service_.parked, v1::RECONCILER, replay, parked_.call_id(), missing_,
        kCallId);
  v1::ResolveRequest resolve;
  resolve.set_attempt_id(parked_.attempt_id());
  resolve.set_supersedes(uncertain_);
  resolve.set_verdict(v1::VERDICT_HAPPENED);
  *resolve.mutable_evidence() = Proof();
  Alike(&v1::ParkedCalls::Stub::Resolve, *service_.parked, v1::OPERATOR, resolve, parked_.call_id(), missing_, kCallId);
  Alike(&v1::Receipts::Stub::Get, *service_.receipts, v1::AUDITOR, v1::GetReceiptRequest(), uncertain_,
        keys::RandomBytes(32), kReceiptId);
  Alike(&v1::Receipts::Stub::Jws, *service_.receipts, v1::AUDITOR, v1::GetReceiptRequest(), uncertain_,
        keys::RandomBytes(32), kReceiptId);
}

TEST_F(Isolation, ReceiptChainsOfAnotherTenantLookMissing) {
  for (const bool by_call : {false, true}) {
    grpc::Status answers[2];
    for (int i = 0; i < 2; ++i) {
      v1::ListReceiptsRequest request;
      if (by_call) {
        request.set_call_id(i == 0 ? granted_.call_id() : missing_);
      } else {
        request.set_permit_id(i == 0 ? permit_.permit_id() : missing_);
      }
      const auto context = Service::Context(service_.Of("globex", v1::AUDITOR).credential);
      const auto reader = service_.receipts->List(context.get(), request);
      v1::Receipt receipt;
      EXPECT_FALSE(reader->Read(&receipt));
      answers[i] = reader->Finish();
    }
    EXPECT_EQ(answers[0].error_code(), grpc::StatusCode::NOT_FOUND);
    EXPECT_EQ(answers[0].error_message(), answers[1].error_message());
  }
}

TEST_F(Isolation, AForeignPermitTokenIsAsGoodAsNone) {
  v1::AuthorizeResponse response;
  const Outcome foreign =
      service_.Authorize(service_.Of("globex", v1::GATEWAY), Service::Asking(permit_, "k9"), response);
  v1::MintResponse invented;
  invented.set_permit_token(std::string(43, 'x'));
  const Outcome unknown =
      service_.Authorize(service_.Of("globex", v1::GATEWAY), Service::Asking(invented, "k9"), response);
  EXPECT_EQ(foreign.code(), "UNAUTHENTICATED");
  EXPECT_EQ(foreign.status.error_message(), unknown.status.error_message());
  EXPECT_EQ(foreign.status.error_details(), unknown.status.error_details());
}

TEST_F(Isolation, ListsHoldNothingOfAnotherTenant) {
  v1::ListPermitsResponse permits;
  EXPECT_TRUE(Call(&v1::Permits::Stub::List, *service_.permits, service_.Of("globex", v1::OPERATOR),
                   v1::ListPermitsRequest(), permits)
                  .ok());
  EXPECT_EQ(permits.permits_size(), 0);
  v1::ListCallsResponse calls;
  EXPECT_TRUE(Call(&v1::Calls::Stub::ListCalls, *service_.calls, service_.Of("globex", v1::OPERATOR),
                   v1::ListCallsRequest(), calls)
                  .ok());
  EXPECT_EQ(calls.calls_size(), 0);
  v1::ListParkedResponse parked;
  EXPECT_TRUE(Call(&v1::ParkedCalls::Stub::List, *service_.parked, service_.Of("globex", v1::RECONCILER),
                   v1::ListParkedRequest(), parked)
                  .ok());
  EXPECT_EQ(parked.parked_size(), 0);
  EXPECT_TRUE(Call(&v1::ParkedCalls::Stub::List, *service_.parked, service_.Of("acme", v1::RECONCILER),
                   v1::ListParkedRequest(), parked)
                  .ok());
  ASSERT_EQ(parked.parked_size(), 1);
  EXPECT_EQ(parked.parked(0).uncertain_receipt_id(), uncertain_);
}

TEST_F(Isolation, AGatewaySeesTheCallsItMadeAndNoOthers) {
  const Principal other = service_.NewPrincipal("acme", v1::GATEWAY);
  v1::GetCallRequest request;
  request.set_call_id(granted_.call_id());
  v1::CallInfo info;
  EXPECT_EQ(Call(&v1::Calls::Stub::GetCall, *service_.calls, other, request, info).code(), "NOT_FOUND");
  v1::ListCallsResponse list;
  EXPECT_TRUE(Call(&v1::Calls::Stub::ListCalls, *service_.calls, other, v1::ListCallsRequest(), list).ok());
  EXPECT_EQ(list.calls_size(), 0);
  EXPECT_TRUE(Call(&v1::Calls::Stub::GetCall, *service_.calls, service_.Of("acme", v1::GATEWAY), request, info).ok());
  EXPECT_EQ(info.key(), "k1");
  EXPECT_TRUE(info.arguments().empty());
  EXPECT_TRUE(Call(&v1::Calls::Stub::GetCall, *service_.calls, service_.Of("acme", v1::OPERATOR), request, info).ok());
  EXPECT_EQ(info.arguments(), R"({"amount":5,"order":"k1"})");
}

TEST_F(Isolation, AnOperatorMintsForItsOwnTenantOnly) {
  v1::MintResponse response;
  EXPECT_EQ(Call(&v1::Permits::Stub::Mint, *service_.permits, service_.Of("globex", v1::OPERATOR),
                 service_.Terms("acme"), response)
                .code(),
            "PERMISSION_DENIED");
}

}  // namespace
}  // namespace tally::test
