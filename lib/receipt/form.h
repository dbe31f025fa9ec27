// Which fields a receipt of each kind carries, and what each field may hold. Judged on one receipt alone.
#pragma once

#include <optional>
#include <string>

#include "tally/v1/receipt.pb.h"

namespace tally::receipt {

namespace v1 = ::tally::v1;

// What is wrong, as a sentence without its full stop; nullopt: nothing.
using Fault = std::optional<std::string>;

Fault FormFault(const v1::ReceiptPayload& payload);

}  // namespace tally::receipt
