// The BPF source on this machine's kernel. If it is not permitted, all tests that need it are skipped with
// the reason.
#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/audit.h>
#include <linux/bpf.h>
#include <linux/filter.h>
#include <linux/perf_event.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <fstream>
#include <map>
#include <set>
#include <sstream>
#include <thread>
#include <tuple>

#include "tracing/scheduler/process_tree.h"
#include "tracing/scheduler/source.h"
#include "tracing/scheduler/tracepoint.h"

namespace perflab::tracing {
namespace {

constexpr std::int64_t kMillisecond = 1'000'000;

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000ll + time.tv_nsec;
}

std::vector<unsigned> cpus_allowed() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<unsigned> cpus;
  for (unsigned cpu = 0; cpu < CPU_SETSIZE; ++cpu)
    if (CPU_ISSET(cpu, &set)) cpus.push_back(cpu);
  return cpus;
}

void run_on(unsigned cpu) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(cpu, &set);
  sched_setaffinity(0, sizeof set, &set);
}

SourceSettings keeping(std::vector<std::int32_t> roots, std::size_t bytes = SourceSettings{}.buffer_bytes) {
  SourceSettings settings;
  settings.roots = std::move(roots);
  settings.buffer_bytes = bytes;
  return settings;
}

SourceSettings on_cpus(std::vector<unsigned> cpus) {
  SourceSettings settings;
  settings.cpus = std::move(cpus);
  return settings;
}

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() { EXPECT_EQ(pipe2(ends, O_CLOEXEC), 0); }
  ~Pipe() {
    for (const int end : ends)
      if (end >= 0) close(end);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  void write_byte() const { [[maybe_unused]] const auto n = write(ends[1], "x", 1); }
  // False if the other end is closed.
  [[nodiscard]] bool read_byte() const {
    char byte;
    return read(ends[0], &byte, 1) == 1;
  }
};

// A process that waits for go() and then does its work, repeatedly if requested. It ends with this object.
class Child {
 public:
  template <typename Work>
  explicit Child(Work work, int times = 1) {
    pid_ = fork();
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(go_.ends[1]), go_.ends[1] = -1;
    for (int i = 0; i < times && go_.read_byte(); ++i) {
      work(answer_.ends[1]);
      answer_.write_byte();
    }
    _exit(0);
  }
  ~Child() {
    if (!ended_) {
      kill(pid_, SIGKILL);
      waitpid(pid_, nullptr, 0);
    }
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  [[nodiscard]] pid_t pid() const { return pid_; }
  void go() const { go_.write_byte(); }
  // Output of the work.
  template <typename T>
  [[nodiscard]] T answer() const {
    T value{};
    EXPECT_EQ(read(answer_.ends[0], &value, sizeof value), static_cast<ssize_t>(sizeof value));
    return value;
  }
  void wait_for_work() const { EXPECT_TRUE(answer_.read_byte()); }
  void wait_for_end() {
    waitpid(pid_, nullptr, 0);
    ended_ = true;
  }

 private:
  Pipe go_, answer_;
  pid_t pid_ = 0;
  bool ended_ = false;
};

// A player's own data.
struct Player {
  pid_t tid = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  long voluntary_switches = 0;
};

template <typename Play>
Player play(Play rounds) {
  const auto switches = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nvcsw;
  };
  Player self{.tid = gettid()};
  self.begin_ns = now_ns();
  const long before = switches();
  rounds();
  self.voluntary_switches = switches() - before;
  self.end_ns = now_ns();
  return self;
}

// Two threads on one CPU pass a byte to each other.
std::array<Player, 2> ping_pong(unsigned cpu, int rounds) {
  run_on(cpu);
  Pipe there, back;
  std::array<Player, 2> players;
  std::thread other([&] {
    players[1] = play([&] {
      for (int i = 0; i < rounds && there.read_byte(); ++i) back.write_byte();
    });
  });
  players[0] = play([&] {
    for (int i = 0; i < rounds; ++i) {
      there.write_byte();
      if (!back.read_byte()) break;
    }
  });
  other.join();
  return players;
}

auto ping_pong_work(unsigned cpu, int rounds) {
  return [=](int answer) {
    const auto players = ping_pong(cpu, rounds);
    [[maybe_unused]] const auto n = write(answer, &players, sizeof players);
  };
}

struct Recorded {
  SchedulerEvent event;
  unsigned cpu;
  std::string filename;
};

