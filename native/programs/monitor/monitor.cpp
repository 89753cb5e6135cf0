#include "programs/monitor/monitor.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"

namespace perflab::monitor {
namespace {

using nlohmann::json;

constexpr Nanoseconds kThoroughInterval = kNanosecondsPerSecond;
// Rounds after which an ended child's I/O is no longer expected in its parent's figures: nobody waited for
// the child.
constexpr int kInheritRounds = 2;

// A thread's name may contain any bytes.
std::string json_text(const std::string& text) {
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}

struct OrNull {
  std::optional<std::int64_t> value;
};

void raise_descriptor_limit() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

Nanoseconds boot_offset() { return read_clock(CLOCK_BOOTTIME) - read_clock(CLOCK_MONOTONIC); }

// Kernels without scheduling statistics have no such file, or only zeros in it. The kernel updates the
// figures of a running thread when it leaves its CPU: hence the sleep.
bool schedstat_counts() {
  const timespec moment{0, 1000};
  nanosleep(&moment, nullptr);
  const Descriptor file = open_file(AT_FDCWD, "/proc/thread-self/schedstat");
  const auto text = read_again(file);
  const auto stat = text ? parse_schedstat(*text) : std::nullopt;
  return stat && (stat->cpu_ns > 0 || stat->run_delay_ns > 0);
}

void require_children() {
  if (open_file(AT_FDCWD, "/proc/thread-self/children").open()) return;
  throw Unsupported(
      "/proc/thread-self/children cannot be read: process trees need a kernel with CONFIG_PROC_CHILDREN");
}

std::string task_file(int tid, const char* name) { return "task/" + std::to_string(tid) + "/" + name; }

}  // namespace
}  // namespace perflab::monitor

template <>
struct fmt::formatter<perflab::monitor::OrNull> : fmt::formatter<std::int64_t> {
  template <typename Context>
  auto format(const perflab::monitor::OrNull& number, Context& context) const {
    if (!number.value) return fmt::format_to(context.out(), "null");
    return fmt::formatter<std::int64_t>::format(*number.value, context);
  }
};

