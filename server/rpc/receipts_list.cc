#include <optional>

#include "server/ledger/receipt_reads.h"
#include "server/rpc/checks.h"
#include "server/rpc/exchange.h"
#include "server/rpc/receipts.h"
#include "server/rpc/status.h"

namespace tally::rpc {
namespace {

// One page of receipts in memory at a time; the next is read when the caller has taken it. Deletes itself when done.
class ReceiptStream final : public grpc::ServerWriteReactor<v1::Receipt> {
 public:
  ReceiptStream(Core& core, grpc::CallbackServerContext* context, const v1::ListReceiptsRequest* request)
      : exchange_(std::make_shared<Exchange>(core, "tally.v1.Receipts.List", context,
                                             [this](grpc::Status status) { Finish(std::move(status)); })),
        request_(*request) {
    Submit(exchange_, [this](ledger::Connection& connection) { Begin(connection); });
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return exchange_->Finish(grpc::Status::CANCELLED);
    WriteNext();
  }

  void OnDone() override { delete this; }

 private:
  void Begin(ledger::Connection& connection) {
    grpc::Status status = exchange_->Admit(connection);
    if (status.ok()) status = FindChain(connection);
    if (!status.ok()) return exchange_->Finish(status);
    ReadPage(connection);
  }

  grpc::Status FindChain(ledger::Connection& connection) {
    const std::string& tenant = exchange_->caller().tenant;
    if (request_.from_sequence() < 0 || request_.to_sequence() < 0) {
      return Malformed("from_sequence and to_sequence must not be negative");
    }
    decide::Id id;
    absl::StatusOr<ledger::Chain> chain;
    if (!request_.call_id().empty()) {
      if (grpc::Status status = ReadId(request_.call_id(), id); !status.ok()) return status;
      call_ = id;
      chain = ledger::CallChain(connection, tenant, id);
    } else if (request_.permit_id().empty()) {
      chain = ledger::TenantChain(connection, tenant);
    }
    if (!request_.permit_id().empty()) {
      if (grpc::Status status = ReadId(request_.permit_id(), id); !status.ok()) return status;
      auto permit = ledger::PermitChain(connection, tenant, id);
      // A call of another permit is not to be found on this one's chain.
      if (call_ && permit.ok() && chain.ok() && permit->id != chain->id) permit = absl::NotFoundError("");
      if (!call_ || !permit.ok()) chain = std::move(permit);
    }
    if (!chain.ok()) return FromLedger(chain.status());
    chain_ = *std::move(chain);
    next_ = std::max<int64_t>(1, request_.from_sequence());
    return grpc::Status::OK;
  }

  void ReadPage(ledger::Connection& connection) {
    // A page may hold no receipt of the call that is asked for.
    do {
      auto page = ledger::ReadChain(connection, chain_, next_, request_.to_sequence(), call_ ? &*call_ : nullptr);
      if (!page.ok()) return exchange_->Finish(FromLedger(page.status()));
      page_ = std::move(page->receipts);
      next_ = page->next;
    } while (page_.empty() && next_ > 0 && !exchange_->context().IsCancelled());
    at_ = 0;
    WriteNext();
  }

  void WriteNext() {
    if (at_ < page_.size()) return StartWrite(&page_[at_++]);
    if (next_ == 0) return exchange_->Finish(grpc::Status::OK);
    Submit(exchange_, [this](ledger::Connection& connection) { ReadPage(connection); });
  }

  // Held by whatever is to call it next; this outlives it, since only Finish leads to OnDone.
  const SharedExchange exchange_;
  const v1::ListReceiptsRequest request_;
  ledger::Chain chain_;
  std::optional<decide::Id> call_;
  int64_t next_ = 0;
  std::vector<v1::Receipt> page_;
  size_t at_ = 0;
};

}  // namespace

grpc::ServerWriteReactor<v1::Receipt>* Receipts::List(grpc::CallbackServerContext* context,
                                                      const v1::ListReceiptsRequest* request) {
  return new ReceiptStream(core_, context, request);
}

}  // namespace tally::rpc
