// Kernel counters of this process and its network: getrusage(2), drops of its sockets, and traffic of the
// interfaces in its network namespace.
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

// A count of getrusage(2) that Linux maintains, and its name in the records. Linux always reports 0 for the
// others (ru_nsignals, ru_nswap, ru_msgsnd, ru_msgrcv, ru_ixrss, ru_idrss, ru_isrss), so they are left out.
struct UsageCount {
  const char* name;
  long rusage::* member;
};
inline constexpr std::array kUsageCounts{
    UsageCount{"minor_faults", &rusage::ru_minflt},
    UsageCount{"major_faults", &rusage::ru_majflt},
    UsageCount{"block_inputs", &rusage::ru_inblock},  // in blocks of 512 bytes, like outputs
    UsageCount{"block_outputs", &rusage::ru_oublock},
    UsageCount{"voluntary_switches", &rusage::ru_nvcsw},
    UsageCount{"involuntary_switches", &rusage::ru_nivcsw},
};

// Since the process started, all threads including ended ones.
struct Usage {
  std::array<std::uint64_t, kUsageCounts.size()> counts{};  // in the order of kUsageCounts
  Nanoseconds user_ns = 0;
  Nanoseconds system_ns = 0;
};
Usage usage();

// Since the namespace or socket was created; null if the kernel does not report it.
struct NetworkCounts {
  struct Socket {
    std::uint64_t inode = 0;
    std::uint64_t drops = 0;
  };
  std::uint64_t network_namespace = 0;  // its inode; all processes in one namespace see the same interfaces
  std::optional<std::uint64_t> sent_bytes;  // over all interfaces, including the loopback
  std::optional<std::uint64_t> sent_packets;
  std::optional<std::uint64_t> tcp_retransmissions;  // segments
  std::vector<Socket> sockets;  // open Internet datagram sockets of this process
};
NetworkCounts network_counts();

struct Sent {
  std::uint64_t bytes = 0;
  std::uint64_t packets = 0;
};
// From /proc/net/dev, the sum of all interfaces.
std::optional<Sent> parse_sent(std::string_view text);
// RetransSegs of /proc/net/snmp.
std::optional<std::uint64_t> parse_tcp_retransmissions(std::string_view text);

}  // namespace perflab::measure