// All events of a source.
class Recording {
 public:
  void drain(Source& source, std::int64_t timeout_ns) {
    source.drain(
        [this](unsigned cpu, std::span<const SchedulerEvent> events) {
          for (const SchedulerEvent& event : events) {
            all.push_back({event, cpu, std::string(event.filename)});
            all.back().event.filename = {};
          }
        },
        timeout_ns);
    for (const Loss& loss : source.take_losses()) losses.push_back(loss);
  }
  void finish(Source& source) {
    source.stop();
    drain(source, 0);
  }
  [[nodiscard]] std::uint64_t lost() const {
    std::uint64_t events = 0;
    for (const Loss& loss : losses) events += loss.events;
    return events;
  }
  // Losses without a CPU: program runs that the kernel skipped.
  [[nodiscard]] std::uint64_t missed() const {
    std::uint64_t events = 0;
    for (const Loss& loss : losses) events += loss.cpu ? 0 : loss.events;
    return events;
  }
  template <typename Is>
  [[nodiscard]] std::uint64_t count(Is is) const {
    return static_cast<std::uint64_t>(
        std::ranges::count_if(all, [&](const Recorded& one) { return is(one.event); }));
  }

  std::vector<Recorded> all;
  std::vector<Loss> losses;
};

// Linux 6.15 and later.
bool kernel_says_who_came() {
  std::ifstream symbols("/proc/kallsyms");
  std::string address, kind, name, line;
  while (std::getline(symbols, line)) {
    std::istringstream words(line);
    if (words >> address >> kind >> name && name == "__traceiter_sched_exit_tp") return true;
  }
  return false;
}

class EbpfSourceLive : public testing::Test {
 protected:
  void SetUp() override {
    try {
      (void)open_ebpf_source({});
    } catch (const Unsupported& error) {
      GTEST_SKIP() << error.what();
    }
  }
  const std::vector<unsigned> allowed_ = cpus_allowed();
};

TEST_F(EbpfSourceLive, EventsOfACpuComeInTheOrderOfTimeAndWhoCameIsWhoLeaves) {
  const auto source = open_ebpf_source({});
  EXPECT_STREQ(source->name(), "ebpf");
  EXPECT_TRUE(source->filters());
  Recording recording;
  const std::int64_t begin = now_ns();
  source->start();
  Child first(ping_pong_work(allowed_.front(), 500), 3), second(ping_pong_work(allowed_.back(), 500), 3);
  std::set<std::int32_t> players;
  for (int i = 0; i < 3; ++i) {
    first.go(), second.go();
    for (const Child* child : {&first, &second})
      for (const Player& player : child->answer<std::array<Player, 2>>()) players.insert(player.tid);
    first.wait_for_work(), second.wait_for_work();
    recording.drain(*source, kMillisecond);
  }
  recording.finish(*source);
  const std::int64_t end = now_ns();

  ASSERT_GT(recording.all.size(), 3000u);
  std::map<unsigned, std::int64_t> last;
  std::map<unsigned, std::int32_t> running;
  const bool says_who_came = kernel_says_who_came();
  std::set<std::int32_t> begun;
  std::uint64_t contradictions = 0;
  for (const auto& [event, cpu, filename] : recording.all) {
    ASSERT_GE(event.time_ns, last.emplace(cpu, begin).first->second);
    ASSERT_LE(event.time_ns, end);
    last[cpu] = event.time_ns;
    if (event.kind == EventKind::fork) begun.insert(event.other);
    if (event.kind != EventKind::switched) continue;
    const auto known = running.find(cpu);
    // On some kernels the tracepoint omits switches of some threads for every tracer, including ftrace. The
    // incoming thread reports these, if the kernel has a tracepoint for it, except for its first time.
    const bool asked = says_who_came ? !begun.contains(event.subject)
                                     : known != running.end() && players.contains(known->second);
    if (known != running.end() && known->second != event.subject && asked) ++contradictions;
    running[cpu] = event.other;
  }
  EXPECT_LE(contradictions, recording.lost());
  for (const unsigned cpu : allowed_) EXPECT_TRUE(running.contains(cpu)) << cpu;
}

