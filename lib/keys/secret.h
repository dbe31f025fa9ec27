// Bytes that must not leak: kept in guarded, locked memory, wiped when done with, and impossible to copy or print
// without saying so.
#pragma once

#include <cstddef>
#include <ostream>
#include <string>
#include <string_view>

namespace tally::keys {

class Secret {
 public:
  Secret() = default;  // empty
  static Secret Random(size_t size);
  static Secret Copy(std::string_view bytes);
  // Copies, then wipes the source in place.
  static Secret Take(std::string& bytes);

  Secret(Secret&& other) noexcept;
  Secret& operator=(Secret&& other) noexcept;
  Secret(const Secret&) = delete;
  Secret& operator=(const Secret&) = delete;
  ~Secret();

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }

  // The bytes themselves, read-only, as long as this lives. Whoever calls this answers for where they go.
  std::string_view Expose() const { return {static_cast<const char*>(data_), size_}; }

  // In constant time; the lengths are not secret.
  bool Equals(std::string_view bytes) const;
  bool operator==(const Secret& other) const { return Equals(other.Expose()); }

 private:
  Secret(void* data, size_t size) : data_(data), size_(size) {}

  void* data_ = nullptr;
  size_t size_ = 0;
};

std::ostream& operator<<(std::ostream&, const Secret&) = delete;

// A crash must not write keys to disk: no core dumps, and no other process of this user may attach or read our memory.
// Call it first thing in main. False if the kernel refused; the caller should say so and stop.
bool DisableCoreDumps();

}  // namespace tally::keys
