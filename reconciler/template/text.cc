#include "reconciler/template/text.h"

#include <algorithm>

#include "lib/keys/text.h"

namespace tally::reconciler {
namespace {

using keys::Cat;
using What = Placeholder::What;

constexpr std::string_view kArgument = "argument:";

absl::StatusOr<Placeholder> ParsePlaceholder(std::string_view name) {
  if (name == "reference") return Placeholder{What::kReference, {}};
  if (name == "provider_key") return Placeholder{What::kProviderKey, {}};
  if (name == "call_id") return Placeholder{What::kCallId, {}};
  if (name.starts_with(kArgument)) {
    auto pointer = json::Pointer::Parse(name.substr(kArgument.size()));
    if (!pointer.ok() || pointer->tokens().empty()) {
      return absl::InvalidArgumentError(
          Cat("{", name, "} does not name an argument by a JSON pointer, like {argument:/customer}"));
    }
    return Placeholder{What::kArgument, *std::move(pointer)};
  }
  return absl::InvalidArgumentError(Cat("{", name,
                                        "} is no placeholder: there are {reference}, {provider_key}, {call_id} and "
                                        "{argument:/json/pointer}; a brace that is meant is written twice"));
}

absl::Status NoValue(const json::Pointer& pointer, std::string_view why) {
  return absl::InvalidArgumentError(Cat("the argument ", pointer.ToString(), " ", why, "; nothing was asked"));
}

}  // namespace

absl::StatusOr<Text> Text::Parse(std::string_view text) {
  std::vector<Part> parts;
  const auto literal = [&]() -> std::string& {
    if (parts.empty() || parts.back().placeholder) parts.emplace_back();
    return parts.back().literal;
  };
  for (size_t at = 0; at < text.size();) {
    const char c = text[at];
    if (c != '{' && c != '}') {
      literal() += c;
      ++at;
    } else if (at + 1 < text.size() && text[at + 1] == c) {
      literal() += c;
      at += 2;
    } else if (c == '}') {
      return absl::InvalidArgumentError("has a } that closes nothing; one that is meant is written twice");
    } else {
      const size_t end = text.find('}', at);
      if (end == text.npos) {
        return absl::InvalidArgumentError("has a { that is not closed; one that is meant is written twice");
      }
      auto placeholder = ParsePlaceholder(text.substr(at + 1, end - at - 1));
      if (!placeholder.ok()) return placeholder.status();
      parts.push_back({"", *std::move(placeholder)});
      at = end + 1;
    }
  }
  return Of(std::move(parts));
}

Text Text::Of(std::vector<Part> parts) {
  Text text;
  text.parts_ = std::move(parts);
  return text;
}

bool Text::IsLiteral() const {
  return std::none_of(parts_.begin(), parts_.end(), [](const Part& part) { return part.placeholder.has_value(); });
}

bool Text::HasArgument() const {
  return std::any_of(parts_.begin(), parts_.end(),
                     [](const Part& part) { return part.placeholder && part.placeholder->what == What::kArgument; });
}

absl::StatusOr<std::string> Text::Fill(const Values& values) const {
  const auto same = [](const std::string& text) -> const std::string& { return text; };
  return Fill(values, same, same);
}

absl::StatusOr<json::Value> Text::ValueOf(const Placeholder& placeholder, const Values& values) {
  switch (placeholder.what) {
    case What::kReference:
      return json::Value(values.reference);
    case What::kProviderKey:
      return json::Value(values.provider_key);
    case What::kCallId:
      return json::Value(values.call_id);
    case What::kArgument:
      break;
  }
  const json::Value* value = json::Get(values.arguments, placeholder.pointer);
  if (value == nullptr) return NoValue(placeholder.pointer, "is not in this call, or was erased");
  if (value->IsNull() || value->IsArray() || value->IsObject()) {
    return NoValue(placeholder.pointer, Cat("is of the kind ", json::KindName(value->kind()),
                                            ", and only strings, numbers, true and false are put into a look-up"));
  }
  return *value;
}

absl::StatusOr<std::string> Text::TextOf(const Placeholder& placeholder, const Values& values) {
  const absl::StatusOr<json::Value> value = ValueOf(placeholder, values);
  if (!value.ok()) return value.status();
  if (const std::string* string = value->AsString()) return *string;
  if (const bool* truth = value->AsBool()) return *truth ? "true" : "false";
  return value->AsNumber()->text();
}

absl::Status RefuseMixed(const Text& text, std::string_view place) {
  if (!text.MixesArgument()) return absl::OkStatus();
  return absl::InvalidArgumentError(Cat(
      "has {argument:…} inside a larger text: what an agent wrote could then end its place and begin another, in the "
      "provider's query language if not in HTTP. It must be the whole of ",
      place, "; {reference} and {provider_key}, which are hex, may stand anywhere"));
}

}  // namespace tally::reconciler
