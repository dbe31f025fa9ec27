// Whether a provider's answer says that a call happened. Pure. Whatever was not foreseen is FINDING_UNCLEAR.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "reconciler/template/text.h"
#include "reconciler/verdict/rules.h"
#include "tally/v1/parked.pb.h"

namespace tally::reconciler {

inline constexpr size_t kAnswerBytesMax = 1 << 20;  // what evidence may hold

struct Reading {
  v1::Finding finding = v1::FINDING_UNCLEAR;
  std::string detail;                 // why, for a person; quotes no more than short values of the answer's status
  std::string reference;              // the provider's own id; may be empty
  std::optional<int64_t> amount;      // HAPPENED only
  std::optional<std::string> result;  // HAPPENED only
};

// `unit` is the call's, as "USD/2".
Reading ReadHttpAnswer(const AnswerRules& rules, const Values& values, std::string_view unit, int status,
                       std::string_view body);
// The JSON alone.
Reading ReadJsonAnswer(const AnswerRules& rules, const Values& values, std::string_view unit, std::string_view body);

// An exec look-up's one line of output: {"verdict": …, "reference", "amount", "result", "detail"}; all but the verdict
// may be left out, and nothing else may stand in it.
Reading ReadProgramAnswer(ResultForm form, std::string_view output);

// What a key is answered with, of what the provider shows.
std::string ResultOf(const json::Value& value, ResultForm form);

// Fit for a line of a log and for a note: control characters become spaces, at most `bytes_max` bytes of whole
// characters.
std::string OneLine(std::string_view text, size_t bytes_max);

}  // namespace tally::reconciler
