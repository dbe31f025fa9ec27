// What `tally-gateway check` found, and how it says so.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "tally/v1/permits.pb.h"

namespace tally::gateway {

// How a call of the tool is sent.
enum class Bucket {
  kOnce,   // one send
  kRead,   // one send, too; its grant says that it only reads, so that it never parks
  kKeyed,  // may be sent again under the provider's key
};

struct CheckedTool {
  std::string own;       // the upstream's name for it
  std::string tool;      // UPSTREAM__TOOL; empty: left out
  std::string left_out;  // why
  Bucket bucket = Bucket::kOnce;
  std::string grant;  // the grant that covers it; empty: none, or no permit was given
  std::string pin;    // "off", "new" (not seen yet), "same" or "changed"
  std::vector<std::pair<std::string, std::string>> changed;  // members that differ from what is pinned, and what they
                                                             // are now, raw; empty: gone
};

struct CheckedUpstream {
  std::string name;
  std::string error;  // it cannot be had, or its tools cannot be listed; empty: all is well
  std::string protocol_version;
  bool strict = false;            // changed tools are refused
  std::vector<std::string> gone;  // tools that are pinned and no longer there
  std::vector<CheckedTool> tools;
};

struct CheckedPermit {
  std::string error;  // it could not be looked up, or has ended
  bool unavailable = false;
  v1::PermitInfo info;
  std::vector<std::string> without_tool;  // grants that match no tool
  std::vector<std::string> untold;        // grants on an upstream that cannot be had
};

struct CheckReport {
  std::vector<CheckedUpstream> upstreams;
  std::optional<CheckedPermit> permit;  // nullopt: none was given
  std::string pins_error;               // what the tools were pinned as cannot be read
};

// 0: all is well; tools that no grant covers, grants without a tool and names that are left out are no faults.
// 1: an upstream cannot be had, its tools cannot be listed, the permit is not known or not active, or the pin file
//    cannot be read.
// 3: tallyd could not be asked about the permit; everything else is well.
// 4: a tool has changed since it was pinned; everything else is well.
int ExitCodeOf(const CheckReport& report);

// For people, and for machines: one JSON document with stable names.
std::string TableOf(const CheckReport& report);
std::string JsonOf(const CheckReport& report);

}  // namespace tally::gateway
