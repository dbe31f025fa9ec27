// What a program says: the verdict is its own, and its words are taken strictly.
#include "lib/json/parse.h"
#include "lib/keys/text.h"
#include "lib/money/amount.h"
#include "reconciler/verdict/read.h"

namespace tally::reconciler {
namespace {

using keys::Cat;

constexpr size_t kReferenceBytesMax = 512;
constexpr size_t kDetailBytesMax = 512;

Reading Unclear(std::string detail) {
  Reading reading;
  reading.detail = std::move(detail);
  return reading;
}

std::optional<v1::Finding> FindingOf(const json::Value* verdict) {
  const std::string* word = verdict == nullptr ? nullptr : verdict->AsString();
  if (word == nullptr) return std::nullopt;
  if (*word == "happened") return v1::FINDING_HAPPENED;
  if (*word == "not_happened") return v1::FINDING_NOT_HAPPENED;
  if (*word == "absent") return v1::FINDING_ABSENT;
  if (*word == "pending") return v1::FINDING_PENDING;
  if (*word == "cannot_tell") return v1::FINDING_UNCLEAR;
  return std::nullopt;
}

bool IsKnown(std::string_view name) {
  for (const std::string_view known : {"verdict", "reference", "amount", "result", "detail"}) {
    if (name == known) return true;
  }
  return false;
}

}  // namespace

Reading ReadProgramAnswer(ResultForm form, std::string_view output) {
  const auto answer = json::Parse(output, {.bytes_max = kAnswerBytesMax, .case_variants = json::CaseVariants::kAdmit});
  if (!answer.ok()) return Unclear(Cat("what the program wrote is not one JSON value: ", answer.status().message()));
  const json::Object* object = answer->AsObject();
  if (object == nullptr) return Unclear("what the program wrote is no JSON object");
  for (const json::Member& member : object->members()) {
    if (!IsKnown(member.name))
      return Unclear(Cat("the program says \"", OneLine(member.name, 64), "\", which is not asked"));
  }
  const std::optional<v1::Finding> finding = FindingOf(object->Find("verdict"));
  if (!finding) return Unclear("the program's verdict is none of happened, not_happened, absent, pending, cannot_tell");
  Reading reading;
  reading.finding = *finding;
  if (const json::Value* detail = object->Find("detail")) {
    if (!detail->IsString()) return Unclear("the program's detail is no text");
    reading.detail = OneLine(*detail->AsString(), kDetailBytesMax);
  }
  if (reading.detail.empty()) reading.detail = "by the program's word";
  if (const json::Value* reference = object->Find("reference")) {
    const std::string* text = reference->AsString();
    if (text == nullptr || text->size() > kReferenceBytesMax || OneLine(*text, kReferenceBytesMax) != *text) {
      return Unclear("the program's reference is no line of at most 512 bytes");
    }
    reading.reference = *text;
  }
  const json::Value* amount = object->Find("amount");
  const json::Value* result = object->Find("result");
  if (*finding != v1::FINDING_HAPPENED) {
    return amount || result ? Unclear("the program gives an amount or a result of what it does not say happened")
                            : reading;
  }
  if (amount != nullptr) {
    const auto minor = amount->IsNumber() ? money::ParseMinorUnits(amount->AsNumber()->text())
                                          : absl::StatusOr<int64_t>(absl::InvalidArgumentError(""));
    if (!minor.ok() || *minor < 0) return Unclear("the program's amount is no whole number of minor units");
    reading.amount = *minor;
  }
  if (result != nullptr) reading.result = ResultOf(*result, form);
  return reading;
}

}  // namespace tally::reconciler
