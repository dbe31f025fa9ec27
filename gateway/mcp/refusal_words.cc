#include "gateway/mcp/refusal_words.h"

#include <iterator>

namespace tally::mcp {
namespace {

using enum Happened;

// Written for a model that wants its call to succeed: the fact first, then what must not be done, then what may be. The
// words "again", "retry" and "later" stand only where it is right to obey them, or with a "not" before them.
constexpr RefusalWords kWords[] = {
    {v1::KIND_DENIED, "TOOL_NOT_GRANTED", kNo, v1::RETRY_NEVER,
     "The permit does not grant this tool. Nothing was done.",
     "Do not call it again. Use a tool that is listed, or tell the user that the permit does not cover this."},
    {v1::KIND_DENIED, "PERMIT_EXPIRED", kNo, v1::RETRY_NEVER, "The permit has expired. Nothing was done.",
     "Do not call tools under this permit any more. Tell the user that a new permit is needed."},
    {v1::KIND_DENIED, "PERMIT_NOT_YET_VALID", kNo, v1::RETRY_NEVER, "The permit is not valid yet. Nothing was done.",
     "Do not call it now. Tell the user that the permit's time has not begun."},
    {v1::KIND_DENIED, "PERMIT_REVOKED", kNo, v1::RETRY_NEVER, "The permit was revoked. Nothing was done.",
     "Stop calling tools under this permit. Tell the user that it was revoked."},
    {v1::KIND_DENIED, "PERMIT_CLOSED", kNo, v1::RETRY_NEVER, "The permit is closed. Nothing was done.",
     "Stop calling tools under this permit. Tell the user that a new permit is needed."},
    {v1::KIND_DENIED, "AMOUNT_OVER_CALL_LIMIT", kNo, v1::RETRY_NEVER,
     "The amount is over what one call may cost. Nothing was done.",
     "Do not call it again with this amount, and do not split the amount over several calls. Tell the user."},
    {v1::KIND_DENIED, "CONSTRAINT_VIOLATED", kNo, v1::RETRY_NEVER,
     "The arguments break a rule of the permit. Nothing was done.",
     "Do not send these arguments again. Arguments that keep to the rule may be tried if they still do what the user "
     "asked for; otherwise tell the user."},
    {v1::KIND_DENIED, "CONSTRAINT_UNENFORCEABLE", kNo, v1::RETRY_NEVER,
     "A rule of the permit cannot be checked on these arguments, so the call was refused. Nothing was done.",
     "Do not call it again. Tell the user that the permit needs a rule that can be checked."},
    {v1::KIND_DENIED, "ATTEMPTS_EXHAUSTED", kNo, v1::RETRY_NEVER,
     "This call has had all the attempts it may have. Nothing more was done.",
     "Do not call it again, and do not use another key for it. Tell the user."},
    {v1::KIND_DENIED, "OPEN_CALLS", kNo, v1::RETRY_NEVER,
     "Too many calls of this permit are still open or parked. Nothing was done.",
     "Do not call it again now. Tell the user that open calls must be settled first."},
    {v1::KIND_DENIED, "TOOL_CHANGED", kNo, v1::RETRY_NEVER,
     "The tool's name, description or schema differs from what was accepted, so the call was refused. Nothing was "
     "done.",
     "Do not call it again. Tell the user that an operator must look at the change and accept it."},
    {v1::KIND_DENIED, "NO_SUCH_TOOL", kNo, v1::RETRY_NEVER, "There is no tool of this name. Nothing was done.",
     "Use a name from the list of tools."},
    {v1::KIND_DENIED, "", kNo, v1::RETRY_NEVER, "The call was refused. Nothing was done.",
     "Do not call it again as it is. Tell the user."},

    {v1::KIND_CONTENDED, "", kNo, v1::RETRY_SAME_KEY,
     "The decision lost a race with other calls and was rolled back. Nothing was done.",
     "The same call may be made again after a moment, with the same key if you set one."},

    {v1::KIND_CAP_EXCEEDED, "CALL_CAP", kNo, v1::RETRY_NEVER,
     "All calls of this tool that the permit allows are used up. This call was not made; the earlier ones were.",
     "Do not call it again, not with other arguments or another key either. Tell the user that the cap is reached."},
    {v1::KIND_CAP_EXCEEDED, "TOOL_BUDGET", kNo, v1::RETRY_NEVER,
     "What is left of this tool's budget does not cover the call. This call was not made; the earlier ones were.",
     "Do not call it again, not with another key either, and do not repeat earlier calls. Tell the user that the "
     "budget "
     "is used up."},
    {v1::KIND_CAP_EXCEEDED, "PERMIT_BUDGET", kNo, v1::RETRY_NEVER,
     "What is left of the permit's budget does not cover the call. This call was not made; the earlier ones were.",
     "Do not call it again, not with another key either, and do not repeat earlier calls. Tell the user that the "
     "budget "
     "is used up."},
    {v1::KIND_CAP_EXCEEDED, "", kNo, v1::RETRY_NEVER,
     "A limit of the permit is used up. This call was not made; the earlier ones were.",
     "Do not call it again, not with other arguments or another key either. Tell the user."},

    {v1::KIND_DELIVERY_UNCERTAIN, "NO_ANSWER", kMaybe, v1::RETRY_WAIT,
     "The call may have been carried out: it was sent, and no answer came.",
     "Do not call it again; it is parked until someone has looked whether it happened. Tell the user that the outcome "
     "is "
     "unknown, and go on only with what does not depend on it. tally__call_status tells how it stands."},
    {v1::KIND_DELIVERY_UNCERTAIN, "UPSTREAM_AMBIGUOUS", kMaybe, v1::RETRY_WAIT,
     "The call may have been carried out: the tool's answer does not tell.",
     "Do not call it again; it is parked until someone has looked whether it happened. Tell the user that the outcome "
     "is "
     "unknown, and go on only with what does not depend on it. tally__call_status tells how it stands."},
    {v1::KIND_DELIVERY_UNCERTAIN, "INPUT_MISSING", kMaybe, v1::RETRY_WAIT,
     "The call may have been carried out in part: its tool asked for input, and the call could not be continued.",
     "Do not call it again; it is parked until someone has looked whether it happened. Tell the user that the outcome "
     "is unknown. tally__call_status tells how it stands."},
    {v1::KIND_DELIVERY_UNCERTAIN, "LEASE_OVER", kMaybe, v1::RETRY_WAIT,
     "The call may have been carried out: its time ran out before its outcome was reported.",
     "Do not call it again; it is parked until someone has looked whether it happened. Tell the user that the outcome "
     "is "
     "unknown. tally__call_status tells how it stands."},
    {v1::KIND_DELIVERY_UNCERTAIN, "STILL_PENDING", kMaybe, v1::RETRY_WAIT,
     "The call may have been carried out: the same call was made before and is under way, or its outcome is not known. "
     "This time nothing was sent.",
     "Do not call it again and do not use another key for it. Tell the user that the outcome is unknown. "
     "tally__call_status tells how it stands."},
    {v1::KIND_DELIVERY_UNCERTAIN, "STILL_AUTHORIZED", kMaybe, v1::RETRY_WAIT,
     "The call may have been carried out: the same call was made before and is still under way. This time nothing was "
     "sent.",
     "Do not call it again and do not use another key for it; wait for its answer. tally__call_status tells how it "
     "stands."},
    {v1::KIND_DELIVERY_UNCERTAIN, "INTENT_PENDING", kMaybe, v1::RETRY_WAIT,
     "The same act may have been carried out: an earlier call of this tool that means the same is under way, or its "
     "outcome is not known. This call was not sent.",
     "Do not call it again and do not change arguments to get round this. Wait for the earlier call, and tell the user "
     "that its outcome is unknown."},
    {v1::KIND_DELIVERY_UNCERTAIN, "SEND_WINDOW_OVER", kMaybe, v1::RETRY_WAIT,
     "The time to send this call was over before it was sent. This time nothing was sent; an earlier attempt may have "
     "been carried out.",
     "Do not call it again until tally__call_status says that it did not happen. Tell the user."},
    {v1::KIND_DELIVERY_UNCERTAIN, "PERMIT_REVOKED", kMaybe, v1::RETRY_WAIT,
     "The permit was revoked while this call was under way. This time nothing was sent; an earlier attempt may have "
     "been "
     "carried out.",
     "Stop calling tools under this permit. Tell the user."},
    {v1::KIND_DELIVERY_UNCERTAIN, "PERMIT_CLOSED", kMaybe, v1::RETRY_WAIT,
     "The permit was closed while this call was under way. This time nothing was sent; an earlier attempt may have "
     "been "
     "carried out.",
     "Stop calling tools under this permit. Tell the user."},
    {v1::KIND_DELIVERY_UNCERTAIN, "PERMIT_EXPIRED", kMaybe, v1::RETRY_WAIT,
     "The permit expired while this call was under way. This time nothing was sent; an earlier attempt may have been "
     "carried out.",
     "Stop calling tools under this permit. Tell the user."},
    {v1::KIND_DELIVERY_UNCERTAIN, "CALL_CONTRADICTED", kMaybe, v1::RETRY_WAIT,
     "An earlier attempt of this call turned out to have been carried out after all. This time nothing was sent.",
     "Do not call it again. Tell the user that it was done, and that a person is looking at it."},
    {v1::KIND_DELIVERY_UNCERTAIN, "", kMaybe, v1::RETRY_WAIT, "The call may have been carried out.",
     "Do not call it again; it is parked until someone has looked whether it happened. Tell the user that the outcome "
     "is "
     "unknown. tally__call_status tells how it stands."},

    {v1::KIND_ALREADY_DONE, "", kEarlier, v1::RETRY_NEVER,
     "This was done before by an earlier call, whose answer cannot be shown here. Nothing new was done.",
     "Do not call it again. Go on as after a call that succeeded."},

    {v1::KIND_READ_FAILED, "", kNo, v1::RETRY_CALL_AGAIN,
     "The tool, which only reads, did not answer. Nothing was changed.", "It may be called again."},

    {v1::KIND_INVALID, "KEY_REUSED", kNo, v1::RETRY_NEVER,
     "This idempotency key already stands for another call. Nothing was done.",
     "Do not use the key for this call: a key belongs to one tool and its arguments. If this is a call of its own, "
     "make "
     "it with a key of its own; if it is the earlier one again, send what that one sent."},
    {v1::KIND_INVALID, "ATTEMPT_USED", kNo, v1::RETRY_NEVER, "This attempt has ended already. Nothing was done.",
     "Do not call it again before tally__call_status says how it ended."},
    {v1::KIND_INVALID, "ARGUMENTS_NOT_CANONICAL", kNo, v1::RETRY_NEVER,
     "The arguments can be read in more than one way. Nothing was done.",
     "Send arguments whose members differ by more than case, in plain JSON."},
    {v1::KIND_INVALID, "LIMIT", kNo, v1::RETRY_NEVER, "The request is over a limit. Nothing was done.",
     "Send less: at most 256 KiB of arguments, 64 levels deep."},
    {v1::KIND_INVALID, "", kNo, v1::RETRY_NEVER, "The request is not well formed. Nothing was done.",
     "Do not send it again as it is; put right what is named here."},

    {v1::KIND_CONFLICT, "", kRecorded, v1::RETRY_NEVER,
     "The record of this call says otherwise. Nothing was changed; what happened is as recorded.",
     "Do not call it again. Ask tally__call_status how it ended, and tell the user."},

    {v1::KIND_UNAUTHORIZED, "UNAUTHENTICATED", kNo, v1::RETRY_FIX_CREDENTIAL,
     "The permit token, or the gateway's own credential, is not accepted. Nothing was done.",
     "Do not call it again. Tell the user that the credential must be put right."},
    {v1::KIND_UNAUTHORIZED, "PERMISSION_DENIED", kNo, v1::RETRY_FIX_CREDENTIAL,
     "The gateway's credential does not allow this. Nothing was done.",
     "Do not call it again. Tell the user that an operator must look at the gateway's credential."},
    {v1::KIND_UNAUTHORIZED, "", kNo, v1::RETRY_FIX_CREDENTIAL,
     "There is no such thing, or this credential may not see it. Nothing was done.",
     "Do not call it again. Tell the user that id and credential must be looked at."},

    {v1::KIND_UNAVAILABLE, "NOT_SENT", kNo, v1::RETRY_CALL_AGAIN, "The call was not sent. Nothing was done.",
     "It may be called again."},
    {v1::KIND_UNAVAILABLE, "UPSTREAM_DOWN", kNo, v1::RETRY_CALL_AGAIN,
     "The tool's server cannot be reached, so the call was not sent. Nothing was done.",
     "It may be called again in a while. If it stays so, tell the user."},
    {v1::KIND_UNAVAILABLE, "AUTHORITY_DOWN", kNo, v1::RETRY_CALL_AGAIN,
     "The authority that grants calls cannot be reached, so the call was not sent. Nothing was done.",
     "It may be called again in a while. If it stays so, tell the user."},
    {v1::KIND_UNAVAILABLE, "JOURNAL_DOWN", kNo, v1::RETRY_CALL_AGAIN,
     "The gateway cannot write its journal, so the call was not sent. Nothing was done.",
     "Tell the user that the gateway needs its operator. It may be called again once that is done."},
    {v1::KIND_UNAVAILABLE, "GATEWAY_SHUTTING_DOWN", kNo, v1::RETRY_CALL_AGAIN,
     "The gateway is shutting down, so the call was not sent. Nothing was done.", "It may be called again in a while."},
    {v1::KIND_UNAVAILABLE, "RECOVERY_NEEDED", kNo, v1::RETRY_CALL_AGAIN,
     "The authority grants nothing until its database is recovered, so the call was not sent. Nothing was done.",
     "Tell the user that an operator must run the recovery. Do not call it again before that."},
    {v1::KIND_UNAVAILABLE, "", kNo, v1::RETRY_CALL_AGAIN,
     "The authority could not decide, so the call was not sent. Nothing was done.",
     "It may be called again in a while, with the same key if you set one. If it stays so, tell the user."},
};

const RefusalWords* Find(v1::Kind kind, std::string_view code) {
  for (const RefusalWords& words : kWords) {
    if (words.kind == kind && words.code == code) return &words;
  }
  return nullptr;
}

}  // namespace

std::span<const RefusalWords> AllRefusalWords() { return kWords; }

const RefusalWords& WordsOf(v1::Kind kind, std::string_view code) {
  if (const RefusalWords* exact = Find(kind, code)) return *exact;
  if (const RefusalWords* general = Find(kind, "")) return *general;
  return *Find(v1::KIND_DELIVERY_UNCERTAIN, "");
}

std::string_view KindWord(v1::Kind kind) {
  switch (kind) {
    case v1::KIND_DENIED:
      return "denied";
    case v1::KIND_CONTENDED:
      return "contended";
    case v1::KIND_CAP_EXCEEDED:
      return "cap_exceeded";
    case v1::KIND_ALREADY_DONE:
      return "already_done";
    case v1::KIND_READ_FAILED:
      return "read_failed";
    case v1::KIND_INVALID:
      return "invalid";
    case v1::KIND_CONFLICT:
      return "conflict";
    case v1::KIND_UNAUTHORIZED:
      return "unauthorized";
    case v1::KIND_UNAVAILABLE:
      return "unavailable";
    default:
      return "delivery_uncertain";
  }
}

std::string_view RetryWord(v1::Retry retry) {
  switch (retry) {
    case v1::RETRY_SAME_KEY:
      return "same_key";
    case v1::RETRY_WAIT:
      return "wait";
    case v1::RETRY_CALL_AGAIN:
      return "call_again";
    case v1::RETRY_FIX_CREDENTIAL:
      return "fix_credential";
    default:
      return "never";
  }
}

std::string_view HappenedWord(Happened happened) {
  switch (happened) {
    case kNo:
      return "no";
    case kEarlier:
      return "earlier";
    case kRecorded:
      return "recorded";
    case kMaybe:
      break;
  }
  return "maybe";
}

}  // namespace tally::mcp
