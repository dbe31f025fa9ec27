#ifndef TALLY_SERVER_OPS_TOML_READER_H_
#define TALLY_SERVER_OPS_TOML_READER_H_

#include <toml++/toml.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/keys/secret.h"

namespace tally::ops {

// Takes settings out of a TOML document one by one, and notes what is wrong with them and which were never asked for.
// A setting that is absent, or wrong, leaves its default as it is.
class TomlReader {
 public:
  TomlReader(const toml::table& document, std::string_view source) : document_(document), source_(source) {}

  // A name is "key" or "table.key".
  void Text(const std::string& name, std::string& into);
  void Confidential(const std::string& name, keys::Secret& into);
  void Whole(const std::string& name, int& into, int64_t min, int64_t max);
  void Duration(const std::string& name, std::chrono::milliseconds& into, std::chrono::milliseconds min,
                std::chrono::milliseconds max);

  // Something else is wrong with this setting.
  void Complain(const std::string& name, std::string_view what);

  // To be called last: complains about all that was not asked for.
  void RefuseUnknown();

  const std::vector<std::string>& names() const { return names_; }
  // One line each, in the document's order.
  std::vector<std::string> Complaints() const;

 private:
  const toml::node* Find(const std::string& name);
  void ComplainAt(uint32_t line, std::string text);

  const toml::table& document_;
  const std::string source_;
  std::vector<std::string> names_;
  std::multimap<uint32_t, std::string> complaints_;  // by line; 0: none
};

// "1h30m", "250ms"; whole milliseconds. Empty optional for anything else, negative ones included.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);

}  // namespace tally::ops

#endif  // TALLY_SERVER_OPS_TOML_READER_H_
