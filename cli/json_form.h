// The service's messages as JSON with stable names: one document for scripts.
//
//  * Names are the proto's. Every field is there, absent ones as null.
//  * Ids and hashes are hex, UUIDs their text. A body that an agent, a tool or a provider wrote (arguments, result,
//    partial_answer, evidence body) is given twice: under its name as JSON if it is JSON, as text if it is text, else
//    null; and under NAME_base64 byte for byte.
//  * A time `x_us` is given twice: as it is, in microseconds, and as RFC 3339 text under `x`.
//  * Receipts are given by their ids, under `receipt_ids`.
//  * Enumerators are the proto's names without prefix; kinds and retry advice are in lower case (delivery_uncertain,
//    same_key). A refusal's kind, code, message and retry stand in the message that carries it.
#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "tally/v1/common.pb.h"

namespace tally::cli {

using Json = nlohmann::ordered_json;

Json ToJson(const google::protobuf::Message& message);

// The body's two members, as above.
void AddBody(std::string_view name, std::string_view bytes, bool present, Json* out);

std::string_view HappenedName(v1::Kind kind);  // no, nothing_new, maybe, earlier, as_recorded, unknown
std::string RetryName(v1::Retry retry);        // never, same_key, wait, call_again, fix_credential

// One document and a line feed. Bytes that are not UTF-8 are replaced, so that it is always valid.
std::string Document(const Json& json);

}  // namespace tally::cli
