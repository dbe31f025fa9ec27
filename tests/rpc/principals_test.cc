#include <gtest/gtest.h>

#include "lib/keys/hash.h"
#include "tests/rpc/service.h"

namespace tally::test {
namespace {

class Principals : public testing::Test {
 protected:
  Principals() : permit_(service_.Mint(service_.Terms("acme"))), gateway_(service_.NewPrincipal("acme", v1::GATEWAY)) {}

  std::string Ask(const std::string& key) {
    v1::AuthorizeResponse response;
    const Outcome outcome = service_.Authorize(gateway_, Service::Asking(permit_, key), response);
    if (!outcome.ok()) return outcome.code();
    last_ = response;
    return v1::Disposition_Name(response.disposition());
  }

  std::string Report(v1::CommitOutcome said) {
    v1::CommitRequest commit;
    commit.set_call_id(last_.call_id());
    commit.set_attempt_id(last_.attempt_id());
    commit.set_outcome(said);
    v1::CommitResponse response;
    const Outcome outcome = service_.Commit(gateway_, commit, response);
    return outcome.ok() ? v1::CallState_Name(response.state()) : outcome.code();
  }

  v1::DisablePrincipalResponse Disable(const std::string& id, bool hard) {
    v1::DisablePrincipalRequest request;
    request.set_principal_id(id);
    request.set_hard(hard);
    v1::DisablePrincipalResponse response;
    EXPECT_TRUE(Call(&v1::Tenants::Stub::DisablePrincipal, *service_.tenants, service_.admin, request, response).ok());
    return response;
  }

