#include "cli/permit_file.h"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "cli/toml_value.h"
#include "lib/json/canonical.h"
#include "lib/json/parse.h"
#include "lib/money/amount.h"
#include "lib/money/unit.h"

namespace tally::cli {
namespace {

using json::Object;
using json::Value;

absl::Status Bad(std::string_view place, std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat(absl::string_view(place.data(), place.size()), ": ", absl::string_view(what.data(), what.size())));
}

// Names in an error are the file's own, and go to a terminal: printable and short.
std::string Quoted(std::string_view name) {
  std::string out;
  for (const char c : name.substr(0, 40)) out += c >= ' ' && c < 0x7f ? c : '?';
  return "'" + out + (name.size() > 40 ? "…'" : "'");
}

// One table of the file, read key by key. The first mistake stays; what follows it is not looked at.
class TableReader {
 public:
  TableReader(const Object& object, std::string place) : object_(object), place_(std::move(place)) {}

  const absl::Status& status() const { return status_; }
  bool ok() const { return status_.ok(); }
  void Fail(std::string_view key, std::string_view what) {
    if (status_.ok())
      status_ = Bad(place_, absl::StrCat(absl::string_view(key.data(), key.size()), " ",
                                         absl::string_view(what.data(), what.size())));
  }

  void KnowOnly(std::initializer_list<std::string_view> known) {
    for (const json::Member& member : object_.members()) {
      if (std::find(known.begin(), known.end(), member.name) == known.end()) {
        Fail(Quoted(member.name), "is not a key of a permit file; check its spelling");
      }
    }
  }

  // Null when absent or after a mistake.
  const Value* Get(std::string_view key) { return status_.ok() ? object_.Find(key) : nullptr; }

  const Value* Need(std::string_view key, std::string_view what) {
    const Value* value = Get(key);
    if (value == nullptr) Fail(key, absl::StrCat("must be written: ", absl::string_view(what.data(), what.size())));
    return value;
  }

  std::string Text(std::string_view key, const Value& value) {
    const std::string* text = value.AsString();
    if (text == nullptr || text->empty()) {
      Fail(key, "must be text");
      return "";
    }
    return *text;
  }

  int64_t Whole(std::string_view key, const Value& value, int64_t least, std::string_view what) {
    std::optional<int64_t> whole;
    if (const json::Number* number = value.AsNumber()) {
      if (auto parsed = money::ParseMinorUnits(number->text()); parsed.ok()) whole = *parsed;
    }
    if (!whole || *whole < least) Fail(key, what);
    return whole.value_or(0);
  }

  v1::Limit Limit(std::string_view key, const Value& value, std::string_view what) {
    v1::Limit limit;
    const std::string* text = value.AsString();
    if (text != nullptr && *text == "unlimited") {
      limit.set_unlimited(true);
    } else {
      limit.set_at_most(Whole(key, value, 0, what));
    }
    return limit;
  }

  // Milliseconds; text, or a bare 0.
  int64_t Duration(std::string_view key, const Value& value, int64_t least) {
    absl::StatusOr<int64_t> ms = absl::InvalidArgumentError("");
    if (value.IsString()) {
      ms = ParseDuration(*value.AsString());
    } else if (value.IsNumber() && value.AsNumber()->text() == "0") {
      ms = 0;
    }
    if (!ms.ok() || *ms < least) {
      Fail(key, least > 0 ? "must be a time such as \"250ms\", \"120s\", \"10m\", \"24h\" or \"7d\", and not 0"
                          : "must be a time such as \"250ms\", \"120s\", \"10m\", \"24h\" or \"7d\", or 0");
      return 0;
    }
    return *ms;
  }

  int64_t Time(std::string_view key, const Value& value) {
    absl::Time time;
    std::string error;
    const std::string* text = value.AsString();
    if (text == nullptr || !absl::ParseTime(absl::RFC3339_full, *text, &time, &error) ||
        absl::ToUnixMicros(time) <= 0 || time == absl::InfiniteFuture()) {
      Fail(key, "must be a time with an offset from UTC, as in 2027-01-31T12:00:00Z");
      return 0;
    }
    return absl::ToUnixMicros(time);
  }

