#include "lib/client/client.h"

#include <algorithm>
#include <optional>
#include <thread>

#include "absl/strings/str_cat.h"

namespace tally::client {
namespace {

using std::chrono::milliseconds;
using Steady = std::chrono::steady_clock;

milliseconds Left(Steady::time_point end) { return std::chrono::duration_cast<milliseconds>(end - Steady::now()); }

}  // namespace

bool MaySend(const v1::AuthorizeRequest& request, const v1::AuthorizeResponse& response, const SendDeadline& started) {
  return response.disposition() == v1::DISPATCH && !response.has_refusal() &&
         response.attempt_id() == request.attempt_id() && started.MayStillSend(response.send_within_ms());
}

absl::StatusOr<std::unique_ptr<Client>> Client::Create(const Endpoint& endpoint, keys::Secret credential) {
  auto channel = OpenChannel(endpoint);
  if (!channel.ok()) return channel.status();
  return std::unique_ptr<Client>(new Client(*std::move(channel), std::move(credential)));
}

Client::Client(std::shared_ptr<grpc::Channel> channel, keys::Secret credential)
    : credential_(std::move(credential)),
      calls_(v1::Calls::NewStub(channel)),
      parked_(v1::ParkedCalls::NewStub(channel)),
      permits_(v1::Permits::NewStub(channel)),
      receipts_(v1::Receipts::NewStub(channel)),
      reports_(v1::Reports::NewStub(channel)),
      tenants_(v1::Tenants::NewStub(channel)),
      webhooks_(v1::Webhooks::NewStub(channel)) {}

void Client::Prepare(grpc::ClientContext& context, milliseconds timeout) const {
  context.set_deadline(std::chrono::system_clock::now() + timeout);
  // gRPC keeps a copy of its own for as long as the call lasts; that is as far as the secret can be guarded.
  if (!credential_.empty()) {
    const std::string_view credential = credential_.Expose();
    context.AddMetadata("authorization",
                        absl::StrCat("Bearer ", absl::string_view(credential.data(), credential.size())));
  }
}

template <typename Stub, typename Request, typename Response>
Answer<Response> Client::Ask(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                             const Request& request, Repeat repeat, const CallOptions& options) {
  const Steady::time_point end = Steady::now() + options.timeout;
  RetrySchedule schedule(repeat);
  // Ends: the schedule gives up after a bounded number of tries of either kind, and each try has a deadline.
  while (true) {
    grpc::ClientContext context;
    // A request that is sent once has all the time there is.
    Prepare(context, repeat == Repeat::kOnce ? options.timeout : std::min(options.try_timeout, Left(end)));
    Response response;
    const grpc::Status status = (stub.*method)(&context, request, &response);
    if (status.ok()) return response;
    Failure failure = FromStatus(status);
    const std::optional<milliseconds> wait = schedule.After(failure, Left(end));
    if (!wait) return failure;
    std::this_thread::sleep_for(*wait);
  }
}

Answer<v1::AuthorizeResponse> Client::Authorize(const v1::AuthorizeRequest& request, const SendDeadline& /*started*/,
                                                const CallOptions& options) {
  return Ask(*calls_, &v1::Calls::Stub::Authorize, request, Repeat::kSafe, options);
}

Answer<v1::CommitResponse> Client::Commit(const v1::CommitRequest& request, const CallOptions& options) {
  return Ask(*calls_, &v1::Calls::Stub::Commit, request, Repeat::kSafe, options);
}

Answer<v1::ExtendResponse> Client::Extend(const v1::ExtendRequest& request, const CallOptions& options) {
  return Ask(*calls_, &v1::Calls::Stub::Extend, request, Repeat::kSafe, options);
}

Answer<v1::CallInfo> Client::GetCall(const v1::GetCallRequest& request, const CallOptions& options) {
  return Ask(*calls_, &v1::Calls::Stub::GetCall, request, Repeat::kSafe, options);
}

Answer<v1::ListCallsResponse> Client::ListCalls(const v1::ListCallsRequest& request, const CallOptions& options) {
  return Ask(*calls_, &v1::Calls::Stub::ListCalls, request, Repeat::kSafe, options);
}

// Names the receipt it supersedes: a second one that gets through is refused as stale, and changes nothing.
Answer<v1::CorrectResponse> Client::Correct(const v1::CorrectRequest& request, const CallOptions& options) {
  return Ask(*calls_, &v1::Calls::Stub::Correct, request, Repeat::kSafe, options);
}

Answer<v1::ListParkedResponse> Client::ListParked(const v1::ListParkedRequest& request, const CallOptions& options) {
  return Ask(*parked_, &v1::ParkedCalls::Stub::List, request, Repeat::kSafe, options);
}

// A claim whose answer was lost runs out by itself; asking again would find the call claimed.
Answer<v1::ClaimResponse> Client::Claim(const v1::ClaimRequest& request, const CallOptions& options) {
  return Ask(*parked_, &v1::ParkedCalls::Stub::Claim, request, Repeat::kOnce, options);
}

Answer<v1::ResolveResponse> Client::Resolve(const v1::ResolveRequest& request, const CallOptions& options) {
  return Ask(*parked_, &v1::ParkedCalls::Stub::Resolve, request, Repeat::kSafe, options);
}

// Noted twice, one look at the provider would read as two.
Answer<v1::NoteLookUpResponse> Client::NoteLookUp(const v1::NoteLookUpRequest& request, const CallOptions& options) {
  return Ask(*parked_, &v1::ParkedCalls::Stub::NoteLookUp, request, Repeat::kOnce, options);
}

// Each one that gets through writes a receipt, which says that something was sent.
Answer<v1::BeginReplayResponse> Client::BeginReplay(const v1::BeginReplayRequest& request, const CallOptions& options) {
  return Ask(*parked_, &v1::ParkedCalls::Stub::BeginReplay, request, Repeat::kOnce, options);
}

// A second Mint would be a second permit.
Answer<v1::MintResponse> Client::Mint(const v1::MintRequest& request, const CallOptions& options) {
  return Ask(*permits_, &v1::Permits::Stub::Mint, request, Repeat::kOnce, options);
}

Answer<v1::PermitInfo> Client::GetPermit(const v1::GetPermitRequest& request, const CallOptions& options) {
  return Ask(*permits_, &v1::Permits::Stub::Get, request, Repeat::kSafe, options);
}

Answer<v1::PermitInfo> Client::GetPermitByToken(const v1::GetPermitByTokenRequest& request,
                                                const CallOptions& options) {
  return Ask(*permits_, &v1::Permits::Stub::GetByToken, request, Repeat::kSafe, options);
}

Answer<v1::ListPermitsResponse> Client::ListPermits(const v1::ListPermitsRequest& request, const CallOptions& options) {
  return Ask(*permits_, &v1::Permits::Stub::List, request, Repeat::kSafe, options);
}

Answer<v1::PermitActionResponse> Client::Revoke(const v1::RevokePermitRequest& request, const CallOptions& options) {
  return Ask(*permits_, &v1::Permits::Stub::Revoke, request, Repeat::kSafe, options);
}

Answer<v1::PermitActionResponse> Client::Close(const v1::ClosePermitRequest& request, const CallOptions& options) {
  return Ask(*permits_, &v1::Permits::Stub::Close, request, Repeat::kSafe, options);
}

Answer<v1::Receipt> Client::GetReceipt(const v1::GetReceiptRequest& request, const CallOptions& options) {
  return Ask(*receipts_, &v1::Receipts::Stub::Get, request, Repeat::kSafe, options);
}

Answer<v1::Receipt> Client::Head(const v1::HeadRequest& request, const CallOptions& options) {
  return Ask(*receipts_, &v1::Receipts::Stub::Head, request, Repeat::kSafe, options);
}

Answer<int64_t> Client::ListReceipts(const v1::ListReceiptsRequest& request,
                                     const std::function<void(v1::Receipt)>& take, const CallOptions& options) {
  grpc::ClientContext context;
  Prepare(context, options.timeout);
  auto reader = receipts_->List(&context, request);
  int64_t taken = 0;
  v1::Receipt receipt;
  while (reader->Read(&receipt)) {
    take(std::move(receipt));
    receipt.Clear();
    ++taken;
  }
  const grpc::Status status = reader->Finish();
  if (!status.ok()) return FromStatus(status);
  return taken;
}

Answer<v1::KeysResponse> Client::Keys(const v1::KeysRequest& request, const CallOptions& options) {
  return Ask(*receipts_, &v1::Receipts::Stub::Keys, request, Repeat::kSafe, options);
}

Answer<v1::JwsResponse> Client::Jws(const v1::GetReceiptRequest& request, const CallOptions& options) {
  return Ask(*receipts_, &v1::Receipts::Stub::Jws, request, Repeat::kSafe, options);
}

Answer<v1::Report> Client::GetReport(const v1::GetReportRequest& request, const CallOptions& options) {
  const CallOptions patient{.timeout = options.timeout, .try_timeout = options.timeout};
  return Ask(*reports_, &v1::Reports::Stub::Get, request, Repeat::kSafe, patient);
}

Answer<v1::CreateWebhookResponse> Client::CreateWebhook(const v1::CreateWebhookRequest& request,
                                                        const CallOptions& options) {
  return Ask(*webhooks_, &v1::Webhooks::Stub::Create, request, Repeat::kOnce, options);
}

Answer<v1::ListWebhooksResponse> Client::ListWebhooks(const v1::ListWebhooksRequest& request,
                                                      const CallOptions& options) {
  return Ask(*webhooks_, &v1::Webhooks::Stub::List, request, Repeat::kSafe, options);
}

Answer<v1::DeleteWebhookResponse> Client::DeleteWebhook(const v1::DeleteWebhookRequest& request,
                                                        const CallOptions& options) {
  return Ask(*webhooks_, &v1::Webhooks::Stub::Delete, request, Repeat::kOnce, options);
}

Answer<v1::RotateWebhookResponse> Client::RotateWebhook(const v1::RotateWebhookRequest& request,
                                                        const CallOptions& options) {
  return Ask(*webhooks_, &v1::Webhooks::Stub::Rotate, request, Repeat::kOnce, options);
}

Answer<v1::TestWebhookResponse> Client::TestWebhook(const v1::TestWebhookRequest& request, const CallOptions& options) {
  return Ask(*webhooks_, &v1::Webhooks::Stub::Test, request, Repeat::kOnce, options);
}

Answer<v1::CreateTenantResponse> Client::CreateTenant(const v1::CreateTenantRequest& request,
                                                      const CallOptions& options) {
  return Ask(*tenants_, &v1::Tenants::Stub::CreateTenant, request, Repeat::kOnce, options);
}

Answer<v1::ListTenantsResponse> Client::ListTenants(const v1::ListTenantsRequest& request, const CallOptions& options) {
  return Ask(*tenants_, &v1::Tenants::Stub::ListTenants, request, Repeat::kSafe, options);
}

// A second one would be a second principal, with a credential that nobody has.
Answer<v1::CreatePrincipalResponse> Client::CreatePrincipal(const v1::CreatePrincipalRequest& request,
                                                            const CallOptions& options) {
  return Ask(*tenants_, &v1::Tenants::Stub::CreatePrincipal, request, Repeat::kOnce, options);
}

Answer<v1::ListPrincipalsResponse> Client::ListPrincipals(const v1::ListPrincipalsRequest& request,
                                                          const CallOptions& options) {
  return Ask(*tenants_, &v1::Tenants::Stub::ListPrincipals, request, Repeat::kSafe, options);
}

Answer<v1::DisablePrincipalResponse> Client::DisablePrincipal(const v1::DisablePrincipalRequest& request,
                                                              const CallOptions& options) {
  return Ask(*tenants_, &v1::Tenants::Stub::DisablePrincipal, request, Repeat::kSafe, options);
}

}  // namespace tally::client
