#include <algorithm>
#include <set>

#include "lib/keys/text.h"
#include "reconciler/config/read.h"

namespace tally::reconciler {
namespace {

using settings::TomlReader;

constexpr size_t kStatusesMax = 16;
constexpr size_t kValuesMax = 64;

void ReadMatch(TomlReader& reader, AnswerRules::Match& match) {
  reader.Table("match", [&](TomlReader& table) {
    std::string equals, contains;
    table.Text("equals", equals);
    table.Text("contains", contains);
    if (!ReadPointer(table, "pointer", match.pointer) && !table.Has("pointer")) {
      table.Complain("pointer", "must be written: where in a record the call's name stands");
    }
    if (table.Has("equals") == table.Has("contains")) {
      return reader.Complain("match", "must have one of equals and contains");
    }
    match.contains = table.Has("contains");
    const char* name = match.contains ? "contains" : "equals";
    auto text = Text::Parse(match.contains ? contains : equals);
    if (!text.ok()) return table.Complain(name, keys::Cat(text.status().message()));
    if (text->IsLiteral() || text->HasArgument()) {
      return table.Complain(
          name,
          "must hold {reference}, {provider_key} or {call_id}, and no argument: a record is known by a "
          "name that is this call's alone");
    }
    match.text = *std::move(text);
  });
  if (!reader.Has("match")) {
    reader.Complain("match",
                    "must be written: { pointer = \"…\", equals = \"{reference}\" }, so that no record of "
                    "another call is taken for this one's");
  }
}

void ReadMeanings(TomlReader& reader, AnswerRules& rules) {
  std::set<std::string> seen;
  for (const auto& [name, list] :
       {std::pair{"happened", &rules.happened}, {"not_happened", &rules.not_happened}, {"pending", &rules.pending}}) {
    reader.Texts(name, *list, kValuesMax);
    for (const std::string& value : *list) {
      if (!seen.insert(value).second)
        reader.Complain(name, "has a value that stands twice among the meanings of status");
    }
  }
  json::Pointer status;
  if (ReadPointer(reader, "status", status)) rules.status = status;
  reader.Choice<bool>("record_is", rules.record_is_happened, {{"happened", true}});
  if (rules.record_is_happened == reader.Has("status")) {
    return reader.Complain(
        reader.Has("status") ? "record_is" : "status",
        "is one of two: either status says what became of the call, or record_is = \"happened\" that "
        "its record alone proves it");
  }
  if (reader.Has("status") && rules.happened.empty()) {
    reader.Complain("happened", "must list at least one value of status");
  }
  if (!reader.Has("status") && !seen.empty()) reader.Complain("status", "must be written where its values are");
}

}  // namespace

void ReadAnswer(TomlReader& reader, AnswerRules& rules) {
  reader.Wholes("read_status", rules.read_status, 200, 299, kStatusesMax);
  reader.Wholes("absent_status", rules.absent_status, 400, 499, kStatusesMax);
  for (const int status : rules.absent_status) {
    // These speak of the request, of who asks, or of how often: never of the record.
    static constexpr int kNever[] = {400, 401, 403, 405, 406, 407, 408, 413, 414, 415, 421, 425, 426, 428, 429, 431};
    if (std::find(std::begin(kNever), std::end(kNever), status) != std::end(kNever)) {
      reader.Complain("absent_status", keys::Cat("holds ", status, ", which says nothing about the record"));
    }
  }
  if (!ReadPointer(reader, "records", rules.records) && !reader.Has("records")) {
    reader.Complain("records",
                    "must be written: JSON pointer to the list of records or to the one; \"\" is the answer");
  }
  ReadMatch(reader, rules.match);
  reader.Table("complete", [&](TomlReader& table) {
    AnswerRules::Complete complete;
    table.Text("is", complete.is);
    if (ReadPointer(table, "pointer", complete.pointer) && table.Has("is")) rules.complete = complete;
    if (!table.Has("pointer") || !table.Has("is")) {
      reader.Complain("complete", "must be { pointer = \"…\", is = \"…\" }");
    }
  });
  ReadMeanings(reader, rules);
  reader.Table("amount", [&](TomlReader& table) {
    AnswerRules::Amount amount;
    table.Choice<bool>("form", amount.decimal, {{"minor", false}, {"decimal", true}});
    if (ReadPointer(table, "pointer", amount.pointer)) rules.amount = amount;
    if (!table.Has("pointer") || !table.Has("form")) {
      reader.Complain("amount", "must be { pointer = \"…\", form = \"minor\" } or form = \"decimal\"");
    }
  });
  json::Pointer pointer;
  if (ReadPointer(reader, "result", pointer)) rules.result = pointer;
  if (ReadPointer(reader, "provider_id", pointer)) rules.provider_id = pointer;
  reader.Choice<ResultForm>("result_form", rules.result_form,
                            {{"tool_result", ResultForm::kToolResult}, {"raw", ResultForm::kRaw}});
}

}  // namespace tally::reconciler
