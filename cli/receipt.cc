// tally receipt list | show | head
#include <CLI/CLI.hpp>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/call_name.h"
#include "cli/commands.h"
#include "cli/text.h"
#include "lib/keys/encoding.h"
#include "lib/receipt/json.h"
#include "lib/receipt/payload.h"

namespace tally::cli {
namespace {

// Every member on a line of its own, those inside others by their path.
void AddMembers(const std::string& prefix, const Json& json, Fields* fields) {
  for (const auto& [name, value] : json.items()) {
    const std::string path = prefix.empty() ? name : prefix + "." + name;
    if (value.is_object() || (value.is_array() && !value.empty() && value.front().is_object())) {
      AddMembers(path, value, fields);
    } else {
      fields->Add(path, value.is_string() ? value.get<std::string>() : value.dump());
    }
  }
}

int Tell(Session& session, const v1::Receipt& receipt) {
  const auto payload = receipt::Parse(receipt.payload());
  if (!payload.ok()) {
    return session.Failed(absl::StrCat("Receipt ", keys::HexEncode(receipt.receipt_id()),
                                       " cannot be read: ", payload.status().message()));
  }
  const Json document = receipt::ToJson(*payload, receipt.receipt_id());
  Fields fields;
  AddMembers("", document, &fields);
  return session.Done(document, fields.Text());
}

int Show(Session& session, const std::string& id) {
  const auto receipt_id = ParseReceiptId(id);
  if (!receipt_id.ok()) return session.Usage(std::string(receipt_id.status().message()));
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::GetReceiptRequest request;
  request.set_receipt_id(*receipt_id);
  const auto answer = client->GetReceipt(request, session.call_options());
  return answer.ok() ? Tell(session, answer.value()) : session.Fail(answer.failure());
}

int Head(Session& session, const std::string& permit) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::HeadRequest request;
  request.set_permit_id(permit);
  const auto answer = client->Head(request, session.call_options());
  return answer.ok() ? Tell(session, answer.value()) : session.Fail(answer.failure());
}

struct ListOptions {
  std::string permit;
  std::string call;
  int64_t from = 0;
  int64_t to = 0;
};

int List(Session& session, const ListOptions& options) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::ListReceiptsRequest request;
  request.set_permit_id(options.permit);
  request.set_call_id(options.call);
  request.set_from_sequence(options.from);
  request.set_to_sequence(options.to);
  Json receipts = Json::array();
  Table table({"NUMBER", "TIME", "KIND", "TOOL", "STATE", "CODE", "RECEIPT"});
  const auto answer = client->ListReceipts(
      request,
      [&](const v1::Receipt& receipt) {
        const std::string id = keys::HexEncode(receipt.receipt_id());
        const auto payload = receipt::Parse(receipt.payload());
        if (!payload.ok()) {
          receipts.push_back({{"receipt_id", id}, {"unreadable", payload.status().message()}});
          table.Add({"?", "?", "unreadable", "", "", "", id});
          return;
        }
        receipts.push_back(receipt::ToJson(*payload, receipt.receipt_id()));
        table.Add({absl::StrCat(payload->sequence()), LocalTime(payload->time_us()), receipt::KindName(payload->kind()),
                   payload->tool(), payload->state() == 0 ? "" : v1::CallState_Name(payload->state()), payload->code(),
                   id});
      },
      session.stream_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  return session.Done({{"receipts", std::move(receipts)}}, table.Text());
}

}  // namespace

void AddReceipt(CLI::App& app, Program& program) {
  CLI::App* receipt = app.add_subcommand("receipt", "Signed decisions (role: auditor; verify: anybody)");
  receipt->require_subcommand(1);

  CLI::App* list = receipt->add_subcommand("list", "A permit's chain, or the tenant's own");
  auto options = std::make_shared<ListOptions>();
  list->add_option("PERMIT,--permit", options->permit, "the permit; none: the tenant's own chain");
  list->add_option("--call", options->call, "only this call's")->type_name("ID");
  list->add_option("--from", options->from, "from this number on");
  list->add_option("--to", options->to, "to this number");
  list->callback(
      [&program, options] { program.run = [&program, options] { return List(program.session, *options); }; });

  auto id = std::make_shared<std::string>();
  CLI::App* show = receipt->add_subcommand("show", "What a receipt says");
  show->add_option("RECEIPT_ID", *id, "64 hex digits")->required();
  show->callback([&program, id] { program.run = [&program, id] { return Show(program.session, *id); }; });

  auto permit = std::make_shared<std::string>();
  CLI::App* head = receipt->add_subcommand("head", "Have it signed where a permit's chain ends now");
  head->add_option("PERMIT", *permit, "the permit")->required();
  head->callback([&program, permit] { program.run = [&program, permit] { return Head(program.session, *permit); }; });

  AddReceiptExport(*receipt, program);
  AddReceiptVerify(*receipt, program);
}

}  // namespace tally::cli
