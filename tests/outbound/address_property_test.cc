#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>
#include <sys/un.h>

#include <cstring>

#include "lib/outbound/address.h"

namespace tally::outbound {
namespace {

bool V4(const char* text) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  EXPECT_EQ(inet_pton(AF_INET, text, &address.sin_addr), 1) << text;
  return IsPublic(reinterpret_cast<const sockaddr&>(address), sizeof(address));
}

bool V6(const std::string& text) {
  sockaddr_in6 address = {};
  address.sin6_family = AF_INET6;
  EXPECT_EQ(inet_pton(AF_INET6, text.c_str(), &address.sin6_addr), 1) << text;
  return IsPublic(reinterpret_cast<const sockaddr&>(address), sizeof(address));
}

TEST(Address, TheFirstAndTheLastOfEachBlockAreRefusedAndTheirNeighboursAreNot) {
  struct Row {
    const char *before, *first, *last, *after;  // before, after: null where another block touches
  };
  constexpr Row kRows[] = {
      {nullptr, "0.0.0.0", "0.255.255.255", "1.0.0.0"},
      {"9.255.255.255", "10.0.0.0", "10.255.255.255", "11.0.0.0"},
      {"100.63.255.255", "100.64.0.0", "100.127.255.255", "100.128.0.0"},
      {"126.255.255.255", "127.0.0.0", "127.255.255.255", "128.0.0.0"},
      {"169.253.255.255", "169.254.0.0", "169.254.255.255", "169.255.0.0"},
      {"172.15.255.255", "172.16.0.0", "172.31.255.255", "172.32.0.0"},
      {"191.255.255.255", "192.0.0.0", "192.0.0.255", "192.0.1.0"},
      {"192.0.1.255", "192.0.2.0", "192.0.2.255", "192.0.3.0"},
      {"192.88.98.255", "192.88.99.0", "192.88.99.255", "192.88.100.0"},
      {"192.167.255.255", "192.168.0.0", "192.168.255.255", "192.169.0.0"},
      {"198.17.255.255", "198.18.0.0", "198.19.255.255", "198.20.0.0"},
      {"198.51.99.255", "198.51.100.0", "198.51.100.255", "198.51.101.0"},
      {"203.0.112.255", "203.0.113.0", "203.0.113.255", "203.0.114.0"},
      {"223.255.255.255", "224.0.0.0", "255.255.255.255", nullptr},
  };
  for (const Row& row : kRows) {
    EXPECT_FALSE(V4(row.first)) << row.first;
    EXPECT_FALSE(V4(row.last)) << row.last;
    EXPECT_TRUE(row.before == nullptr || V4(row.before)) << row.before;
    EXPECT_TRUE(row.after == nullptr || V4(row.after)) << row.after;
  }
}

TEST(Address, Ipv6IsPublicOnlyAsGlobalUnicastThatCarriesNoIpv4) {
  for (const char* refused : {"::",
                              "::1",
                              "::ffff:127.0.0.1",
                              "::ffff:8.8.8.8",
                              "::8.8.8.8",
                              "64:ff9b::8.8.8.8",
                              "64:ff9b::10.0.0.1",
                              "64:ff9b:1::1",
                              "100::1",
                              "1fff:ffff::1",
                              "2001::1",
                              "2001:0:a00:1::1",
                              "2001:1ff:ffff::1",
                              "2001:db8::1",
                              "2001:db8:ffff:ffff::1",
                              "2002::1",
                              "2002:7f00:1::1",
                              "2002:ffff::1",
                              "3fff::1",
                              "3fff:fff:ffff::1",
                              "4000::1",
                              "5f00::1",
                              "fbff::1",
                              "fc00::1",
                              "fdff::1",
                              "fe80::1",
                              "febf::1",
                              "fec0::1",
                              "ff02::1",
                              "ffff::1"}) {
    EXPECT_FALSE(V6(refused)) << refused;
  }
  for (const char* taken : {"2000::1", "2001:200::1", "2001:db7:ffff::1", "2001:db9::1", "2001:4860:4860::8888",
                            "2003::1", "2606:4700::1111", "2a00::1", "3ffe::1", "3fff:1000::1"}) {
    EXPECT_TRUE(V6(taken)) << taken;
  }
}

TEST(Address, AnotherFamilyOrAShortAddressIsRefused) {
  sockaddr_un local = {};
  local.sun_family = AF_UNIX;
  EXPECT_FALSE(IsPublic(reinterpret_cast<const sockaddr&>(local), sizeof(local)));
  sockaddr_in v4 = {};
  v4.sin_family = AF_INET;
  v4.sin_addr.s_addr = htonl(0x08080808);
  EXPECT_TRUE(IsPublic(reinterpret_cast<const sockaddr&>(v4), sizeof(v4)));
  EXPECT_FALSE(IsPublic(reinterpret_cast<const sockaddr&>(v4), sizeof(v4) - 1));
}

RC_GTEST_PROP(Address, IsNeverPublicWhenIpv6CarriesIpv4, (uint32_t v4)) {
  char text[INET_ADDRSTRLEN];
  const uint32_t network = htonl(v4);
  inet_ntop(AF_INET, &network, text, sizeof(text));
  for (const char* prefix : {"::ffff:", "::", "64:ff9b::", "::ffff:0:"}) {
    RC_ASSERT(!V6(std::string(prefix) + text));
  }
  std::array<uint8_t, 16> six_to_four = {0x20, 0x02};
  std::memcpy(six_to_four.data() + 2, &network, 4);
  RC_ASSERT(!IsPublicV6(six_to_four));
}

// The same rule said another way: by text, octet by octet.
RC_GTEST_PROP(Address, Ipv4AgreesWithARuleOfOctets, (uint8_t a, uint8_t b, uint8_t c, uint8_t d)) {
  const bool special = a == 0 || a == 10 || a == 127 || a >= 224 || (a == 100 && b / 64 == 1) ||
                       (a == 169 && b == 254) || (a == 172 && b / 16 == 1) || (a == 192 && b == 168) ||
                       (a == 192 && b == 0 && (c == 0 || c == 2)) || (a == 192 && b == 88 && c == 99) ||
                       (a == 198 && b / 2 == 9) || (a == 198 && b == 51 && c == 100) ||
                       (a == 203 && b == 0 && c == 113);
  RC_ASSERT(IsPublicV4(uint32_t{a} << 24 | uint32_t{b} << 16 | uint32_t{c} << 8 | d) == !special);
}

}  // namespace
}  // namespace tally::outbound
