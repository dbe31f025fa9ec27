// Messages out of parts. absl::StrCat cannot serve: where absl::string_view is a type of its own, it takes no
// std::string_view.
#pragma once

#include <absl/strings/string_view.h>

#include <concepts>
#include <string>
#include <string_view>

namespace tally::keys {

namespace internal {
template <typename Part>
void Append(std::string& out, const Part& part) {
  if constexpr (std::integral<Part>) {
    out.append(std::to_string(part));
  } else if constexpr (std::convertible_to<const Part&, std::string_view>) {
    out.append(std::string_view(part));
  } else {
    const absl::string_view text = part;
    out.append(text.data(), text.size());
  }
}
}  // namespace internal

// Text as it is, integers in decimal.
template <typename... Parts>
std::string Cat(const Parts&... parts) {
  std::string out;
  (internal::Append(out, parts), ...);
  return out;
}

}  // namespace tally::keys
