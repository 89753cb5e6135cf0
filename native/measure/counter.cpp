#include "measure/counter.h"

#include <linux/perf_event.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace perflab::measure {
namespace {

Descriptor open_counter(ProcessCounter::Event event, bool with_kernel) noexcept {
  perf_event_attr attributes{};
  attributes.size = sizeof attributes;
  attributes.type = event.type;
  attributes.config = event.config;
  attributes.inherit = 1;
  attributes.exclude_kernel = with_kernel ? 0 : 1;
  attributes.exclude_hv = 1;
  attributes.read_format = PERF_FORMAT_TOTAL_TIME_ENABLED | PERF_FORMAT_TOTAL_TIME_RUNNING;
  return Descriptor(
      static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, PERF_FLAG_FD_CLOEXEC)));
}

std::string reason_of(int error) {
  switch (error) {
    case ENOENT:
    case EOPNOTSUPP:
    case ENODEV:
      return "this machine has no such counter, or its hypervisor hides it from guests";
    case EACCES:
    case EPERM:
      return "not allowed: set kernel.perf_event_paranoid to 2 or less, or grant CAP_PERFMON";
    case ENOSYS:
      return "this kernel lacks perf_event_open; use one built with CONFIG_PERF_EVENTS";
    default:
      return "perf_event_open: " + reason_of(error);
  }
}

}  // namespace

const ProcessCounter::Event ProcessCounter::kCycles{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CPU_CYCLES};
const ProcessCounter::Event ProcessCounter::kInstructions{PERF_TYPE_HARDWARE, PERF_COUNT_HW_INSTRUCTIONS};
const ProcessCounter::Event ProcessCounter::kCacheMisses{PERF_TYPE_HARDWARE, PERF_COUNT_HW_CACHE_MISSES};

ProcessCounter::ProcessCounter(Event event) : file_(open_counter(event, true)) {
  if (!file_.open() && (errno == EACCES || errno == EPERM)) {
    with_kernel_ = false;
    file_ = open_counter(event, false);
  }
  if (!file_.open()) reason_ = reason_of(errno);
}

std::optional<ProcessCounter::Count> ProcessCounter::read() const noexcept {
  struct {  // read_format
    std::uint64_t value = 0;
    std::uint64_t enabled = 0;
    std::uint64_t running = 0;
  } now;
  if (::read(file_.number(), &now, sizeof now) != static_cast<ssize_t>(sizeof now)) return std::nullopt;
  return Count{now.value, static_cast<Nanoseconds>(now.enabled), static_cast<Nanoseconds>(now.running)};
}

}  // namespace perflab::measure
