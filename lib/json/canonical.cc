#include "lib/json/canonical.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/status/status.h"

namespace tally::json {
namespace {

bool NeedsEscape(char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"' || c == '\\'; }

// RFC 8785 section 3.2.2.2.
void AppendEscape(char c, std::string* out) {
  static constexpr char kHex[] = "0123456789abcdef";
  out->push_back('\\');
  switch (c) {
    case '"':
    case '\\':
      out->push_back(c);
      return;
    case '\b':
      out->push_back('b');
      return;
    case '\t':
      out->push_back('t');
      return;
    case '\n':
      out->push_back('n');
      return;
    case '\f':
      out->push_back('f');
      return;
    case '\r':
      out->push_back('r');
      return;
    default:
      out->append("u00").push_back(kHex[c >> 4]);
      out->push_back(kHex[c & 15]);
  }
}

// Writes a tree; how a number is written is the caller's.
template <typename AppendNumber>
void Write(const Value& value, const AppendNumber& append_number, std::string* out) {
  switch (value.kind()) {
    case Kind::kNull:
      out->append("null");
      return;
    case Kind::kBool:
      out->append(*value.AsBool() ? "true" : "false");
      return;
    case Kind::kNumber:
      append_number(*value.AsNumber(), out);
      return;
    case Kind::kString:
      AppendCanonicalString(*value.AsString(), out);
      return;
    case Kind::kArray: {
      char before = '[';
      for (const Value& element : *value.AsArray()) {
        out->push_back(before);
        Write(element, append_number, out);
        before = ',';
      }
      out->append(before == '[' ? "[]" : "]");
      return;
    }
    case Kind::kObject: {
      char before = '{';
      for (const Member& member : value.AsObject()->members()) {
        out->push_back(before);
        AppendCanonicalString(member.name, out);
        out->push_back(':');
        Write(member.value, append_number, out);
        before = ',';
      }
      out->append(before == '{' ? "{}" : "}");
      return;
    }
  }
}

}  // namespace

void AppendCanonicalString(std::string_view string, std::string* out) {
  out->push_back('"');
  const char* from = string.data();
  const char* const end = from + string.size();
  for (const char* at = from; at != end; ++at) {
    if (!NeedsEscape(*at)) continue;
    out->append(from, at);
    AppendEscape(*at, out);
    from = at + 1;
  }
  out->append(from, end).push_back('"');
}

void AppendCanonical(const Value& value, std::string* out) {
  Write(
      value, [](const Number& number, std::string* to) { to->append(number.text()); }, out);
}

std::string Canonical(const Value& value) {
  std::string bytes;
  bytes.reserve(256);  // most arguments fit
  AppendCanonical(value, &bytes);
  return bytes;
}

absl::StatusOr<std::string> Canonicalise(std::string_view text, const ParseOptions& options) {
  const absl::StatusOr<Value> value = Parse(text, options);
  if (!value.ok()) return value.status();
  std::string bytes;
  bytes.reserve(text.size());
  AppendCanonical(*value, &bytes);
  return bytes;
}

absl::StatusOr<std::string> CanonicalOfDoubles(const Value& value) {
  bool beyond = false;
  const auto append_number = [&beyond](const Number& number, std::string* to) {
    const std::string& text = number.text();
    double nearest = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), nearest);
    // Out of range is either infinity, which has no form, or nearer to zero than any double.
    const bool underflow = result.ec == std::errc::result_out_of_range && number.decimal().point < 0;
    if (result.ec == std::errc::result_out_of_range) nearest = 0;
    if ((result.ec != std::errc() && !underflow) || !std::isfinite(nearest)) beyond = true;
    AppendDouble(nearest, to);
  };
  std::string bytes;
  Write(value, append_number, &bytes);
  if (beyond) return absl::InvalidArgumentError("a number is beyond the range of IEEE 754 doubles");
  return bytes;
}

}  // namespace tally::json
