#include "lib/json/pointer.h"

#include "absl/status/status.h"
#include "lib/json/utf8.h"

namespace tally::json {
namespace {

bool IsUtf8(std::string_view text) {
  while (!text.empty()) {
    const size_t length = Utf8SequenceLength(text);
    if (length == 0) return false;
    text.remove_prefix(length);
  }
  return true;
}

// False for a '~' that is followed by neither 0 nor 1.
bool Unescape(std::string_view escaped, std::string* token) {
  for (size_t i = 0; i < escaped.size(); ++i) {
    if (escaped[i] != '~') {
      token->push_back(escaped[i]);
      continue;
    }
    if (++i == escaped.size() || (escaped[i] != '0' && escaped[i] != '1')) return false;
    token->push_back(escaped[i] == '0' ? '~' : '/');
  }
  return true;
}

const Value* Child(const Value& value, const std::string& token) {
  if (const Object* object = value.AsObject()) return object->Find(token);
  if (const Array* array = value.AsArray()) {
    const std::optional<size_t> index = ArrayIndex(token);
    if (index && *index < array->size()) return &(*array)[*index];
  }
  return nullptr;
}

}  // namespace

absl::StatusOr<Pointer> Pointer::Parse(std::string_view text) {
  if (text.size() > kPointerBytesMax) return absl::InvalidArgumentError("the JSON pointer is over 4096 bytes long");
  if (!IsUtf8(text)) return absl::InvalidArgumentError("the JSON pointer is not UTF-8");
  if (!text.empty() && text[0] != '/') {
    return absl::InvalidArgumentError("a JSON pointer is empty or begins with '/'");
  }
  Pointer pointer;
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view escaped = text.substr(0, text.find('/'));
    text.remove_prefix(escaped.size());
    if (pointer.tokens_.size() == kPointerTokensMax) {
      return absl::InvalidArgumentError("the JSON pointer is over 64 levels deep");
    }
    if (escaped == "-") {
      return absl::InvalidArgumentError("the JSON pointer has the token '-', which points at nothing that exists");
    }
    if (!Unescape(escaped, &pointer.tokens_.emplace_back())) {
      return absl::InvalidArgumentError("in a JSON pointer '~' is written ~0 and '/' is written ~1");
    }
  }
  return pointer;
}

std::string Pointer::ToString() const {
  std::string text;
  for (const std::string& token : tokens_) AppendPointerToken(token, &text);
  return text;
}

const Value* Get(const Value& root, const Pointer& pointer) {
  const Value* value = &root;
  for (const std::string& token : pointer.tokens()) {
    value = Child(*value, token);
    if (value == nullptr) return nullptr;
  }
  return value;
}

std::optional<size_t> ArrayIndex(std::string_view token) {
  // Nine digits: more elements than any text within the limits can hold.
  if (token.empty() || token.size() > 9 || (token.size() > 1 && token[0] == '0')) return std::nullopt;
  size_t index = 0;
  for (char c : token) {
    if (c < '0' || c > '9') return std::nullopt;
    index = index * 10 + static_cast<size_t>(c - '0');
  }
  return index;
}

void AppendPointerToken(std::string_view token, std::string* pointer) {
  pointer->push_back('/');
  for (char c : token) {
    if (c == '~') {
      pointer->append("~0");
    } else if (c == '/') {
      pointer->append("~1");
    } else {
      pointer->push_back(c);
    }
  }
}

}  // namespace tally::json
