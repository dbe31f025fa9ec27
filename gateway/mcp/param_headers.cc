#include "gateway/mcp/param_headers.h"

#include <algorithm>
#include <set>

#include "gateway/mcp/modern.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "lib/json/decimal.h"

namespace tally::mcp {
namespace {

constexpr std::string_view kMark = "x-mcp-header";
constexpr std::string_view kPrefix = "Mcp-Param-";
constexpr size_t kHeadersMax = 64;
constexpr int kDepthMax = 64;
constexpr size_t kNameBytesMax = 128;
constexpr int64_t kSafeIntegerMax = 9007199254740991;  // 2^53 - 1

bool IsTokenByte(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  return letter || std::string_view("!#$%&'*+-.^_`|~").find(c) != std::string_view::npos;
}

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c;
  return lower;
}

absl::Status Bad(std::string_view what) { return absl::InvalidArgumentError("x-mcp-header " + std::string(what)); }

class Collector {
 public:
  // Looks at a schema that only `properties` lead to, unless `reachable` is false: there a mark is an error.
  absl::Status Visit(std::string_view raw, bool reachable, int depth = 0) {
    // Each level is scanned anew, so that depth costs time.
    if (depth > kDepthMax) return Bad("stands in a schema of over 64 levels");
    if (IsArray(raw)) {
      for (std::string_view element : ElementsOf(raw).value_or(std::vector<std::string_view>())) {
        if (absl::Status status = Visit(element, false, depth + 1); !status.ok()) return status;
      }
    }
    if (!IsObject(raw)) return absl::OkStatus();
    const auto schema = RawObject::Parse(raw);
    if (!schema.ok()) return Bad("stands in a schema with equal members");
    for (const Member& member : schema->members()) {
      absl::Status status;
      if (member.name == "properties" && reachable) {
        status = VisitProperties(member.value, depth + 1);
      } else if (member.name == kMark) {
        status = reachable ? Take(*schema, member.value) : Bad("stands where no chain of properties leads to it");
      } else if (!IsData(member.name)) {
        status = Visit(member.value, false, depth + 1);
      }
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  std::vector<ParamHeader> found;

 private:
  // Keywords whose values are no schemas but examples of data.
  static bool IsData(std::string_view keyword) {
    return keyword == "default" || keyword == "const" || keyword == "enum" || keyword == "examples";
  }

  absl::Status VisitProperties(std::string_view raw, int depth) {
    if (!IsObject(raw)) return absl::OkStatus();
    const auto properties = RawObject::Parse(raw);
    if (!properties.ok()) return Bad("stands in a schema with equal properties");
    for (const Member& property : properties->members()) {
      path_.push_back(property.name);
      const absl::Status status = Visit(property.value, true, depth);
      path_.pop_back();
      if (!status.ok()) return status;
    }
    return absl::OkStatus();
  }

  absl::Status Take(const RawObject& schema, std::string_view mark) {
    const auto name = StringOf(mark);
    if (!name || name->empty() || name->size() > kNameBytesMax ||
        !std::all_of(name->begin(), name->end(), IsTokenByte)) {
      return Bad("must be a header's name of 1 to 128 bytes");
    }
    const std::string_view* type = schema.Find("type");
    const auto word = type == nullptr ? std::nullopt : StringOf(*type);
    if (word != "string" && word != "integer" && word != "boolean") {
      return Bad("is for properties of type string, integer or boolean");
    }
    if (path_.empty()) return Bad("stands on the arguments themselves");
    if (!names_.insert(Lower(*name)).second) return Bad("names one header twice");
    if (found.size() == kHeadersMax) return Bad("stands on more than 64 properties");
    found.push_back({std::string(kPrefix) + *name, path_});
    return absl::OkStatus();
  }

  std::vector<std::string> path_;
  std::set<std::string> names_;
};

// The argument's raw value; nullopt where there is none or it is null.
std::optional<std::string_view> ArgumentAt(std::string_view raw, const std::vector<std::string>& path) {
  for (const std::string& name : path) {
    const auto object = IsObject(raw) ? RawObject::Parse(raw) : absl::InvalidArgumentError("");
    const std::string_view* member = object.ok() ? object->Find(name) : nullptr;
    if (member == nullptr) return std::nullopt;
    raw = *member;
  }
  if (raw == "null") return std::nullopt;
  return raw;
}

// 42.0 and 42 are one integer.
std::optional<std::string> Normal(std::string_view number) {
  json::Decimal decimal;
  size_t length = 0;
  const bool all = json::ScanNumber(number, &decimal, &length) == json::NumberScan::kNumber && length == number.size();
  if (!all || !decimal.IsInteger()) return std::nullopt;
  std::string text;
  json::AppendDecimal(decimal, &text);
  const auto value = IntegerOf(text);
  if (!value || *value > kSafeIntegerMax || *value < -kSafeIntegerMax) return std::nullopt;
  return text;
}

// What a header says of a string, boolean or integer; nullopt for what no header can say.
std::optional<std::string> Plain(std::string_view raw) {
  if (BoolOf(raw)) return std::string(raw);
  return raw.starts_with('"') ? StringOf(raw) : Normal(raw);
}

}  // namespace

absl::StatusOr<std::vector<ParamHeader>> ParamHeadersOf(std::string_view raw_input_schema) {
  // Most schemas have none, and are not looked at any further.
  if (raw_input_schema.find(kMark) == std::string_view::npos) return std::vector<ParamHeader>();
  Collector collector;
  const absl::Status status = collector.Visit(raw_input_schema, true);
  if (!status.ok()) return status;
  return std::move(collector.found);
}

std::optional<std::string> ParamHeaderValue(const ParamHeader& param, std::string_view raw_arguments) {
  const auto raw = ArgumentAt(raw_arguments, param.path);
  const auto plain = raw ? Plain(*raw) : std::nullopt;
  return plain ? std::optional(EncodeHeaderValue(*plain)) : std::nullopt;
}

std::optional<RpcError> CheckParamHeaders(const std::vector<ParamHeader>& params, std::string_view raw_arguments,
                                          const std::function<std::optional<std::string>(std::string_view)>& header) {
  for (const ParamHeader& param : params) {
    const auto raw = ArgumentAt(raw_arguments, param.path);
    const auto plain = raw ? Plain(*raw) : std::nullopt;
    const auto sent = header(param.header);
    const auto decoded = sent ? DecodeHeaderValue(*sent) : std::nullopt;
    // An argument of another type than the schema's is for the tool to refuse: no header can agree with it.
    if (!sent && !plain) continue;
    const bool number = raw && !raw->starts_with('"') && !BoolOf(*raw);
    if (plain && decoded && (number ? Normal(*decoded) : decoded) == plain) continue;
    return RpcError{code::kHeaderMismatch,
                    "The header " + param.header + (sent ? " does not match" : " is missing, though its value is in") +
                        " the arguments. Nothing was done.",
                    ""};
  }
  return std::nullopt;
}

}  // namespace tally::mcp
