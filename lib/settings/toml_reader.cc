#include "lib/settings/toml_reader.h"

#include <absl/strings/str_format.h>
#include <absl/time/time.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <set>

#include "lib/keys/text.h"

namespace tally::settings {
namespace {

using keys::Cat;
using std::chrono::milliseconds;

constexpr std::string_view kDurationForm = "a duration in quotes, like \"500ms\", \"10s\" or \"5m\"";

std::string Readable(milliseconds duration) { return absl::FormatDuration(absl::FromChrono(duration)); }

uint32_t LineOf(const toml::node& node) { return node.source().begin.line; }

}  // namespace

std::optional<milliseconds> ParseDuration(std::string_view text) {
  absl::Duration duration;
  if (text.empty() || text.size() > 64 || text.find_first_not_of("0123456789.hmsunµ") != std::string_view::npos) {
    return std::nullopt;  // no signs, no "inf"
  }
  if (!absl::ParseDuration({text.data(), text.size()}, &duration)) return std::nullopt;
  if (duration > absl::Hours(24 * 365 * 100)) return std::nullopt;
  if (absl::Trunc(duration, absl::Milliseconds(1)) != duration) return std::nullopt;
  return absl::ToChronoMilliseconds(duration);
}

std::vector<std::string> Complaints::Lines() const {
  std::vector<std::string> lines;
  for (const auto& [line, text] : by_line_) {
    lines.push_back(line == 0 ? Cat(source_, ": ", text) : Cat(source_, ":", line, ": ", text));
  }
  return lines;
}

const toml::node* TomlReader::Look(const std::string& name) const {
  const auto dot = name.find('.');
  if (dot == std::string::npos) return table_.get(name);
  const toml::table* inner = table_[std::string_view(name).substr(0, dot)].as_table();
  return inner == nullptr ? nullptr : inner->get(std::string_view(name).substr(dot + 1));
}

const toml::node* TomlReader::Find(const std::string& name) {
  names_.push_back(name);
  return Look(name);
}

bool TomlReader::Has(const std::string& name) const { return Look(name) != nullptr; }

bool TomlReader::TakeText(const std::string& name, const toml::node& node, std::string& into) {
  const auto* text = node.as_string();
  if (text == nullptr) {
    ComplainAt(node, name, "must be a text in quotes");
    return false;
  }
  // What C libraries would cut short is not taken at all.
  if (text->get().find('\0') != std::string::npos) {
    ComplainAt(node, name, "must not contain a NUL character");
    return false;
  }
  into = text->get();
  return true;
}

void TomlReader::Text(const std::string& name, std::string& into) {
  if (const toml::node* node = Find(name)) TakeText(name, *node, into);
}

void TomlReader::Confidential(const std::string& name, keys::Secret& into) {
  std::string text;
  Text(name, text);
  if (!text.empty()) into = keys::Secret::Take(text);
}

void TomlReader::Flag(const std::string& name, bool& into) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const auto* truth = node->as_boolean();
  if (truth == nullptr) return ComplainAt(*node, name, "must be true or false, without quotes");
  into = truth->get();
}

void TomlReader::WholeNumber(const std::string& name, int64_t min, int64_t max,
                             const std::function<void(int64_t)>& take) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const auto* number = node->as_integer();
  if (number == nullptr || number->get() < min || number->get() > max) {
    return ComplainAt(*node, name, Cat("must be a whole number from ", min, " to ", max));
  }
  take(number->get());
}

void TomlReader::Whole(const std::string& name, int& into, int64_t min, int64_t max) {
  WholeNumber(name, min, std::min<int64_t>(max, std::numeric_limits<int>::max()),
              [&](int64_t number) { into = static_cast<int>(number); });
}

void TomlReader::Whole(const std::string& name, int64_t& into, int64_t min, int64_t max) {
  WholeNumber(name, min, max, [&](int64_t number) { into = number; });
}

void TomlReader::Number(const std::string& name, double& into, double min, double max) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const auto number = node->is_number() ? node->value<double>() : std::nullopt;
  if (!number || !(*number >= min && *number <= max)) {  // NaN is between nothing
    return ComplainAt(*node, name, absl::StrFormat("must be a number from %g to %g", min, max));
  }
  into = *number;
}

void TomlReader::Duration(const std::string& name, milliseconds& into, milliseconds min, milliseconds max) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const auto* text = node->as_string();
  const auto duration = text == nullptr ? std::nullopt : ParseDuration(text->get());
  if (!duration || *duration < min || *duration > max) {
    return ComplainAt(
        *node, name,
        Cat("must be ", kDurationForm, ", from ", Readable(min), " to ", Readable(max), " in whole milliseconds"));
  }
  into = *duration;
}

void TomlReader::Texts(const std::string& name, std::vector<std::string>& into, size_t count_max) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const toml::array* array = node->as_array();
  if (array == nullptr || array->size() > count_max) {
    return ComplainAt(*node, name, Cat("must be an array of at most ", count_max, " texts"));
  }
  std::vector<std::string> texts(array->size());
  for (size_t i = 0; i < texts.size(); ++i) {
    if (!TakeText(Cat(name, "[", i, "]"), *array->get(i), texts[i])) return;
  }
  into = std::move(texts);
}

