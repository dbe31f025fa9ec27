// A call as people read it.
#pragma once

#include <string>

#include "tally/v1/calls.pb.h"

namespace tally::cli {

std::string CallText(const v1::CallInfo& call);

// Arguments, answers and evidence, each under a heading. Empty if there are none.
std::string BodiesText(const v1::CallInfo& call);

std::string AttemptsText(const v1::CallInfo& call);

}  // namespace tally::cli
