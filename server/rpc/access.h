#ifndef TALLY_SERVER_RPC_ACCESS_H_
#define TALLY_SERVER_RPC_ACCESS_H_

#include <initializer_list>
#include <span>
#include <string_view>

#include "tally/v1/common.pb.h"

// Who may call what: the one table. Everything that it does not allow is PERMISSION_DENIED.
namespace tally::rpc {

class Roles {
 public:
  constexpr Roles(std::initializer_list<v1::Role> roles) {
    for (v1::Role role : roles) bits_ |= 1u << role;
  }
  constexpr bool Has(v1::Role role) const { return (bits_ & (1u << role)) != 0; }

 private:
  unsigned bits_ = 0;
};

struct Rule {
  std::string_view method;  // full name: tally.v1.Calls.Authorize
  Roles roles;
  // A principal that was disabled, but not --hard, may still call it; the decision's transaction says for what.
  bool when_disabled = false;
  // Answers come from a lane, thousands a second: logged only at level debug.
  bool hot = false;
};

std::span<const Rule> Rules();

// Null: there is no such RPC.
const Rule* FindRule(std::string_view method);

}  // namespace tally::rpc

#endif  // TALLY_SERVER_RPC_ACCESS_H_
