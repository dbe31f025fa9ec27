#include "reconciler/template/url.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "lib/keys/text.h"

namespace tally::reconciler {
namespace {

using keys::Cat;

constexpr std::string_view kHex = "0123456789ABCDEF";
// RFC 3986: pchar without percent-encoding, and what a query may hold besides.
constexpr std::string_view kPathPlain = "-._~!$&'()*+,;=:@";
constexpr std::string_view kQueryPlain = "-._~!$'()*+,;=:@/?";

bool IsAlphanumeric(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9'); }

void AppendEncoded(char c, std::string& out) {
  const auto byte = static_cast<unsigned char>(c);
  out += {'%', kHex[byte >> 4], kHex[byte & 15]};
}

bool IsHexPair(std::string_view text) {
  return text.size() >= 2 && text.substr(0, 2).find_first_not_of("0123456789abcdefABCDEF") == text.npos;
}

absl::StatusOr<std::string> EncodeLiteral(std::string_view text, std::string_view plain) {
  std::string out;
  for (size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '%') {
      if (!IsHexPair(text.substr(at + 1))) {
        return absl::InvalidArgumentError("has a % that is not followed by two hex digits; one that is meant is %25");
      }
      out += c;
    } else if (IsAlphanumeric(c) || plain.find(c) != plain.npos) {
      out += c;
    } else {
      AppendEncoded(c, out);
    }
  }
  return out;
}

absl::StatusOr<Text> EncodeLiterals(std::vector<Part> parts, std::string_view plain) {
  for (Part& part : parts) {
    if (part.placeholder) continue;
    auto encoded = EncodeLiteral(part.literal, plain);
    if (!encoded.ok()) return encoded.status();
    part.literal = *std::move(encoded);
  }
  return Text::Of(std::move(parts));
}

// The parts between `separator`s of the literals; at least one, perhaps empty.
std::vector<std::vector<Part>> Split(const std::vector<Part>& parts, char separator) {
  std::vector<std::vector<Part>> pieces(1);
  for (const Part& part : parts) {
    if (part.placeholder) {
      pieces.back().push_back(part);
      continue;
    }
    std::string_view rest = part.literal;
    while (true) {
      const size_t end = rest.find(separator);
      if (end != 0 && !rest.empty()) pieces.back().push_back({std::string(rest.substr(0, end)), {}});
      if (end == rest.npos) break;
      pieces.emplace_back();
      rest.remove_prefix(end + 1);
    }
  }
  return pieces;
}

absl::Status CheckOrigin(std::string_view authority) {
  const auto bad = [](std::string_view what) { return absl::InvalidArgumentError(std::string(what)); };
  if (authority.find_first_of("{}") != authority.npos) {
    return bad("has a placeholder in its host or port: where a question goes is not for a call to say");
  }
  if (authority.find('@') != authority.npos) {
    return bad("has a user or password in it: credentials come by secret_headers");
  }
  std::string_view host = authority;
  std::string_view port;
  if (host.starts_with('[')) {
    const size_t end = host.find(']');
    if (end == host.npos || host.substr(1, end - 1).find_first_not_of("0123456789abcdefABCDEF:.") != host.npos) {
      return bad("has no valid address between brackets");
    }
    port = host.substr(end + 1);
    if (!port.empty() && port[0] != ':') return bad("has text after the bracket of its address");
  } else {
    const size_t colon = std::min(host.find(':'), host.size());
    port = host.substr(colon);
    host = host.substr(0, colon);
    const bool sound = !host.empty() && std::all_of(host.begin(), host.end(),
                                                    [](char c) { return IsAlphanumeric(c) || c == '-' || c == '.'; });
    if (!sound) return bad("has no host of letters, digits, '-' and '.' after its scheme");
  }
  int number = 0;
  if (!port.empty() && (port.size() > 6 || port.find_first_not_of("0123456789", 1) != port.npos ||
                        !absl::SimpleAtoi(std::string(port.substr(1)), &number) || number < 1 || number > 65535)) {
    return bad("has no port from 1 to 65535 after its host");
  }
  return absl::OkStatus();
}

}  // namespace

std::string PercentEncode(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (IsAlphanumeric(c) || c == '-' || c == '.' || c == '_' || c == '~') {
      out += c;
    } else {
      AppendEncoded(c, out);
    }
  }
  return out;
}