  Service service_;
  v1::MintResponse permit_;
  Principal gateway_;
  v1::AuthorizeResponse last_;
};

TEST_F(Principals, ADisabledGatewayGetsNothingMoreButMayReportWhatItHasOpen) {
  ASSERT_EQ(Ask("k1"), "DISPATCH");
  const v1::DisablePrincipalResponse disabled = Disable(gateway_.id, false);
  EXPECT_TRUE(disabled.principal().disabled());
  EXPECT_EQ(disabled.receipts_size(), 1);
  EXPECT_EQ(Ask("k2"), "UNAUTHENTICATED");  // at once, whatever is remembered about it
  v1::ExtendRequest extend;
  extend.set_call_id(last_.call_id());
  extend.set_attempt_id(last_.attempt_id());
  extend.set_lease_ms(60'000);
  v1::ExtendResponse extended;
  EXPECT_EQ(Call(&v1::Calls::Stub::Extend, *service_.calls, gateway_, extend, extended).code(), "UNAUTHENTICATED");
  EXPECT_EQ(Report(v1::OUTCOME_SUCCEEDED), "SUCCEEDED");
}

TEST_F(Principals, AGatewayDisabledHardMayReportNothingEither) {
  ASSERT_EQ(Ask("k1"), "DISPATCH");
  Disable(gateway_.id, false);
  const v1::DisablePrincipalResponse hard = Disable(gateway_.id, true);
  EXPECT_TRUE(hard.principal().hard());
  EXPECT_EQ(hard.receipts_size(), 1);  // hard is news
  EXPECT_EQ(Disable(gateway_.id, false).receipts_size(), 0);
  EXPECT_EQ(Report(v1::OUTCOME_SUCCEEDED), "UNAUTHENTICATED");
}

TEST_F(Principals, TheLastAdminCannotBeDisabled) {
  v1::ListPrincipalsResponse list;
  v1::ListPrincipalsRequest all;
  ASSERT_TRUE(Call(&v1::Tenants::Stub::ListPrincipals, *service_.tenants, service_.admin, all, list).ok());
  std::string admin;
  for (const v1::PrincipalInfo& info : list.principals()) {
    if (info.role() == v1::ADMIN) admin = info.principal_id();
  }
  v1::DisablePrincipalRequest request;
  request.set_principal_id(admin);
  v1::DisablePrincipalResponse response;
  EXPECT_EQ(Call(&v1::Tenants::Stub::DisablePrincipal, *service_.tenants, service_.admin, request, response)
                .status.error_code(),
            grpc::StatusCode::FAILED_PRECONDITION);
  service_.NewPrincipal("", v1::ADMIN);
  EXPECT_TRUE(Call(&v1::Tenants::Stub::DisablePrincipal, *service_.tenants, service_.admin, request, response).ok());
  EXPECT_EQ(Call(&v1::Tenants::Stub::ListPrincipals, *service_.tenants, service_.admin, all, list).code(),
            "UNAUTHENTICATED");
}

TEST_F(Principals, ATenantIsCreatedOnceAndOnlyForOneThatExistsArePrincipalsMade) {
  v1::CreateTenantRequest tenant;
  v1::CreateTenantResponse made;
  tenant.set_name("acme");
  EXPECT_EQ(Call(&v1::Tenants::Stub::CreateTenant, *service_.tenants, service_.admin, tenant, made).code(),
            "ALREADY_EXISTS");
  for (const char* name : {"", "Acme", "a b", "-a", "a/b"}) {
    tenant.set_name(name);
    EXPECT_EQ(Call(&v1::Tenants::Stub::CreateTenant, *service_.tenants, service_.admin, tenant, made).code(),
              "MALFORMED")
        << name;
  }
  v1::CreatePrincipalRequest principal;
  v1::CreatePrincipalResponse response;
  principal.set_role(v1::GATEWAY);
  auto create = [&] {
    return Call(&v1::Tenants::Stub::CreatePrincipal, *service_.tenants, service_.admin, principal, response).code();
  };
  principal.set_tenant("nobody");
  EXPECT_EQ(create(), "NOT_FOUND");
  principal.clear_tenant();
  EXPECT_EQ(create(), "MALFORMED");
  principal.set_tenant("acme");
  principal.set_role(v1::ADMIN);
  EXPECT_EQ(create(), "MALFORMED");
  principal.set_role(v1::ROLE_UNSPECIFIED);
  EXPECT_EQ(create(), "MALFORMED");
  principal.set_role(v1::GATEWAY);
  principal.set_name("line\nbreak");
  EXPECT_EQ(create(), "MALFORMED");
  principal.clear_name();
  principal.set_certificate_sha256("short");
  EXPECT_EQ(create(), "MALFORMED");
}

// ---- Permits by their state ----

TEST_F(Principals, APermitThatIsNotYetValidExpiredRevokedOrClosedGrantsNothing) {
  v1::MintRequest terms = service_.Terms("acme");
  terms.set_not_before_us(4'000'000'000'000'000);
  terms.clear_expires_in_ms();
  terms.set_expires_at_us(4'100'000'000'000'000);
  permit_ = service_.Mint(terms);
  EXPECT_EQ(Ask("k"), "DENIED");

  terms = service_.Terms("acme");
  terms.set_expires_in_ms(1);
  permit_ = service_.Mint(terms);
  v1::AuthorizeResponse response;
  EXPECT_TRUE(service_.Authorize(gateway_, Service::Asking(permit_, "k"), response).ok());
  EXPECT_EQ(response.refusal().code(), "PERMIT_EXPIRED");

  const Principal& boss = service_.Of("acme", v1::OPERATOR);
  permit_ = service_.Mint(service_.Terms("acme"));
  ASSERT_EQ(Ask("open"), "DISPATCH");
  v1::RevokePermitRequest revoke;
  revoke.set_permit_id(permit_.permit_id());
  v1::PermitActionResponse revoked, again;
  EXPECT_TRUE(Call(&v1::Permits::Stub::Revoke, *service_.permits, boss, revoke, revoked).ok());
  EXPECT_EQ(revoked.permit().state(), v1::REVOKED);
  EXPECT_TRUE(Call(&v1::Permits::Stub::Revoke, *service_.permits, boss, revoke, again).ok());
  EXPECT_EQ(again.receipts(0).receipt_id(), revoked.receipts(0).receipt_id());
  EXPECT_TRUE(service_.Authorize(gateway_, Service::Asking(permit_, "k"), response).ok());
  EXPECT_EQ(response.refusal().code(), "PERMIT_REVOKED");
  EXPECT_EQ(Report(v1::OUTCOME_SUCCEEDED), "SUCCEEDED");  // what was granted may be reported

  v1::ClosePermitRequest close;
  close.set_permit_id(permit_.permit_id());
  v1::PermitActionResponse closed;
  EXPECT_TRUE(Call(&v1::Permits::Stub::Close, *service_.permits, boss, close, closed).ok());
  EXPECT_EQ(closed.permit().state(), v1::CLOSED);
  EXPECT_EQ(closed.receipts_size(), 2);
  EXPECT_TRUE(service_.Authorize(gateway_, Service::Asking(permit_, "another"), response).ok());
  EXPECT_EQ(response.disposition(), v1::DENIED);
}

TEST_F(Principals, AMintThatDiffersInIntentScopeIsRefusedAndSaysOnWhat) {
  v1::MintRequest terms = service_.Terms("acme");
  terms.mutable_grants(0)->set_intent_scope(v1::INTENT_SCOPE_TENANT);
  v1::MintResponse response;
  const Principal& boss = service_.Of("acme", v1::OPERATOR);
  const Outcome differs = Call(&v1::Permits::Stub::Mint, *service_.permits, boss, terms, response);
  EXPECT_EQ(differs.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(differs.status.error_message().find("refund"), std::string::npos) << differs.status.error_message();
  v1::RevokePermitRequest revoke;
  revoke.set_permit_id(permit_.permit_id());
  v1::PermitActionResponse revoked;
  ASSERT_TRUE(Call(&v1::Permits::Stub::Revoke, *service_.permits, boss, revoke, revoked).ok());
  EXPECT_TRUE(Call(&v1::Permits::Stub::Mint, *service_.permits, boss, terms, response).ok());

  // Grants of one permit may differ from each other; each tool's scope is compared with that of live permits.
  v1::GrantTerms& email = *terms.add_grants();
  email = terms.grants(0);
  email.set_tool("mail__send");
  email.set_intent_scope(v1::INTENT_SCOPE_SUBJECT);
  EXPECT_TRUE(Call(&v1::Permits::Stub::Mint, *service_.permits, boss, terms, response).ok());
  terms.mutable_grants()->DeleteSubrange(0, 1);
  EXPECT_TRUE(Call(&v1::Permits::Stub::Mint, *service_.permits, boss, terms, response).ok());
  terms.mutable_grants(0)->set_intent_scope(v1::INTENT_SCOPE_TENANT);
  const Outcome mail = Call(&v1::Permits::Stub::Mint, *service_.permits, boss, terms, response);
  EXPECT_EQ(mail.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(mail.status.error_message().find("mail__send"), std::string::npos) << mail.status.error_message();

  // The same two scopes, the other way round.
  v1::MintRequest two = service_.Terms("acme");
  *two.add_grants() = two.grants(0);
  two.mutable_grants(0)->set_tool("files__move");
  two.mutable_grants(1)->set_tool("files__delete");
  two.mutable_grants(0)->set_intent_scope(v1::INTENT_SCOPE_SUBJECT);
  two.mutable_grants(1)->set_intent_scope(v1::INTENT_SCOPE_TENANT);
  EXPECT_TRUE(Call(&v1::Permits::Stub::Mint, *service_.permits, boss, two, response).ok());
  two.mutable_grants()->SwapElements(0, 1);
  EXPECT_TRUE(Call(&v1::Permits::Stub::Mint, *service_.permits, boss, two, response).ok());
  two.mutable_grants(0)->set_intent_scope(v1::INTENT_SCOPE_SUBJECT);
  two.mutable_grants(1)->set_intent_scope(v1::INTENT_SCOPE_TENANT);
  const Outcome swapped = Call(&v1::Permits::Stub::Mint, *service_.permits, boss, two, response);
  EXPECT_EQ(swapped.status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(Principals, TermsThatCannotBeEnforcedAreRefusedAtMint) {
  const Principal& boss = service_.Of("acme", v1::OPERATOR);
  v1::MintResponse response;
  v1::MintRequest terms = service_.Terms("acme");
  terms.mutable_grants(0)->clear_cap();
  EXPECT_EQ(Call(&v1::Permits::Stub::Mint, *service_.permits, boss, terms, response).code(), "MALFORMED");
  terms = service_.Terms("acme");
  terms.mutable_grants(0)->set_arguments_schema(R"json({"properties":{"a":{"pattern":"(?=x)"}}})json");
  EXPECT_EQ(Call(&v1::Permits::Stub::Mint, *service_.permits, boss, terms, response).code(), "MALFORMED");
  terms = service_.Terms("acme");
  terms.set_subject(std::string("a\0b", 3));
  EXPECT_EQ(Call(&v1::Permits::Stub::Mint, *service_.permits, boss, terms, response).code(), "MALFORMED");
  terms = service_.Terms("acme");
  for (int i = 0; i < 256; ++i) {
    *terms.add_grants() = terms.grants(0);
    terms.mutable_grants(i + 1)->set_tool("t" + std::to_string(i));
  }
  EXPECT_EQ(Call(&v1::Permits::Stub::Mint, *service_.permits, boss, terms, response).code(), "MALFORMED");
  terms.mutable_grants()->RemoveLast();
  EXPECT_TRUE(Call(&v1::Permits::Stub::Mint, *service_.permits, boss, terms, response).ok());
}

}  // namespace
}  // namespace tally::test
