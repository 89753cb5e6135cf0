#include "measure/usage.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "base/descriptor.h"

namespace perflab::measure {
namespace {

std::uint64_t count_of(std::string_view name, const Usage& usage) {
  for (std::size_t i = 0; i < kUsageCounts.size(); ++i) {
    if (kUsageCounts[i].name == name) return usage.counts[i];
  }
  ADD_FAILURE() << "no count " << name;
  return 0;
}

TEST(Usage, TouchingNewPagesIsSoManyPageFaults) {
  constexpr std::size_t kPages = 64;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* const memory =
      mmap(nullptr, kPages * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  madvise(memory, kPages * page, MADV_NOHUGEPAGE);
  const std::uint64_t before = count_of("minor_faults", usage());
  for (std::size_t i = 0; i < kPages; ++i) static_cast<volatile char*>(memory)[i * page] = 1;
  EXPECT_GE(count_of("minor_faults", usage()) - before, kPages);
  munmap(memory, kPages * page);
}

TEST(Usage, SleepingIsAVoluntarySwitch) {
  const std::uint64_t before = count_of("voluntary_switches", usage());
  usleep(1000);
  EXPECT_GE(count_of("voluntary_switches", usage()), before + 1);
}

TEST(NetworkCounts, WhatASocketHasNoRoomForIsDroppedAndWasSent) {
  const Descriptor receiver(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const Descriptor sender(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ASSERT_TRUE(receiver.open() && sender.open());
  const int least = 1;
  setsockopt(receiver.number(), SOL_SOCKET, SO_RCVBUF, &least, sizeof(least));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  ASSERT_EQ(bind(receiver.number(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  socklen_t size = sizeof(address);
  getsockname(receiver.number(), reinterpret_cast<sockaddr*>(&address), &size);

  constexpr std::size_t kDatagrams = 200;
  const std::array<char, 1000> datagram{};
  const NetworkCounts before = network_counts();
  for (std::size_t i = 0; i < kDatagrams; ++i) {
    sendto(sender.number(), datagram.data(), datagram.size(), 0, reinterpret_cast<sockaddr*>(&address), size);
  }
  std::array<char, 1000> taken{};
  std::size_t received = 0;
  while (recv(receiver.number(), taken.data(), taken.size(), MSG_DONTWAIT) > 0) ++received;
  const NetworkCounts after = network_counts();

  std::uint64_t dropped = 0;
  for (const NetworkCounts::Socket& one : after.sockets) {
    const auto known = std::ranges::find(before.sockets, one.inode, &NetworkCounts::Socket::inode);
    ASSERT_NE(known, before.sockets.end());
    dropped += one.drops - known->drops;
  }
  EXPECT_EQ(dropped, kDatagrams - received);
  EXPECT_LT(received, kDatagrams);
  ASSERT_TRUE(after.sent_bytes && after.sent_packets);
  EXPECT_GE(*after.sent_bytes - *before.sent_bytes, kDatagrams * (datagram.size() + 28));  // headers of IP and UDP
  EXPECT_GE(*after.sent_packets - *before.sent_packets, kDatagrams);
  EXPECT_NE(after.network_namespace, 0u);
}

TEST(NetworkCounts, InterfacesAreAddedUp) {
  const auto sent = parse_sent(
      "Inter-|   Receive                                                |  Transmit\n"
      " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls "
      "carrier compressed\n"
      "    lo:     100       1    0    0    0     0          0         0      200       2    0    0    0     0       "
      "0          0\n"
      "  eth0:  123456      11    0    0    0     0          0         0       30       3    0    0    0     0       "
      "0          0\n");
  ASSERT_TRUE(sent);
  EXPECT_EQ(sent->bytes, 230u);
  EXPECT_EQ(sent->packets, 5u);
  EXPECT_FALSE(parse_sent("no interfaces\n"));
  EXPECT_FALSE(parse_sent("lo: 1 2 3\n"));
}

TEST(NetworkCounts, RetransmissionsAreFoundByTheirName) {
  EXPECT_EQ(parse_tcp_retransmissions("Ip: A B\nIp: 1 2\nTcp: MaxConn OutSegs RetransSegs\nTcp: -1 9 4\n"), 4u);
  EXPECT_FALSE(parse_tcp_retransmissions("Tcp: OutSegs\nTcp: 9\n"));
}

}  // namespace
}  // namespace perflab::measure
