#include "lib/webhook/format.h"

#include "absl/time/time.h"
#include "lib/json/canonical.h"
#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "lib/keys/text.h"

namespace tally::webhook {

std::string SecretText(const keys::Secret& secret) { return "whsec_" + keys::Base64Encode(secret.Expose()); }

std::string Body(std::string_view type, int64_t time_us, json::Object data) {
  json::Object body;
  body.Set("type", json::Value(std::string(type)));
  body.Set("timestamp",
           json::Value(absl::FormatTime("%Y-%m-%dT%H:%M:%E6SZ", absl::FromUnixMicros(time_us), absl::UTCTimeZone())));
  body.Set("data", json::Value(std::move(data)));
  return json::Canonical(json::Value(std::move(body)));
}

std::string SignatureHeader(const std::vector<const keys::Secret*>& secrets, std::string_view id, int64_t timestamp_s,
                            std::string_view body) {
  const std::string timestamp = std::to_string(timestamp_s);
  std::string header;
  for (const keys::Secret* secret : secrets) {
    const keys::Digest mac = keys::HmacSha256(secret->Expose(), {id, ".", timestamp, ".", body});
    header += keys::Cat(header.empty() ? "" : " ", "v1,", keys::Base64Encode(mac));
  }
  return header;
}

}  // namespace tally::webhook
