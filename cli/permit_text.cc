#include "cli/permit_text.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "cli/text.h"
#include "lib/money/amount.h"
#include "lib/money/unit.h"

namespace tally::cli {
namespace {

std::string LimitText(const v1::Limit& limit, const std::string& unit) {
  return limit.limit_case() == v1::Limit::kAtMost ? MoneyText(limit.at_most(), unit) : "unlimited";
}

std::string CapText(const v1::Usage& cap) {
  std::string text = absl::StrCat(cap.used(), " of ");
  if (cap.limit().limit_case() == v1::Limit::kAtMost) {
    absl::StrAppend(&text, cap.limit().at_most());
  } else {
    text += "unlimited";
  }
  if (cap.overrun() > 0) absl::StrAppend(&text, " (", cap.overrun(), " over)");
  return text;
}

std::string GrantNotes(const v1::GrantTerms& grant) {
  std::string notes =
      absl::StrCat(grant.effect() == v1::READ ? "read" : "write", ", lease ", DurationText(grant.lease_ms()),
                   ", send within ", DurationText(grant.send_within_ms()), ", ", grant.max_attempts(), " attempts");
  if (grant.effect() != v1::READ) absl::StrAppend(&notes, ", repeats within ", DurationText(grant.repeat_window_ms()));
  if (grant.intent_ignore_size() > 0)
    absl::StrAppend(&notes, ", intent without ", absl::StrJoin(grant.intent_ignore(), " "));
  if (grant.intent_fields_size() > 0)
    absl::StrAppend(&notes, ", intent of ", absl::StrJoin(grant.intent_fields(), " "));
  return notes;
}

}  // namespace

std::string MoneyText(int64_t minor, const std::string& unit) {
  const auto parsed = money::Unit::Parse(unit);
  return parsed.ok() ? money::Format(minor, *parsed) : absl::StrCat(minor, " ", unit);
}

std::string BudgetText(const v1::Usage& usage, const std::string& unit) {
  std::string text = absl::StrCat("held ", MoneyText(usage.held(), unit), ", spent ", MoneyText(usage.spent(), unit),
                                  " of ", LimitText(usage.limit(), unit));
  if (usage.overrun() > 0) absl::StrAppend(&text, " (", MoneyText(usage.overrun(), unit), " over)");
  return text;
}

std::string CostText(const v1::CostRule& cost, const std::string& unit) {
  switch (cost.rule_case()) {
    case v1::CostRule::kFixed:
      return MoneyText(cost.fixed(), unit);
    case v1::CostRule::kPointer:
      return "argument " + cost.pointer();
    case v1::CostRule::kCaller:
      return "as the caller says";
    default:
      return "none";
  }
}

std::string PermitStateText(const v1::PermitInfo& permit) {
  std::string state = v1::PermitState_Name(permit.state());
  if (permit.revoked() && permit.state() != v1::REVOKED) state += ", REVOKED";
  return state;
}

std::string PermitText(const v1::PermitInfo& permit) {
  const std::string& unit = permit.terms().unit();
  Fields fields;
  fields.Add("permit", permit.permit_id());
  fields.Add("tenant", permit.tenant());
  fields.Add("subject", permit.terms().subject());
  fields.Add("state", PermitStateText(permit));
  fields.Add("valid", absl::StrCat(LocalTime(permit.terms().not_before_us()), " to ",
                                   LocalTime(permit.terms().expires_at_us())));
  fields.Add("budget", BudgetText(permit.budget(), unit));
  fields.Add("open calls", absl::StrCat(permit.open_calls()));
  fields.Add("refusals", absl::StrCat(permit.refusals()));
  fields.Add("receipts", absl::StrCat(permit.sequence()));
  std::string text = fields.Text();
  if (permit.grants_size() == 0) return text;
  Table table({"TOOL", "CALLS", "BUDGET", "PER CALL", "COST", "TERMS"});
  for (const v1::GrantUsage& grant : permit.grants()) {
    table.Add({grant.terms().tool(), CapText(grant.cap()), BudgetText(grant.budget(), unit),
               LimitText(grant.terms().per_call(), unit), CostText(grant.terms().cost(), unit),
               GrantNotes(grant.terms())});
  }
  return text + "\n" + table.Text();
}

}  // namespace tally::cli
