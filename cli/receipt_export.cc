// tally receipt export: receipts, keys and heads as files.
#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/call_name.h"
#include "cli/commands.h"
#include "cli/export_files.h"
#include "lib/keys/encoding.h"
#include "lib/receipt/dsse.h"

namespace tally::cli {
namespace {

struct ExportOptions {
  std::vector<std::string> receipt_ids;
  std::vector<std::string> permits;
  std::vector<std::string> calls;
  std::string folder = ".";
  bool jws = false;
};

v1::ListReceiptsRequest OfPermit(const std::string& id) {
  v1::ListReceiptsRequest request;
  request.set_permit_id(id);
  return request;
}

v1::ListReceiptsRequest OfCall(const std::string& id) {
  v1::ListReceiptsRequest request;
  request.set_call_id(id);
  return request;
}

// One run of the command; the first thing that goes wrong ends it, and what is written by then stays.
class Export {
 public:
  Export(Session& session, client::Client& client, const ExportOptions& options)
      : session_(session), client_(client), options_(options) {}

  int Run();

 private:
  bool ok() const { return !failure_ && status_.ok(); }
  void Keys();
  void One(const std::string& receipt_id);
  void Chain(const v1::ListReceiptsRequest& which);
  void Head(const std::string& permit_id, const std::string& name);
  void Write(const v1::Receipt& receipt, const std::string& name);
  void WriteJws(const v1::Receipt& receipt);

  Session& session_;
  client::Client& client_;
  const ExportOptions& options_;
  std::optional<client::Failure> failure_;
  absl::Status status_;
  std::vector<std::string> files_;
  int64_t receipts_ = 0;
};

void Export::Keys() {
  const auto answer = client_.Keys({}, session_.call_options());
  if (!answer.ok()) {
    failure_ = answer.failure();
    return;
  }
  const auto known = KnownKeys(answer.value());
  if (!known.ok()) {
    status_ = known.status();
    return;
  }
  const auto written = WriteKeys(options_.folder, *known);
  status_ = written.status();
  if (written.ok()) files_ = *written;
}

void Export::Write(const v1::Receipt& receipt, const std::string& name) {
  if (!ok()) return;
  const std::string path = absl::StrCat(options_.folder, "/", name, ".dsse.json");
  status_ = WriteFile(path, receipt::ToDsseJson(receipt) + "\n");
  if (status_.ok()) files_.push_back(path);
  ++receipts_;
}

void Export::WriteJws(const v1::Receipt& receipt) {
  if (!ok() || !options_.jws) return;
  v1::GetReceiptRequest request;
  request.set_receipt_id(receipt.receipt_id());
  const auto answer = client_.Jws(request, session_.call_options());
  if (!answer.ok()) {
    failure_ = answer.failure();
    return;
  }
  const std::string path = absl::StrCat(options_.folder, "/", keys::HexEncode(receipt.receipt_id()), ".jws");
  status_ = WriteFile(path, answer.value().jws() + "\n");
  if (status_.ok()) files_.push_back(path);
}

void Export::One(const std::string& receipt_id) {
  if (!ok()) return;
  const auto bytes = ParseReceiptId(receipt_id);
  if (!bytes.ok()) {
    status_ = bytes.status();
    return;
  }
  v1::GetReceiptRequest request;
  request.set_receipt_id(*bytes);
  const auto answer = client_.GetReceipt(request, session_.call_options());
  if (!answer.ok()) {
    failure_ = answer.failure();
    return;
  }
  Write(answer.value(), receipt_id);
  WriteJws(answer.value());
}

void Export::Chain(const v1::ListReceiptsRequest& which) {
  if (!ok()) return;
  std::vector<v1::Receipt> chain;
  const auto answer = client_.ListReceipts(
      which,
      [&](v1::Receipt receipt) {
        Write(receipt, keys::HexEncode(receipt.receipt_id()));
        if (options_.jws) chain.push_back(std::move(receipt));
      },
      session_.stream_options());
  if (!answer.ok()) failure_ = answer.failure();
  for (const v1::Receipt& receipt : chain) WriteJws(receipt);
}

void Export::Head(const std::string& permit_id, const std::string& name) {
  if (!ok()) return;
  v1::HeadRequest request;
  request.set_permit_id(permit_id);
  const auto answer = client_.Head(request, session_.call_options());
  if (answer.ok()) {
    Write(answer.value(), name);
  } else {
    failure_ = answer.failure();
  }
}

int Export::Run() {
  status_ = MakeFolder(options_.folder);
  if (ok()) Keys();
  for (const std::string& id : options_.receipt_ids) One(id);
  for (const std::string& permit : options_.permits) {
    Chain(OfPermit(permit));
    Head(permit, options_.permits.size() == 1 ? "head" : "head-" + permit);
  }
  for (const std::string& call : options_.calls) Chain(OfCall(call));
  // Nothing named: the tenant's own chain. Which permits there are is not an auditor's to list.
  if (options_.receipt_ids.empty() && options_.permits.empty() && options_.calls.empty()) {
    Chain({});
    Tell("The tenant's own chain; name the permits whose receipts you want: --permit ID.");
  }
  const Json document = {{"out", options_.folder}, {"receipts", receipts_}, {"files", files_}};
  if (failure_) return session_.Fail(*failure_, LostAnswer::kAskAgain, document);
  if (!status_.ok()) {
    return session_.Failed(absl::StrCat(status_.message(), ". ", receipts_, " receipt(s) were written before that."));
  }
  return session_.Done(document, absl::StrCat(receipts_, " receipt(s), keys.json and keys.pem written to ",
                                              options_.folder, "\nVerify them: tally receipt verify ", options_.folder,
                                              "/*.dsse.json --keys ", options_.folder, "/keys.json\n"));
}

int RunExport(Session& session, const ExportOptions& options) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  return Export(session, *client, options).Run();
}

}  // namespace

void AddReceiptExport(CLI::App& receipt, Program& program) {
  CLI::App* command = receipt.add_subcommand("export",
                                             "Write receipts as ID.dsse.json, with keys.json, keys.pem and the heads "
                                             "of permits' chains; nothing named: the tenant's own chain");
  auto options = std::make_shared<ExportOptions>();
  command->add_option("RECEIPT_ID", options->receipt_ids, "only these");
  command->add_option("--permit", options->permits, "this permit's chain and its head; may be repeated")
      ->type_name("ID");
  command->add_option("--call", options->calls, "only this call's receipts; may be repeated")->type_name("ID");
  command->add_flag("--jws", options->jws, "write ID.jws as well");
  command->add_option("--out", options->folder, "folder (default: the current one)")->type_name("DIR");
  command->callback(
      [&program, options] { program.run = [&program, options] { return RunExport(program.session, *options); }; });
}

}  // namespace tally::cli