TEST_F(EbpfSourceLive, WhatATinyRingCannotTakeIsCountedAndPlaced) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  Child child(ping_pong_work(allowed_.back(), 1000), 2);
  // The same events, because both only keep those of the child.
  const auto large = open_ebpf_source(keeping({child.pid()}, 1u << 24));
  const auto tiny = open_ebpf_source(keeping({child.pid()}, page));
  Recording of_large, of_tiny;
  large->start(), tiny->start();
  child.go();
  (void)child.answer<std::array<Player, 2>>();
  child.wait_for_work();
  of_tiny.drain(*tiny, 0);
  child.go();  // so that something comes after the loss
  (void)child.answer<std::array<Player, 2>>();
  child.wait_for_end();
  of_tiny.finish(*tiny);
  of_large.finish(*large);

  std::uint64_t placed = 0;
  std::map<unsigned, std::vector<std::int64_t>> times;
  for (const Recorded& one : of_tiny.all) times[one.cpu].push_back(one.event.time_ns);
  for (const Loss& loss : of_tiny.losses) {
    if (!loss.cpu) continue;
    placed += loss.events;
    EXPECT_LE(loss.after_ns, loss.before_ns);
    for (const std::int64_t time : times[*loss.cpu])
      EXPECT_TRUE(time <= loss.after_ns || time >= loss.before_ns) << "an event inside the gap";
  }
  EXPECT_GT(placed, 4000u);
  EXPECT_EQ(of_large.lost(), of_large.missed());
  const auto all_of_large = static_cast<std::int64_t>(of_large.all.size()),
             all_of_tiny = static_cast<std::int64_t>(of_tiny.all.size() + placed);
  EXPECT_LE(std::abs(all_of_large - all_of_tiny),
            static_cast<std::int64_t>(of_large.missed() + of_tiny.missed()));
}

using Key =
    std::tuple<int, std::int32_t, std::int32_t, std::int64_t, std::int32_t, std::int32_t, std::int32_t>;

Key key_of(const SchedulerEvent& e) {
  return {static_cast<int>(e.kind), e.subject, e.other, e.state, e.target_cpu, e.from_cpu, e.tid};
}

TEST_F(EbpfSourceLive, TheFilterKeepsTheTreeAndTheSwitchesWhileOneOfItWaitsAndNothingElse) {
  const unsigned cpu = allowed_.back();
  // Several program runs skipped by the kernel would make the two sources differ; several in a row are
  // unlikely.
  for (int attempt = 0;; ++attempt) {
    // A tree with threads, an exec, and a process that outlives its parent's work.
    Child tree([cpu](int) {
      run_on(cpu);
      const pid_t program = fork();
      if (program == 0) {
        execl("/bin/true", "true", nullptr);
        _exit(1);
      }
      std::thread busy([] {
        const std::int64_t until = now_ns() + 30 * kMillisecond;
        while (now_ns() < until) {
        }
      });
      ping_pong(cpu, 100);
      busy.join();
      waitpid(program, nullptr, 0);
    });
    // Unrelated processes on the same CPU, so that the tree has to wait for them.
    Child strangers([cpu](int) {
      run_on(cpu);
      const std::int64_t until = now_ns() + 30 * kMillisecond;
      for (int i = 0; i < 30 || now_ns() < until; ++i) ping_pong(cpu, 20);
    });
    const auto everything = open_ebpf_source(keeping({}, 1u << 24));
    const auto filtered = open_ebpf_source(keeping({tree.pid()}, 1u << 24));
    everything->start(), filtered->start();
    // Existing threads of the tree; a sanitizer adds one of its own.
    const std::vector<ProcThread> there = threads_below(tree.pid());
    tree.go(), strangers.go();
    tree.wait_for_work(), strangers.wait_for_work();
    tree.wait_for_end(), strangers.wait_for_end();
    Recording of_everything, of_filtered;
    of_filtered.finish(*filtered);
    of_everything.finish(*everything);
    if (of_everything.lost() + of_filtered.lost() > 0 && attempt < 5) continue;
    ASSERT_EQ(of_everything.lost() + of_filtered.lost(), 0u);

    std::ranges::stable_sort(of_everything.all, {}, [](const Recorded& one) { return one.event.time_ns; });
    // The filter applied to sources without one.
    ProcessTree reference;
    for (const ProcThread& thread : there) reference.add({.pid = thread.pid, .tid = thread.tid});
    std::map<unsigned, std::vector<Key>> expected, got;
    std::uint64_t others = 0;
    for (const Recorded& one : of_everything.all) {
      if (reference.keep(one.cpu, one.event)) {
        expected[one.cpu].push_back(key_of(one.event));
      } else {
        ++others;
      }
    }
    // Without events that the filter adds itself when a thread of the tree moves to an occupied CPU.
    for (const Recorded& one : of_filtered.all) {
      if (static_cast<std::size_t>(one.event.kind) < kKernelEvents) got[one.cpu].push_back(key_of(one.event));
    }
    EXPECT_EQ(got, expected);
    EXPECT_GT(of_filtered.all.size(), 400u);
    EXPECT_GT(others, 400u);
    // The unfiltered source started earlier and ended later.
    EXPECT_GT(filtered->filtered_out(), 400u);
    EXPECT_LE(filtered->filtered_out(), others);
    EXPECT_EQ(everything->filtered_out(), 0u);
    const auto between_strangers = of_filtered.count(
        [&](const SchedulerEvent& e) { return e.kind == EventKind::switched && e.pid == strangers.pid(); });
    EXPECT_GT(between_strangers, 0u) << "nobody waited, so that the holders were not tested";
    return;
  }
}

