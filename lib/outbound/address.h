// Pure: which addresses are of the public internet.
#pragma once

#include <sys/socket.h>

#include <array>
#include <cstdint>

namespace tally::outbound {

// IANA's special-purpose registries (RFC 6890) decide: an address that is not globally reachable unicast is not public.
bool IsPublicV4(uint32_t address);  // host byte order

// An allow-list: 2000::/3 without what is set aside in it. So IPv4 inside IPv6 (mapped, NAT64, 6to4, Teredo) is not
// public, whatever address it carries: what a translator makes of it is not known here.
bool IsPublicV6(const std::array<uint8_t, 16>& address);

// AF_INET and AF_INET6; any other family is not public.
bool IsPublic(const sockaddr& address, socklen_t length);

}  // namespace tally::outbound
