// One JSON object a line on standard error: {"time":"…Z","level":"info","event":"listening","address":"…"}.
//
// What goes into a field is the writer's duty: names, ids, counts, codes, errors of the system. Never arguments,
// results, keys, tokens or credentials; a Secret does not compile.
#ifndef TALLY_SERVER_OPS_LOG_H_
#define TALLY_SERVER_OPS_LOG_H_

#include <concepts>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <variant>

#include "lib/keys/secret.h"

namespace tally::ops {

enum class Severity { kDebug, kInfo, kWarning, kError };

std::string_view NameOf(Severity severity);
std::optional<Severity> SeverityOf(std::string_view name);

// Refers to what it was given: for use within one call.
struct Field {
  Field(std::string_view field, std::string_view text) : name(field), value(text) {}
  Field(std::string_view field, const std::string& text) : Field(field, std::string_view(text)) {}
  Field(std::string_view field, const char* text) : Field(field, std::string_view(text)) {}
  Field(std::string_view field, bool truth) : name(field), value(truth) {}
  Field(std::string_view field, double number) : name(field), value(number) {}
  template <std::signed_integral Number>
  Field(std::string_view field, Number number) : name(field), value(static_cast<int64_t>(number)) {}
  template <std::unsigned_integral Number>
  requires(!std::same_as<Number, bool>) Field(std::string_view field, Number number)
      : name(field), value(static_cast<uint64_t>(number)) {}
  Field(std::string_view field, const keys::Secret&) = delete;

  std::string_view name;
  std::variant<std::string_view, bool, double, int64_t, uint64_t> value;
};

// The line, without its end. `time` in microseconds since 1970.
std::string LogLine(int64_t time_us, Severity severity, std::string_view event, std::initializer_list<Field> fields);

// What is less severe than this is not written. kInfo at first.
void SetLogLevel(Severity least);
// Where lines go: a descriptor that stays open as long as anything is logged.
void SetLogDescriptor(int descriptor);

// From any thread. A line is written at once and whole; one that cannot be written is lost.
void Log(Severity severity, std::string_view event, std::initializer_list<Field> fields = {});

inline void LogDebug(std::string_view event, std::initializer_list<Field> fields = {}) {
  Log(Severity::kDebug, event, fields);
}
inline void LogInfo(std::string_view event, std::initializer_list<Field> fields = {}) {
  Log(Severity::kInfo, event, fields);
}
inline void LogWarning(std::string_view event, std::initializer_list<Field> fields = {}) {
  Log(Severity::kWarning, event, fields);
}
inline void LogError(std::string_view event, std::initializer_list<Field> fields = {}) {
  Log(Severity::kError, event, fields);
}

}  // namespace tally::ops

#endif  // TALLY_SERVER_OPS_LOG_H_
