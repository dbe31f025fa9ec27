#pragma once

#include <cstdio>
#include <cstdlib>

namespace tally::fuzz {

inline void Promise(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "broken promise: %s\n", promise);
  std::abort();
}

}  // namespace tally::fuzz
