#include "measure/usage.h"

#include <fcntl.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include <sstream>
#include <string>

#include "base/descriptor.h"
#include "base/proc.h"

namespace perflab::measure {
namespace {

constexpr Nanoseconds as_nanoseconds(const timeval& time) {
  return Nanoseconds{time.tv_sec} * kNanosecondsPerSecond + Nanoseconds{time.tv_usec} * 1000;
}

std::optional<std::string_view> read_file(const char* path) {
  return proc::read_again(open_file(AT_FDCWD, path));
}

template <typename T>
bool ask_socket(int fd, int option, T& value) {
  socklen_t size = sizeof(value);
  return getsockopt(fd, SOL_SOCKET, option, &value, &size) == 0 && size == sizeof(value);
}

std::optional<NetworkCounts::Socket> datagram_socket(int fd) {
  int domain = 0;
  int type = 0;
  std::array<std::uint32_t, SK_MEMINFO_VARS> memory{};
  struct stat file {};
  if (!ask_socket(fd, SO_DOMAIN, domain) || !ask_socket(fd, SO_TYPE, type)) return std::nullopt;
  if ((domain != AF_INET && domain != AF_INET6) || type != SOCK_DGRAM) return std::nullopt;
  if (!ask_socket(fd, SO_MEMINFO, memory) || fstat(fd, &file) != 0) return std::nullopt;
  return NetworkCounts::Socket{file.st_ino, memory[SK_MEMINFO_DROPS]};
}

}  // namespace

Usage usage() {
  rusage of_kernel{};
  getrusage(RUSAGE_SELF, &of_kernel);
  Usage usage;
  for (std::size_t i = 0; i < kUsageCounts.size(); ++i)
    usage.counts[i] = static_cast<std::uint64_t>(of_kernel.*kUsageCounts[i].member);
  usage.user_ns = as_nanoseconds(of_kernel.ru_utime);
  usage.system_ns = as_nanoseconds(of_kernel.ru_stime);
  return usage;
}

NetworkCounts network_counts() {
  NetworkCounts counts;
  struct stat file {};
  if (stat("/proc/self/ns/net", &file) == 0) counts.network_namespace = file.st_ino;
  if (const auto text = read_file("/proc/self/net/dev")) {
    if (const auto sent = parse_sent(*text)) {
      counts.sent_bytes = sent->bytes;
      counts.sent_packets = sent->packets;
    }
  }
  if (const auto text = read_file("/proc/self/net/snmp"))
    counts.tcp_retransmissions = parse_tcp_retransmissions(*text);
  proc::Numbers descriptors;
  proc::NumberFolder(AT_FDCWD, "/proc/self/fd").read(descriptors);
  for (const int descriptor : descriptors) {
    if (const auto socket = datagram_socket(descriptor)) counts.sockets.push_back(*socket);
  }
  return counts;
}

std::optional<Sent> parse_sent(std::string_view text) {
  // "  lo: bytes packets errs drop fifo frame compressed multicast bytes packets ...": received, then sent.
  std::istringstream lines{std::string(text)};
  std::optional<Sent> sent;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t colon = line.find(':');
    if (colon == std::string::npos) continue;  // a header line
    std::istringstream fields(line.substr(colon + 1));
    std::array<std::uint64_t, 10> values{};
    for (std::uint64_t& value : values) fields >> value;
    if (!fields) return std::nullopt;
    if (!sent) sent.emplace();
    sent->bytes += values[8];
    sent->packets += values[9];
  }
  return sent;
}

std::optional<std::uint64_t> parse_tcp_retransmissions(std::string_view text) {
  // Two lines that begin with "Tcp:", one with names and one with values.
  std::istringstream lines{std::string(text)};
  std::string names;
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with("Tcp:")) continue;
    if (names.empty()) {
      names = line;
      continue;
    }
    std::istringstream name_of(names);
    std::istringstream value_of(line);
    std::string name;
    std::string value;
    while (name_of >> name && value_of >> value) {
      if (name == "RetransSegs") return std::stoull(value);
    }
  }
  return std::nullopt;
}

}  // namespace perflab::measure