TEST_F(EbpfSourceLive, ATreeThatIsThereAlreadyIsFound) {
  Child parent([](int answer) {
    Pipe stay;
    const pid_t inner = fork();
    if (inner == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      std::thread thread([&] {
        const pid_t tid = gettid();
        [[maybe_unused]] auto n = write(answer, &tid, sizeof tid);
        for (;;) usleep(1000);
      });
      thread.join();
    }
    for (;;) pause();
  });
  parent.go();
  const auto thread = parent.answer<pid_t>();
  const auto source = open_ebpf_source(keeping({parent.pid()}));
  Recording recording;
  source->start();
  const auto seen = [&] {
    return recording.count(
        [&](const SchedulerEvent& e) { return e.kind == EventKind::switched && e.other == thread; });
  };
  for (int i = 0; i < 400 && seen() < 3; ++i) recording.drain(*source, 50 * kMillisecond);
  EXPECT_GE(seen(), 3u);
}

TEST_F(EbpfSourceLive, ARootCanBeAddedLater) {
  Child child(ping_pong_work(allowed_.front(), 50), 2), stranger(ping_pong_work(allowed_.front(), 50), 2);
  const auto source = open_ebpf_source({});
  Recording before, after;
  source->start();
  child.go(), stranger.go();
  (void)child.answer<std::array<Player, 2>>(), (void)stranger.answer<std::array<Player, 2>>();
  child.wait_for_work(), stranger.wait_for_work();
  before.drain(*source, 0);
  source->add_root(child.pid());
  before.drain(*source, 0);
  child.go(), stranger.go();
  (void)child.answer<std::array<Player, 2>>(), (void)stranger.answer<std::array<Player, 2>>();
  child.wait_for_end(), stranger.wait_for_end();
  after.finish(*source);

  const auto woken_by = [](const Recording& in, pid_t process) {
    return in.count([&](const SchedulerEvent& e) { return e.kind == EventKind::waking && e.pid == process; });
  };
  EXPECT_GT(woken_by(before, child.pid()), 0u);
  EXPECT_GT(woken_by(before, stranger.pid()), 0u);
  EXPECT_GT(woken_by(after, child.pid()), 0u);
  // The threads of the other process wake each other; none belongs to the tree.
  EXPECT_EQ(woken_by(after, stranger.pid()), 0u);
}

// Such a thread gets the number of the first one, which ends.
TEST_F(EbpfSourceLive, AnExecutionByAnotherThanTheFirstThreadIsKept) {
  constexpr int kPrograms = 30;
  Child child([](int) {
    for (int i = 0; i < kPrograms; ++i) {
      const pid_t program = fork();
      if (program == 0) {
        std::thread([] { execl("/bin/true", "true", nullptr); }).join();
        _exit(1);
      }
      waitpid(program, nullptr, 0);
    }
  });
  const auto source = open_ebpf_source(keeping({child.pid()}));
  Recording recording;
  source->start();
  child.go();
  child.wait_for_end();
  recording.finish(*source);
  if (recording.lost() > 0) GTEST_SKIP() << "the kernel left " << recording.lost() << " events out";
  int executions = 0;
  for (const Recorded& one : recording.all) {
    if (one.event.kind != EventKind::exec) continue;
    ++executions;
    EXPECT_NE(one.event.subject, one.event.other);
  }
  EXPECT_EQ(executions, kPrograms);
}

TEST_F(EbpfSourceLive, OnlyTheCpusThatWereAskedForAreRecorded) {
  if (allowed_.size() < 2) GTEST_SKIP() << "this process may use one CPU only";
  Child other(ping_pong_work(allowed_.front(), 50)), asked(ping_pong_work(allowed_.back(), 50));
  const auto source = open_ebpf_source(on_cpus({allowed_.back()}));
  EXPECT_EQ(source->cpus(), std::vector<unsigned>{allowed_.back()});
  Recording recording;
  source->start();
  other.go(), asked.go();
  other.wait_for_end(), asked.wait_for_end();
  recording.finish(*source);
  EXPECT_GT(recording.all.size(), 100u);
  for (const Recorded& one : recording.all) ASSERT_EQ(one.cpu, allowed_.back());
  EXPECT_EQ(recording.lost(), recording.missed());
}

