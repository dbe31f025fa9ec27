// How an answer is to be read: [tool.answer]. These comments are the manual.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "lib/json/pointer.h"
#include "reconciler/template/text.h"

namespace tally::reconciler {

// What `result` becomes, which is what the key replays from then on.
enum class ResultForm {
  kToolResult,  // an MCP tool result whose text it is: for calls that came through tally-gateway
  kRaw,         // the JSON itself
};

struct AnswerRules {
  // `read_status`: HTTP statuses whose body is read. Default [200]. At most 16, of 200 to 299.
  std::vector<int> read_status = {200};

  // `absent_status`: HTTP statuses that say that there is no such record, whatever the body; [404] where the URL names
  // the one record. Default none. A wrong path is answered 404 as well: try it with a call that is known to be there.
  std::vector<int> absent_status;

  // `records`: JSON pointer to the list of records, or to the one record; "" is the whole answer. Required.
  json::Pointer records;

  // `match`: { pointer = "/metadata/ref", equals = "{reference}" } or { …, contains = "…" }: which records are about
  // the call. {reference}, {provider_key} and {call_id} are known; one of them must be there. Records that do not match
  // are another's. Required: a provider that does not know a query's parameter answers with everything it has.
  struct Match {
    json::Pointer pointer;
    Text text;
    bool contains = false;
  };
  Match match;

  // `complete`: { pointer = "/has_more", is = "false" }: what must hold before a list without a matching record says
  // that there is none. Without it only an empty list says so.
  struct Complete {
    json::Pointer pointer;
    std::string is;
  };
  std::optional<Complete> complete;

  // `record_is`: "happened" where a matching record is all the proof there is, such as a commit. Else `status`.
  bool record_is_happened = false;

  // `status`: JSON pointer into the record, and what its values mean: `happened`, `not_happened`, `pending`, at most 64
  // each, none in two. Numbers, true, false and null are written as texts. Any other value is UNCLEAR.
  std::optional<json::Pointer> status;
  std::vector<std::string> happened;
  std::vector<std::string> not_happened;  // final at once: only what can never become a success
  std::vector<std::string> pending;

  // `amount`: { pointer = "/amount", form = "minor" }: what it cost. "minor": a whole number of minor units, or a text
  // of one; "decimal": whole units, "12.30" or 12.3, by the permit's unit. Where it stands here it must be in the
  // record.
  struct Amount {
    json::Pointer pointer;
    bool decimal = false;
  };
  std::optional<Amount> amount;

  // `result`: JSON pointer into the record: what the call's key is answered with from then on. Default: nothing, and
  // the key is answered `already_done`. `result_form`: "tool_result" (default) or "raw".
  std::optional<json::Pointer> result;
  ResultForm result_form = ResultForm::kToolResult;

  // `provider_id`: JSON pointer into the record: the provider's own name of it, for the evidence.
  std::optional<json::Pointer> provider_id;
};

}  // namespace tally::reconciler
