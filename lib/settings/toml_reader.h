// Takes settings out of a TOML document one by one, and notes what is wrong with them and which were never asked for.
// A setting that is absent, or wrong, leaves its default as it is.
#pragma once

#include <toml++/toml.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lib/keys/secret.h"

namespace tally::settings {

// What is wrong with one document, in its order.
class Complaints {
 public:
  explicit Complaints(std::string_view source) : source_(source) {}

  void Add(uint32_t line, std::string text) { by_line_.emplace(line, std::move(text)); }  // line 0: of no line
  bool empty() const { return by_line_.empty(); }
  // One each: "SOURCE:LINE: what".
  std::vector<std::string> Lines() const;

 private:
  const std::string source_;
  std::multimap<uint32_t, std::string> by_line_;
};

class TomlReader {
 public:
  TomlReader(const toml::table& document, Complaints& complaints) : TomlReader(document, "", complaints) {}

  // A name is "key" or "table.key".
  void Text(const std::string& name, std::string& into);
  void Confidential(const std::string& name, keys::Secret& into);
  void Flag(const std::string& name, bool& into);
  void Whole(const std::string& name, int& into, int64_t min, int64_t max);
  void Whole(const std::string& name, int64_t& into, int64_t min, int64_t max);
  // Whole or with decimals.
  void Number(const std::string& name, double& into, double min, double max);
  void Duration(const std::string& name, std::chrono::milliseconds& into, std::chrono::milliseconds min,
                std::chrono::milliseconds max);
  // An array of texts, at most `count_max`.
  void Texts(const std::string& name, std::vector<std::string>& into, size_t count_max);
  // An array of whole numbers, at most `count_max`.
  void Wholes(const std::string& name, std::vector<int>& into, int min, int max, size_t count_max);
  // A table whose keys are the writer's own and whose values are texts.
  void TextByName(const std::string& name, std::map<std::string, std::string>& into, size_t count_max);

  // One of a few words.
  template <typename Value>
  void Choice(const std::string& name, Value& into, std::initializer_list<std::pair<std::string_view, Value>> choices) {
    std::vector<std::string_view> words;
    for (const auto& choice : choices) words.push_back(choice.first);
    const int chosen = ChoiceOf(name, words);
    if (chosen >= 0) into = (choices.begin() + chosen)->second;
  }

  // A table of tables whose names are the writer's own: [name.X]. Calls `read` for each, in the order of their lines,
  // with X and a reader of that table. What `read` does not ask for is complained about.
  using ReadNamed = std::function<void(const std::string& own_name, TomlReader& reader)>;
  void Tables(const std::string& name, size_t count_max, const ReadNamed& read);
  // An array of tables: [[name]], or name = [{ … }].
  void TableArray(const std::string& name, size_t count_max, const std::function<void(TomlReader& reader)>& read);
  // A single table whose absence means something.
  void Table(const std::string& name, const std::function<void(TomlReader& reader)>& read);

  // Whether the setting stands in the document.
  bool Has(const std::string& name) const;
  // Something else is wrong with this setting; where it is absent, with the table it would stand in.
  void Complain(const std::string& name, std::string_view what);

  // To be called last: complains about all that was not asked for.
  void RefuseUnknown();

  // All that was asked for, tables included.
  const std::vector<std::string>& names() const { return names_; }

 private:
  TomlReader(const toml::table& table, std::string prefix, Complaints& complaints)
      : table_(table), prefix_(std::move(prefix)), complaints_(complaints) {}

  const toml::node* Look(const std::string& name) const;
  const toml::node* Find(const std::string& name);
  void WholeNumber(const std::string& name, int64_t min, int64_t max, const std::function<void(int64_t)>& take);
  bool TakeText(const std::string& name, const toml::node& node, std::string& into);
  int ChoiceOf(const std::string& name, const std::vector<std::string_view>& words);
  void ReadTable(const toml::table& table, const std::string& name, const std::function<void(TomlReader&)>& read);
  void ComplainAt(const toml::node& node, std::string_view name, std::string_view what);

  const toml::table& table_;
  const std::string prefix_;  // "" or "upstreams.files."
  Complaints& complaints_;
  std::vector<std::string> names_;
};

// "1h30m", "250ms"; whole milliseconds. Empty optional for anything else, negative ones included.
std::optional<std::chrono::milliseconds> ParseDuration(std::string_view text);

}  // namespace tally::settings
