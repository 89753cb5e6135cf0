#include "measure/resources.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/proc.h"

namespace perflab::measure {
namespace {

// The files of this many threads stay open between samples: re-reading costs half as much as opening. A
// process may have 1,024 open files by default, and the middleware needs some of them.
constexpr std::size_t kHeldThreads = 64;

// A file of this process or one of its threads.
Descriptor own_file(const std::string& path) { return open_file(AT_FDCWD, ("/proc/self/" + path).c_str()); }

std::string folder_of(pid_t tid) { return "task/" + std::to_string(tid) + "/"; }

struct ThreadFiles {
  explicit ThreadFiles(pid_t tid)
      : stat(own_file(folder_of(tid) + "stat")),
        schedstat(own_file(folder_of(tid) + "schedstat")),
        status(own_file(folder_of(tid) + "status")) {}

  [[nodiscard]] bool are_open() const noexcept { return stat.open() && schedstat.open() && status.open(); }

  Descriptor stat;
  Descriptor schedstat;
  Descriptor status;
};

// The CPU-time clock of a thread of this process: the kernel's encoding, clockid(7) CPUCLOCK_PERTHREAD |
// CPUCLOCK_SCHED.
clockid_t thread_clock(pid_t tid) { return static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6u); }

// Everything except CPU time; false if the thread has ended.
bool read_thread(const ThreadFiles& files, ThreadSample& thread) {
  const auto stat = proc::read_again(files.stat);
  const auto known = stat ? proc::parse_stat(*stat) : std::nullopt;
  if (!known) return false;
  thread.name = known->name;
  thread.cpu = known->cpu;
  const auto schedstat = proc::read_again(files.schedstat);
  const auto usage = schedstat ? proc::parse_schedstat(*schedstat) : std::nullopt;
  thread.run_delay_ns = usage ? std::optional(usage->run_delay_ns) : std::nullopt;
  const auto status = proc::read_again(files.status);
  const auto switches = status ? proc::parse_switches(*status) : std::nullopt;
  thread.voluntary_switches = thread.involuntary_switches = std::nullopt;
  if (switches) {
    thread.voluntary_switches = static_cast<std::uint64_t>(switches->voluntary);
    thread.involuntary_switches = static_cast<std::uint64_t>(switches->involuntary);
  }
  return true;
}

// Removes from `sample` all threads that have ended.
template <typename Sample>
auto each_thread(Sample sample) {
  std::vector<typename decltype(sample(pid_t{}))::value_type> threads;
  proc::Numbers tids;
  proc::NumberFolder(AT_FDCWD, "/proc/self/task").read(tids);
  for (const pid_t tid : tids) {
    if (auto thread = sample(tid)) threads.push_back(std::move(*thread));
  }
  return threads;
}

std::optional<CpuTimes::Thread> cpu_time_of_thread(pid_t tid) {
  CpuTimes::Thread thread{tid, {}, read_clock(thread_clock(tid))};
  const auto comm = proc::read_again(own_file(folder_of(tid) + "comm"));
  if (thread.cpu_ns == kUnknownTime || !comm || comm->empty()) return std::nullopt;
  thread.name = comm->substr(0, comm->find('\n'));
  return thread;
}

}  // namespace

CpuTimes cpu_times(const Clock& clock) {
  CpuTimes times;
  times.at_ns = clock.now();
  times.cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  times.threads = each_thread(cpu_time_of_thread);
  return times;
}

struct ResourceSampler::KnownThread {
  ThreadSample sample;
  std::optional<ThreadFiles> files;
};

ResourceSampler::ResourceSampler(const Clock& clock)
    : clock_(clock),
      process_allocations_(reinterpret_cast<ProcessAllocations>(dlsym(RTLD_DEFAULT, kProcessAllocations))),
      thread_allocations_(reinterpret_cast<ThreadAllocations>(dlsym(RTLD_DEFAULT, kThreadAllocations))) {}

ResourceSampler::~ResourceSampler() = default;

std::vector<ThreadSample> ResourceSampler::sample_threads() {
  std::size_t held = 0;
  threads_ = each_thread([&](pid_t tid) -> std::optional<KnownThread> {
    const Nanoseconds cpu_ns = read_clock(thread_clock(tid));
    if (cpu_ns == kUnknownTime) return std::nullopt;
    const auto known = std::ranges::find(threads_, tid, [](const KnownThread& k) { return k.sample.tid; });
    // Less CPU time than before: a new thread that reuses the number of an ended one.
    const bool is_new = known == threads_.end() || cpu_ns < known->sample.cpu_ns;
    KnownThread thread = is_new ? KnownThread{} : std::move(*known);
    thread.sample.tid = tid;
    thread.sample.cpu_interval_ns = cpu_ns - thread.sample.cpu_ns;
    thread.sample.cpu_ns = cpu_ns;
    if (thread.files && held >= kHeldThreads) thread.files.reset();
    // A thread that did not run has unchanged values.
    if (is_new || thread.sample.cpu_interval_ns != 0) {
      ThreadFiles files = thread.files ? std::move(*thread.files) : ThreadFiles(tid);
      thread.files.reset();
      if (!read_thread(files, thread.sample)) return std::nullopt;
      // Threads that do not fit now are tried again at the next sample.
      if (held < kHeldThreads && files.are_open()) thread.files.emplace(std::move(files));
    }
    held += thread.files.has_value();
    return thread;
  });
  std::vector<ThreadSample> samples;
  samples.reserve(threads_.size());
  for (const KnownThread& thread : threads_) samples.push_back(thread.sample);
  return samples;
}

ResourceSample ResourceSampler::sample() {
  ResourceSample sample;
  sample.at_ns = clock_.now();
  sample.cpu_ns = read_clock(CLOCK_PROCESS_CPUTIME_ID);
  if (previous_at_) {
    sample.interval_ns = sample.at_ns - *previous_at_;
    sample.cpu_interval_ns = sample.cpu_ns - previous_cpu_;
  }
  if (process_allocations_ != nullptr) process_allocations_(&sample.allocations.emplace());
  if (const auto status = proc::read_again(own_file("status"))) {
    sample.rss_kb = proc::value_after(*status, "VmRSS:");
    sample.rss_peak_kb = proc::value_after(*status, "VmHWM:");
    sample.vsz_kb = proc::value_after(*status, "VmSize:");
  }
  const auto allocator = mallinfo2();
  sample.arena_kb = static_cast<std::int64_t>(allocator.arena >> 10);
  sample.in_use_kb = static_cast<std::int64_t>(allocator.uordblks >> 10);
  sample.mmap_kb = static_cast<std::int64_t>(allocator.hblkhd >> 10);
  sample.usage = usage();
  sample.threads = sample_threads();

  sample.run_delay_ns = 0;
  for (ThreadSample& thread : sample.threads) {
    if (std::uint64_t count = 0; thread_allocations_ != nullptr && thread_allocations_(thread.tid, &count))
      thread.allocations = count;
    if (!thread.run_delay_ns) {
      sample.run_delay_ns = std::nullopt;
    } else if (sample.run_delay_ns) {
      *sample.run_delay_ns += *thread.run_delay_ns;
    }
  }
  previous_at_ = sample.at_ns;
  previous_cpu_ = sample.cpu_ns;
  return sample;
}

}  // namespace perflab::measure
