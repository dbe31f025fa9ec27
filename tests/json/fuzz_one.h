// One round of a fuzzer over admission and canonical form, for any bytes at all.
#ifndef TALLY_TESTS_JSON_FUZZ_ONE_H_
#define TALLY_TESTS_JSON_FUZZ_ONE_H_

#include <string_view>

namespace tally::json {

// Ends the program if a promise of lib/json does not hold for `bytes`; otherwise tells whether they were admitted.
bool FuzzOne(std::string_view bytes);

}  // namespace tally::json

#endif  // TALLY_TESTS_JSON_FUZZ_ONE_H_
