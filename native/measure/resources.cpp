#include "measure/resources.h"

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <malloc.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <string_view>
#include <utility>

namespace perflab::measure {
namespace {

// Of so many threads the files stay open between samples: to read them again costs half as much as to open
// them. A process may have 1,024 files open by default, and the middleware wants some of them.
constexpr std::size_t kHeldThreads = 64;

// A small file of /proc.
class ProcFile {
 public:
  explicit ProcFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ProcFile(ProcFile&& other) noexcept : file_(std::exchange(other.file_, -1)) {}
  ProcFile& operator=(ProcFile&& other) noexcept {
    std::swap(file_, other.file_);
    return *this;
  }
  ~ProcFile() {
    if (file_ >= 0) close(file_);
  }

  // What it says now; empty if it cannot be read (a thread may end at any time).
  using Buffer = std::array<char, 4096>;
  [[nodiscard]] bool is_open() const noexcept { return file_ >= 0; }
  [[nodiscard]] std::string_view read(Buffer& buffer) const {
    const ssize_t got = file_ < 0 ? -1 : pread(file_, buffer.data(), buffer.size(), 0);
    return {buffer.data(), got > 0 ? static_cast<std::size_t>(got) : 0};
  }

 private:
  int file_;
};

struct ThreadFiles {
  explicit ThreadFiles(pid_t tid) : ThreadFiles("/proc/self/task/" + std::to_string(tid) + "/") {}
  explicit ThreadFiles(const std::string& folder)
      : stat(folder + "stat"), schedstat(folder + "schedstat"), status(folder + "status") {}

  [[nodiscard]] bool are_open() const noexcept {
    return stat.is_open() && schedstat.is_open() && status.is_open();
  }

  ProcFile stat;
  ProcFile schedstat;
  ProcFile status;
};

std::optional<std::int64_t> number_at(std::string_view text) {
  const std::size_t digit = text.find_first_of("0123456789");
  if (digit == std::string_view::npos) return std::nullopt;
  std::int64_t value = 0;
  const auto result = std::from_chars(text.data() + digit, text.data() + text.size(), value);
  return result.ec == std::errc{} ? std::optional(value) : std::nullopt;
}

// The number behind "Key:" in the style of /proc/self/status.
std::optional<std::int64_t> status_value(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  return number_at(text.substr(at + key.size()));
}

std::string_view nth_word(std::string_view text, std::size_t n) {
  std::size_t begin = 0;
  while (true) {
    begin = text.find_first_not_of(" \n", begin);
    if (begin == std::string_view::npos) return {};
    const std::size_t end = std::min(text.find_first_of(" \n", begin), text.size());
    if (n-- == 0) return text.substr(begin, end - begin);
    begin = end;
  }
}

Nanoseconds cpu_time(clockid_t clock) {
  timespec time{};
  if (clock_gettime(clock, &time) != 0) return kUnknownTime;
  return static_cast<Nanoseconds>(time.tv_sec) * kNanosecondsPerSecond + time.tv_nsec;
}

// The CPU-time clock of a thread of this process: the kernel's encoding, clockid(7) CPUCLOCK_PERTHREAD |
// CPUCLOCK_SCHED.
clockid_t thread_clock(pid_t tid) { return static_cast<clockid_t>((~static_cast<unsigned>(tid) << 3) | 6u); }

// All but its CPU time; false if it has ended.
bool read_thread(const ThreadFiles& files, ThreadSample& thread) {
  thread.run_delay_ns.reset();
  thread.voluntary_switches.reset();
  thread.involuntary_switches.reset();
  thread.cpu.reset();
  ProcFile::Buffer buffer;
  const std::string_view stat = files.stat.read(buffer);
  // "tid (name) state ...": the name may hold blanks and parentheses, so it ends at the last one.
  const std::size_t open = stat.find('(');
  const std::size_t close = stat.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos) return false;
  thread.name = stat.substr(open + 1, close - open - 1);
  // Field 39 of proc(5), counted from the state, which is field 3.
  if (const auto cpu = number_at(nth_word(stat.substr(close + 1), 36))) thread.cpu = static_cast<int>(*cpu);
  const std::string_view schedstat = files.schedstat.read(buffer);
  if (!schedstat.empty()) thread.run_delay_ns = number_at(nth_word(schedstat, 1));
  const std::string_view status = files.status.read(buffer);
  const auto voluntary = status_value(status, "\nvoluntary_ctxt_switches:");
  const auto involuntary = status_value(status, "\nnonvoluntary_ctxt_switches:");
  if (voluntary) thread.voluntary_switches = static_cast<std::uint64_t>(*voluntary);
  if (involuntary) thread.involuntary_switches = static_cast<std::uint64_t>(*involuntary);
  return true;
}

// All threads that live, those left out of which `sample` knows nothing any more.
template <typename Sample>
auto each_thread(Sample sample) {
  std::vector<typename decltype(sample(pid_t{}))::value_type> threads;
  const std::unique_ptr<DIR, int (*)(DIR*)> tasks(opendir("/proc/self/task"), closedir);
  if (!tasks) return threads;
  while (const dirent* entry = readdir(tasks.get())) {
    const auto tid = number_at(entry->d_name);
    if (!tid) continue;
    if (auto thread = sample(static_cast<pid_t>(*tid))) threads.push_back(std::move(*thread));
  }
  return threads;
}

std::optional<CpuTimes::Thread> cpu_time_of_thread(pid_t tid) {
  CpuTimes::Thread thread{tid, {}, cpu_time(thread_clock(tid))};
  ProcFile::Buffer buffer;
  const std::string_view comm = ProcFile("/proc/self/task/" + std::to_string(tid) + "/comm").read(buffer);
  if (thread.cpu_ns == kUnknownTime || comm.empty()) return std::nullopt;
  thread.name = comm.substr(0, comm.find('\n'));
  return thread;
}

}  // namespace

