#include "lib/outbound/address.h"

#include <netinet/in.h>

#include <cstring>

namespace tally::outbound {
namespace {

struct V4Block {
  uint32_t first;
  int bits;
};

constexpr V4Block kV4NotPublic[] = {
    {0x00000000, 8},   // 0.0.0.0/8        this network; connects to the machine itself
    {0x0A000000, 8},   // 10.0.0.0/8       private
    {0x64400000, 10},  // 100.64.0.0/10    shared by carriers (CGNAT)
    {0x7F000000, 8},   // 127.0.0.0/8      loopback
    {0xA9FE0000, 16},  // 169.254.0.0/16   link-local; clouds' metadata services
    {0xAC100000, 12},  // 172.16.0.0/12    private
    {0xC0000000, 24},  // 192.0.0.0/24     IETF protocol assignments
    {0xC0000200, 24},  // 192.0.2.0/24     documentation
    {0xC0586300, 24},  // 192.88.99.0/24   6to4 relays, withdrawn
    {0xC0A80000, 16},  // 192.168.0.0/16   private
    {0xC6120000, 15},  // 198.18.0.0/15    benchmarks
    {0xC6336400, 24},  // 198.51.100.0/24  documentation
    {0xCB007100, 24},  // 203.0.113.0/24   documentation
    {0xE0000000, 4},   // 224.0.0.0/4      multicast
    {0xF0000000, 4},   // 240.0.0.0/4      reserved, broadcast
};

struct V6Block {
  std::array<uint8_t, 4> first;
  int bits;  // at most 32
};

constexpr V6Block kV6Global = {{0x20, 0x00, 0x00, 0x00}, 3};

constexpr V6Block kV6NotPublic[] = {
    {{0x20, 0x01, 0x00, 0x00}, 23},  // 2001::/23      IETF protocol assignments, Teredo among them
    {{0x20, 0x01, 0x0D, 0xB8}, 32},  // 2001:db8::/32  documentation
    {{0x20, 0x02, 0x00, 0x00}, 16},  // 2002::/16      6to4
    {{0x3F, 0xFF, 0x00, 0x00}, 20},  // 3fff::/20      documentation
};

bool In(uint32_t address, uint32_t first, int bits) { return ((address ^ first) >> (32 - bits)) == 0; }

uint32_t Word(const uint8_t* bytes) {
  return uint32_t{bytes[0]} << 24 | uint32_t{bytes[1]} << 16 | uint32_t{bytes[2]} << 8 | uint32_t{bytes[3]};
}

}  // namespace

bool IsPublicV4(uint32_t address) {
  for (const V4Block& block : kV4NotPublic) {
    if (In(address, block.first, block.bits)) return false;
  }
  return true;
}

bool IsPublicV6(const std::array<uint8_t, 16>& address) {
  const uint32_t head = Word(address.data());
  if (!In(head, Word(kV6Global.first.data()), kV6Global.bits)) return false;
  for (const V6Block& block : kV6NotPublic) {
    if (In(head, Word(block.first.data()), block.bits)) return false;
  }
  return true;
}

bool IsPublic(const sockaddr& address, socklen_t length) {
  if (address.sa_family == AF_INET && length >= sizeof(sockaddr_in)) {
    sockaddr_in v4;
    std::memcpy(&v4, &address, sizeof(v4));
    return IsPublicV4(ntohl(v4.sin_addr.s_addr));
  }
  if (address.sa_family == AF_INET6 && length >= sizeof(sockaddr_in6)) {
    sockaddr_in6 v6;
    std::memcpy(&v6, &address, sizeof(v6));
    std::array<uint8_t, 16> bytes;
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return IsPublicV6(bytes);
  }
  return false;
}

}  // namespace tally::outbound
