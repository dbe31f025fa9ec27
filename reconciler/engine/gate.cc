#include "reconciler/engine/gate.h"

#include <algorithm>
#include <cmath>

namespace tally::reconciler {

TokenBucket::TokenBucket(double per_second)
    : per_ms_(per_second / 1000), size_(std::max(1.0, per_second)), held_(size_) {}

void TokenBucket::Fill(milliseconds now) {
  if (now <= filled_) return;
  held_ = std::min(size_, held_ + static_cast<double>((now - filled_).count()) * per_ms_);
  filled_ = now;
}

bool TokenBucket::Take(milliseconds now) {
  Fill(now);
  // A hair below one is one: sums of fractions do not come out even.
  if (held_ < 1 - 1e-9) return false;
  held_ = std::max(0.0, held_ - 1);
  return true;
}

milliseconds TokenBucket::NextAt(milliseconds now) {
  Fill(now);
  if (held_ >= 1 - 1e-9) return now;
  return now + milliseconds(static_cast<int64_t>(std::ceil((1 - held_) / per_ms_)));
}

bool ProviderGate::Enter(milliseconds now) {
  if (inside_ >= concurrency_ || !bucket_.Take(now)) return false;
  ++inside_;
  return true;
}

std::optional<milliseconds> ProviderGate::NextAt(milliseconds now) {
  if (inside_ >= concurrency_) return std::nullopt;
  return bucket_.NextAt(now);
}

}  // namespace tally::reconciler
