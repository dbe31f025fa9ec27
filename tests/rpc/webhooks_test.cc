#include "server/ledger/webhooks.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <pqxx/pqxx>
#include <set>
#include <thread>

#include "lib/keys/encoding.h"
#include "lib/outbound/url.h"
#include "tests/rpc/service.h"

namespace tally::test {
namespace {

using testing::HasSubstr;
using testing::Not;

class Webhooks : public ::testing::Test {
 protected:
  Outcome Create(const std::string& url, v1::CreateWebhookResponse& response, const std::string& tenant = "acme") {
    v1::CreateWebhookRequest request;
    request.set_url(url);
    return Call(&v1::Webhooks::Stub::Create, *service_.webhooks, service_.Of(tenant, v1::OPERATOR), request, response);
  }
  std::string Created(const std::string& tenant = "acme") {
    v1::CreateWebhookResponse response;
    const Outcome outcome = Create("https://hooks.example/", response, tenant);
    EXPECT_TRUE(outcome.ok()) << outcome.status.error_message();
    return response.webhook_id();
  }
  v1::ListWebhooksResponse List(const std::string& tenant = "acme") {
    v1::ListWebhooksResponse response;
    EXPECT_TRUE(Call(&v1::Webhooks::Stub::List, *service_.webhooks, service_.Of(tenant, v1::OPERATOR),
                     v1::ListWebhooksRequest(), response)
                    .ok());
    return response;
  }
  template <typename Request, typename Response>
  Outcome About(grpc::Status (v1::Webhooks::Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                const std::string& id, const std::string& tenant = "acme") {
    Request request;
    request.set_webhook_id(id);
    Response response;
    return Call(method, *service_.webhooks, service_.Of(tenant, v1::OPERATOR), request, response);
  }

  Service service_;
};

TEST_F(Webhooks, TheSecretIsGivenOnceAndKeptSealed) {
  v1::CreateWebhookResponse made;
  ASSERT_TRUE(Create("https://hooks.example/in?x=1", made).ok());
  ASSERT_EQ(made.secret().substr(0, 6), "whsec_");
  const auto secret = keys::Base64Decode(made.secret().substr(6));
  ASSERT_TRUE(secret);
  EXPECT_EQ(secret->size(), 32u);
  const v1::ListWebhooksResponse list = List();
  ASSERT_EQ(list.webhooks_size(), 1);
  EXPECT_EQ(list.webhooks(0).webhook_id(), made.webhook_id());
  EXPECT_EQ(list.webhooks(0).url(), "https://hooks.example/in?x=1");
  EXPECT_GT(list.webhooks(0).created_at_us(), 0);
  EXPECT_EQ(list.webhooks(0).waiting(), 0);

  pqxx::connection connection(service_.conninfo());
  pqxx::nontransaction work(connection);
  const std::string row = work.exec("SELECT w::text FROM webhooks w")[0][0].c_str();
  EXPECT_THAT(row, Not(HasSubstr(keys::HexEncode(*secret))));
  EXPECT_THAT(row, Not(HasSubstr(made.secret())));

  v1::RotateWebhookRequest request;
  request.set_webhook_id(made.webhook_id());
  v1::RotateWebhookResponse rotated;
  ASSERT_TRUE(
      Call(&v1::Webhooks::Stub::Rotate, *service_.webhooks, service_.Of("acme", v1::OPERATOR), request, rotated).ok());
  EXPECT_NE(rotated.secret(), made.secret());
  EXPECT_EQ(rotated.secret().size(), made.secret().size());
}

TEST_F(Webhooks, AUrlThatCannotBeSentToIsRefusedWhenItIsGiven) {
  v1::CreateWebhookResponse response;
  for (const char* url :
       {"", "http://hooks.example/", "ftp://hooks.example/", "https://", "https://u:secret@hooks.example/",
        "https://hooks.example/#secret", "https://hooks.example/a b", "https://127.0.0.1/secret", "https://[::1]/",
        "https://localhost/", "https://192.168.1.1/", "https://169.254.169.254/latest"}) {
    const Outcome outcome = Create(url, response);
    EXPECT_EQ(outcome.code(), "MALFORMED") << url;
    EXPECT_THAT(outcome.status.error_message(), HasSubstr("Nothing was done"));
    EXPECT_THAT(outcome.status.error_message(), Not(HasSubstr("secret")));
  }
  std::string url = "https://hooks.example/";
  url.resize(outbound::kUrlBytesMax, 'a');
  EXPECT_TRUE(Create(url, response).ok());
  EXPECT_EQ(Create(url + "a", response).code(), "LIMIT");
  EXPECT_EQ(List().webhooks_size(), 1);
}

TEST_F(Webhooks, ATenantMayHaveSixteenAlsoWhenManyAreMadeAtOnce) {
  for (int i = 0; i < ledger::kWebhooksMax - 1; ++i) Created();
  std::atomic<int> made = 0;
  service_.Of("acme", v1::OPERATOR);
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      v1::CreateWebhookResponse response;
      const Outcome outcome = Create("https://hooks.example/", response);
      made += outcome.ok();
      EXPECT_THAT(outcome.code(), testing::AnyOf("", "LIMIT", "SERIALIZATION_FAILURE"));
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(made, 1);
  v1::CreateWebhookResponse response;
  const Outcome over = Create("https://hooks.example/", response);
  EXPECT_EQ(over.code(), "LIMIT");
  EXPECT_THAT(over.status.error_message(), HasSubstr("16"));
  EXPECT_EQ(List().webhooks_size(), ledger::kWebhooksMax);
  Created("other");  // another tenant's are its own
  EXPECT_TRUE(About(&v1::Webhooks::Stub::Delete, List().webhooks(0).webhook_id()).ok());
  Created();
}

TEST_F(Webhooks, AnotherTenantsLookMissing) {
  const std::string id = Created("other");
  EXPECT_EQ(List().webhooks_size(), 0);
  for (const std::string& named :
       {id, std::string("0190a0b0-0000-7000-8000-000000000000"), std::string("nonsense"), std::string()}) {
    const Outcome outcomes[] = {About(&v1::Webhooks::Stub::Delete, named), About(&v1::Webhooks::Stub::Rotate, named),
                                About(&v1::Webhooks::Stub::Test, named)};
    for (const Outcome& outcome : outcomes) {
      EXPECT_EQ(outcome.code(), "NOT_FOUND") << named;
      EXPECT_EQ(outcome.status.error_message(), outcomes[0].status.error_message());
    }
  }
  EXPECT_EQ(List("other").webhooks_size(), 1);
}

TEST_F(Webhooks, DeletedOnceItIsGone) {
  const std::string id = Created();
  EXPECT_TRUE(About(&v1::Webhooks::Stub::Delete, id).ok());
  EXPECT_EQ(About(&v1::Webhooks::Stub::Delete, id).code(), "NOT_FOUND");
  EXPECT_EQ(List().webhooks_size(), 0);
}

TEST_F(Webhooks, ATestOfOneThatCannotBeReachedSaysSo) {
  v1::CreateWebhookResponse made;
  ASSERT_TRUE(Create("https://no-such-host.invalid/secret", made).ok());
  v1::TestWebhookRequest request;
  request.set_webhook_id(made.webhook_id());
  v1::TestWebhookResponse tested;
  ASSERT_TRUE(
      Call(&v1::Webhooks::Stub::Test, *service_.webhooks, service_.Of("acme", v1::OPERATOR), request, tested).ok());
  EXPECT_FALSE(tested.delivered());
  EXPECT_EQ(tested.http_status(), 0);
  EXPECT_THAT(tested.error(), HasSubstr("https://no-such-host.invalid"));
  EXPECT_THAT(tested.error(), Not(HasSubstr("secret")));
}

}  // namespace
}  // namespace tally::test
