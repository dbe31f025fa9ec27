#include "server/ops/toml_reader.h"

#include <absl/time/time.h>

#include <algorithm>

#include "lib/keys/text.h"

namespace tally::ops {
namespace {

using keys::Cat;
using std::chrono::milliseconds;

constexpr std::string_view kDurationForm = "a duration in quotes, like \"500ms\", \"10s\" or \"5m\"";

std::string Readable(milliseconds duration) { return absl::FormatDuration(absl::FromChrono(duration)); }

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

const toml::node* TomlReader::Find(const std::string& name) {
  names_.push_back(name);
  const auto dot = name.find('.');
  if (dot == std::string::npos) return document_.get(name);
  const toml::table* table = document_[std::string_view(name).substr(0, dot)].as_table();
  return table == nullptr ? nullptr : table->get(std::string_view(name).substr(dot + 1));
}

void TomlReader::Text(const std::string& name, std::string& into) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const auto* text = node->as_string();
  if (text == nullptr) return ComplainAt(node->source().begin.line, Cat(name, " must be a text in quotes"));
  // What C libraries would cut short is not taken at all.
  if (text->get().find('\0') != std::string::npos) {
    return ComplainAt(node->source().begin.line, Cat(name, " must not contain a NUL character"));
  }
  into = text->get();
}

void TomlReader::Confidential(const std::string& name, keys::Secret& into) {
  std::string text;
  Text(name, text);
  if (!text.empty()) into = keys::Secret::Take(text);
}

void TomlReader::Whole(const std::string& name, int& into, int64_t min, int64_t max) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const auto* number = node->as_integer();
  if (number == nullptr || number->get() < min || number->get() > max) {
    return ComplainAt(node->source().begin.line, Cat(name, " must be a whole number from ", min, " to ", max));
  }
  into = static_cast<int>(number->get());
}

void TomlReader::Duration(const std::string& name, milliseconds& into, milliseconds min, milliseconds max) {
  const toml::node* node = Find(name);
  if (node == nullptr) return;
  const auto* text = node->as_string();
  const auto duration = text == nullptr ? std::nullopt : ParseDuration(text->get());
  if (!duration || *duration < min || *duration > max) {
    return ComplainAt(node->source().begin.line, Cat(name, " must be ", kDurationForm, ", from ", Readable(min), " to ",
                                                     Readable(max), " in whole milliseconds"));
  }
  into = *duration;
}

void TomlReader::Complain(const std::string& name, std::string_view what) {
  const toml::node* node = document_.at_path(name).node();
  ComplainAt(node == nullptr ? 0 : node->source().begin.line, Cat(name, " ", what));
}

void TomlReader::RefuseUnknown() {
  std::set<std::string_view> tables;
  for (const auto& name : names_) {
    if (const auto dot = name.find('.'); dot != std::string::npos) tables.insert(std::string_view(name).substr(0, dot));
  }
  const auto known = [&](const std::string& name) {
    return std::find(names_.begin(), names_.end(), name) != names_.end();
  };
  for (const auto& [key, node] : document_) {
    const std::string name(key.str());
    const auto line = key.source().begin.line;
    if (!tables.contains(name)) {
      if (!known(name)) ComplainAt(line, Cat("there is no setting \"", name, "\""));
      continue;
    }
    const toml::table* table = node.as_table();
    if (table == nullptr) {
      ComplainAt(line, Cat(name, " must be a table: [", name, "]"));
      continue;
    }
    for (const auto& [inner, value] : *table) {
      const std::string full = Cat(name, ".", inner.str());
      // A dot inside a quoted key would look like a table's.
      if (!known(full) || inner.str().find('.') != std::string_view::npos) {
        ComplainAt(inner.source().begin.line, Cat("there is no setting \"", full, "\""));
      }
    }
  }
}

void TomlReader::ComplainAt(uint32_t line, std::string text) { complaints_.emplace(line, std::move(text)); }

std::vector<std::string> TomlReader::Complaints() const {
  std::vector<std::string> lines;
  for (const auto& [line, text] : complaints_) {
    lines.push_back(line == 0 ? Cat(source_, ": ", text) : Cat(source_, ":", line, ": ", text));
  }
  return lines;
}

}  // namespace tally::ops
