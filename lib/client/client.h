// A client of tallyd for gateways, agents' hosts and tools.
//
// What a caller may rely on:
//  * An answer is either the service's (ok()) or a Failure with a kind of the error map. A refusal that is an answer is
//    in the response's `refusal`; FromRefusal() in error_map.h makes it a Failure too.
//  * Retries are those of retry.h: `contended` and, where a repetition is safe, `unavailable`; the same request each
//    time. gRPC's own retries are off.
//  * Every call ends by its timeout, retries included.
//  * Safe to use from many threads.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "lib/client/answer.h"
#include "lib/client/endpoint.h"
#include "lib/client/error_map.h"
#include "lib/client/retry.h"
#include "lib/client/send_deadline.h"
#include "lib/keys/secret.h"
#include "tally/v1/calls.grpc.pb.h"
#include "tally/v1/parked.grpc.pb.h"
#include "tally/v1/permits.grpc.pb.h"
#include "tally/v1/receipts.grpc.pb.h"
#include "tally/v1/reports.grpc.pb.h"
#include "tally/v1/tenants.grpc.pb.h"
#include "tally/v1/webhooks.grpc.pb.h"

namespace tally::client {

class Client {
 public:
  // Opens no connection yet. The credential may be empty where a client certificate stands for it.
  static absl::StatusOr<std::unique_ptr<Client>> Create(const Endpoint& endpoint, keys::Secret credential);

  // `started` must have been started before this attempt id was first used; it is asked for here so that it cannot be
  // forgotten, and copied into nothing.
  Answer<v1::AuthorizeResponse> Authorize(const v1::AuthorizeRequest& request, const SendDeadline& started,
                                          const CallOptions& options = {});
  Answer<v1::CommitResponse> Commit(const v1::CommitRequest& request, const CallOptions& options = {});
  Answer<v1::ExtendResponse> Extend(const v1::ExtendRequest& request, const CallOptions& options = {});
  Answer<v1::CallInfo> GetCall(const v1::GetCallRequest& request, const CallOptions& options = {});
  Answer<v1::ListCallsResponse> ListCalls(const v1::ListCallsRequest& request, const CallOptions& options = {});
  Answer<v1::CorrectResponse> Correct(const v1::CorrectRequest& request, const CallOptions& options = {});

  Answer<v1::ListParkedResponse> ListParked(const v1::ListParkedRequest& request, const CallOptions& options = {});
  Answer<v1::ClaimResponse> Claim(const v1::ClaimRequest& request, const CallOptions& options = {});
  Answer<v1::ResolveResponse> Resolve(const v1::ResolveRequest& request, const CallOptions& options = {});
  // After `unavailable` it may have been kept, and the claim given back.
  Answer<v1::NoteLookUpResponse> NoteLookUp(const v1::NoteLookUpRequest& request, const CallOptions& options = {});
  // Only what it answers allows the replay: after a failure of any kind nothing may be sent.
  Answer<v1::BeginReplayResponse> BeginReplay(const v1::BeginReplayRequest& request, const CallOptions& options = {});

  Answer<v1::MintResponse> Mint(const v1::MintRequest& request, const CallOptions& options = {});
  Answer<v1::PermitInfo> GetPermit(const v1::GetPermitRequest& request, const CallOptions& options = {});
  Answer<v1::PermitInfo> GetPermitByToken(const v1::GetPermitByTokenRequest& request, const CallOptions& options = {});
  Answer<v1::ListPermitsResponse> ListPermits(const v1::ListPermitsRequest& request, const CallOptions& options = {});
  Answer<v1::PermitActionResponse> Revoke(const v1::RevokePermitRequest& request, const CallOptions& options = {});
  Answer<v1::PermitActionResponse> Close(const v1::ClosePermitRequest& request, const CallOptions& options = {});

  Answer<v1::Receipt> GetReceipt(const v1::GetReceiptRequest& request, const CallOptions& options = {});
  Answer<v1::Receipt> Head(const v1::HeadRequest& request, const CallOptions& options = {});
  // Hands each receipt to `take`, in order. On a failure those already taken stay taken, and nothing is asked again:
  // the caller may go on from the sequence it has. options.timeout bounds the whole stream.
  Answer<int64_t> ListReceipts(const v1::ListReceiptsRequest& request, const std::function<void(v1::Receipt)>& take,
                               const CallOptions& options = {});
  Answer<v1::KeysResponse> Keys(const v1::KeysRequest& request, const CallOptions& options = {});
  Answer<v1::JwsResponse> Jws(const v1::GetReceiptRequest& request, const CallOptions& options = {});

  // Counting takes as long as the days asked for hold calls, so one try has all of options.timeout.
  Answer<v1::Report> GetReport(const v1::GetReportRequest& request, const CallOptions& options = {});

  Answer<v1::CreateWebhookResponse> CreateWebhook(const v1::CreateWebhookRequest& request,
                                                  const CallOptions& options = {});
  Answer<v1::ListWebhooksResponse> ListWebhooks(const v1::ListWebhooksRequest& request,
                                                const CallOptions& options = {});
  Answer<v1::DeleteWebhookResponse> DeleteWebhook(const v1::DeleteWebhookRequest& request,
                                                  const CallOptions& options = {});
  // Repeated, it rotates again: asked once.
  Answer<v1::RotateWebhookResponse> RotateWebhook(const v1::RotateWebhookRequest& request,
                                                  const CallOptions& options = {});
  // Waits for the receiver: options.timeout should be longer than tallyd's webhooks.timeout. Asked once.
  Answer<v1::TestWebhookResponse> TestWebhook(const v1::TestWebhookRequest& request, const CallOptions& options = {});

  Answer<v1::CreateTenantResponse> CreateTenant(const v1::CreateTenantRequest& request,
                                                const CallOptions& options = {});
  Answer<v1::ListTenantsResponse> ListTenants(const v1::ListTenantsRequest& request, const CallOptions& options = {});
  Answer<v1::CreatePrincipalResponse> CreatePrincipal(const v1::CreatePrincipalRequest& request,
                                                      const CallOptions& options = {});
  Answer<v1::ListPrincipalsResponse> ListPrincipals(const v1::ListPrincipalsRequest& request,
                                                    const CallOptions& options = {});
  Answer<v1::DisablePrincipalResponse> DisablePrincipal(const v1::DisablePrincipalRequest& request,
                                                        const CallOptions& options = {});

 private:
  Client(std::shared_ptr<grpc::Channel> channel, keys::Secret credential);

  // One call with its retries: asks `method` of `stub` until the schedule says otherwise.
  template <typename Stub, typename Request, typename Response>
  Answer<Response> Ask(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                       const Request& request, Repeat repeat, const CallOptions& options);
  void Prepare(grpc::ClientContext& context, std::chrono::milliseconds timeout) const;

  keys::Secret credential_;
  std::unique_ptr<v1::Calls::Stub> calls_;
  std::unique_ptr<v1::ParkedCalls::Stub> parked_;
  std::unique_ptr<v1::Permits::Stub> permits_;
  std::unique_ptr<v1::Receipts::Stub> receipts_;
  std::unique_ptr<v1::Reports::Stub> reports_;
  std::unique_ptr<v1::Tenants::Stub> tenants_;
  std::unique_ptr<v1::Webhooks::Stub> webhooks_;
};

}  // namespace tally::client