  template <typename E>
  E Choice(std::string_view key, const Value& value, std::initializer_list<std::pair<std::string_view, E>> choices) {
    std::string words;
    for (const auto& [word, meaning] : choices) {
      if (value.IsString() && *value.AsString() == word) return meaning;
      absl::StrAppend(&words, words.empty() ? "" : " or ", "\"", absl::string_view(word.data(), word.size()), "\"");
    }
    Fail(key, absl::StrCat("must be ", words));
    return E{};
  }

  template <typename Repeated>
  void Pointers(std::string_view key, const Value& value, Repeated* out) {
    const json::Array* array = value.AsArray();
    if (array == nullptr) return Fail(key, "must be a list of JSON pointers, such as [\"/request_id\"]");
    for (const Value& pointer : *array) {
      if (!pointer.IsString() || pointer.AsString()->rfind('/', 0) != 0) {
        return Fail(key, "must be a list of JSON pointers, such as [\"/request_id\"]");
      }
      out->Add()->assign(*pointer.AsString());
    }
  }

 private:
  const Object& object_;
  std::string place_;
  absl::Status status_;
};

constexpr std::string_view kCostWords =
    "must be { pointer = \"/amount\" }, { fixed = 25 }, \"caller\" or \"none\": where the cost of a call comes from";

v1::CostRule ReadCost(TableReader& table, const Value& value) {
  v1::CostRule cost;
  if (const std::string* word = value.AsString()) {
    if (*word == "caller") {
      cost.set_caller(true);
    } else if (*word == "none") {
      cost.set_none(true);
    } else {
      table.Fail("cost", kCostWords);
    }
    return cost;
  }
  const Object* object = value.AsObject();
  if (object == nullptr || object->size() != 1) {
    table.Fail("cost", kCostWords);
    return cost;
  }
  const Value* pointer = object->Find("pointer");
  const Value* fixed = object->Find("fixed");
  if (pointer != nullptr && pointer->IsString() && pointer->AsString()->rfind('/', 0) == 0) {
    cost.set_pointer(*pointer->AsString());
  } else if (fixed != nullptr) {
    cost.set_fixed(table.Whole("cost.fixed", *fixed, 0, "must be a whole number of minor units, 0 or more"));
  } else {
    table.Fail("cost", kCostWords);
  }
  return cost;
}

// The limits, which must all have been thought of, save per_call.
void ReadLimits(TableReader& table, v1::GrantTerms* grant) {
  constexpr std::string_view kMoney = "must be a whole number of minor units, or \"unlimited\"";
  if (const Value* cap = table.Need("cap", "how many calls, or \"unlimited\"")) {
    *grant->mutable_cap() = table.Limit("cap", *cap, "must be a whole number of calls, or \"unlimited\"");
  }
  if (const Value* budget = table.Need("budget", "how many minor units all calls may cost, or \"unlimited\"")) {
    *grant->mutable_budget() = table.Limit("budget", *budget, kMoney);
  }
  if (const Value* per_call = table.Get("per_call")) {
    *grant->mutable_per_call() = table.Limit("per_call", *per_call, kMoney);
  } else {
    grant->mutable_per_call()->set_unlimited(true);
  }
  if (const Value* cost = table.Get("cost")) {
    *grant->mutable_cost() = ReadCost(table, *cost);
  } else if (grant->budget().unlimited()) {
    grant->mutable_cost()->set_none(true);
  } else {
    table.Fail("cost", "must be written where the budget is limited: where a call's cost comes from");
  }
}

void ReadIntent(TableReader& table, v1::GrantTerms* grant) {
  if (const Value* effect = table.Get("effect")) {
    grant->set_effect(table.Choice<v1::Effect>("effect", *effect, {{"write", v1::WRITE}, {"read", v1::READ}}));
  }
  if (const Value* scope = table.Get("intent_scope")) {
    grant->set_intent_scope(table.Choice<v1::IntentScope>("intent_scope", *scope,
                                                          {{"permit", v1::INTENT_SCOPE_PERMIT},
                                                           {"subject", v1::INTENT_SCOPE_SUBJECT},
                                                           {"tenant", v1::INTENT_SCOPE_TENANT}}));
  }
  const Value* ignore = table.Get("intent_ignore");
  const Value* fields = table.Get("intent_fields");
  if (ignore != nullptr && fields != nullptr) {
    table.Fail("intent_ignore", "and intent_fields exclude each other: write one of them");
  }
  if (ignore != nullptr) table.Pointers("intent_ignore", *ignore, grant->mutable_intent_ignore());
  if (fields != nullptr) table.Pointers("intent_fields", *fields, grant->mutable_intent_fields());
}

void ReadSending(TableReader& table, v1::GrantTerms* grant) {
  if (const Value* lease = table.Get("lease")) grant->set_lease_ms(table.Duration("lease", *lease, 1));
  if (const Value* within = table.Get("send_within")) {
    grant->set_send_within_ms(table.Duration("send_within", *within, 1));
  }
  if (const Value* attempts = table.Get("max_attempts")) {
    const int64_t most = table.Whole("max_attempts", *attempts, 1, "must be a whole number, 1 or more");
    if (most > std::numeric_limits<int32_t>::max()) table.Fail("max_attempts", "is too large");
    grant->set_max_attempts(static_cast<int32_t>(std::min<int64_t>(most, std::numeric_limits<int32_t>::max())));
  }
  if (const Value* keep = table.Get("on_tool_error")) {
    grant->set_on_tool_error(
        table.Choice<v1::OnToolError>("on_tool_error", *keep, {{"keep", v1::KEEP}, {"release", v1::RELEASE}}));
  }
  if (const Value* settle = table.Get("settle")) {
    grant->set_settle(
        table.Choice<v1::Settle>("settle", *settle, {{"hold", v1::SETTLE_HOLD}, {"reported", v1::SETTLE_REPORTED}}));
  }
}

absl::Status ReadGrant(const Value& value, int position, v1::MintRequest* mint) {
  std::string place = absl::StrCat("grant ", position);
  const Object* object = value.AsObject();
  if (object == nullptr) return Bad(place, "must be a table, written under [[grant]]");
  const Value* name = object->Find("tool");
  if (name != nullptr && name->IsString()) absl::StrAppend(&place, " (", Quoted(*name->AsString()), ")");

  TableReader table(*object, place);
  table.KnowOnly({"tool", "cap", "budget", "per_call", "cost", "effect", "intent_scope", "intent_ignore",
                  "intent_fields", "repeat_window", "on_tool_error", "settle", "lease", "send_within", "max_attempts",
                  "arguments"});
  v1::GrantTerms* grant = mint->add_grants();
  if (const Value* tool = table.Need("tool", "the tool's exact name, or a prefix ending in *")) {
    grant->set_tool(table.Text("tool", *tool));
  }
  ReadLimits(table, grant);
  ReadIntent(table, grant);
  if (const Value* window = table.Get("repeat_window")) {
    grant->set_repeat_window_ms(table.Duration("repeat_window", *window, 0));
  }
  ReadSending(table, grant);
  if (const Value* schema = table.Get("arguments")) {
    if (!schema->IsObject() && !schema->IsBool()) {
      table.Fail("arguments", "must be a JSON Schema (draft 7) written as a table");
    }
    grant->set_arguments_schema(json::Canonical(*schema));
  }
  return table.status();
}

void ReadValidity(TableReader& table, v1::MintRequest* mint) {
  if (const Value* from = table.Get("not_before")) mint->set_not_before_us(table.Time("not_before", *from));
  const Value* in = table.Get("expires_in");
  const Value* at = table.Get("expires_at");
  if (table.ok() && (in == nullptr) == (at == nullptr)) {
    table.Fail("expires_in", "or expires_at must be written, one of them: a permit that never ends is not minted");
  }
  if (in != nullptr) mint->set_expires_in_ms(table.Duration("expires_in", *in, 1));
  if (at != nullptr) mint->set_expires_at_us(table.Time("expires_at", *at));
}

absl::StatusOr<v1::MintRequest> ReadPermit(const Value& value) {
  const Object* object = value.AsObject();
  if (object == nullptr) return absl::InvalidArgumentError("a permit file must hold one table");
  TableReader table(*object, "permit");
  table.KnowOnly({"tenant", "subject", "unit", "budget", "not_before", "expires_in", "expires_at", "grant"});
  v1::MintRequest mint;
  if (const Value* tenant = table.Need("tenant", "the tenant's name")) mint.set_tenant(table.Text("tenant", *tenant));
  if (const Value* subject = table.Need("subject", "who may use the permit, such as the agent's name")) {
    mint.set_subject(table.Text("subject", *subject));
  }
  if (const Value* unit = table.Need("unit", "a code and its decimals, such as \"USD/2\"")) {
    mint.set_unit(table.Text("unit", *unit));
    if (!money::Unit::Parse(mint.unit()).ok()) table.Fail("unit", "must be a code and its decimals, such as \"USD/2\"");
  }
  if (const Value* budget = table.Need("budget", "minor units for all grants together, or \"unlimited\"")) {
    *mint.mutable_budget() = table.Limit("budget", *budget, "must be a whole number of minor units, or \"unlimited\"");
  }
  ReadValidity(table, &mint);
  const Value* grants = table.Need("grant", "one or more [[grant]] tables");
  if (!table.ok()) return table.status();
  const json::Array* array = grants->AsArray();
  if (array == nullptr || array->empty() || array->size() > kGrantsMax) {
    return Bad("permit", absl::StrCat("grant must be a list of 1 to ", kGrantsMax, " tables, each under [[grant]]"));
  }
  for (size_t i = 0; i < array->size(); ++i) {
    const absl::Status status = ReadGrant((*array)[i], static_cast<int>(i) + 1, &mint);
    if (!status.ok()) return status;
  }
  return mint;
}

}  // namespace

