#include "reconciler/lookup/http.h"

#include "lib/json/canonical.h"
#include "lib/keys/text.h"
#include "lib/outbound/request.h"
#include "reconciler/lookup/make.h"
#include "reconciler/verdict/read.h"

namespace tally::reconciler {
namespace {

using keys::Cat;

absl::StatusOr<outbound::Request> RequestFor(const HttpConfig& http, const Values& values) {
  outbound::Request request;
  request.method = http.method;
  request.answer_bytes_max = static_cast<size_t>(http.answer_bytes_max);
  auto url = http.url.Fill(values);
  if (!url.ok()) return url.status();
  request.url = *std::move(url);
  for (const auto& [name, header] : http.headers) {
    auto value = header.Fill(values);
    if (!value.ok()) return value.status();
    request.headers.emplace_back(name, *std::move(value));
  }
  if (http.has_json) {
    const auto document = http.json.Fill(values);
    if (!document.ok()) return document.status();
    request.body = json::Canonical(*document);
    request.headers.emplace_back("Content-Type", "application/json");
  } else if (!http.form.empty()) {
    auto form = http.form.Fill(values);
    if (!form.ok()) return form.status();
    request.body = *std::move(form);
    request.headers.emplace_back("Content-Type", "application/x-www-form-urlencoded");
  }
  return request;
}

}  // namespace

absl::StatusOr<std::unique_ptr<LookUp>> HttpLookUp::Make(const ToolConfig& tool, const ProviderConfig& provider) {
  auto secrets = ReadSecretHeaders(tool.http);
  if (!secrets.ok()) return secrets.status();
  return std::unique_ptr<LookUp>(new HttpLookUp(tool, provider, *std::move(secrets)));
}

Answer HttpLookUp::Ask(const Case& asked) {
  const auto values = ValuesOf(asked);
  if (!values.ok()) return Unclear(Cat("the call's arguments cannot be read: ", values.status().message()));
  auto request = RequestFor(tool_.http, *values);
  if (!request.ok()) return Unclear(Cat(request.status().message()));
  request->timeout = tool_.timeout;
  request->allow_private = provider_.allow_private;
  request->allow_http = provider_.allow_http;
  request->ca_file = provider_.ca_file;
  for (const auto& [name, value] : secrets_) request->headers.emplace_back(name, std::string(value.Expose()));

  absl::StatusOr<outbound::Answer> answer = outbound::Send(*request);
  // Whatever it was, the provider did not say that it has no such record.
  if (!answer.ok()) return Unclear(Cat("no answer: ", answer.status().message()));
  Reading reading = ReadHttpAnswer(tool_.answer, *values, asked.parked.call().unit(), answer->status, answer->body);
  return AnswerOf(std::move(reading), std::move(answer->body));
}

}  // namespace tally::reconciler