void TomlReader::Wholes(const std::string& name, std::vector<int>& into, int min, int max, size_t count_max) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const toml::array* array = node->as_array();
  bool sound = array != nullptr && array->size() <= count_max;
  std::vector<int> numbers;
  for (size_t i = 0; sound && i < array->size(); ++i) {
    const auto* number = array->get(i)->as_integer();
    sound = number != nullptr && number->get() >= min && number->get() <= max;
    if (sound) numbers.push_back(static_cast<int>(number->get()));
  }
  if (!sound) {
    return ComplainAt(*node, name,
                      Cat("must be an array of at most ", count_max, " whole numbers from ", min, " to ", max));
  }
  into = std::move(numbers);
}

void TomlReader::TextByName(const std::string& name, std::map<std::string, std::string>& into, size_t count_max) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const toml::table* table = node->as_table();
  if (table == nullptr || table->size() > count_max) {
    return ComplainAt(*node, name, Cat("must be a table of at most ", count_max, " texts"));
  }
  std::map<std::string, std::string> texts;
  for (const auto& [key, value] : *table) {
    const std::string own(key.str());
    if (!TakeText(Cat(name, ".", own), value, texts[own])) return;
  }
  into = std::move(texts);
}

int TomlReader::ChoiceOf(const std::string& name, const std::vector<std::string_view>& words) {
  const toml::node* node = Find(name);
  if (node == nullptr) return -1;
  const auto* text = node->as_string();
  const auto found = text == nullptr ? words.end() : std::find(words.begin(), words.end(), text->get());
  if (found != words.end()) return static_cast<int>(found - words.begin());
  std::string list;
  for (size_t i = 0; i < words.size(); ++i) {
    list += Cat(i == 0 ? "" : i + 1 == words.size() ? " or " : ", ", "\"", words[i], "\"");
  }
  ComplainAt(*node, name, Cat("must be ", list));
  return -1;
}

void TomlReader::ReadTable(const toml::table& table, const std::string& name,
                           const std::function<void(TomlReader&)>& read) {
  TomlReader inner(table, Cat(prefix_, name, "."), complaints_);
  read(inner);
  inner.RefuseUnknown();
}

void TomlReader::Tables(const std::string& name, size_t count_max, const ReadNamed& read) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const toml::table* tables = node->as_table();
  if (tables == nullptr || tables->size() > count_max) {
    return ComplainAt(*node, name,
                      Cat("must be a table of at most ", count_max, " tables: [", prefix_, name, ".NAME]"));
  }
  std::vector<std::pair<std::string, const toml::node*>> by_line;
  for (const auto& [key, value] : *tables) by_line.emplace_back(key.str(), &value);
  std::stable_sort(by_line.begin(), by_line.end(),
                   [](const auto& a, const auto& b) { return LineOf(*a.second) < LineOf(*b.second); });
  for (const auto& [own, value] : by_line) {
    const std::string full = Cat(name, ".", own);
    const toml::table* table = value->as_table();
    if (table == nullptr) {
      ComplainAt(*value, full, Cat("must be a table: [", prefix_, full, "]"));
      continue;
    }
    ReadTable(*table, full, [&, &own_name = own](TomlReader& inner) { read(own_name, inner); });
  }
}

void TomlReader::TableArray(const std::string& name, size_t count_max, const std::function<void(TomlReader&)>& read) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const toml::array* array = node->as_array();
  if (array == nullptr || array->size() > count_max) {
    return ComplainAt(*node, name, Cat("must be an array of at most ", count_max, " tables"));
  }
  for (size_t i = 0; i < array->size(); ++i) {
    const std::string full = Cat(name, "[", i, "]");
    const toml::table* table = array->get(i)->as_table();
    if (table == nullptr) {
      ComplainAt(*array->get(i), full, "must be a table: { … }");
      continue;
    }
    ReadTable(*table, full, read);
  }
}

void TomlReader::Table(const std::string& name, const std::function<void(TomlReader&)>& read) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const toml::table* table = node->as_table();
  if (table == nullptr) return ComplainAt(*node, name, "must be a table: { … }");
  ReadTable(*table, name, read);
}

void TomlReader::Complain(const std::string& name, std::string_view what) {
  const toml::node* node = Look(name);
  if (node == nullptr && prefix_.empty()) return complaints_.Add(0, Cat(name, " ", what));
  ComplainAt(node == nullptr ? static_cast<const toml::node&>(table_) : *node, name, what);
}

void TomlReader::RefuseUnknown() {
  const auto known = [&](const std::string& name) {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  };
  std::set<std::string_view> tables;
  for (const auto& name : names_) {
    if (const auto dot = name.find('.'); dot != std::string::npos) tables.insert(std::string_view(name).substr(0, dot));
  }
  const auto unknown = [&](const toml::key& key, const std::string& name) {
    complaints_.Add(key.source().begin.line, Cat("there is no setting \"", prefix_, name, "\""));
  };
  for (const auto& [key, node] : table_) {
    const std::string name(key.str());
    if (!tables.contains(name)) {
      if (!known(name)) unknown(key, name);
      continue;
    }
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      complaints_.Add(key.source().begin.line, Cat(prefix_, name, " must be a table: [", prefix_, name, "]"));
      continue;
    }
    for (const auto& [inner, value] : *table) {
      const std::string full = Cat(name, ".", inner.str());
      // A dot inside a quoted key would look like a table's.
      if (!known(full) || inner.str().find('.') != std::string_view::npos) unknown(inner, full);
    }
  }
}

void TomlReader::ComplainAt(const toml::node& node, std::string_view name, std::string_view what) {
  complaints_.Add(LineOf(node), Cat(prefix_, name, " ", what));
}

}  // namespace tally::settings
