#include "lib/keys/secret.h"

#include <sodium.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <cstring>
#include <new>
#include <utility>

#include "lib/keys/hash.h"

namespace tally::keys {
namespace {

void* Allocate(size_t size) {
  EnsureSodium();
  void* data = sodium_malloc(size);
  if (data == nullptr) throw std::bad_alloc();
  return data;
}

}  // namespace

Secret Secret::Random(size_t size) {
  if (size == 0) return {};
  void* data = Allocate(size);
  randombytes_buf(data, size);
  sodium_mprotect_readonly(data);
  return {data, size};
}

Secret Secret::Copy(std::string_view bytes) {
  if (bytes.empty()) return {};
  void* data = Allocate(bytes.size());
  std::memcpy(data, bytes.data(), bytes.size());
  sodium_mprotect_readonly(data);
  return {data, bytes.size()};
}

Secret Secret::Take(std::string& bytes) {
  Secret out = Copy(bytes);
  sodium_memzero(bytes.data(), bytes.size());
  bytes.clear();
  return out;
}

Secret::Secret(Secret&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

Secret& Secret::operator=(Secret&& other) noexcept {
  if (this != &other) {
    sodium_free(data_);
    data_ = std::exchange(other.data_, nullptr);
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

Secret::~Secret() { sodium_free(data_); }  // wipes; null is fine

bool Secret::Equals(std::string_view bytes) const { return ConstantTimeEqual(Expose(), bytes); }

bool DisableCoreDumps() {
  const rlimit none{0, 0};
  return setrlimit(RLIMIT_CORE, &none) == 0 && prctl(PR_SET_DUMPABLE, 0) == 0;
}

}  // namespace tally::keys