absl::StatusOr<UrlTemplate> UrlTemplate::Parse(std::string_view text) {
  const size_t scheme = text.starts_with("https://") ? 8 : text.starts_with("http://") ? 7 : 0;
  if (scheme == 0) return absl::InvalidArgumentError("must begin with https:// or http://");
  const size_t end = std::min(text.find_first_of("/?#", scheme), text.size());
  if (absl::Status sound = CheckOrigin(text.substr(scheme, end - scheme)); !sound.ok()) return sound;
  UrlTemplate url;
  url.origin_ = text.substr(0, end);

  auto rest = Text::Parse(text.substr(end));
  if (!rest.ok()) return rest.status();
  // Before the first '?' of a literal: the path.
  std::vector<Part> path, query;
  for (const Part& part : rest->parts()) {
    if (part.literal.find('#') != part.literal.npos) {
      return absl::InvalidArgumentError("has a fragment, which no server sees; a # that is meant is %23");
    }
    const size_t mark = url.has_query_ || part.placeholder ? std::string::npos : part.literal.find('?');
    if (url.has_query_) {
      query.push_back(part);
    } else if (mark == std::string::npos) {
      path.push_back(part);
    } else {
      url.has_query_ = true;
      path.push_back({part.literal.substr(0, mark), {}});
      query.push_back({part.literal.substr(mark + 1), {}});
    }
  }
  if (absl::Status taken = url.TakePath(std::move(path)); !taken.ok()) return taken;
  if (url.has_query_) {
    if (absl::Status taken = url.TakeQuery(query); !taken.ok()) return taken;
  }
  return url;
}

absl::Status UrlTemplate::TakePath(std::vector<Part> parts) {
  std::vector<std::vector<Part>> pieces = Split(parts, '/');
  // The path begins with '/', or there is none: what is before the first is empty.
  pieces.erase(pieces.begin());
  if (pieces.empty()) pieces.emplace_back();
  for (std::vector<Part>& piece : pieces) {
    auto segment = EncodeLiterals(std::move(piece), kPathPlain);
    if (!segment.ok()) return segment.status();
    if (absl::Status whole = RefuseMixed(*segment, "a path segment"); !whole.ok()) return whole;
    if (segment->IsLiteral() && !segment->IsEmpty()) {
      const std::string& text = segment->parts()[0].literal;
      if (text == "." || text == "..") return absl::InvalidArgumentError("has a segment \".\" or \"..\" in its path");
    }
    segments_.push_back(*std::move(segment));
  }
  return absl::OkStatus();
}

absl::Status UrlTemplate::TakeQuery(const std::vector<Part>& parts) {
  for (std::vector<Part>& piece : Split(parts, '&')) {
    std::string name;
    std::vector<Part> value;
    const size_t equals = piece.empty() || piece[0].placeholder ? std::string::npos : piece[0].literal.find('=');
    if (equals != std::string::npos) {
      name = piece[0].literal.substr(0, equals + 1);
      piece[0].literal.erase(0, equals + 1);
      if (piece[0].literal.empty()) piece.erase(piece.begin());
      value = std::move(piece);
    } else {
      if (!Text::Of(piece).IsLiteral()) {
        return absl::InvalidArgumentError("has a placeholder in its query that is not in a value: NAME={…}");
      }
      if (!piece.empty()) name = piece[0].literal;
    }
    auto encoded_name = EncodeLiteral(name, kQueryPlain);
    if (!encoded_name.ok()) return encoded_name.status();
    auto text = EncodeLiterals(std::move(value), kQueryPlain);
    if (!text.ok()) return text.status();
    if (absl::Status whole = RefuseMixed(*text, "a query parameter's value"); !whole.ok()) return whole;
    query_.emplace_back(*std::move(encoded_name), *std::move(text));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> UrlTemplate::Fill(const Values& values) const {
  const auto literal = [](const std::string& text) -> const std::string& { return text; };
  std::string url = origin_;
  for (const Text& segment : segments_) {
    auto filled = segment.Fill(values, literal, PercentEncode);
    if (!filled.ok()) return filled.status();
    if (segment.IsOne() && (filled->empty() || *filled == "." || *filled == "..")) {
      return absl::InvalidArgumentError(
          "an argument that fills a segment of the path is empty, \".\" or \"..\", which would name another path; "
          "nothing was asked");
    }
    url += Cat("/", *filled);
  }
  char separator = '?';
  for (const auto& [name, value] : query_) {
    auto filled = value.Fill(values, literal, PercentEncode);
    if (!filled.ok()) return filled.status();
    url += separator;
    url += Cat(name, *filled);
    separator = '&';
  }
  return url;
}

}  // namespace tally::reconciler
