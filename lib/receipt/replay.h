// A permit's chain told again from its first receipt: which transitions are legal, and what slots and money must stand
// at after each. Written from the contract alone; it shares no code with what makes the decisions.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "lib/receipt/form.h"
#include "tally/v1/receipt.pb.h"

namespace tally::receipt {

class PermitReplay {
 public:
  // Takes the chain's next receipt, whose form is right. After a fault the story is lost: nothing more may be applied.
  Fault Apply(const v1::ReceiptPayload& p, std::string_view receipt_id);

  // PERMIT_HEAD, when the receipt it names has just been applied.
  Fault CheckHead(const v1::ReceiptPayload& head) const;

  bool closed() const { return closed_; }
  int open_attempts() const { return open_attempts_; }

 private:
  struct Attempt {
    v1::CallState state = v1::CALL_STATE_UNSPECIFIED;
    std::string id_hash;
    std::string state_receipt;  // what brought the present state
    int64_t hold = 0;           // as granted
    int64_t held = 0;
    int64_t charged = 0;
    int64_t granted_us = 0;
    int64_t lease_end_us = 0;
    bool slot = false;
    bool no_answer = false;   // a READ that ended for want of an answer
    bool by_verdict = false;  // its end was said by a reconciler, an operator or a contradiction
    bool answered = false;    // its end carries the tool's answer
    bool attached = false;    // an answer came after a verdict
    bool escalated = false;
    bool open() const { return state == v1::AUTHORIZED || state == v1::UNCERTAIN; }
  };
  struct Call {
    std::string tool;
    int32_t grant_index = 0;
    std::string intent;
    std::vector<Attempt> attempts;
    std::string bound_to;  // the call that answers for this one's key
    v1::CallState State() const;
  };
  struct Key {
    std::string fingerprint;
    std::string call;
  };
  struct Taken {
    int64_t slots = 0;
    int64_t held = 0;
    int64_t spent = 0;
  };

  Fault Mint(const v1::ReceiptPayload& p);
  Fault Revoke();
  Fault StartClosing();
  Fault Close(const v1::ReceiptPayload& p);
  Fault Void(const v1::ReceiptPayload& p);
  Fault LimitDenials();

  Fault ApplyToCall(const v1::ReceiptPayload& p, std::string_view id);
  const std::string& Followed(const std::string& call_id) const;
  Fault Asked(const v1::ReceiptPayload& p);
  Fault Deny(const v1::ReceiptPayload& p);
  Fault Repeat(const v1::ReceiptPayload& p);
  Fault Allow(const v1::ReceiptPayload& p, std::string_view id);
  Fault AllowedByTerms(const v1::ReceiptPayload& p) const;
  Fault LaterOf(const v1::ReceiptPayload& p, std::string_view id);
  Fault Release(const v1::ReceiptPayload& p, Attempt& attempt);
  Fault Answer(const v1::ReceiptPayload& p, Call& call, Attempt& attempt);
  Fault Attach(const v1::ReceiptPayload& p, Attempt& attempt);
  Fault Park(const v1::ReceiptPayload& p, Call& call, Attempt& attempt);
  Fault Escalate(const v1::ReceiptPayload& p, Attempt& attempt);
  Fault ReplaySent(const v1::ReceiptPayload& p, const Attempt& attempt) const;
  Fault Resolve(const v1::ReceiptPayload& p, Attempt& attempt);
  Fault Contradict(const v1::ReceiptPayload& p, Call& call, Attempt& attempt);
  Fault Correct(const v1::ReceiptPayload& p, Attempt& attempt);

  // Ends (or ends otherwise) an attempt, with what it is charged and whether its slot stays.
  void End(Attempt& attempt, v1::CallState state, int64_t charged, bool slot);
  // What success costs at most, and whether the receipt's charge is one that the terms allow.
  Fault ChargeFault(const v1::ReceiptPayload& p, const Attempt& attempt, bool stated) const;

  Fault UsageFault(const v1::ReceiptPayload& p, const std::vector<Taken>& before, const Taken& permit_before) const;
  Fault BudgetFault(const char* name, const v1::Usage& said, const Taken& taken, const v1::Limit& limit) const;
  const v1::GrantTerms& GrantOf(const Call& call) const { return terms_.grants(call.grant_index - 1); }
  // The most specific grant for a tool, from 1; 0: none.
  int32_t GrantFor(std::string_view tool) const;

  v1::PermitTerms terms_;
  std::map<std::string, Call> calls_;
  std::map<std::string, Key> keys_;
  std::map<std::string, std::string> open_intents_;  // intent → call
  std::set<std::string> attempt_ids_;                // hashes, used up by a grant or a tombstone
  std::vector<Taken> grants_;
  Taken permit_;
  Call* touched_ = nullptr;  // by the receipt at hand
  Attempt* touched_attempt_ = nullptr;
  int64_t denied_ = 0;
  int open_attempts_ = 0;
  bool minted_ = false;
  bool revoked_ = false;
  bool closing_ = false;
  bool closed_ = false;
  bool denial_limit_ = false;
};

}  // namespace tally::receipt
