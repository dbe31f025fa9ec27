#include "reconciler/template/body.h"

#include <algorithm>

#include "lib/json/parse.h"
#include "lib/keys/text.h"
#include "reconciler/template/url.h"

namespace tally::reconciler {
namespace {

using keys::Cat;

constexpr size_t kDocumentBytesMax = 64 * 1024;

bool IsHeaderText(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c >= ' ' && c < 0x7f; }) && !text.starts_with(' ') &&
         !text.ends_with(' ');
}

absl::Status CheckString(const std::string& string, std::string_view where) {
  const auto text = Text::Parse(string);
  absl::Status sound = text.ok() ? RefuseMixed(*text, "a JSON string") : text.status();
  if (sound.ok()) return sound;
  return absl::InvalidArgumentError(Cat("at ", where.empty() ? "its top" : where, ": ", sound.message()));
}

absl::Status CheckDocument(const json::Value& value, std::string& where) {
  const size_t size = where.size();
  const auto inside = [&](std::string_view token, const json::Value& inner) {
    json::AppendPointerToken(token, &where);
    absl::Status sound = CheckDocument(inner, where);
    where.resize(size);
    return sound;
  };
  if (const std::string* string = value.AsString()) return CheckString(*string, where);
  if (const json::Array* array = value.AsArray()) {
    for (size_t i = 0; i < array->size(); ++i) {
      if (absl::Status sound = inside(std::to_string(i), (*array)[i]); !sound.ok()) return sound;
    }
  }
  if (const json::Object* object = value.AsObject()) {
    for (const json::Member& member : object->members()) {
      if (member.name.find_first_of("{}") != member.name.npos) {
        return absl::InvalidArgumentError(
            Cat("at ", where.empty() ? "its top" : where, ": a member's name has a brace, and names are literal"));
      }
      if (absl::Status sound = inside(member.name, member.value); !sound.ok()) return sound;
    }
  }
  return absl::OkStatus();
}

absl::StatusOr<json::Value> FillValue(const json::Value& value, const Values& values) {
  if (const std::string* string = value.AsString()) {
    const auto text = Text::Parse(*string);
    if (!text.ok()) return text.status();
    if (text->IsOne()) return Text::ValueOf(*text->parts()[0].placeholder, values);
    auto filled = text->Fill(values);
    if (!filled.ok()) return filled.status();
    return json::Value(*std::move(filled));
  }
  if (const json::Array* array = value.AsArray()) {
    json::Array out;
    for (const json::Value& inner : *array) {
      auto filled = FillValue(inner, values);
      if (!filled.ok()) return filled;
      out.push_back(*std::move(filled));
    }
    return json::Value(std::move(out));
  }
  if (const json::Object* object = value.AsObject()) {
    json::Object out;
    for (const json::Member& member : object->members()) {
      auto filled = FillValue(member.value, values);
      if (!filled.ok()) return filled;
      out.Set(member.name, *std::move(filled));
    }
    return json::Value(std::move(out));
  }
  return value;
}

}  // namespace

absl::StatusOr<HeaderTemplate> HeaderTemplate::Parse(std::string_view text) {
  auto parsed = Text::Parse(text);
  if (!parsed.ok()) return parsed.status();
  if (absl::Status whole = RefuseMixed(*parsed, "a header's value"); !whole.ok()) return whole;
  if (!IsHeaderText(text)) {
    return absl::InvalidArgumentError("must be printable ASCII, without a space at either end");
  }
  HeaderTemplate header;
  header.text_ = *std::move(parsed);
  return header;
}

absl::StatusOr<std::string> HeaderTemplate::Fill(const Values& values) const {
  auto filled = text_.Fill(values);
  if (filled.ok() && !IsHeaderText(*filled)) {
    return absl::InvalidArgumentError(
        "an argument that fills a header is not of printable ASCII, or has a space at an end; nothing was asked");
  }
  return filled;
}

absl::Status FormTemplate::Add(std::string_view name, std::string_view text) {
  if (name.empty() || name.find_first_of("{}") != name.npos) {
    return absl::InvalidArgumentError("has a field whose name is empty or has a brace; names are literal");
  }
  auto parsed = Text::Parse(text);
  if (!parsed.ok()) return parsed.status();
  if (absl::Status whole = RefuseMixed(*parsed, "a form field"); !whole.ok()) return whole;
  fields_.emplace_back(PercentEncode(name), *std::move(parsed));
  return absl::OkStatus();
}

absl::StatusOr<std::string> FormTemplate::Fill(const Values& values) const {
  std::string form;
  for (const auto& [name, text] : fields_) {
    auto filled = text.Fill(values, PercentEncode, PercentEncode);
    if (!filled.ok()) return filled.status();
    form += Cat(form.empty() ? "" : "&", name, "=", *filled);
  }
  return form;
}

absl::StatusOr<JsonTemplate> JsonTemplate::Parse(std::string_view document) {
  auto value = json::Parse(document, {.bytes_max = kDocumentBytesMax, .case_variants = json::CaseVariants::kAdmit});
  if (!value.ok()) return absl::InvalidArgumentError(Cat("is not one JSON document: ", value.status().message()));
  return Of(*value);
}

absl::StatusOr<JsonTemplate> JsonTemplate::Of(const json::Value& document) {
  std::string where;
  if (absl::Status sound = CheckDocument(document, where); !sound.ok()) return sound;
  JsonTemplate made;
  made.document_ = document;
  return made;
}

absl::StatusOr<json::Value> JsonTemplate::Fill(const Values& values) const { return FillValue(document_, values); }

}  // namespace tally::reconciler
