#include "lib/outbound/url.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "lib/outbound/address.h"

namespace tally::outbound {
namespace {

absl::Status Bad(std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("the URL cannot be used: ", absl::string_view(why.data(), why.size())));
}

// What stands between "://" and the path.
std::string_view Authority(std::string_view url) {
  url.remove_prefix(url.find("://") + 3);
  return url.substr(0, url.find_first_of("/?#"));
}

struct HostAndPort {
  std::string_view host;  // without brackets
  std::string_view port;  // with its colon; empty: none
};

HostAndPort Split(std::string_view authority) {
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == authority.npos) return {};
    return {authority.substr(1, end - 1), authority.substr(end + 1)};
  }
  const size_t colon = std::min(authority.find(':'), authority.size());
  return {authority.substr(0, colon), authority.substr(colon)};
}

}  // namespace

absl::Status CheckUrl(std::string_view url, bool allow_http) {
  if (url.size() > kUrlBytesMax)
    return Bad(std::string("it is longer than ") + std::to_string(kUrlBytesMax) + " bytes");
  const auto plain = [](char c) { return c > ' ' && c < 0x7f && c != '\\'; };
  if (!std::all_of(url.begin(), url.end(), plain)) {
    return Bad("it has spaces, backslashes, control or non-ASCII characters; encode them");
  }
  const bool https = url.starts_with("https://");
  if (!https && !url.starts_with("http://")) return Bad("it must begin with https://");
  if (!https && !allow_http) return Bad("it must begin with https://; plain http is not allowed here");
  if (url.find('#') != url.npos) return Bad("it has a fragment, which is never sent");
  const std::string_view authority = Authority(url);
  if (authority.find('@') != authority.npos) return Bad("it holds a user or password; credentials belong into headers");
  const HostAndPort parts = Split(authority);
  if (parts.host.empty()) return Bad("it names no host");
  if (authority.find('%') != authority.npos) return Bad("its host has escapes or a zone");
  if (!parts.port.empty()) {
    const std::string_view digits = parts.port.substr(1);
    const bool number = !digits.empty() && digits.size() <= 5 &&
                        std::all_of(digits.begin(), digits.end(), [](char c) { return c >= '0' && c <= '9'; });
    const int port = number ? std::stoi(std::string(digits)) : 0;
    if (parts.port.front() != ':' || port < 1 || port > 65535) return Bad("its port is no port");
  }
  return absl::OkStatus();
}

std::string Origin(std::string_view url) {
  const size_t scheme = url.find("://");
  return std::string(url.substr(0, scheme + 3)) + std::string(Authority(url));
}

bool MayBePublic(std::string_view url) {
  const std::string host(Split(Authority(url)).host);
  in_addr v4;
  if (inet_aton(host.c_str(), &v4) != 0) return IsPublicV4(ntohl(v4.s_addr));  // also 127.1 and 0x7f000001
  in6_addr v6;
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1) {
    std::array<uint8_t, 16> bytes;
    std::memcpy(bytes.data(), &v6, bytes.size());
    return IsPublicV6(bytes);
  }
  const std::string name = absl::AsciiStrToLower(host);
  return name != "localhost" && !absl::EndsWith(name, ".localhost");
}

}  // namespace tally::outbound
