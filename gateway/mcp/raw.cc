#include "gateway/mcp/raw.h"

#include <algorithm>
#include <charconv>

#include "gateway/mcp/scan.h"
#include "lib/json/utf8.h"

namespace tally::mcp {
namespace {

// The quote that ends a member's name, given where its value stands, cannot be found backwards; so the walk notes where
// each member begins and where its value ends.
struct Span {
  size_t begin;
  size_t end;
};

// One pass over an object: members, and their spans where `spans` is not null.
bool Walk(Scanner* scan, std::string_view text, std::vector<Member>* members, std::vector<Span>* spans) {
  scan->SkipSpace();
  if (!scan->Take('{')) return scan->Fail("not a JSON object");
  scan->SkipSpace();
  bool more = !scan->Take('}');
  while (more) {
    Member& member = members->emplace_back();
    const size_t begin = scan->at();
    if (!scan->At('"')) return scan->Fail("expected a member's name");
    if (!scan->String(&member.name)) return false;
    scan->SkipSpace();
    if (!scan->Take(':')) return scan->Fail("expected ':' after a member's name");
    scan->SkipSpace();
    const size_t value = scan->at();
    if (!scan->Value()) return false;
    member.value = text.substr(value, scan->at() - value);
    if (spans != nullptr) spans->push_back({begin, scan->at()});
    scan->SkipSpace();
    more = scan->Take(',');
    if (!more && !scan->Take('}')) return scan->Fail("expected ',' or '}' in an object");
    scan->SkipSpace();
  }
  return scan->End();
}

bool HasEqualNames(const std::vector<Member>& members) {
  constexpr size_t kPairwiseMax = 16;
  if (members.size() <= kPairwiseMax) {
    for (size_t a = 0; a < members.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (members[a].name == members[b].name) return true;
      }
    }
    return false;
  }
  std::vector<std::string_view> names;
  names.reserve(members.size());
  for (const Member& member : members) names.push_back(member.name);
  std::sort(names.begin(), names.end());
  return std::adjacent_find(names.begin(), names.end()) != names.end();
}

std::string Cat(std::string_view a, std::string_view b, std::string_view c) {
  std::string text;
  text.reserve(a.size() + b.size() + c.size());
  return text.append(a).append(b).append(c);
}

}  // namespace

absl::Status CheckJson(std::string_view text) {
  Scanner scan(text);
  scan.SkipSpace();
  if (scan.Value() && scan.End()) return absl::OkStatus();
  return scan.error();
}

absl::StatusOr<RawObject> RawObject::Parse(std::string_view object) {
  RawObject parsed;
  Scanner scan(object);
  if (!Walk(&scan, object, &parsed.members_, nullptr)) return scan.error();
  if (HasEqualNames(parsed.members_)) return absl::InvalidArgumentError("JSON refused: two members have the same name");
  return parsed;
}

const std::string_view* RawObject::Find(std::string_view name) const {
  for (const Member& member : members_) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

std::string WithMember(std::string_view object, std::string_view name, std::string_view raw_value) {
  std::vector<Member> members;
  std::vector<Span> spans;
  Scanner scan(object);
  if (!Walk(&scan, object, &members, &spans) || HasEqualNames(members)) return std::string(object);
  for (const Member& member : members) {
    if (member.name != name) continue;
    const size_t at = static_cast<size_t>(member.value.data() - object.data());
    return Cat(object.substr(0, at), raw_value, object.substr(at + member.value.size()));
  }
  const size_t at = members.empty() ? object.find('{') + 1 : spans.back().end;
  std::string added = members.empty() ? "" : ",";
  added.append(Quote(name)).append(":").append(raw_value);
  return Cat(object.substr(0, at), added, object.substr(at));
}

std::string WithoutMember(std::string_view object, std::string_view name) {
  return WithoutMembers(object, [name](std::string_view member) { return member == name; });
}

std::string WithoutMembers(std::string_view object, const std::function<bool(std::string_view name)>& leave_out) {
  std::vector<Member> members;
  std::vector<Span> spans;
  Scanner scan(object);
  if (!Walk(&scan, object, &members, &spans) || HasEqualNames(members) || members.empty()) return std::string(object);
  std::string out(object.substr(0, spans.front().begin));
  bool any = false;
  for (size_t i = 0; i < members.size(); ++i) {
    if (leave_out(members[i].name)) continue;
    // With what stands before it, the comma among it; but the first that is left has none.
    const size_t begin = any ? spans[i - 1].end : spans[i].begin;
    out.append(object.substr(begin, spans[i].end - begin));
    any = true;
  }
  return out.append(object.substr(spans.back().end));
}

std::string Quote(std::string_view utf8) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out = "\"";
  out.reserve(utf8.size() + 2);
  for (size_t at = 0; at < utf8.size();) {
    const char c = utf8[at];
    if (c == '"' || c == '\\') {
      out.push_back('\\');
      out.push_back(c);
      ++at;
    } else if (c == '\n') {
      out.append("\\n");
      ++at;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out.append("\\u00").push_back(kHex[c >> 4]);
      out.push_back(kHex[c & 15]);
      ++at;
    } else if (const size_t length = json::Utf8SequenceLength(utf8.substr(at)); length > 0) {
      out.append(utf8.substr(at, length));
      at += length;
    } else {
      out.append("\xEF\xBF\xBD");
      ++at;
    }
  }
  out.push_back('"');
  return out;
}

std::optional<std::string> StringOf(std::string_view raw) {
  std::string text;
  Scanner scan(raw);
  if (!scan.String(&text) || !scan.AtEnd()) return std::nullopt;
  return text;
}

std::optional<int64_t> IntegerOf(std::string_view raw) {
  const std::string_view digits = raw.substr(raw.starts_with('-') ? 1 : 0);
  if (digits.empty() || (digits.size() > 1 && digits[0] == '0')) return std::nullopt;
  int64_t value = 0;
  const auto [end, error] = std::from_chars(raw.data(), raw.data() + raw.size(), value);
  if (error != std::errc() || end != raw.data() + raw.size()) return std::nullopt;
  return value;
}

std::optional<bool> BoolOf(std::string_view raw) {
  if (raw == "true") return true;
  if (raw == "false") return false;
  return std::nullopt;
}

std::optional<std::vector<std::string_view>> ElementsOf(std::string_view raw) {
  std::vector<std::string_view> elements;
  Scanner scan(raw);
  scan.SkipSpace();
  if (!scan.Take('[')) return std::nullopt;
  scan.SkipSpace();
  bool more = !scan.Take(']');
  while (more) {
    const size_t begin = scan.at();
    if (!scan.Value()) return std::nullopt;
    elements.push_back(raw.substr(begin, scan.at() - begin));
    scan.SkipSpace();
    more = scan.Take(',');
    if (!more && !scan.Take(']')) return std::nullopt;
    scan.SkipSpace();
  }
  if (!scan.End()) return std::nullopt;
  return elements;
}

}  // namespace tally::mcp
