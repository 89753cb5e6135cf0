#include "measure/proc.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace perflab::measure {
namespace {

constexpr std::size_t kLongestFile = 256 << 10;

// The next number from `at` on, which it moves behind it.
template <typename Number>
bool next_number(std::string_view text, std::size_t& at, Number& number) {
  const auto starts = [](char letter) { return letter == '-' || (letter >= '0' && letter <= '9'); };
  while (at < text.size() && !starts(text[at])) ++at;
  if (at >= text.size()) return false;
  const auto result = std::from_chars(text.data() + at, text.data() + text.size(), number);
  if (result.ec != std::errc{}) return false;
  at = static_cast<std::size_t>(result.ptr - text.data());
  return true;
}

// sched_setattr(2), first version; glibc has no wrapper for it.
struct SchedulingAttributes {
  std::uint32_t size;
  std::uint32_t policy;
  std::uint64_t flags;
  std::int32_t nice;
  std::uint32_t priority;
  std::uint64_t runtime;
  std::uint64_t deadline;
  std::uint64_t period;
};

constexpr std::array<std::string_view, 8> kPolicies{"OTHER", "FIFO", "RR",       "BATCH",
                                                    "",      "IDLE", "DEADLINE", "EXT"};

}  // namespace

std::optional<std::int64_t> value_after(std::string_view text, std::string_view key) {
  std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  at += key.size();
  std::int64_t value = 0;
  return next_number(text, at, value) ? std::optional(value) : std::nullopt;
}

Descriptor::~Descriptor() {
  if (number_ >= 0) close(number_);
}

Descriptor open_file(int at, const char* path) { return Descriptor(openat(at, path, O_RDONLY | O_CLOEXEC)); }

std::optional<std::string_view> read_again(const Descriptor& file) {
  // Not filled, so that it takes memory for what files are long.
  thread_local const std::unique_ptr<char[]> buffer(new char[kLongestFile]);
  if (!file.open()) {
    errno = EBADF;
    return std::nullopt;
  }
  std::size_t size = 0;
  while (size < kLongestFile) {
    const ssize_t got =
        pread(file.number(), buffer.get() + size, kLongestFile - size, static_cast<off_t>(size));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    size += static_cast<std::size_t>(got);
    // A short answer that ends a line is all there is: one call instead of two.
    if (got == 0 || buffer[size - 1] == '\n') break;
  }
  return std::string_view(buffer.get(), size);
}

std::optional<Stat> parse_stat(std::string_view text) {
  // "tid (name) state ...": the name may hold blanks and parentheses, so it ends at the last one.
  const std::size_t open = text.find('(');
  const std::size_t close = text.rfind(')');
  if (open == std::string_view::npos || close == std::string_view::npos || close + 2 >= text.size())
    return std::nullopt;
  Stat stat;
  stat.name = text.substr(open + 1, close - open - 1);
  stat.state = text[close + 2];
  std::size_t at = close + 3;
  std::uint64_t user = 0;
  std::uint64_t system = 0;
  const auto skip = [&](int fields) {
    while (fields-- > 0 && at != std::string_view::npos) at = text.find(' ', at + 1);
  };
  skip(10);  // from the fourth field on
  bool whole = next_number(text, at, user) && next_number(text, at, system);
  skip(2);
  whole = whole && next_number(text, at, stat.priority);
  skip(1);
  whole = whole && next_number(text, at, stat.threads);
  skip(1);
  whole = whole && next_number(text, at, stat.start_ticks);
  skip(16);
  whole = whole && next_number(text, at, stat.cpu);
  if (!whole) return std::nullopt;
  stat.cpu_ticks = user + system;
  return stat;
}

std::optional<SchedStat> parse_schedstat(std::string_view text) {
  SchedStat stat;
  std::size_t at = 0;
  const bool whole = next_number(text, at, stat.cpu_ns) && next_number(text, at, stat.run_delay_ns) &&
                     next_number(text, at, stat.timeslices);
  return whole ? std::optional(stat) : std::nullopt;
}

