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

namespace perflab::measure {
namespace {

// A small file of /proc as text; empty if it cannot be read (a thread may end at any time).
class ProcFile {
 public:
  explicit ProcFile(const char* path) {
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file < 0) return;
    const ssize_t got = read(file, buffer_.data(), buffer_.size());
    close(file);
    size_ = got > 0 ? static_cast<std::size_t>(got) : 0;
  }
  [[nodiscard]] std::string_view text() const { return {buffer_.data(), size_}; }

 private:
  std::array<char, 4096> buffer_;
  std::size_t size_ = 0;
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

std::optional<ThreadSample> sample_thread(pid_t tid) {
  ThreadSample thread;
  thread.tid = tid;
  thread.cpu_ns = cpu_time(thread_clock(tid));
  if (thread.cpu_ns == kUnknownTime) return std::nullopt;
  const std::string folder = "/proc/self/task/" + std::to_string(tid) + "/";
  const ProcFile stat((folder + "stat").c_str());
  // "tid (name) state ...": the name may hold blanks and parentheses, so it ends at the last one.
  const std::size_t open = stat.text().find('(');
  const std::size_t close = stat.text().rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos) return std::nullopt;
  thread.name = stat.text().substr(open + 1, close - open - 1);
  // Field 39 of proc(5), counted from the state, which is field 3.
  if (const auto cpu = number_at(nth_word(stat.text().substr(close + 1), 36)))
    thread.cpu = static_cast<int>(*cpu);
  const ProcFile schedstat((folder + "schedstat").c_str());
  if (!schedstat.text().empty()) thread.run_delay_ns = number_at(nth_word(schedstat.text(), 1));
  const ProcFile status((folder + "status").c_str());
  const auto voluntary = status_value(status.text(), "\nvoluntary_ctxt_switches:");
  const auto involuntary = status_value(status.text(), "\nnonvoluntary_ctxt_switches:");
  if (voluntary) thread.voluntary_switches = static_cast<std::uint64_t>(*voluntary);
  if (involuntary) thread.involuntary_switches = static_cast<std::uint64_t>(*involuntary);
  return thread;
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
  const ProcFile comm(("/proc/self/task/" + std::to_string(tid) + "/comm").c_str());
  if (thread.cpu_ns == kUnknownTime || comm.text().empty()) return std::nullopt;
  thread.name = comm.text().substr(0, comm.text().find('\n'));
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

ResourceSampler::ResourceSampler(const Clock& clock)
    : clock_(clock),
      process_allocations_(reinterpret_cast<ProcessAllocations>(dlsym(RTLD_DEFAULT, kProcessAllocations))),
      thread_allocations_(reinterpret_cast<ThreadAllocations>(dlsym(RTLD_DEFAULT, kThreadAllocations))) {}

ResourceSample ResourceSampler::sample() {
  ResourceSample sample;
  sample.at_ns = clock_.now();
  sample.cpu_ns = cpu_time(CLOCK_PROCESS_CPUTIME_ID);
  if (previous_at_) {
    sample.interval_ns = sample.at_ns - *previous_at_;
    sample.cpu_interval_ns = sample.cpu_ns - previous_cpu_;
  }
  if (process_allocations_ != nullptr) process_allocations_(&sample.allocations.emplace());
  const ProcFile status("/proc/self/status");
  sample.rss_kb = status_value(status.text(), "VmRSS:");
  sample.rss_peak_kb = status_value(status.text(), "VmHWM:");
  sample.vsz_kb = status_value(status.text(), "VmSize:");
  const auto allocator = mallinfo2();
  sample.arena_kb = static_cast<std::int64_t>(allocator.arena >> 10);
  sample.in_use_kb = static_cast<std::int64_t>(allocator.uordblks >> 10);
  sample.mmap_kb = static_cast<std::int64_t>(allocator.hblkhd >> 10);
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  sample.voluntary_switches = static_cast<std::uint64_t>(usage.ru_nvcsw);
  sample.involuntary_switches = static_cast<std::uint64_t>(usage.ru_nivcsw);
  sample.threads = each_thread(sample_thread);

  sample.run_delay_ns = 0;
  std::vector<Previous> now;
  now.reserve(sample.threads.size());
  for (ThreadSample& thread : sample.threads) {
    const auto before = std::ranges::find(previous_threads_, thread.tid, &Previous::tid);
    thread.cpu_interval_ns = thread.cpu_ns - (before == previous_threads_.end() ? 0 : before->cpu_ns);
    now.push_back({thread.tid, thread.cpu_ns});
    if (std::uint64_t count = 0; thread_allocations_ != nullptr && thread_allocations_(thread.tid, &count))
      thread.allocations = count;
    if (!thread.run_delay_ns) {
      sample.run_delay_ns = std::nullopt;
    } else if (sample.run_delay_ns) {
      *sample.run_delay_ns += *thread.run_delay_ns;
    }
  }
  previous_threads_ = std::move(now);
  previous_at_ = sample.at_ns;
  previous_cpu_ = sample.cpu_ns;
  return sample;
}

}  // namespace perflab::measure
