#include "tracing/scheduler/source.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <fstream>

namespace perflab::tracing {
namespace {

constexpr const char* kOnline = "/sys/devices/system/cpu/online";
constexpr ino_t kInitialPidNamespace = 0xEFFFFFFC;  // PROC_PID_INIT_INO

// "0-3,6" as in sysfs.
std::vector<unsigned> online_cpus() {
  const std::string text = first_line(kOnline);
  std::vector<unsigned> cpus;
  const char* const end = text.data() + text.size();
  for (const char* at = text.data(); at < end; ++at) {
    unsigned first = 0;
    auto [next, error] = std::from_chars(at, end, first);
    unsigned last = first;
    if (error == std::errc() && next < end && *next == '-') {
      const auto range = std::from_chars(next + 1, end, last);
      next = range.ptr, error = range.ec;
    }
    if (error != std::errc() || (next < end && *next != ','))
      throw Unsupported(std::string(kOnline) + " is not a list of CPUs: \"" + text + '"');
    for (unsigned cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = next;
  }
  if (cpus.empty()) throw Unsupported(std::string(kOnline) + " names no CPU: mount sysfs");
  return cpus;
}

}  // namespace

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::vector<unsigned> cpus_to_record(const SourceSettings& settings) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (settings.buffer_bytes < page || !std::has_single_bit(settings.buffer_bytes / page) ||
      settings.buffer_bytes % page != 0)
    throw BadInput("a buffer of " + std::to_string(settings.buffer_bytes) +
                   " bytes: must be a power of two times the page size, " + std::to_string(page));
  struct stat own {};
  if (stat("/proc/self/ns/pid", &own) == 0 && own.st_ino != kInitialPidNamespace)
    throw Unsupported(
        "this is a separate PID name space, in which threads have other numbers than in the kernel's "
        "events: "
        "record on the host, or start the container with --pid=host");
  std::vector<unsigned> online = online_cpus();
  if (settings.cpus.empty()) return online;
  std::vector<unsigned> cpus = settings.cpus;
  std::ranges::sort(cpus);
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  for (const unsigned cpu : cpus) {
    if (!std::ranges::binary_search(online, cpu))
      throw BadInput("CPU " + std::to_string(cpu) + " is not online: " + first_line(kOnline) + " are");
  }
  return cpus;
}

}  // namespace perflab::tracing
