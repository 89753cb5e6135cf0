#include "base/proc.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>

namespace perflab::proc {
namespace {

constexpr std::size_t kLongestFile = 256 << 10;

// Parses the next number from `at` on, and moves `at` behind it.
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

}  // namespace

std::optional<std::int64_t> value_after(std::string_view text, std::string_view key) {
  std::size_t at = text.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  at += key.size();
  std::int64_t value = 0;
  return next_number(text, at, value) ? std::optional(value) : std::nullopt;
}

std::optional<std::string_view> read_again(const Descriptor& file) {
  // Not zero-filled, so that only the pages actually read into take memory.
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
    // A short read that ends with a newline is complete: one call instead of two.
    if (got == 0 || buffer[size - 1] == '\n') break;
  }
  return std::string_view(buffer.get(), size);
}

std::optional<Stat> parse_stat(std::string_view text) {
  // "tid (name) state ...": the name may contain blanks and parentheses, so it ends at the last parenthesis.
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
  // Field numbers as in proc(5); the parent is field 4.
  bool whole = next_number(text, at, stat.parent);
  skip(9);
  whole = whole && next_number(text, at, user) && next_number(text, at, system);  // 14, 15
  skip(2);
  whole = whole && next_number(text, at, stat.priority);  // 18
  skip(1);
  whole = whole && next_number(text, at, stat.threads);  // 20
  skip(1);
  whole = whole && next_number(text, at, stat.start_ticks);  // 22
  skip(16);
  whole = whole && next_number(text, at, stat.cpu);  // 39
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
  // Enough for the last lines of a long file.
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
    if (fields.empty() || fields.front() == ' ') continue;  // the line with the sum of all CPUs
    CpuTicks ticks;
    std::size_t at = 0;
    // user nice system idle iowait irq softirq steal; user already includes guest time.
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

NumberFolder::NumberFolder(int at, const char* path) {
  Descriptor folder(openat(at, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.open()) return;
  folder_.reset(fdopendir(folder.number()));
  if (folder_) static_cast<void>(folder.release());
}

void NumberFolder::read(Numbers& numbers) {
  numbers.clear();
  if (!folder_) return;
  rewinddir(folder_.get());
  while (const dirent* entry = readdir(folder_.get())) {
    int number = 0;
    const char* const end = entry->d_name + std::strlen(entry->d_name);
    if (std::from_chars(entry->d_name, end, number).ptr == end && number > 0) numbers.push_back(number);
  }
}

void parse_numbers(std::string_view text, Numbers& numbers) {
  numbers.clear();
  std::size_t at = 0;
  for (int number = 0; next_number(text, at, number);) numbers.push_back(number);
}

}  // namespace perflab::proc
