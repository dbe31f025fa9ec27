#include "reconciler/verdict/read.h"

#include <algorithm>

#include "lib/json/canonical.h"
#include "lib/json/parse.h"
#include "lib/json/utf8.h"
#include "lib/keys/text.h"
#include "lib/money/amount.h"

namespace tally::reconciler {
namespace {

using keys::Cat;

constexpr size_t kQuotedBytesMax = 64;
constexpr size_t kReferenceBytesMax = 512;

Reading Of(v1::Finding finding, std::string detail) {
  Reading reading;
  reading.finding = finding;
  reading.detail = std::move(detail);
  return reading;
}

Reading Unclear(std::string detail) { return Of(v1::FINDING_UNCLEAR, std::move(detail)); }

// Of a value that is compared: nullopt for arrays and objects.
std::optional<std::string> ScalarText(const json::Value& value) {
  if (const std::string* string = value.AsString()) return *string;
  if (value.IsArray() || value.IsObject()) return std::nullopt;
  return json::Canonical(value);
}

bool Holds(const std::vector<std::string>& list, const std::string& text) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

std::string Quoted(std::string_view text) { return Cat("\"", OneLine(text, kQuotedBytesMax), "\""); }

absl::StatusOr<json::Value> ParseAnswer(std::string_view body) {
  return json::Parse(body, {.bytes_max = kAnswerBytesMax, .case_variants = json::CaseVariants::kAdmit});
}

// Records of the answer that are about the call.
struct Found {
  std::vector<const json::Value*> matching;
  size_t all = 0;
  size_t nameless = 0;    // without anything where a match is looked for
  std::string malformed;  // why this cannot be read at all
  bool list = true;
};

void Look(const AnswerRules::Match& match, const std::string& wanted, const json::Value& record, Found& found) {
  ++found.all;
  if (!record.IsObject()) {
    found.malformed = "a record is no object";
    return;
  }
  const json::Value* name = json::Get(record, match.pointer);
  if (name == nullptr || name->IsNull()) {
    ++found.nameless;
    return;
  }
  const std::optional<std::string> text = ScalarText(*name);
  if (!text) {
    found.malformed = Cat("a record has an array or object at ", match.pointer.ToString(), ", where match looks");
    return;
  }
  if (match.contains ? text->find(wanted) != text->npos : *text == wanted) found.matching.push_back(&record);
}

Found FindRecords(const AnswerRules& rules, const Values& values, const json::Value& answer) {
  Found found;
  const absl::StatusOr<std::string> wanted = rules.match.text.Fill(values);
  if (!wanted.ok() || wanted->empty()) {
    found.malformed = "there is nothing to match records with";
    return found;
  }
  const json::Value* records = json::Get(answer, rules.records);
  if (records == nullptr) {
    found.malformed = Cat("the answer has nothing at ", Quoted(rules.records.ToString()), ", where records look");
  } else if (records->IsObject()) {
    found.list = false;
    Look(rules.match, *wanted, *records, found);
  } else if (const json::Array* list = records->AsArray()) {
    for (const json::Value& record : *list) Look(rules.match, *wanted, record, found);
  } else {
    found.malformed = Cat("the answer has a value of the kind ", json::KindName(records->kind()), " at ",
                          Quoted(rules.records.ToString()), ", and neither a list of records nor one");
  }
  return found;
}

// None of the records is about the call. Whether that says that there is none.
Reading Absent(const AnswerRules& rules, const json::Value& answer, const Found& found) {
  if (!found.list) return Unclear("the provider answered with a record of something else");
  if (found.all > 0 && found.nameless == found.all) {
    return Unclear(Cat("none of the ", found.all, " records has anything at ", rules.match.pointer.ToString(),
                       ", so it cannot be told whose they are"));
  }
  if (rules.complete) {
    const json::Value* value = json::Get(answer, rules.complete->pointer);
    const std::optional<std::string> text = value == nullptr ? std::nullopt : ScalarText(*value);
    if (!text)
      return Unclear(Cat("the answer does not say at ", rules.complete->pointer.ToString(), " whether it is whole"));
    if (*text != rules.complete->is) {
      return Unclear(Cat("no record of the call, but the list is not whole: ", rules.complete->pointer.ToString(),
                         " is ", Quoted(*text)));
    }
  } else if (found.all > 0) {
    return Unclear(Cat("the list holds ", found.all, " records of others, and nothing says that it is whole"));
  }
  return Of(v1::FINDING_ABSENT, Cat("no record of the call among ", found.all));
}

bool TakeAmount(const AnswerRules::Amount& rule, const json::Value& record, std::string_view unit, Reading& reading) {
  const json::Value* value = json::Get(record, rule.pointer);
  absl::StatusOr<int64_t> amount = absl::InvalidArgumentError("");
  std::string_view text;
  if (const std::string* string = value == nullptr ? nullptr : value->AsString()) text = *string;
  if (const json::Number* number = value == nullptr ? nullptr : value->AsNumber()) text = number->text();
  if (!text.empty()) {
    if (rule.decimal) {
      const absl::StatusOr<money::Unit> parsed = money::Unit::Parse(unit);
      if (parsed.ok()) amount = money::ParseDecimal(text, *parsed);
    } else {
      amount = money::ParseMinorUnits(text);
    }
  }
  if (!amount.ok() || *amount < 0) {
    reading =
        Unclear(Cat("the record has no amount at ", rule.pointer.ToString(), " that can be read as one of ", unit));
    return false;
  }
  reading.amount = *amount;
  return true;
}

bool TakeId(const json::Pointer& pointer, const json::Value& record, Reading& reading) {
  const json::Value* value = json::Get(record, pointer);
  const bool scalar = value != nullptr && (value->IsString() || value->IsNumber());
  const std::string text = scalar ? *ScalarText(*value) : "";
  if (text.empty() || text.size() > kReferenceBytesMax || OneLine(text, kReferenceBytesMax) != text) {
    reading = Unclear(Cat("the record has no id at ", pointer.ToString(), ", where provider_id looks"));
    return false;
  }
  reading.reference = text;
  return true;
}

v1::Finding Meaning(const AnswerRules& rules, const std::string& status) {
  if (Holds(rules.happened, status)) return v1::FINDING_HAPPENED;
  if (Holds(rules.not_happened, status)) return v1::FINDING_NOT_HAPPENED;
  if (Holds(rules.pending, status)) return v1::FINDING_PENDING;
  return v1::FINDING_UNCLEAR;
}

Reading ReadRecord(const AnswerRules& rules, const json::Value& record, std::string_view unit) {
  Reading reading = Of(v1::FINDING_HAPPENED, "the provider has a record of the call");
  if (rules.status) {
    const json::Value* value = json::Get(record, *rules.status);
    const std::optional<std::string> status = value == nullptr ? std::nullopt : ScalarText(*value);
    if (!status) return Unclear(Cat("the record has no status at ", rules.status->ToString()));
    reading.finding = Meaning(rules, *status);
    if (reading.finding == v1::FINDING_UNCLEAR) {
      return Unclear(Cat("the record's status is ", Quoted(*status), ", which is not among those that were declared"));
    }
    reading.detail = Cat("the record's status is ", Quoted(*status));
  } else if (!rules.record_is_happened) {
    return Unclear("it is not declared what a record means");
  }
  if (rules.provider_id && !TakeId(*rules.provider_id, record, reading)) return reading;
  if (reading.finding != v1::FINDING_HAPPENED) return reading;
  if (rules.amount && !TakeAmount(*rules.amount, record, unit, reading)) return reading;
  if (rules.result) {
    const json::Value* value = json::Get(record, *rules.result);
    if (value == nullptr)
      return Unclear(Cat("the record has nothing at ", rules.result->ToString(), ", where result looks"));
    reading.result = ResultOf(*value, rules.result_form);
  }
  return reading;
}

}  // namespace

Reading ReadJsonAnswer(const AnswerRules& rules, const Values& values, std::string_view unit, std::string_view body) {
  if (body.size() > kAnswerBytesMax) return Unclear("the answer is larger than 1 MiB");
  const absl::StatusOr<json::Value> answer = ParseAnswer(body);
  if (!answer.ok()) return Unclear(Cat("the answer is not JSON that can be trusted: ", answer.status().message()));
  const Found found = FindRecords(rules, values, *answer);
  if (!found.malformed.empty()) return Unclear(found.malformed);
  if (found.matching.empty()) return Absent(rules, *answer, found);
  if (found.matching.size() > 1) {
    return Unclear(Cat("the provider has ", found.matching.size(),
                       " records of this one call: it may have been carried out more than once"));
  }
  return ReadRecord(rules, *found.matching[0], unit);
}

Reading ReadHttpAnswer(const AnswerRules& rules, const Values& values, std::string_view unit, int status,
                       std::string_view body) {
  const auto listed = [&](const std::vector<int>& list) {
    return std::find(list.begin(), list.end(), status) != list.end();
  };
  if (listed(rules.absent_status)) {
    return Of(v1::FINDING_ABSENT, Cat("HTTP ", status, ", by which the provider says that it has no such record"));
  }
  if (!listed(rules.read_status)) return Unclear(Cat("HTTP ", status));
  return ReadJsonAnswer(rules, values, unit, body);
}

std::string ResultOf(const json::Value& value, ResultForm form) {
  if (form == ResultForm::kRaw) return json::Canonical(value);
  const std::string* string = value.AsString();
  json::Object text;
  text.Set("type", json::Value("text"));
  text.Set("text", json::Value(string ? *string : json::Canonical(value)));
  json::Array content;
  content.emplace_back(std::move(text));
  json::Object result;
  result.Set("content", json::Value(std::move(content)));
  return json::Canonical(json::Value(std::move(result)));
}

std::string OneLine(std::string_view text, size_t bytes_max) {
  std::string line;
  while (!text.empty() && line.size() < bytes_max) {
    const size_t length = json::Utf8SequenceLength(text);
    if (length > 1 && line.size() + length > bytes_max) break;
    const auto c = static_cast<unsigned char>(text[0]);
    // C1 controls are two bytes in UTF-8: C2 80 to C2 9F.
    const bool control =
        length <= 1 ? c < ' ' || c >= 0x7f : length == 2 && c == 0xc2 && static_cast<unsigned char>(text[1]) < 0xa0;
    if (control) {
      line += ' ';
    } else {
      line += text.substr(0, length);
    }
    text.remove_prefix(std::max<size_t>(length, 1));
  }
  return line;
}

}  // namespace tally::reconciler