namespace perflab::monitor {

template <typename... Arguments>
void Monitor::say(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  fmt::format_to(std::back_inserter(lines_), format, std::forward<Arguments>(arguments)...);
}

Monitor::Monitor(const std::string& file, Nanoseconds interval_ns, Control& control)
    : interval_ns_(interval_ns),
      control_(control),
      output_(file),
      own_pid_(getpid()),
      ticks_per_second_(sysconf(_SC_CLK_TCK)),
      switch_rounds_(static_cast<std::uint64_t>(std::max<Nanoseconds>(1, kThoroughInterval / interval_ns))),
      page_kb_(sysconf(_SC_PAGESIZE) >> 10),
      boot_offset_ns_(boot_offset()),
      has_schedstat_(schedstat_counts()),
      cpu_stat_(open_file(AT_FDCWD, "/proc/stat")),
      pressure_cpu_(open_file(AT_FDCWD, "/proc/pressure/cpu")),
      pressure_memory_(open_file(AT_FDCWD, "/proc/pressure/memory")),
      pressure_io_(open_file(AT_FDCWD, "/proc/pressure/io")) {
  require_children();
  raise_descriptor_limit();
}

void Monitor::run() {
  Nanoseconds due = clock_.now();
  while (true) {
    const Nanoseconds now = clock_.now();
    if (now >= due) {
      sample();
      // At fixed times; missed samples are skipped.
      due += ((clock_.now() - due) / interval_ns_ + 1) * interval_ns_;
      continue;
    }
    const std::optional<json> message = control_.receive(due - now);
    if (control_.closed()) break;
    if (message && !handle(*message)) break;
  }
  last_ = true;
  sample();
  control_.send({{"type", "done"},
                 {"files", json::array({output_.path()})},
                 {"samples", rounds_},
                 {"lost_samples", lost_samples_}});
}

bool Monitor::handle(const json& message) {
  try {
    const std::string type = message.at("type").get<std::string>();
    if (type == "stop") return false;
    if (type == "watch") {
      watch(message.at("group").get<std::string>(), message.at("root").get<int>());
    } else if (type == "unwatch") {
      unwatch(message.at("group").get<std::string>());
    }
  } catch (const json::exception& error) {
    throw Failed(std::string("control channel: ") + error.what());
  }
  return true;
}

void Monitor::watch(const std::string& group, int root) {
  groups_.try_emplace(group);
  const auto known = processes_.find(root);
  if (known == processes_.end()) {
    adopt(root, group, 0);
  } else if (known->second.group != group) {
    move(root, group);
  }
  // Immediately: what the tree used before does not belong to this group.
  sample();
  control_.send({{"type", "watching"}, {"group", group}, {"root", root}});
}

void Monitor::move(int root, const std::string& group) {
  const std::string before = processes_.at(root).group;
  std::vector<int> moving{root};
  for (std::size_t i = 0; i < moving.size(); ++i) {
    Process& process = processes_.at(moving[i]);
    process.group = group;
    for (Thread& thread : process.threads) thread.announced = false;
    for (const auto& [pid, other] : processes_) {
      if (other.parent == moving[i] && other.group == before) moving.push_back(pid);
    }
  }
}

void Monitor::unwatch(const std::string& group) {
  std::erase_if(processes_, [&](const auto& entry) { return entry.second.group == group; });
  groups_.erase(group);
}

void Monitor::sample() {
  const Nanoseconds at_ns = clock_.now();
  if (!header_written_) write_header(at_ns);
  read_threads(at_ns);
  read_memory_and_io();
  write_sample(at_ns);
  flush();
  previous_at_ns_ = at_ns;
  ++rounds_;
}

void Monitor::read_threads(Nanoseconds at_ns) {
  const bool thorough = at_ns >= thorough_at_ns_;
  if (thorough) thorough_at_ns_ = at_ns + kThoroughInterval;
  const bool search_all = thorough || std::exchange(search_all_, false);
  unsearched_.clear();
  for (auto& [pid, process] : processes_) {
    const std::size_t ended =
        std::erase_if(process.threads, [&](Thread& thread) { return !read_thread(thread, thorough, at_ns); });
    // Its number may be reused by another process, which must not be confused with this one.
    if (ended > 0 && process.threads.empty()) search_all_ = true;
    const bool ran = std::ranges::any_of(process.threads, &Thread::ran);
    if (!search_all && !ran) continue;
    // Only running threads create threads and children.
    const bool others = std::ranges::any_of(process.threads, [&](const Thread& thread) {
      return thread.ran && static_cast<std::size_t>(thread.threads) != process.threads.size();
    });
    if (search_all || ended > 0 || others) find_threads(process);
    unsearched_.push_back(pid);
    if (search_all) {
      for (Thread& thread : process.threads) thread.ran = true;
    }
  }
  while (!unsearched_.empty()) {
    const int pid = unsearched_.back();
    unsearched_.pop_back();
    find_children(pid);
  }
  for (auto& [pid, process] : processes_) {
    for (Thread& thread : process.threads) {
      if (!thread.announced) write_state(process, pid, thread, at_ns);
    }
  }
}

bool Monitor::read_thread(Thread& thread, bool thorough, Nanoseconds at_ns) {
  thread.ran = true;
  if (has_schedstat_) {
    const auto text = read_again(thread.schedstat);
    const auto usage = text ? parse_schedstat(*text) : std::nullopt;
    if (!usage) {
      write_gone(thread.tid, std::nullopt, at_ns);
      return false;
    }
    thread.ran = *usage != thread.usage;
    if (usage->cpu_ns < thread.usage.cpu_ns) {
      // Another thread of the process called exec, and continues under this number with its own figures.
      write_gone(thread.tid, std::nullopt, at_ns);
      thread.announced = false;
    }
    thread.usage = *usage;
  }
  if (thread.ran || thorough) {
    const auto text = read_again(thread.stat);
    const auto stat = text ? parse_stat(*text) : std::nullopt;
    if (!stat) {
      write_gone(thread.tid, std::nullopt, at_ns);
      return false;
    }
    read_stat(thread, *stat);
    if (stat->dead()) {
      write_gone(thread.tid, thread.usage.cpu_ns, at_ns);
      return false;
    }
  }
  // The most expensive file: read for each thread in a different round, and for all in the last one.
  thread.switches = std::nullopt;
  if (last_ || (rounds_ + static_cast<std::uint64_t>(thread.tid)) % switch_rounds_ == 0)
    read_switches(thread);
  // Other processes may change these without the thread running.
  if (read_scheduling(thread.tid, found_) && found_ != thread.scheduling) {
    std::swap(found_, thread.scheduling);
    thread.announced = false;
  }
  return true;
}

void Monitor::read_switches(Thread& thread) {
  const auto text = read_again(thread.status);
  thread.switches = text ? parse_switches(*text) : std::nullopt;
}

void Monitor::read_stat(Thread& thread, const Stat& stat) {
  thread.cpu = stat.cpu;
  thread.threads = stat.threads;
  if (!has_schedstat_) {
    thread.usage.cpu_ns =
        static_cast<Nanoseconds>(stat.cpu_ticks) * (kNanosecondsPerSecond / ticks_per_second_);
  }
  if (stat.name != thread.name) {
    thread.name = stat.name;
    thread.announced = false;
  }
}

void Monitor::find_threads(Process& process) {
  process.tasks.read(numbers_);
  for (const int tid : numbers_) {
    if (std::ranges::find(process.threads, tid, &Thread::tid) == process.threads.end())
      add_thread(process, tid);
  }
}

bool Monitor::add_thread(Process& process, int tid) {
  Thread thread;
  thread.tid = tid;
  const int folder = process.folder.number();
  thread.stat = open_file(folder, task_file(tid, "stat").c_str());
  const int reason = errno;
  const auto text = read_again(thread.stat);
  const auto stat = text ? parse_stat(*text) : std::nullopt;
  if (!stat) {
    if (!thread.stat.open() && (reason == EMFILE || reason == ENFILE)) {
      report_once("threads are not watched: " + reason_of(reason) + "; raise the hard limit of `ulimit -n`");
    }
    return false;  // ended meanwhile
  }
  if (stat->dead()) return false;
  thread.start_ticks = stat->start_ticks;
  read_stat(thread, *stat);
  if (has_schedstat_) thread.schedstat = open_file(folder, task_file(tid, "schedstat").c_str());
  thread.status = open_file(folder, task_file(tid, "status").c_str());
  thread.children = open_file(folder, task_file(tid, "children").c_str());
  if (has_schedstat_) {
    const auto usage_text = read_again(thread.schedstat);
    const auto usage = usage_text ? parse_schedstat(*usage_text) : std::nullopt;
    if (!usage) return false;
    thread.usage = *usage;
  }
  read_switches(thread);
  if (!read_scheduling(tid, thread.scheduling)) return false;
  process.threads.push_back(std::move(thread));
  return true;
}

void Monitor::find_children(int pid) {
  Process& process = processes_.at(pid);
  std::vector<int> children;
  for (Thread& thread : process.threads) {
    if (!thread.ran) continue;
    const auto text = read_again(thread.children);
    if (!text) continue;
    parse_numbers(*text, numbers_);
    children.insert(children.end(), numbers_.begin(), numbers_.end());
  }
  for (const int child : children) {
    if (const auto known = processes_.find(child); known != processes_.end()) {
      known->second.parent = pid;
    } else if (adopt(child, process.group, pid)) {
      unsearched_.push_back(child);
    }
  }
}

bool Monitor::adopt(int pid, const std::string& group, int parent) {
  if (pid == own_pid_) return false;
  Process process;
  process.group = group;
  process.parent = parent;
  process.folder =
      Descriptor(open(("/proc/" + std::to_string(pid)).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!process.folder.open()) return false;
  process.tasks = NumberFolder(process.folder.number(), "task");
  find_threads(process);
  if (process.threads.empty()) return false;
  process.statm = open_file(process.folder.number(), "statm");
  process.io = open_file(process.folder.number(), "io");
  processes_.emplace(pid, std::move(process));
  return true;
}

void Monitor::read_memory_and_io() {
  std::map<int, Io> readings;
  for (auto& [pid, process] : processes_) {
    const auto memory = read_again(process.statm);
    const auto pages = memory ? parse_resident_pages(*memory) : std::nullopt;
    process.gone = !pages;
    process.rss_kb = pages.value_or(0) * page_kb_;
    const auto text = read_again(process.io);
    const auto io = text ? parse_io(*text) : std::nullopt;
    if (io) {
      readings.emplace(pid, *io);
    } else if (!process.gone && errno == ESRCH) {
      process.gone = true;
    } else if (!process.gone) {
      groups_.at(process.group).io_known = false;
    }
  }
  // A process that is waited for adds its figures to its parent's.
  for (auto& [pid, process] : processes_) {
    const auto parent = processes_.find(process.parent);
    if (!process.gone || parent == processes_.end()) continue;
    parent->second.io_inherited += process.io_read;
    parent->second.io_inherited += process.io_inherited;
    parent->second.inherited_age = 0;
  }
  for (const auto& [pid, io] : readings) count_io(processes_.at(pid), io);
  forget_the_gone();
}

void Monitor::count_io(Process& process, const Io& now) {
  Group& group = groups_.at(process.group);
  if (!process.io_known) {
    process.io_known = true;
    // A process that existed before is counted from now on.
    const Nanoseconds since = previous_at_ns_.value_or(clock_.now()) - interval_ns_;
    const bool is_new = process.threads.empty() || started_ns(process.threads.front().start_ticks) >= since;
    if (!is_new && group.samples > 0) process.io_read = now;
  }
  Io more{now.read_bytes - process.io_read.read_bytes, now.write_bytes - process.io_read.write_bytes};
  process.io_read = now;
  Io& inherited = process.io_inherited;
  const Io known{std::min(more.read_bytes, inherited.read_bytes),
                 std::min(more.write_bytes, inherited.write_bytes)};
  more.read_bytes -= known.read_bytes;
  more.write_bytes -= known.write_bytes;
  inherited.read_bytes -= known.read_bytes;
  inherited.write_bytes -= known.write_bytes;
  if (++process.inherited_age > kInheritRounds) inherited = {};
  group.io += more;
}

void Monitor::forget_the_gone() {
  std::erase_if(processes_, [this](const auto& entry) {
    if (entry.second.gone) search_all_ = true;
    return entry.second.gone;
  });
}

void Monitor::write_header(Nanoseconds at_ns) {
  std::vector<int> cpus;
  if (const auto text = read_again(cpu_stat_)) {
    for (const CpuTicks& ticks : parse_cpus(*text)) cpus.push_back(ticks.cpu);
  }
  // Source of the threads' CPU times: schedstat counts nanoseconds, stat ticks.
  say(R"({{"type":"monitor","schema":1,"at_ns":{},"interval_ns":{},"pid":{},"cpus":[{}],"source":"{}"}})"
      "\n",
      at_ns, interval_ns_, own_pid_, fmt::join(cpus, ","), has_schedstat_ ? "schedstat" : "stat");
}

void Monitor::write_state(const Process& process, int pid, Thread& thread, Nanoseconds at_ns) {
  say(R"({{"type":"thread","at_ns":{},"group":{},"pid":{},"tid":{},"start_ticks":{},"started_ns":{},)"
      R"("name":{},"policy":"{}","priority":{},"nice":{},"cpus":[{}]}})"
      "\n",
      at_ns, json_text(process.group), pid, thread.tid, thread.start_ticks, started_ns(thread.start_ticks),
      json_text(thread.name), policy_text(thread.scheduling.policy), thread.scheduling.priority,
      thread.scheduling.nice, fmt::join(cpus_of(thread.scheduling.cpus), ","));
  thread.announced = true;
}

void Monitor::write_gone(int tid, std::optional<Nanoseconds> cpu_ns, Nanoseconds at_ns) {
  say(R"({{"type":"gone","at_ns":{},"tid":{},"cpu_ns":{}}})"
      "\n",
      at_ns, tid, OrNull{cpu_ns});
}

void Monitor::write_sample(Nanoseconds at_ns) {
  const auto interval_ns = previous_at_ns_ ? std::optional(at_ns - *previous_at_ns_) : std::nullopt;
  say(R"({{"type":"sample","at_ns":{},"interval_ns":{})", at_ns, OrNull{interval_ns});
  write_cpus();
  write_pressure();
  lines_ += ",\"threads\":[";
  const char* separator = "";
  for (const auto& [pid, process] : processes_) {
    for (const Thread& thread : process.threads) {
      const auto delay_ns = has_schedstat_ ? std::optional(thread.usage.run_delay_ns) : std::nullopt;
      const auto& switches = thread.switches;
      say("{}[{},{},{},{},{},{}]", separator, thread.tid, thread.usage.cpu_ns, OrNull{delay_ns},
          OrNull{switches ? std::optional(switches->voluntary) : std::nullopt},
          OrNull{switches ? std::optional(switches->involuntary) : std::nullopt}, thread.cpu);
      separator = ",";
    }
  }
  lines_ += ']';
  write_groups();
  lines_ += "}\n";
}

void Monitor::write_cpus() {
  const auto text = read_again(cpu_stat_);
  cpus_now_ = text ? parse_cpus(*text) : std::vector<CpuTicks>{};
  const Nanoseconds tick_ns = kNanosecondsPerSecond / ticks_per_second_;
  lines_ += ",\"cpus\":[";
  const char* separator = "";
  for (CpuTicks& now : cpus_now_) {
    const auto before = std::ranges::find(cpus_, now.cpu, &CpuTicks::cpu);
    const bool known = before != cpus_.end();
    if (known) {
      now.busy = std::max(now.busy, before->busy);
      now.idle = std::max(now.idle, before->idle);
      now.steal = std::max(now.steal, before->steal);
    }
    const auto spent = [&](std::int64_t CpuTicks::*member) {
      return OrNull{known ? std::optional((now.*member - *before.*member) * tick_ns) : std::nullopt};
    };
    say(R"({}{{"cpu":{},"busy_ns":{},"idle_ns":{},"steal_ns":{}}})", separator, now.cpu,
        spent(&CpuTicks::busy), spent(&CpuTicks::idle), spent(&CpuTicks::steal));
    separator = ",";
  }
  lines_ += ']';
  std::swap(cpus_, cpus_now_);
}

void Monitor::write_pressure() {
  const auto total = [](const Descriptor& file, std::string_view which) {
    const auto text = read_again(file);
    return text ? parse_pressure(*text, which) : std::nullopt;
  };
  const auto cpu = total(pressure_cpu_, "some");
  const auto memory = total(pressure_memory_, "full");
  const auto io = total(pressure_io_, "full");
  if (!cpu && !memory && !io) {
    lines_ += ",\"pressure\":null";
    return;
  }
  say(R"(,"pressure":{{"cpu_some_us":{},"memory_full_us":{},"io_full_us":{}}})", OrNull{cpu}, OrNull{memory},
      OrNull{io});
}

void Monitor::write_groups() {
  lines_ += ",\"groups\":{";
  const char* separator = "";
  for (auto& [name, group] : groups_) {
    std::int64_t processes = 0;
    std::int64_t rss_kb = 0;
    for (const auto& [pid, process] : processes_) {
      if (process.group != name || process.threads.empty()) continue;
      ++processes;
      rss_kb += process.rss_kb;
    }
    const bool known = group.io_known;
    say(R"({}{}:{{"processes":{},"rss_kb":{},"read_bytes":{},"write_bytes":{}}})", separator, json_text(name),
        processes, rss_kb, OrNull{known ? std::optional(group.io.read_bytes) : std::nullopt},
        OrNull{known ? std::optional(group.io.write_bytes) : std::nullopt});
    separator = ",";
    ++group.samples;
  }
  lines_ += '}';
}

void Monitor::flush() {
  if (output_.write(lines_)) {
    header_written_ = true;
  } else {
    ++lost_samples_;
    report_once(output_.error() + "; samples are lost until it can be written again");
    // Lines about threads may have been lost.
    for (auto& [pid, process] : processes_) {
      for (Thread& thread : process.threads) thread.announced = false;
    }
  }
  lines_.clear();
}

void Monitor::report_once(const std::string& text) {
  if (std::exchange(reported_, true)) return;
  control_.send({{"type", "error"}, {"kind", "failed"}, {"text", text}});
}

Nanoseconds Monitor::started_ns(std::uint64_t start_ticks) const {
  return static_cast<Nanoseconds>(start_ticks) * (kNanosecondsPerSecond / ticks_per_second_) -
         boot_offset_ns_;
}

}  // namespace perflab::monitor
