#include "gateway/mcp/judge.h"

#include <re2/re2.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "gateway/mcp/error_words.h"
#include "gateway/mcp/protocol.h"
#include "gateway/mcp/raw.h"
#include "gateway/mcp/refusal.h"

namespace tally::mcp {
namespace {

// One pattern's program and caches: RE2's own default, so that what a configuration's check takes is taken here.
constexpr int64_t kProgramBytesMax = 8 << 20;
constexpr size_t kPatternBytesMax = 4096;

// Answers by which a server says that it did not begin (JSON-RPC 2.0 section 5.1; RFC 9110 section 15.5).
constexpr int64_t kNoEffectCodes[] = {code::kParseError, code::kInvalidRequest, code::kMethodNotFound,
                                      code::kInvalidParams};
constexpr int kNoEffectStatuses[] = {400, 401, 403, 405, 406, 413, 415, 422, 429};
constexpr int kNotFound = 404;

bool Search(const re2::RE2& pattern, std::string_view text) {
  return pattern.Match(text, 0, text.size(), re2::RE2::UNANCHORED, nullptr, 0);
}

re2::RE2::Options Options(bool fold_case) {
  re2::RE2::Options options;
  options.set_log_errors(false);  // it would write texts of tools to stderr
  options.set_never_capture(true);
  options.set_case_sensitive(!fold_case);
  options.set_max_mem(kProgramBytesMax);
  return options;
}

absl::StatusOr<std::shared_ptr<const re2::RE2>> CompileOne(const std::string& pattern, bool fold_case) {
  if (pattern.empty()) return absl::InvalidArgumentError("the pattern is empty and would match everything");
  if (pattern.size() > kPatternBytesMax) return absl::InvalidArgumentError("the pattern is over 4096 bytes long");
  auto compiled = std::make_shared<const re2::RE2>(pattern, Options(fold_case));
  if (!compiled->ok()) {
    return absl::InvalidArgumentError("the pattern " + Quote(pattern) + " is refused by RE2: " + compiled->error());
  }
  return compiled;
}

const re2::RE2& BuiltInWords() {
  static const re2::RE2& words = *[] {
    std::string all;
    for (std::string_view pattern : kUncertainWords) {
      all.append(all.empty() ? "(?:" : "|(?:").append(pattern).append(")");
    }
    return new re2::RE2(all, Options(true));
  }();
  return words;
}

Meaning MeaningOf(ErrorRule::Means means) {
  switch (means) {
    case ErrorRule::Means::kUncertain:
      return Meaning::kUncertain;
    case ErrorRule::Means::kError:
      return Meaning::kToolError;
    case ErrorRule::Means::kNoEffect:
      return Meaning::kNoEffect;
  }
  return Meaning::kUncertain;
}

// A gateway of the same kind, further up, refused or parked the call.
Meaning MeaningOf(const NestedError& nested) {
  const std::string& kind = nested.kind;
  if (kind == "already_done") return Meaning::kSucceeded;
  const bool nothing = kind == "denied" || kind == "cap_exceeded" || kind == "contended" || kind == "invalid" ||
                       kind == "unauthorized" || kind == "read_failed";
  // Its `unavailable` may be any of the two; only its own word for it counts.
  const bool unavailable = kind == "unavailable" && nested.happened == "no";
  return nothing || unavailable ? Meaning::kNoEffect : Meaning::kUncertain;
}

Meaning JudgeError(const RpcError& error, bool no_effect, const ErrorRules& rules) {
  if (const auto data = RawObject::Parse(error.data); data.ok()) {
    if (const auto nested = NestedErrorOf(*data)) return MeaningOf(*nested);
  }
  if (error.code != 0) {
    if (const auto* means = rules.Find(std::to_string(error.code) + " " + error.message)) return MeaningOf(*means);
  }
  return no_effect ? Meaning::kNoEffect : Meaning::kUncertain;
}

Meaning JudgeHttp(const Reply& reply, const ErrorRules& rules) {
  const bool no_effect = std::ranges::find(kNoEffectStatuses, reply.http_status) != std::end(kNoEffectStatuses) ||
                         (reply.http_status == kNotFound && reply.session_ended);
  return JudgeError(reply.error, no_effect, rules);
}

Meaning JudgeResult(std::string_view raw, const ErrorRules& rules) {
  const auto result = RawObject::Parse(raw);
  if (!result.ok()) return Meaning::kUncertain;
  if (const auto nested = NestedErrorOf(*result)) return MeaningOf(*nested);
  // An answer to something else, or none: content is what makes a tool's answer.
  const std::string_view* content = result->Find("content");
  const std::string_view* structured = result->Find("structuredContent");
  if (content == nullptr && structured == nullptr) return Meaning::kUncertain;
  if (content != nullptr && !IsArray(*content)) return Meaning::kUncertain;
  if (ResultTypeOf(*result) != ResultType::kComplete) return Meaning::kUncertain;
  const std::string_view* raw_error = result->Find("isError");
  const auto is_error = raw_error == nullptr ? std::optional(false) : BoolOf(*raw_error);
  if (!is_error) return Meaning::kUncertain;
  if (!*is_error) return Meaning::kSucceeded;
  const std::string words = ResultWords(raw);
  if (const auto* means = rules.Find(words)) return MeaningOf(*means);
  return rules.LooksUncertain(words) ? Meaning::kUncertain : Meaning::kToolError;
}

void AppendWords(const std::string_view* raw, std::string* words) {
  const auto text = raw == nullptr ? std::nullopt : StringOf(*raw);
  if (!text) return;
  if (!words->empty()) words->push_back('\n');
  words->append(*text);
}

}  // namespace

absl::StatusOr<ErrorRules> ErrorRules::Compile(std::span<const ErrorRule> rules,
                                               std::span<const std::string> uncertain_words) {
  ErrorRules compiled;
  const auto fail = [](std::string_view list, size_t index, const absl::Status& why) {
    return absl::InvalidArgumentError(std::string(list) + "[" + std::to_string(index) +
                                      "]: " + std::string(why.message()));
  };
  for (size_t i = 0; i < rules.size(); ++i) {
    auto pattern = CompileOne(rules[i].pattern, false);
    if (!pattern.ok()) return fail("error_rules", i, pattern.status());
    compiled.rules_.push_back({*std::move(pattern), rules[i].means});
  }
  for (size_t i = 0; i < uncertain_words.size(); ++i) {
    auto pattern = CompileOne(uncertain_words[i], true);
    if (!pattern.ok()) return fail("uncertain_words", i, pattern.status());
    compiled.uncertain_words_.push_back(*std::move(pattern));
  }
  return compiled;
}

const ErrorRule::Means* ErrorRules::Find(std::string_view text) const {
  for (const Compiled& rule : rules_) {
    if (Search(*rule.pattern, text)) return &rule.means;
  }
  return nullptr;
}

bool ErrorRules::LooksUncertain(std::string_view text) const {
  const bool blank = text.find_first_not_of(" \t\r\n") == std::string_view::npos;
  return blank || Search(BuiltInWords(), text) ||
         std::ranges::any_of(uncertain_words_, [&](const auto& pattern) { return Search(*pattern, text); });
}

Meaning Judge(const Reply& reply, const ErrorRules& rules) {
  Meaning meaning = Meaning::kUncertain;
  switch (reply.how) {
    case Reply::How::kResult:
      meaning = JudgeResult(reply.result, rules);
      break;
    case Reply::How::kRpcError: {
      const bool no_effect = std::ranges::find(kNoEffectCodes, reply.error.code) != std::end(kNoEffectCodes);
      meaning = JudgeError(reply.error, no_effect, rules);
      break;
    }
    case Reply::How::kHttpStatus:
      meaning = JudgeHttp(reply, rules);
      break;
    case Reply::How::kNothing:
    case Reply::How::kGarbage:
      break;
  }
  if (reply.earlier_send_unanswered && meaning != Meaning::kSucceeded) return Meaning::kUncertain;
  return meaning;
}

std::string ResultWords(std::string_view raw) {
  std::string words;
  const auto result = RawObject::Parse(raw);
  if (!result.ok()) return words;
  const std::string_view* content = result->Find("content");
  const auto items = content == nullptr ? std::nullopt : ElementsOf(*content);
  for (std::string_view item : items.value_or(std::vector<std::string_view>())) {
    const auto block = RawObject::Parse(item);
    if (!block.ok()) continue;
    AppendWords(block->Find("text"), &words);
    const std::string_view* resource = block->Find("resource");
    const auto embedded = resource == nullptr ? absl::InvalidArgumentError("") : RawObject::Parse(*resource);
    if (embedded.ok()) AppendWords(embedded->Find("text"), &words);
  }
  const std::string_view* structured = result->Find("structuredContent");
  if (structured != nullptr) words.append(words.empty() ? "" : "\n").append(*structured);
  return words;
}

ResultType ResultTypeOf(const RawObject& result) {
  const std::string_view* type = result.Find("resultType");
  if (type == nullptr) return ResultType::kComplete;
  const auto text = StringOf(*type);
  if (text == "complete") return ResultType::kComplete;
  return text == "input_required" ? ResultType::kInputRequired : ResultType::kUnknown;
}

}  // namespace tally::mcp
