#include <google/protobuf/descriptor.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/impl/codegen/proto_utils.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "server/rpc/access.h"
#include "tests/rpc/service.h"

namespace tally::test {
namespace {

using google::protobuf::MethodDescriptor;

// The contract's table, written a second time.
const std::map<std::string, std::set<v1::Role>> kMay = {
    {"Tenants.CreateTenant", {v1::ADMIN}},
    {"Tenants.ListTenants", {v1::ADMIN}},
    {"Tenants.CreatePrincipal", {v1::ADMIN}},
    {"Tenants.ListPrincipals", {v1::ADMIN}},
    {"Tenants.DisablePrincipal", {v1::ADMIN}},
    {"Permits.Mint", {v1::OPERATOR}},
    {"Permits.Get", {v1::OPERATOR}},
    {"Permits.GetByToken", {v1::GATEWAY}},
    {"Permits.List", {v1::OPERATOR}},
    {"Permits.Revoke", {v1::OPERATOR}},
    {"Permits.Close", {v1::OPERATOR}},
    {"Calls.Authorize", {v1::GATEWAY}},
    {"Calls.Commit", {v1::GATEWAY}},
    {"Calls.Extend", {v1::GATEWAY}},
    {"Calls.GetCall", {v1::GATEWAY, v1::OPERATOR}},
    {"Calls.ListCalls", {v1::GATEWAY, v1::OPERATOR}},
    {"Calls.Correct", {v1::OPERATOR}},
    {"ParkedCalls.List", {v1::OPERATOR, v1::RECONCILER}},
    {"ParkedCalls.Claim", {v1::RECONCILER}},
    {"ParkedCalls.Resolve", {v1::OPERATOR, v1::RECONCILER}},
    {"ParkedCalls.NoteLookUp", {v1::RECONCILER}},
    {"ParkedCalls.BeginReplay", {v1::RECONCILER}},
    {"Webhooks.Create", {v1::OPERATOR}},
    {"Webhooks.List", {v1::OPERATOR}},
    {"Webhooks.Delete", {v1::OPERATOR}},
    {"Webhooks.Rotate", {v1::OPERATOR}},
    {"Webhooks.Test", {v1::OPERATOR}},
    {"Receipts.Get", {v1::AUDITOR}},
    {"Receipts.Head", {v1::AUDITOR}},
    {"Receipts.List", {v1::AUDITOR}},
    {"Receipts.Jws", {v1::AUDITOR}},
    {"Receipts.Keys", {v1::ADMIN, v1::AUDITOR}},
    {"Reports.Get", {v1::OPERATOR, v1::AUDITOR}},
};

// Every RPC of the package: of each proto file there is, as the generated code registered it.
std::vector<const MethodDescriptor*> AllMethods() {
  std::vector<const MethodDescriptor*> methods;
  for (const auto& file : std::filesystem::directory_iterator("proto/tally/v1")) {
    const auto* descriptor = google::protobuf::DescriptorPool::generated_pool()->FindFileByName(
        "tally/v1/" + file.path().filename().string());
    for (int s = 0; descriptor != nullptr && s < descriptor->service_count(); ++s) {
      for (int m = 0; m < descriptor->service(s)->method_count(); ++m) {
        methods.push_back(descriptor->service(s)->method(m));
      }
    }
  }
  return methods;
}

std::string ShortName(const MethodDescriptor& method) { return method.service()->name() + "." + method.name(); }

// Sends a request that is empty but for the tenant of a mint, so that it is refused for its form at the latest.
grpc::Status Ask(Service& service, const MethodDescriptor& method, const std::string& credential) {
  v1::MintRequest mint;
  mint.set_tenant("acme");
  std::string bytes = method.name() == "Mint" ? mint.SerializeAsString() : "";
  grpc::Slice slice(bytes);
  grpc::ByteBuffer request(&slice, 1);
  grpc::GenericStub stub(service.channel());
  const auto context = Service::Context(credential);
  grpc::CompletionQueue queue;
  const auto call = stub.PrepareCall(context.get(), "/" + method.service()->full_name() + "/" + method.name(), &queue);
  void* tag = nullptr;
  bool ok = false;
  grpc::Status status;
  grpc::ByteBuffer response;
  auto next = [&] { ASSERT_TRUE(queue.Next(&tag, &ok)); };
  call->StartCall(nullptr), next();
  call->WriteLast(request, {}, nullptr), next();
  for (int i = 0; i < 1000 && ok; ++i) call->Read(&response, nullptr), next();
  call->Finish(&status, nullptr), next();
  return status;
}

constexpr v1::Role kRoles[] = {v1::ADMIN, v1::OPERATOR, v1::GATEWAY, v1::RECONCILER, v1::AUDITOR};

TEST(Roles, EveryRpcHasARuleAndEveryRuleAnRpc) {
  std::set<std::string> methods;
  for (const MethodDescriptor* method : AllMethods()) {
    methods.insert(method->full_name());
    EXPECT_NE(rpc::FindRule(method->full_name()), nullptr) << method->full_name();
    EXPECT_TRUE(kMay.contains(ShortName(*method))) << method->full_name();
  }
  EXPECT_GE(methods.size(), 20u);
  for (const rpc::Rule& rule : rpc::Rules()) EXPECT_TRUE(methods.contains(std::string(rule.method))) << rule.method;
}

TEST(Roles, EachMayWhatTheContractSaysAndNothingElse) {
  Service service;
  for (const MethodDescriptor* method : AllMethods()) {
    for (const v1::Role role : kRoles) {
      const Outcome outcome{Ask(service, *method, service.Of("acme", role).credential)};
      const bool may = kMay.at(ShortName(*method)).contains(role);
      EXPECT_EQ(outcome.status.error_code() != grpc::StatusCode::PERMISSION_DENIED, may)
          << v1::Role_Name(role) << " " << method->full_name() << ": " << outcome.status.error_message();
      if (!may) {
        EXPECT_EQ(outcome.code(), "PERMISSION_DENIED") << method->full_name();
      }
    }
  }
}

TEST(Roles, WithoutACredentialOrWithAWrongOneNothingIsServed) {
  Service service;
  const std::string unknown = "tally_" + std::string(43, 'A');
  for (const MethodDescriptor* method : AllMethods()) {
    for (const std::string& credential : {std::string(), std::string("nonsense"), unknown}) {
      const Outcome outcome{Ask(service, *method, credential)};
      EXPECT_EQ(outcome.status.error_code(), grpc::StatusCode::UNAUTHENTICATED) << method->full_name();
      EXPECT_EQ(outcome.code(), "UNAUTHENTICATED") << method->full_name();
    }
  }
}

}  // namespace
}  // namespace tally::test
