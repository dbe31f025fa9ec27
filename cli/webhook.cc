// tally webhook create | list | delete | rotate | test
#include <CLI/CLI.hpp>
#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"
#include "cli/commands.h"
#include "cli/text.h"

namespace tally::cli {
namespace {

// What a send may take (tallyd's webhooks.timeout), and the way there and back.
constexpr std::chrono::seconds kTestTimeoutMin{35};

int Create(Session& session, const std::string& url) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::CreateWebhookRequest request;
  request.set_url(url);
  const auto answer = client->CreateWebhook(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure(), LostAnswer::kLookFirst);
  return session.Done(ToJson(answer.value()),
                      absl::StrCat("Webhook ", answer.value().webhook_id(),
                                   " created.\nIts secret, shown this once: ", answer.value().secret(), "\n"));
}

int List(Session& session) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  const auto answer = client->ListWebhooks({}, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure());
  Table table({"WEBHOOK", "URL", "WAITING", "OLDEST", "DELIVERED", "LAST", "GIVEN UP", "LAST ERROR"});
  for (const v1::WebhookInfo& info : answer.value().webhooks()) {
    table.Add({info.webhook_id(), info.url(), absl::StrCat(info.waiting()), LocalTime(info.oldest_waiting_us()),
               absl::StrCat(info.delivered()), LocalTime(info.last_delivered_us()), absl::StrCat(info.given_up()),
               info.last_error().empty() ? "-" : info.last_error()});
  }
  return session.Done(ToJson(answer.value()), table.Text());
}

int Delete(Session& session, const std::string& id) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::DeleteWebhookRequest request;
  request.set_webhook_id(id);
  const auto answer = client->DeleteWebhook(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure(), LostAnswer::kLookFirst);
  return session.Done(ToJson(answer.value()),
                      absl::StrCat("Webhook ", ForTerminal(id), " deleted, with what waited for it.\n"));
}

int Rotate(Session& session, const std::string& id) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::RotateWebhookRequest request;
  request.set_webhook_id(id);
  const auto answer = client->RotateWebhook(request, session.call_options());
  if (!answer.ok()) return session.Fail(answer.failure(), LostAnswer::kLookFirst);
  return session.Done(ToJson(answer.value()), absl::StrCat("The new secret, shown this once: ", answer.value().secret(),
                                                           "\nThe one before signs too for 24 hours.\n"));
}

int Test(Session& session, const std::string& id) {
  client::Client* client = session.Connect();
  if (client == nullptr) return session.exit_code();
  v1::TestWebhookRequest request;
  request.set_webhook_id(id);
  client::CallOptions options = session.call_options();
  options.timeout = std::max<std::chrono::milliseconds>(options.timeout, kTestTimeoutMin);
  const auto answer = client->TestWebhook(request, options);
  if (!answer.ok()) return session.Fail(answer.failure());
  const v1::TestWebhookResponse& test = answer.value();
  session.Done(ToJson(test), test.delivered() ? absl::StrCat("Delivered: HTTP ", test.http_status(), ".\n")
                                              : absl::StrCat("Not delivered: ", ForTerminal(test.error()), "\n"));
  return test.delivered() ? kDone : kFailed;
}

// A verb about one webhook.
void AddOne(CLI::App& webhook, Program& program, const char* verb, const char* about,
            int (*run)(Session&, const std::string&)) {
  CLI::App* command = webhook.add_subcommand(verb, about);
  auto id = std::make_shared<std::string>();
  command->add_option("ID", *id, "The webhook's id")->required();
  command->callback([&program, id, run] { program.run = [&program, id, run] { return run(program.session, *id); }; });
}

}  // namespace

void AddWebhook(CLI::App& app, Program& program) {
  CLI::App* webhook = app.add_subcommand("webhook", "Who is told about parked calls (role: operator)");
  webhook->require_subcommand(1);

  CLI::App* create = webhook->add_subcommand("create", "Send messages about parked calls to a URL");
  auto url = std::make_shared<std::string>();
  create->add_option("URL", *url, "https://…; at most 2048 bytes")->required();
  create->callback([&program, url] { program.run = [&program, url] { return Create(program.session, *url); }; });

  CLI::App* list = webhook->add_subcommand("list", "List webhooks, what waits for them and what went wrong last");
  list->callback([&program] { program.run = [&program] { return List(program.session); }; });

  AddOne(*webhook, program, "delete", "Send nothing more to a webhook", Delete);
  AddOne(*webhook, program, "rotate", "A new secret; the one before signs too for 24 hours", Rotate);
  AddOne(*webhook, program, "test", "Send a tally.test message now, and say what came of it", Test);
}

}  // namespace tally::cli