std::optional<Switches> parse_switches(std::string_view status) {
  // The last but a few lines of a long file.
  constexpr std::size_t kEnd = 256;
  if (status.size() > kEnd) status.remove_prefix(status.size() - kEnd);
  const auto voluntary = value_after(status, "\nvoluntary_ctxt_switches:");
  const auto involuntary = value_after(status, "\nnonvoluntary_ctxt_switches:");
  if (!voluntary || !involuntary) return std::nullopt;
  return Switches{*voluntary, *involuntary};
}

std::optional<Io> parse_io(std::string_view text) {
  const auto read = value_after(text, "\nread_bytes:");
  const auto written = value_after(text, "\nwrite_bytes:");
  if (!read || !written) return std::nullopt;
  return Io{*read, *written};
}

std::optional<std::int64_t> parse_resident_pages(std::string_view text) {
  std::size_t at = 0;
  std::int64_t size = 0;
  std::int64_t resident = 0;
  const bool whole = next_number(text, at, size) && next_number(text, at, resident);
  return whole ? std::optional(resident) : std::nullopt;
}

std::vector<CpuTicks> parse_cpus(std::string_view text) {
  std::vector<CpuTicks> cpus;
  std::size_t line = 0;
  while (line < text.size() && text.substr(line).starts_with("cpu")) {
    const std::size_t end = std::min(text.find('\n', line), text.size());
    const std::string_view fields = text.substr(line + 3, end - line - 3);
    line = end + 1;
    if (fields.empty() || fields.front() == ' ') continue;  // the sum of all
    CpuTicks ticks;
    std::size_t at = 0;
    // user nice system idle iowait irq softirq steal; guest time is in user already.
    std::array<std::int64_t, 8> values{};
    bool whole = next_number(fields, at, ticks.cpu);
    for (std::int64_t& value : values) whole = whole && next_number(fields, at, value);
    if (!whole) continue;
    ticks.busy = values[0] + values[1] + values[2] + values[5] + values[6];
    ticks.idle = values[3] + values[4];
    ticks.steal = values[7];
    cpus.push_back(ticks);
  }
  return cpus;
}

std::optional<std::int64_t> parse_pressure(std::string_view text, std::string_view which) {
  const std::size_t line = text.find(which);
  if (line == std::string_view::npos) return std::nullopt;
  return value_after(text.substr(line), "total=");
}

bool read_scheduling(int tid, Scheduling& scheduling) {
  // As many as the kernel can be built for.
  thread_local std::array<unsigned long, 8192 / (8 * sizeof(unsigned long))> mask;
  const long bytes = syscall(SYS_sched_getaffinity, tid, sizeof mask, mask.data());
  if (bytes < 0) return false;
  SchedulingAttributes attributes{};
  if (syscall(SYS_sched_getattr, tid, &attributes, sizeof attributes, 0u) != 0) return false;
  scheduling.policy = attributes.policy;
  scheduling.priority = attributes.priority;
  scheduling.nice = attributes.nice;
  scheduling.cpus.assign(mask.begin(), mask.begin() + bytes / static_cast<long>(sizeof(unsigned long)));
  return true;
}

std::string policy_text(std::uint32_t policy) {
  const bool named = policy < kPolicies.size() && !kPolicies[policy].empty();
  return named ? std::string(kPolicies[policy]) : std::to_string(policy);
}

std::vector<int> cpus_of(const std::vector<unsigned long>& mask) {
  constexpr std::size_t kBits = 8 * sizeof(unsigned long);
  std::vector<int> cpus;
  for (std::size_t cpu = 0; cpu < mask.size() * kBits; ++cpu) {
    if ((mask[cpu / kBits] >> (cpu % kBits) & 1) != 0) cpus.push_back(static_cast<int>(cpu));
  }
  return cpus;
}

TaskFolder::TaskFolder(int process_folder) {
  const int folder = openat(process_folder, "task", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  folder_.reset(fdopendir(folder));
  if (!folder_) close(folder);
}

void TaskFolder::read(Numbers& tids) {
  tids.clear();
  if (!folder_) return;
  rewinddir(folder_.get());
  while (const dirent* entry = readdir(folder_.get())) {
    int tid = 0;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, tid).ptr == end && tid > 0) tids.push_back(tid);
  }
}

void parse_numbers(std::string_view text, Numbers& numbers) {
  numbers.clear();
  std::size_t at = 0;
  for (int number = 0; next_number(text, at, number);) numbers.push_back(number);
}

}  // namespace perflab::measure
