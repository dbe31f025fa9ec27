#include "cli/parked_text.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "cli/call_text.h"
#include "cli/json_form.h"
#include "cli/permit_text.h"
#include "cli/text.h"
#include "lib/keys/encoding.h"
#include "lib/keys/hash.h"
#include "lib/receipt/payload.h"

namespace tally::cli {
namespace {

constexpr int64_t kSecondUs = 1'000'000;

bool IsParked(const v1::ParkedCall& parked) { return !parked.uncertain_receipt_id().empty(); }

bool IsClaimed(const v1::ParkedCall& parked) {
  return !parked.claimed_by().empty() && parked.claim_until_us() > parked.now_us();
}

std::string FindingText(v1::Finding finding) {
  constexpr std::string_view kPrefix = "FINDING_";
  const std::string& name = v1::Finding_Name(finding);
  return name.starts_with(kPrefix) ? name.substr(kPrefix.size()) : name;
}

std::string WaitsFor(const v1::ParkedCall& parked) {
  if (!parked.call().attention().empty()) return "a person: " + parked.call().attention();
  if (parked.escalated()) return "a person";
  if (IsClaimed(parked)) return "its look-up, under way";
  if (parked.next_look_us() > parked.now_us()) {
    return absl::StrCat("a look-up in ", AgeText(parked.next_look_us() - parked.now_us()));
  }
  return "a look-up";
}

std::string LookUpsText(const v1::ParkedCall& parked) {
  if (parked.look_ups().empty()) return "none";
  return absl::StrCat(parked.look_ups_size(), ", last ", FindingText(parked.look_ups().rbegin()->finding()));
}

// What a word of `attention` means, and what a person does about it.
std::string AttentionText(const std::string& attention) {
  if (attention == "escalated") return "No look-up could tell whether it happened: a person has to find out.";
  if (attention == "contradicted") {
    return "It had been given back, or had answered an error, and then turned out to have happened. That is recorded, "
           "and charged. Look whether it was done twice.";
  }
  if (attention == "error_after_happened") {
    return "It was resolved as happened, and then its gateway brought an error as the answer. One of the two is wrong.";
  }
  if (attention == "amount_over_ten_times_the_hold") {
    return "More than ten times its hold was reported as its cost. Ten times the hold is charged.";
  }
  if (attention == "amount_overflow") return "What it cost does not fit the permit's sums. What fits is charged.";
  return attention.empty() ? "" : absl::StrCat("A person is called: ", attention, ".");
}

std::string SendText(const v1::ParkedCall& parked) {
  const v1::CallInfo& call = parked.call();
  const int64_t sent = call.attempts().empty() ? 0 : call.attempts().rbegin()->sent_at_us();
  if (sent > 0) return LocalTime(sent) + ", as its gateway says";
  return absl::StrCat("between ", LocalTime(parked.granted_at_us()), " and ", LocalTime(parked.send_before_us()),
                      ", if at all");
}

std::string LookUpsInFull(const v1::ParkedCall& parked) {
  std::string text = parked.look_ups().empty() ? "\nNo look-up was tried.\n"
                                               : absl::StrCat("\nlook-ups tried (", parked.look_ups_size(), "):\n");
  for (const v1::LookUp& look_up : parked.look_ups()) {
    text += ForTerminal(absl::StrCat(LocalTime(look_up.time_us()), "  ", look_up.kind(), "  ", look_up.provider(), "  ",
                                     FindingText(look_up.finding()), look_up.detail().empty() ? "" : "  ",
                                     look_up.detail())) +
            "\n";
    std::string body = ForTerminal(look_up.body(), LineFeeds::kKeep);
    if (!body.empty() && body.back() != '\n') body += '\n';
    text += body;
  }
  return text;
}

constexpr absl::string_view kEvidenceWords = " --source WHO --reference WHERE --evidence @FILE --reason 'WHY'";

std::string ResolveCommands(const std::string& receipt) {
  std::string text = "\nAsk the provider, save what it shows in a file, and then one of\n";
  for (const char* verdict : {"happened", "not-happened", "cannot-tell"}) {
    absl::StrAppend(&text, "  tally parked resolve ", receipt, " --verdict ", verdict, kEvidenceWords, "\n");
  }
  return text;
}

std::string CorrectCommands(const v1::CallInfo& call) {
  std::string text;
  for (const v1::AttemptInfo& attempt : call.attempts()) {
    const auto receipt = EndReceiptOf(call, attempt);
    const bool succeeded = attempt.state() == v1::SUCCEEDED;
    if (!receipt || (succeeded && !attempt.by_verdict())) continue;  // the gateway's own success is not in doubt
    absl::StrAppend(&text, "\nIf attempt ", attempt.number(), " was ", succeeded ? "not " : "", "carried out",
                    succeeded ? "" : " after all", ":\n  tally call correct ", call.call_id(), " --attempt-id ",
                    keys::HexEncode(attempt.attempt_id()), " --supersedes ", keys::HexEncode(*receipt), " --verdict ",
                    succeeded ? "not-happened" : "happened", kEvidenceWords, "\n");
  }
  return text;
}

struct Told {
  std::string receipt_id;
  v1::ReceiptPayload payload;
};

// The attempt's receipts, in the chain's order.
std::vector<Told> ReceiptsOf(const v1::CallInfo& call, std::string_view attempt_id_hash) {
  std::vector<Told> told;
  for (const v1::Receipt& receipt : call.receipts()) {
    auto payload = receipt::Parse(receipt.payload());
    if (payload.ok() && payload->attempt_id_hash() == attempt_id_hash) {
      told.push_back({receipt.receipt_id(), *std::move(payload)});
    }
  }
  std::sort(told.begin(), told.end(),
            [](const Told& a, const Told& b) { return a.payload.sequence() < b.payload.sequence(); });
  return told;
}

}  // namespace

std::string AgeText(int64_t us) {
  const int64_t seconds = std::max<int64_t>(0, us / kSecondUs);
  const auto two = [](int64_t big, const char* big_unit, int64_t small, const char* small_unit) {
    return small == 0 ? absl::StrCat(big, big_unit) : absl::StrCat(big, big_unit, " ", small, small_unit);
  };
  if (seconds < 60) return absl::StrCat(seconds, " s");
  if (seconds < 3600) return absl::StrCat(seconds / 60, " min");
  if (seconds < 86'400) return two(seconds / 3600, " h", seconds % 3600 / 60, " min");
  return two(seconds / 86'400, " d", seconds % 86'400 / 3600, " h");
}

std::string ParkedListText(const v1::ListParkedResponse& list) {
  if (list.parked().empty()) return "No call is parked.\n";
  Table table({"RECEIPT", "CALL", "TOOL", "KEY", "AMOUNT", "AGE", "CLAIMED BY", "LOOK-UPS", "WAITS FOR"});
  int ended = 0;
  for (const v1::ParkedCall& parked : list.parked()) {
    const v1::CallInfo& call = parked.call();
    if (IsParked(parked)) {
      table.Add({keys::HexEncode(parked.uncertain_receipt_id()), call.call_id(), call.tool(), call.key(),
                 MoneyText(parked.hold(), call.unit()) + " held", AgeText(parked.now_us() - parked.parked_at_us()),
                 IsClaimed(parked) ? parked.claimed_by() : "-", LookUpsText(parked), WaitsFor(parked)});
      continue;
    }
    ++ended;
    int64_t charged = 0;
    for (const v1::AttemptInfo& attempt : call.attempts()) charged += attempt.charged();
    table.Add({"-", call.call_id(), call.tool(), call.key(), MoneyText(charged, call.unit()) + " charged", "-", "-",
               "-", WaitsFor(parked)});
  }
  std::string text = table.Text();
  if (ended > 0) {
    absl::StrAppend(&text, "\n", ended, " of them, without a receipt here, ",
                    ended == 1 ? "has ended and needs" : "have ended and need",
                    " a person all the same. What happened, and how to put it right: tally parked show CALL\n");
  }
  return text;
}

std::optional<std::string> EndReceiptOf(const v1::CallInfo& call, const v1::AttemptInfo& attempt) {
  if (attempt.state() == v1::AUTHORIZED || attempt.state() == v1::UNCERTAIN) return std::nullopt;
  // What is only attached to an end (an answer after a verdict) changes no state. A late answer to a READ that had been
  // given up replaces its end.
  std::optional<Told> end;
  for (Told& told : ReceiptsOf(call, keys::AttemptIdHash(attempt.attempt_id()).view())) {
    const v1::ReceiptKind kind = told.payload.kind();
    const bool verdict = kind == v1::CALL_RESOLVED_HAPPENED || kind == v1::CALL_RESOLVED_NOT_HAPPENED ||
                         kind == v1::CALL_CONTRADICTED || kind == v1::CALL_CORRECTED;
    if (!end || verdict || told.payload.attempt_state() != end->payload.attempt_state() ||
        end->payload.code() == "READ_NO_ANSWER") {
      end = std::move(told);
    }
  }
  if (!end || end->payload.attempt_state() != attempt.state()) return std::nullopt;
  return end->receipt_id;
}

std::string ParkedText(const v1::ParkedCall& parked) {
  const v1::CallInfo& call = parked.call();
  const std::string why = AttentionText(call.attention());
  // A call whose outcome is known may still need a person: it was contradicted, say.
  if (!IsParked(parked)) {
    return (why.empty() ? "" : why + "\n") + CallText(call) + CorrectCommands(call);
  }
  const std::string receipt = keys::HexEncode(parked.uncertain_receipt_id());
  Fields fields;
  fields.Add("receipt", receipt);
  fields.Add("parked", absl::StrCat(LocalTime(parked.parked_at_us()), ", ",
                                    AgeText(parked.now_us() - parked.parked_at_us()), " ago"));
  fields.Add("hold", MoneyText(parked.hold(), call.unit()));
  fields.Add("sent", SendText(parked));
  if (parked.late_not_sent()) fields.Add("too late", "its gateway said NOT_SENT after its lease had ended");
  fields.Add("claimed by", IsClaimed(parked)
                               ? absl::StrCat(parked.claimed_by(), " until ", LocalTime(parked.claim_until_us()))
                               : "nobody");
  fields.Add("permit", parked.permit_active() ? "active" : "not active: nothing is sent under it any more");
  fields.Add("waits for", WaitsFor(parked));
  return "Nobody knows yet whether this call was carried out.\n" + (why.empty() ? "" : why + "\n") + fields.Text() +
         "\n" + CallText(call) + LookUpsInFull(parked) + ResolveCommands(receipt);
}

std::string StaleText(const v1::CallInfo& call, const std::string& receipt_id) {
  std::string hash;
  for (const v1::Receipt& receipt : call.receipts()) {
    const auto payload = receipt::Parse(receipt.payload());
    if (receipt.receipt_id() == receipt_id && payload.ok()) hash = payload->attempt_id_hash();
  }
  std::string text;
  for (const v1::AttemptInfo& attempt : call.attempts()) {
    if (keys::AttemptIdHash(attempt.attempt_id()).view() != hash) continue;
    const std::vector<Told> told = ReceiptsOf(call, hash);
    const auto end = EndReceiptOf(call, attempt);
    absl::StrAppend(&text, "Attempt ", attempt.number(), ", which that receipt is about, is ",
                    v1::CallState_Name(attempt.state()), " now");
    if (end) {
      const auto by = std::find_if(told.begin(), told.end(), [&](const Told& one) { return one.receipt_id == *end; });
      absl::StrAppend(&text, " since ", LocalTime(by->payload.time_us()), ", by receipt ", keys::HexEncode(*end));
    }
    text += ". ";
    if (attempt.number() < call.attempts().rbegin()->number()) {
      absl::StrAppend(&text, "Attempt ", call.attempts().rbegin()->number(), " of the same call is ",
                      v1::CallState_Name(call.attempts().rbegin()->state()),
                      "; what is known of one attempt does not settle another. ");
    }
  }
  return absl::StrCat(text, "See tally parked show ", call.call_id(), ", or tally call show ", call.call_id(), ".");
}

}  // namespace tally::cli
