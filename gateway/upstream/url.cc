#include <algorithm>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "gateway/upstream/http_client.h"

namespace tally::gateway {
namespace {

absl::StatusOr<Url> Bad(std::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("an upstream's url must be http://HOST[:PORT]/PATH or https://…: ", std::string(why)));
}

}  // namespace

std::string Url::HostHeader() const {
  const std::string name = host.find(':') == std::string::npos ? host : absl::StrCat("[", host, "]");
  return port == (tls ? "443" : "80") ? name : absl::StrCat(name, ":", port);
}

absl::StatusOr<Url> ParseUrl(std::string_view text) {
  Url url;
  if (text.starts_with("https://")) {
    url.tls = true;
    text.remove_prefix(8);
  } else if (text.starts_with("http://")) {
    text.remove_prefix(7);
  } else {
    return Bad("the scheme is another");
  }
  const auto plain = [](char c) { return c > ' ' && c < 0x7f; };
  if (!std::all_of(text.begin(), text.end(), plain)) return Bad("it has spaces, control characters or non-ASCII ones");
  if (text.find('#') != text.npos) return Bad("it has a fragment");
  const size_t path = std::min(text.find_first_of("/?"), text.size());
  std::string_view authority = text.substr(0, path);
  url.target = text.substr(path);
  if (url.target.empty() || url.target[0] != '/') url.target.insert(0, "/");
  if (authority.find('@') != authority.npos) return Bad("credentials belong into headers, not into the url");

  std::string_view port;
  if (authority.starts_with('[')) {
    const size_t end = authority.find(']');
    if (end == authority.npos) return Bad("the bracket is not closed");
    url.host = authority.substr(1, end - 1);
    port = authority.substr(end + 1);
    if (!port.empty() && !port.starts_with(':')) return Bad("there is text after the bracket");
    if (!port.empty()) port.remove_prefix(1);
  } else {
    const size_t colon = std::min(authority.find(':'), authority.size());
    url.host = authority.substr(0, colon);
    if (colon < authority.size()) port = authority.substr(colon + 1);
  }
  if (url.host.empty()) return Bad("there is no host");
  url.port = port.empty() ? (url.tls ? "443" : "80") : std::string(port);
  int number = 0;
  if (!absl::SimpleAtoi(url.port, &number) || number < 1 || number > 65535) return Bad("the port is no port");
  return url;
}

}  // namespace tally::gateway
