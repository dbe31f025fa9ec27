#pragma once

#include "reconciler/config/config.h"

namespace tally::reconciler {

// Says what each tool is looked up by, reads secrets, looks whether programs are there, and asks tallyd one question.
// Asks no provider. Exit code: 0 all is well, 1 something is not there, 3 tallyd cannot be asked.
int Check(const Config& config);

}  // namespace tally::reconciler
