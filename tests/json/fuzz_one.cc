#include "tests/json/fuzz_one.h"

#include <cstdio>
#include <cstdlib>

#include "lib/json/canonical.h"
#include "lib/json/parse.h"
#include "lib/json/pointer.h"
#include "lib/json/projection.h"

namespace tally::json {
namespace {

void Promise(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace

bool FuzzOne(std::string_view bytes) {
  const auto pointer = Pointer::Parse(bytes);
  if (pointer.ok()) Promise(pointer->ToString() == bytes, "a pointer is written as it was read");

  const auto value = Parse(bytes);
  const auto lenient = Parse(bytes, {.case_variants = CaseVariants::kAdmit});
  Promise(!value.ok() || (lenient.ok() && *lenient == *value), "admission only ever refuses more");
  if (!value.ok()) return false;

  const std::string canonical = Canonical(*value);
  const auto again = Parse(canonical, {.bytes_max = canonical.size()});
  Promise(again.ok() && *again == *value, "canonical bytes are admitted as the same value");
  Promise(Canonical(*again) == canonical, "the canonical form of canonical bytes is those bytes");
  Promise(Projection::Only({Pointer()})->Canonical(*value) == canonical, "only the whole is the whole");
  Promise(Projection::Without({})->Canonical(*value) == canonical, "without nothing is the whole");
  const auto doubles = CanonicalOfDoubles(*value);
  if (doubles.ok()) {
    Promise(*CanonicalOfDoubles(*Parse(*doubles, {.bytes_max = doubles->size()})) == *doubles,
            "RFC 8785 bytes are their own canonical form");
  }
  return true;
}

}  // namespace tally::json

// So that libFuzzer can be linked in place of the tests' main.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, size_t size) {
  tally::json::FuzzOne(std::string_view(reinterpret_cast<const char*>(data), size));
  return 0;
}
