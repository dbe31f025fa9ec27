#ifndef TALLY_SERVER_LEDGER_ARRAYS_H_
#define TALLY_SERVER_LEDGER_ARRAYS_H_

#include <array>
#include <cstdint>
#include <optional>
#include <pqxx/pqxx>
#include <string>
#include <string_view>

// One-dimensional PostgreSQL arrays in binary wire format (src/backend/utils/adt/arrayfuncs.c, array_send): a column of
// a batch, bound to `$n::bigint[]` and unnested there. A third cheaper than text, and nothing to quote.
namespace tally::ledger {

class BinaryArray {
 public:
  explicit BinaryArray(uint32_t element_oid) {
    Put32(1);  // dimensions
    Put32(1);  // may hold nulls
    Put32(element_oid);
    Put32(0);  // length, patched by Param()
    Put32(1);  // lower bound
  }

  void AddNull() {
    Put32(0xffffffff);
    ++count_;
  }

  void AddBytes(std::string_view bytes) {
    Put32(static_cast<uint32_t>(bytes.size()));
    data_.append(bytes);
    ++count_;
  }

  size_t size() const { return count_; }

  // The parameter. The array stays as it is.
  pqxx::binarystring Param() {
    for (int i = 0; i < 4; ++i) data_[12 + i] = static_cast<char>(count_ >> (24 - 8 * i));
    return pqxx::binarystring(data_.data(), data_.size());
  }

 protected:
  void Put32(uint32_t value) {
    for (int shift = 24; shift >= 0; shift -= 8) data_.push_back(static_cast<char>(value >> shift));
  }
  void PutInt(uint64_t value, int bytes) {
    Put32(static_cast<uint32_t>(bytes));
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) data_.push_back(static_cast<char>(value >> shift));
    ++count_;
  }

 private:
  std::string data_;
  uint32_t count_ = 0;
};

// Type oids are fixed (src/include/catalog/pg_type.dat).
class Int64Array : public BinaryArray {
 public:
  Int64Array() : BinaryArray(20) {}
  void Add(int64_t value) { PutInt(static_cast<uint64_t>(value), 8); }
  void Add(std::optional<int64_t> value) { value ? Add(*value) : AddNull(); }
};

class Int32Array : public BinaryArray {
 public:
  Int32Array() : BinaryArray(23) {}
  void Add(int32_t value) { PutInt(static_cast<uint32_t>(value), 4); }
};

class Int16Array : public BinaryArray {
 public:
  Int16Array() : BinaryArray(21) {}
  void Add(int16_t value) { PutInt(static_cast<uint16_t>(value), 2); }
};

class BoolArray : public BinaryArray {
 public:
  BoolArray() : BinaryArray(16) {}
  void Add(bool value) { AddBytes(std::string_view(value ? "\1" : "\0", 1)); }
};

class UuidArray : public BinaryArray {
 public:
  UuidArray() : BinaryArray(2950) {}
  void Add(const std::array<uint8_t, 16>& id) { AddBytes({reinterpret_cast<const char*>(id.data()), id.size()}); }
  void Add(const std::optional<std::array<uint8_t, 16>>& id) { id ? Add(*id) : AddNull(); }
};

class ByteaArray : public BinaryArray {
 public:
  ByteaArray() : BinaryArray(17) {}
  void Add(std::string_view bytes) { AddBytes(bytes); }
  void Add(const std::array<uint8_t, 32>& hash) { AddBytes({reinterpret_cast<const char*>(hash.data()), hash.size()}); }
  // Null where absent.
  void Add(const std::optional<std::array<uint8_t, 32>>& hash) { hash ? Add(*hash) : AddNull(); }
  void AddOrNull(std::string_view bytes) { bytes.empty() ? AddNull() : AddBytes(bytes); }
};

class TextArray : public BinaryArray {
 public:
  TextArray() : BinaryArray(25) {}
  void Add(std::string_view text) { AddBytes(text); }
  void AddOrNull(std::string_view text) { text.empty() ? AddNull() : AddBytes(text); }
};

}  // namespace tally::ledger

#endif  // TALLY_SERVER_LEDGER_ARRAYS_H_