TEST_F(EbpfSourceLive, NothingComesBeforeItStartsOrAfterItStops) {
  const auto source = open_ebpf_source({});
  Recording before, between, after;
  usleep(20'000);
  before.drain(*source, 0);
  EXPECT_EQ(before.all.size(), 0u);
  const std::int64_t begin = now_ns();
  source->start();
  usleep(20'000);
  source->stop();
  const std::int64_t end = now_ns();
  usleep(20'000);
  between.drain(*source, 0);
  EXPECT_GT(between.all.size(), 0u);
  for (const Recorded& one : between.all) {
    EXPECT_GE(one.event.time_ns, begin);
    EXPECT_LE(one.event.time_ns, end);
  }
  after.drain(*source, 0);
  EXPECT_EQ(after.all.size(), 0u);
}

// The reader sleeps until a quarter of a ring is full, or a timeout.
TEST_F(EbpfSourceLive, TheReaderIsNotWokenForEachEvent) {
  Child child(ping_pong_work(allowed_.back(), 2000));
  const auto source = open_ebpf_source(keeping({child.pid()}, 1u << 20));
  Recording recording;
  source->start();
  child.go();
  const std::int64_t begin = now_ns();
  recording.drain(*source, 60'000 * kMillisecond);
  EXPECT_LT(now_ns() - begin, 60'000 * kMillisecond) << "nobody woke it";
  EXPECT_GT(recording.all.size(), 100u);
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  const long switches = usage.ru_nvcsw;
  child.wait_for_end();
  recording.drain(*source, 10 * kMillisecond);
  getrusage(RUSAGE_THREAD, &usage);
  EXPECT_LT(usage.ru_nvcsw - switches, 50);
  recording.finish(*source);
  EXPECT_GT(recording.all.size(), 8000u);
}

// Other kinds of program may withhold a tracepoint's events from all others.
TEST_F(EbpfSourceLive, OthersThatTraceTheSamePointStillSeeItsEvents) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof attributes;
  attributes.config = read_tracepoint_format("sched", "sched_switch").id;
  const unsigned cpu = allowed_.back();
  const int counter = static_cast<int>(
      syscall(SYS_perf_event_open, &attributes, -1, static_cast<int>(cpu), -1, PERF_FLAG_FD_CLOEXEC));
  ASSERT_GE(counter, 0);
  const auto counted = [counter] {
    std::uint64_t count = 0;
    EXPECT_EQ(read(counter, &count, sizeof count), static_cast<ssize_t>(sizeof count));
    return count;
  };
  Child child(ping_pong_work(cpu, 200));
  const auto source = open_ebpf_source(keeping({child.pid()}));
  source->start();
  const std::uint64_t before = counted();
  child.go();
  const auto players = child.answer<std::array<Player, 2>>();
  const auto own = static_cast<std::uint64_t>(players[0].voluntary_switches + players[1].voluntary_switches);
  EXPECT_GE(counted() - before, own);
  close(counter);
}

// perf's record of an event has the values of the kernel's own tracepoint; the programs read its structures
// instead.
TEST_F(EbpfSourceLive, WhatPerfSaysOfAThreadIsWhatTheProgramsSay) {
  const auto perf = open_perf_source({});
  Child child([from = allowed_.front(), cpu = allowed_.back()](int answer) {
    run_on(from);
    run_on(cpu);
    prctl(PR_SET_NAME, "perflab states");
    for (int i = 0; i < 20; ++i) {
      const pid_t program = fork();
      if (program == 0) {
        nice(i % 5);
        std::thread([] { usleep(1000); }).join();
        execl("/bin/true", "true", nullptr);
        _exit(1);
      }
      waitpid(program, nullptr, 0);
    }
    ping_pong_work(cpu, 200)(answer);
  });
  const auto source = open_ebpf_source({});
  Recording of_perf, of_programs;
  source->start(), perf->start();
  child.go();
  child.wait_for_end();
  of_perf.finish(*perf);
  of_programs.finish(*source);

  const auto said = [&](Recording& recording) {
    std::ranges::stable_sort(recording.all, {}, [](const Recorded& one) { return one.event.time_ns; });
    std::map<std::tuple<Key, std::int32_t, std::int32_t, std::string, std::string>, int> events;
    std::set<std::int32_t> tree = {child.pid()};
    for (const Recorded& one : recording.all)
      if (one.event.kind == EventKind::fork && tree.contains(one.event.subject)) tree.insert(one.event.other);
    for (const auto& [event, cpu, filename] : recording.all) {
      const bool has_priority = event.kind != EventKind::fork && event.kind != EventKind::exec;
      if (tree.contains(event.subject))
        ++events[{key_of(event), event.other_pid, has_priority ? event.subject_priority : 0,
                  event.kind == EventKind::exec ? "" : event.subject_comm.data(), filename}];
    }
    return events;
  };
  const auto theirs = said(of_perf), ours = said(of_programs);
  std::uint64_t all = 0, missing = 0;
  for (const auto& [what, count] : theirs) {
    const auto found = ours.find(what);
    const int here = found == ours.end() ? 0 : found->second;
    all += static_cast<std::uint64_t>(count);
    if (here < count) missing += static_cast<std::uint64_t>(count - here);
  }
  EXPECT_GT(all, 500u);
  EXPECT_LE(missing, of_programs.lost());
}

constexpr std::int64_t kClocksApartNs = 50'000;  // of two sources that take the time of one event

// Threads that sleep, wait for each other's CPU, are preempted there, and migrate.
void sleep_and_compute(int answer) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 6; ++i) {
    threads.emplace_back([i] {
      volatile unsigned work = 0;
      for (int round = 0; round < 200; ++round) {
        usleep(static_cast<useconds_t>(200 + 700 * i));
        for (const std::int64_t end = now_ns() + kMillisecond / 4 * (i % 3); now_ns() < end;) work = work + 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  [[maybe_unused]] const auto n = write(answer, "x", 1);
}

// One source does not see wake-ups that another one sees: what it recovers must be these.
TEST_F(EbpfSourceLive, AWakeUpThatIsNotHeardIsRecoveredWhereItWas) {
  Child child(sleep_and_compute);
  SourceSettings deaf = keeping({child.pid()}, 1u << 24);
  deaf.unheard = {EventKind::waking, EventKind::wakeup};
  const auto hears = open_ebpf_source(keeping({child.pid()}, 1u << 24)), recovers = open_ebpf_source(deaf);
  if (!recovers->recovered_wakeups()) GTEST_SKIP() << "this kernel does not say what it takes";
  Recording heard, recovered;
  hears->start(), recovers->start();
  child.go();
  (void)child.answer<char>();
  child.wait_for_end();
  heard.finish(*hears), recovered.finish(*recovers);

  // Per thread in order of time: when it fell asleep, was woken and switched in.
  std::map<std::int32_t, std::vector<SchedulerEvent>> of_thread;
  std::ranges::stable_sort(heard.all, {}, [](const Recorded& one) { return one.event.time_ns; });
  for (const Recorded& one : heard.all) {
    const SchedulerEvent& event = one.event;
    if (event.kind == EventKind::wakeup || event.kind == EventKind::switched)
      of_thread[event.subject].push_back(event);
    if (event.kind == EventKind::switched) of_thread[event.other].push_back(event);
  }
  std::vector<std::int64_t> differences;
  // Those that this machine withholds from both.
  const auto kept_from_both = [&](const SchedulerEvent& event) {
    return std::ranges::any_of(heard.all, [&](const Recorded& one) {
      return one.event.kind == EventKind::wakeup_recovered && one.event.subject == event.subject &&
             std::abs(one.event.time_ns - event.time_ns) < kClocksApartNs;
    });
  };
  std::uint64_t of_none = 0;
  for (const Recorded& one : recovered.all) {
    if (one.event.kind != EventKind::wakeup_recovered) continue;
    const SchedulerEvent& event = one.event;
    const auto& events = of_thread[event.subject];
    // The switch to it, of which the two take the time one after the other.
    auto came = std::ranges::find_if(events, [&](const SchedulerEvent& e) {
      return e.kind == EventKind::switched && e.other == event.subject &&
             std::abs(e.time_ns - event.time_ns) < kClocksApartNs;
    });
    if (came == events.end()) continue;
    while (came != events.begin() && came->kind != EventKind::wakeup &&
           !(came->kind == EventKind::switched && came->subject == event.subject))
      --came;
    if (came->kind == EventKind::wakeup)
      differences.push_back(event.time_ns - event.waited_ns - came->time_ns);
    else if (!kept_from_both(event))
      ++of_none;
  }
  ASSERT_GT(differences.size(), 600u);
  EXPECT_EQ(of_none, 0u) << "recovered where the thread was not woken";
  std::ranges::sort(differences);
  const auto at = [&](double share) {
    return differences[static_cast<std::size_t>(share * static_cast<double>(differences.size() - 1))];
  };
  for (const auto& [name, share] :
       {std::pair("least", 0.0), {"p1", 0.01}, {"median", 0.5}, {"p99", 0.99}, {"most", 1.0}})
    RecordProperty(name, std::to_string(at(share)) + " ns");
  RecordProperty("n", std::to_string(differences.size()));
  // Sleeps take 200 us or more. A kernel that is slow between its clock and the program may be late, but not
  // for most.
  EXPECT_LT(std::abs(at(0.5)), 50'000);
  EXPECT_EQ(heard.count([](const SchedulerEvent& e) { return e.kind == EventKind::wakeup_recovered; }),
            hears->recovered_wakeups());
  EXPECT_EQ(recovered.count([](const SchedulerEvent& e) { return e.kind == EventKind::wakeup; }), 0u);
}

// Holders of the CPUs for which threads waited unseen, compared with a source that sees everything.
TEST_F(EbpfSourceLive, WhoHadTheCpuIsWhoWasSwitchedTo) {
  Child child(sleep_and_compute), beside([](int) {
    std::vector<std::thread> threads;  // threads that keep every CPU from the tree, intermittently
    for (unsigned i = 0; i < 2 * std::thread::hardware_concurrency(); ++i)
      threads.emplace_back([i] {
        for (int round = 0; round < 150; ++round) {
          for (const std::int64_t end = now_ns() + kMillisecond; now_ns() < end;) {
          }
          usleep(static_cast<useconds_t>(300 + 200 * i));
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
  SourceSettings deaf = keeping({child.pid()}, 1u << 24);
  deaf.unheard = {EventKind::waking, EventKind::wakeup};
  const auto sees_all = open_ebpf_source(keeping({}, 1u << 24)), keeps = open_ebpf_source(deaf);
  if (!keeps->recovered_wakeups()) GTEST_SKIP() << "this kernel does not say what it takes";
  Recording all, kept;
  sees_all->start(), keeps->start();
  beside.go(), child.go();
  (void)child.answer<char>();
  all.finish(*sees_all), kept.finish(*keeps);
  ASSERT_EQ(all.lost() + kept.lost(), 0u);

  std::map<unsigned, std::map<std::int64_t, std::int32_t>> came;  // by CPU and time
  for (const Recorded& one : all.all)
    if (one.event.kind == EventKind::switched) came[one.cpu][one.event.time_ns] = one.event.other;
  std::uint64_t told = 0, others = 0;
  for (const Recorded& one : kept.all) {
    if (one.event.kind != EventKind::cpu_held) continue;
    const std::int64_t since = one.event.time_ns - one.event.held_ns,
                       until = one.event.time_ns - one.event.waited_ns;
    EXPECT_LE(since, until);
    const auto& there = came[static_cast<unsigned>(one.event.target_cpu)];
    const auto next = there.upper_bound(since + (until - since) / 2);
    if (next == there.begin()) continue;  // it arrived before the other source started
    ++told;
    if (std::prev(next)->second != one.event.subject) ++others;
  }
  RecordProperty("told", std::to_string(told));
  RecordProperty("others", std::to_string(others));
  ASSERT_GT(told, 50u);
  // The two take the time of a switch one after the other, and a CPU's holder may be recorded while it goes
  // on.
  EXPECT_LE(others, told / 20);
}

TEST_F(EbpfSourceLive, BadSettingsAreSaid) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  EXPECT_THROW((void)open_ebpf_source(keeping({}, 3 * page)), BadInput);
  EXPECT_THROW((void)open_ebpf_source(keeping({}, page / 2)), BadInput);
  EXPECT_THROW((void)open_ebpf_source(on_cpus({60000})), BadInput);
  EXPECT_THROW((void)open_ebpf_source(keeping({0x7ffffff0})), BadInput);
}

// Nothing is left
// ------------------------------------------------------------------------------------------------------------------

using Numbers = std::set<std::uint32_t>;

// All objects in the kernel, of any owner.
Numbers numbers_in_kernel(bpf_cmd next) {
  Numbers numbers;
  bpf_attr attributes{};
  while (syscall(SYS_bpf, next, &attributes, sizeof attributes) == 0) {
    numbers.insert(attributes.next_id);
    attributes.start_id = attributes.next_id;
  }
  return numbers;
}

// Those that a process holds by descriptors, e.g. key "prog_id:".
Numbers numbers_of(pid_t pid, const std::string& key) {
  Numbers numbers;
  const std::string folder = "/proc/" + std::to_string(pid) + "/fdinfo";
  DIR* const directory = opendir(folder.c_str());
  if (directory == nullptr) return numbers;
  while (const dirent* entry = readdir(directory)) {
    std::ifstream file(folder + "/" + entry->d_name);
    for (std::string word; file >> word;)
      if (std::uint32_t number = 0; word == key && file >> number) numbers.insert(number);
  }
  closedir(directory);
  return numbers;
}

bool any_of(const Numbers& these, const Numbers& in) {
  return std::ranges::any_of(these, [&](std::uint32_t number) { return in.contains(number); });
}

TEST_F(EbpfSourceLive, NothingIsLeftInTheKernelOfAProcessThatWasKilled) {
  Child recorder([](int answer) {
    const auto source = open_ebpf_source({});
    source->start();
    [[maybe_unused]] const auto n = write(answer, "x", 1);
    for (;;) pause();
  });
  recorder.go();
  (void)recorder.answer<char>();
  const Numbers programs = numbers_of(recorder.pid(), "prog_id:"),
                maps = numbers_of(recorder.pid(), "map_id:");
  EXPECT_EQ(programs.size(), kernel_says_who_came() ? 10u : 9u);
  EXPECT_EQ(maps.size(), 6 + open_ebpf_source({})->cpus().size());
  const Numbers all_programs = numbers_in_kernel(BPF_PROG_GET_NEXT_ID),
                all_maps = numbers_in_kernel(BPF_MAP_GET_NEXT_ID);
  if (all_programs.empty())
    GTEST_SKIP() << "programs of the kernel may not be listed here: CAP_SYS_ADMIN is missing";
  EXPECT_TRUE(std::ranges::includes(all_programs, programs));
  EXPECT_TRUE(std::ranges::includes(all_maps, maps));

  kill(recorder.pid(), SIGKILL);
  recorder.wait_for_end();
  // The kernel cleans up asynchronously.
  const auto left = [&] {
    return any_of(programs, numbers_in_kernel(BPF_PROG_GET_NEXT_ID)) ||
           any_of(maps, numbers_in_kernel(BPF_MAP_GET_NEXT_ID));
  };
  for (int i = 0; i < 2000 && left(); ++i) usleep(10'000);
  EXPECT_FALSE(left());
}

// Rights
// ------------------------------------------------------------------------------------------------------------------

// The error for a process that first gives something up.
template <typename GiveUp>
std::string refusal_after(GiveUp give_up) {
  Pipe answer;
  const pid_t pid = fork();
  if (pid == 0) {
    std::string text = "it was not refused";
    give_up();
    try {
      (void)open_ebpf_source({});
    } catch (const Unsupported& error) {
      text = error.what();
    } catch (const std::exception& error) {
      text = std::string("not Unsupported: ") + error.what();
    }
    [[maybe_unused]] const auto n = write(answer.ends[1], text.data(), text.size());
    _exit(0);
  }
  waitpid(pid, nullptr, 0);
  char text[2000];
  const auto length = read(answer.ends[0], text, sizeof text);
  return length > 0 ? std::string(text, static_cast<std::size_t>(length)) : "";
}

TEST(EbpfRights, WithoutCapabilitiesTheyAreNamedAndHowToGetThem) {
  const std::string text = refusal_after([] {
    if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) _exit(1);
  });
  if (text == "it was not refused" || text.find("no bpf(2)") != std::string::npos) GTEST_SKIP() << text;
  EXPECT_NE(text.find("CAP_BPF and CAP_PERFMON"), std::string::npos) << text;
  EXPECT_NE(text.find("kernel.unprivileged_bpf_disabled is "), std::string::npos) << text;
  EXPECT_NE(text.find("`sudo setcap cap_bpf,cap_perfmon"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos);
}

TEST_F(EbpfSourceLive, AFilterOfSystemCallsIsSuspectedWhereTheCapabilitiesAreThere) {
  const std::string text = refusal_after([] {
    sock_filter refuse_bpf[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_bpf, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    const sock_fprog program{static_cast<unsigned short>(std::size(refuse_bpf)), refuse_bpf};
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program);
  });
  EXPECT_NE(text.find("although the capabilities are present: a seccomp filter"), std::string::npos) << text;
  EXPECT_NE(text.find("`docker run --privileged --pid=host`"), std::string::npos) << text;
}

}  // namespace
}  // namespace perflab::tracing