absl::StatusOr<int64_t> ParseDuration(std::string_view text) {
  if (text == "0") return 0;
  const absl::Status bad =
      absl::InvalidArgumentError("a time is a whole number and a unit: 250ms, 120s, 10m, 24h or 7d");
  const size_t digits = std::min(text.find_first_not_of("0123456789"), text.size());
  if (digits == 0 || digits > 15) return bad;
  int64_t number = 0;
  for (const char c : text.substr(0, digits)) number = number * 10 + (c - '0');
  constexpr std::pair<std::string_view, int64_t> kUnits[] = {
      {"ms", 1}, {"s", 1000}, {"m", 60'000}, {"h", 3'600'000}, {"d", 86'400'000}};
  for (const auto& [unit, ms] : kUnits) {
    if (text.substr(digits) != unit) continue;
    const std::optional<int64_t> product = money::Mul(number, ms);
    if (!product) return bad;
    return *product;
  }
  return bad;
}

absl::StatusOr<v1::MintRequest> ParsePermitFile(std::string_view text) {
  if (text.size() > kPermitFileBytesMax) return absl::InvalidArgumentError("a permit file is at most 1 MiB");
  const size_t first = text.find_first_not_of(" \t\r\n");
  // No TOML document begins with a brace, and every JSON object does.
  if (first != std::string_view::npos && text[first] == '{') {
    auto value = json::Parse(
        text, {.bytes_max = kPermitFileBytesMax, .depth_max = 64, .case_variants = json::CaseVariants::kAdmit});
    if (!value.ok()) return value.status();
    return ReadPermit(*value);
  }
  auto value = ParseToml(text);
  if (!value.ok()) return value.status();
  return ReadPermit(*value);
}

}  // namespace tally::cli
