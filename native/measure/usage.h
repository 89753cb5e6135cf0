// What the kernel counts of this process and of its network: getrusage(2), what its sockets dropped, what the
// interfaces of its network namespace sent.
//
// Not for the measured path: reading /proc allocates and calls the kernel.
#pragma once

#include <sys/resource.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "base/time.h"

namespace perflab::measure {

// A count of getrusage(2) that Linux keeps, under its name in the records. The others (ru_nsignals, ru_nswap,
// ru_msgsnd, ru_msgrcv, ru_ixrss, ru_idrss, ru_isrss) are always 0 there, which is no measurement.
struct UsageCount {
  const char* name;
  long rusage::* member;
};
inline constexpr std::array kUsageCounts{
    UsageCount{"minor_faults", &rusage::ru_minflt},
    UsageCount{"major_faults", &rusage::ru_majflt},
    UsageCount{"block_inputs", &rusage::ru_inblock},  // in blocks of 512 bytes, as are outputs
    UsageCount{"block_outputs", &rusage::ru_oublock},
    UsageCount{"voluntary_switches", &rusage::ru_nvcsw},
    UsageCount{"involuntary_switches", &rusage::ru_nivcsw},
};

// Since the process began, all threads, ended ones too.
struct Usage {
  std::array<std::uint64_t, kUsageCounts.size()> counts{};  // as kUsageCounts
  Nanoseconds user_ns = 0;
  Nanoseconds system_ns = 0;
};
Usage usage();

// Since the namespace or the socket began; null where the kernel does not tell.
struct NetworkCounts {
  struct Socket {
    std::uint64_t inode = 0;
    std::uint64_t drops = 0;
  };
  std::uint64_t network_namespace = 0;  // its inode; all processes in it see the same interfaces
  std::optional<std::uint64_t> sent_bytes;  // over all interfaces, the loopback too
  std::optional<std::uint64_t> sent_packets;
  std::optional<std::uint64_t> tcp_retransmissions;  // segments
  std::vector<Socket> sockets;  // datagram sockets of the Internet that this process has open
};
NetworkCounts network_counts();

struct Sent {
  std::uint64_t bytes = 0;
  std::uint64_t packets = 0;
};
// Of /proc/net/dev, all interfaces together.
std::optional<Sent> parse_sent(std::string_view text);
// RetransSegs of /proc/net/snmp.
std::optional<std::uint64_t> parse_tcp_retransmissions(std::string_view text);

}  // namespace perflab::measure