CpuTimes cpu_times(const Clock& clock) {
  CpuTimes times;
  times.at_ns = clock.now();
  times.cpu_ns = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
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
    const Nanoseconds cpu_ns = cpu_time(thread_clock(tid));
    if (cpu_ns == kUnknownTime) return std::nullopt;
    const auto known = std::ranges::find(threads_, tid, [](const KnownThread& k) { return k.sample.tid; });
    // One with less CPU time than before is another, with the number of one that has ended.
    const bool is_new = known == threads_.end() || cpu_ns < known->sample.cpu_ns;
    KnownThread thread = is_new ? KnownThread{} : std::move(*known);
    thread.sample.tid = tid;
    thread.sample.cpu_interval_ns = cpu_ns - thread.sample.cpu_ns;
    thread.sample.cpu_ns = cpu_ns;
    if (thread.files && held >= kHeldThreads) thread.files.reset();
    // What it did stays as it is while it does not run.
    if (is_new || thread.sample.cpu_interval_ns != 0) {
      ThreadFiles files = thread.files ? std::move(*thread.files) : ThreadFiles(tid);
      thread.files.reset();
      if (!read_thread(files, thread.sample)) return std::nullopt;
      // One that cannot be opened now, for want of room, is tried again.
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
  sample.cpu_ns = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
  if (previous_at_) {
    sample.interval_ns = sample.at_ns - *previous_at_;
    sample.cpu_interval_ns = sample.cpu_ns - previous_cpu_;
  }
  if (process_allocations_ != nullptr) process_allocations_(&sample.allocations.emplace());
  ProcFile::Buffer buffer;
  const std::string_view status = ProcFile("/proc/self/status").read(buffer);
  sample.rss_kb = status_value(status, "VmRSS:");
  sample.rss_peak_kb = status_value(status, "VmHWM:");
  sample.vsz_kb = status_value(status, "VmSize:");
  const auto allocator = mallinfo2();
  sample.arena_kb = static_cast<std::int64_t>(allocator.arena >> 10);
  sample.in_use_kb = static_cast<std::int64_t>(allocator.uordblks >> 10);
  sample.mmap_kb = static_cast<std::int64_t>(allocator.hblkhd >> 10);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  sample.voluntary_switches = static_cast<std::uint64_t>(usage.ru_nvcsw);
  sample.involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw);
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
