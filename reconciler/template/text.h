// A text with placeholders, as configurations have them: {reference}, {provider_key}, {call_id} and
// {argument:/json/pointer}; "{{" and "}}" stand for one brace.
//
// The first three are made by Tallystick: 32 hex digits, 32 hex digits, a UUID. None of them can mean anything to any
// query language. An argument is whatever an agent wrote. So it is never a part of something larger: where it stands,
// it is the whole of a path segment, a query parameter, a header, a form field or a JSON value, and that place's
// encoding is all there is between it and the provider. Templates that have it otherwise are refused when they are
// read.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "lib/json/pointer.h"
#include "lib/json/value.h"

namespace tally::reconciler {

// What placeholders stand for, of one call.
struct Values {
  std::string reference;
  std::string provider_key;
  std::string call_id;
  json::Value arguments;
};

struct Placeholder {
  enum class What { kReference, kProviderKey, kCallId, kArgument };
  What what = What::kReference;
  json::Pointer pointer;  // kArgument
};

// Either a placeholder or a literal.
struct Part {
  std::string literal;
  std::optional<Placeholder> placeholder;
};

class Text {
 public:
  Text() = default;  // empty

  // InvalidArgument: a brace that is not closed, a placeholder that there is none of, a pointer that is none.
  static absl::StatusOr<Text> Parse(std::string_view text);
  static Text Of(std::vector<Part> parts);

  const std::vector<Part>& parts() const { return parts_; }
  bool IsLiteral() const;
  bool IsEmpty() const { return parts_.empty(); }
  // One placeholder and nothing else.
  bool IsOne() const { return parts_.size() == 1 && parts_[0].placeholder.has_value(); }
  bool HasArgument() const;
  // An argument that is only a part of the text: see above.
  bool MixesArgument() const { return HasArgument() && !IsOne(); }

  // The literals and values joined, in the order in which they stand, each through `encode`.
  template <typename EncodeLiteral, typename EncodeValue>
  absl::StatusOr<std::string> Fill(const Values& values, EncodeLiteral literal, EncodeValue value) const {
    std::string out;
    for (const Part& part : parts_) {
      if (!part.placeholder) {
        out += literal(part.literal);
        continue;
      }
      const absl::StatusOr<std::string> text = TextOf(*part.placeholder, values);
      if (!text.ok()) return text.status();
      out += value(*text);
    }
    return out;
  }
  // As it is, for comparing.
  absl::StatusOr<std::string> Fill(const Values& values) const;

  // A value as text: a string's characters, a number's exact decimal form, true or false. InvalidArgument where the
  // call has no such argument, and for null, arrays and objects [{"ref": {"$ne": null}} finds everything]. Errors name
  // the pointer and quote nothing.
  static absl::StatusOr<std::string> TextOf(const Placeholder& placeholder, const Values& values);
  // The same as a JSON value of its own type.
  static absl::StatusOr<json::Value> ValueOf(const Placeholder& placeholder, const Values& values);

 private:
  std::vector<Part> parts_;
};

// Refuses a text with an argument that is not the whole of `place` ("a header's value").
absl::Status RefuseMixed(const Text& text, std::string_view place);

}  // namespace tally::reconciler
