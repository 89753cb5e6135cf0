#include "traceview/scheduler.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "traceview/scheduler_rows.h"

namespace perflab::traceview {

namespace {

constexpr std::int64_t kForever = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kLongestName = 15;  // limit of a thread's name in the kernel
constexpr std::int64_t kClocksApartNs =
    10'000;  // tolerance between time stamps of a kernel tracer and a user-space tracer

enum class Doing : std::uint8_t { unknown, running, preempted, blocked, woken, stopped, traced };

ThreadState state_of(Doing doing) noexcept {
  return static_cast<ThreadState>(static_cast<std::uint8_t>(doing) -
                                  static_cast<std::uint8_t>(Doing::running));
}

// Not running and not waiting for a CPU.
bool is_asleep(Doing doing) noexcept {
  return doing == Doing::blocked || doing == Doing::stopped || doing == Doing::traced;
}

Doing asleep_after(EndState state) noexcept {
  switch (state) {
    case EndState::stopped:
      return Doing::stopped;
    case EndState::traced:
      return Doing::traced;
    default:
      return Doing::blocked;
  }
}

// One use of a thread number: from its first event until the thread ends or the number is reused.
struct Life {
  std::int32_t thread = -1;  // row of the directory
  std::int32_t host = 0;
  std::int32_t tid = 0;
  std::int64_t first_ns = 0, last_ns = 0;
  std::int64_t expires_ns = kForever;  // from then on, user-space events show another thread with this number
  Doing doing = Doing::unknown;
  bool tentative = false;  // woken, but it may have run already
  bool begun = false;      // a switch or wake-up of it was recorded
  bool exiting = false;
  bool kept = false;  // belongs to a recorded process tree; true for all threads if the recording is not
                      // limited
  bool dead = false;
  std::int64_t since_ns = 0;
  std::int32_t cpu = kNoNumber;   // CPU on which it runs or waits
  std::int32_t home = kNoNumber;  // CPU on which it ran last or to which it was moved
  std::int32_t priority = kNoNumber;
  std::int64_t off_cpu_ns = kNoTime;  // it certainly did not run at this instant
  std::int64_t held_ns = 0;           // while it waits: holds are written up to this time
  std::uint32_t wait = 0;             // while it waits: index into `waits`
  std::int64_t waking_ns = kNoTime;   // of the first sched_waking since it ran
  std::int32_t waker = kUnknown;
  std::int64_t wake_up = -1;  // wake-up since which it has not run
  std::int64_t futex = -1;    // call in which it waits at an address
};

struct Loss {
  std::int32_t host;
  std::optional<std::int32_t> cpu;
  std::int64_t begin_ns, end_ns;
};

// Holder of a CPU as reported by the recorder.
struct Held {
  std::int64_t begin_ns, end_ns;
  std::int32_t holder;  // a life, or kIdle
};
constexpr std::size_t kHeldKept = 64;  // kept per CPU: each belongs to an event that follows soon

struct Cpu {
  std::int32_t current = kUnknown;   // a life, or one of the constants
  std::int64_t since_ns = kForever;  // begin of that; for kUnknown: time from which a switch would have been
                                     // recorded
  std::int64_t loss_end_ns = kNoTime;
  std::int64_t last_switch_ns = kNoTime;
  bool seen = false;
  bool recorded = false;
  bool named = false;  // an event named this CPU, e.g. as destination of a thread
  std::vector<std::int32_t> waiting;
  std::vector<Held> held;  // ordered by time, without overlaps
};

struct Host {
  std::vector<Cpu> cpus;
  std::vector<std::int32_t> lives;         // lives that have not ended, to which losses apply
  std::vector<Loss> losses;                // future ones, the next one last
  std::int64_t loss_end_ns = kNoTime;      // of any CPU
  std::int64_t all_loss_end_ns = kNoTime;  // of losses that concern all CPUs
  std::int64_t last_ns = kNoTime;
  bool has_wakeups = false;
  bool filtered = false;
};

// A thread was switched away without a recorded switch to it: it began to run at an unknown time in between.
struct Gap {
  std::int64_t begin_ns, end_ns;
  std::int32_t life, cpu, priority;
  EndState end_state;
};

// The name that the kernel gives a thread when it executes this program.
std::string_view name_of_program(std::string_view file) noexcept {
  if (const auto slash = file.rfind('/'); slash != std::string_view::npos) file.remove_prefix(slash + 1);
  return file.substr(0, kLongestName);
}

}  // namespace

struct Scheduler::State {
  State(Directory& given, Coverage& counts) : directory(given), coverage(counts) {}

  Directory& directory;
  Coverage& coverage;
  std::vector<Host> hosts;
  std::vector<Life> lives;
  FlatMap life_by_tid;
  std::vector<bool> waits;  // whether each wait is kept
  SchedulerRows rows;
  std::vector<Loss> late_losses;
  std::vector<Gap> gaps;

  // Recording ------------------------------------------------------------

  static std::size_t place(std::int32_t row) noexcept { return static_cast<std::size_t>(row); }
  Life& at(std::int32_t life) noexcept { return lives[place(life)]; }
  Host& host_of(std::int32_t life) noexcept { return hosts[place(at(life).host)]; }

  Host& host(std::int32_t row) {
    if (hosts.size() <= place(row)) hosts.resize(place(row) + 1);
    return hosts[place(row)];
  }

  Cpu& cpu(Host& of, std::int32_t number) {
    while (of.cpus.size() <= place(number)) {
      Cpu& added = of.cpus.emplace_back();
      added.loss_end_ns = of.all_loss_end_ns;
    }
    return of.cpus[place(number)];
  }

  // The life that has this number at `time`.
  std::int32_t life(std::int32_t host_row, std::int32_t tid, std::int64_t time) {
    std::int32_t found = life_by_tid.find(number_key(host_row, tid));
    if (found >= 0 && !at(found).dead && time >= at(found).expires_ns) end(found, time);
    if (found < 0 || at(found).dead)
      found = begin_life(host_row, tid, directory.thread_at(host_row, tid, time), time);
    at(found).last_ns = time;
    return found;
  }

  std::int32_t begin_life(std::int32_t host_row, std::int32_t tid, std::int32_t thread, std::int64_t time) {
    const auto made = static_cast<std::int32_t>(lives.size());
    Life& life = lives.emplace_back();
    life.thread = thread;
    life.host = host_row;
    life.tid = tid;
    life.first_ns = life.last_ns = time;
    const auto reused = directory.reused_ns(thread);
    if (reused && *reused > time) life.expires_ns = *reused;
    life_by_tid.set(number_key(host_row, tid), made);
    Host& of = host(host_row);
    lives.back().kept = !of.filtered;
    of.lives.push_back(made);
    return made;
  }

  // A new thread, different from all earlier ones with its number.
  std::int32_t new_thread(std::int32_t host_row, std::int32_t tid, std::int64_t time) {
    for (;;) {
      const std::int32_t thread = directory.thread_at(host_row, tid, time);
      const auto first = directory.thread_row(thread).first_ns;
      if (!first || *first >= time) return thread;
      directory.end_thread(thread, time);
    }
  }

  // The thread has ended; its number may be reused.
  void end(std::int32_t life, std::int64_t time) {
    forget(life);
    end_futex(life, time);
    Life& ended = at(life);
    ended.dead = true;
    ended.last_ns = time;
    // A user-space thread whose first event is later is not the one that ended.
    const Directory::Thread& row = directory.thread_row(ended.thread);
    if (row.events > 0 && row.first_ns && *row.first_ns > time) {
      const std::string name = row.name;
      ended.thread = directory.add_thread(ended.host, ended.tid, std::nullopt, ended.first_ns);
      directory.thread_row(ended.thread).name = name;
    }
    directory.end_thread(ended.thread, time);
    auto& living = host_of(life).lives;
    living.erase(std::find(living.begin(), living.end(), life));
  }

  void rename(std::int32_t life, std::string_view name) {
    if (name.empty()) return;
    std::string& known = directory.thread_row(at(life).thread).name;
    if (known != name) known = name;
  }

  void note_priority(std::int32_t life, std::optional<std::int32_t> priority) {
    if (priority) at(life).priority = *priority;
  }

  StateRow& push_state(std::int32_t life, std::int64_t end_ns) {
    const Life& self = at(life);
    return rows.states.emplace_back(StateRow{self.since_ns, end_ns, life,
                                             is_asleep(self.doing) ? kNoNumber : self.cpu, self.priority,
                                             state_of(self.doing), false, EndState::other, false});
  }

  // Writes the holders of the CPU that a thread waits for, up to `time`. `holder` held it since `since`; the holder before
  // that is unknown.
  void write_hold(std::int32_t life, std::int64_t time, std::int32_t holder, std::int64_t since) {
    Life& self = at(life);
    const auto push = [&](std::int64_t start, std::int64_t stop, std::int32_t by) {
      if (stop > start)
        rows.holds.push_back({start, stop, life, self.cpu, by, self.wait, state_of(self.doing)});
    };
    const auto push_unknown = [&](std::int64_t start, std::int64_t stop) {
      for (const Held& held : cpu(host_of(life), self.cpu).held) {
        if (held.end_ns <= start || held.begin_ns >= stop) continue;
        push(start, held.begin_ns, kUnknown);
        push(std::max(start, held.begin_ns), std::min(stop, held.end_ns), held.holder);
        start = held.end_ns;
      }
      push(start, stop, kUnknown);
    };
    const std::int64_t from = std::clamp(since, self.held_ns, std::max(time, self.held_ns));
    push_unknown(self.held_ns, holder == kUnknown ? std::max(time, from) : from);
    if (holder != kUnknown) push(from, time, holder);
    self.held_ns = std::max(time, self.held_ns);
  }

  void write_hold(std::int32_t life, std::int64_t time) {
    const Life& self = at(life);
    if (self.cpu == kNoNumber) return;
    const Cpu& on = cpu(host_of(life), self.cpu);
    write_hold(life, time, on.current, on.since_ns);
  }

  void begin_wait(std::int32_t life, Doing doing, std::int64_t time, std::int32_t on) {
    Life& self = at(life);
    self.doing = doing;
    self.since_ns = self.held_ns = time;
    self.cpu = on;
    self.wait = static_cast<std::uint32_t>(waits.size());
    waits.push_back(true);
    if (on == kNoNumber) return;
    Cpu& queue = cpu(host_of(life), on);
    queue.waiting.push_back(life);
    // A filtered recording contains the switches of a CPU while a thread of a tree waits for it.
    if (host_of(life).filtered && queue.current == kUnknown && queue.since_ns == kForever)
      queue.since_ns = std::max(time, queue.loss_end_ns);
  }

  void leave_queue(std::int32_t life) {
    const Life& self = at(life);
    if (self.cpu == kNoNumber || (self.doing != Doing::preempted && self.doing != Doing::woken)) return;
    auto& waiting = cpu(host_of(life), self.cpu).waiting;
    const auto place = std::find(waiting.begin(), waiting.end(), life);
    *place = waiting.back();
    waiting.pop_back();
  }

  // The end of the wait was recorded at `time`.
  void end_wait(std::int32_t life, std::int64_t time) {
    write_hold(life, time);
    leave_queue(life);
    if (time > at(life).since_ns) push_state(life, time);
    at(life).doing = Doing::unknown;
  }

  // The end of the state was not recorded, so it gets no row.
  void forget(std::int32_t life) {
    leave_queue(life);
    Life& self = at(life);
    if (self.doing == Doing::preempted || self.doing == Doing::woken) waits[self.wait] = false;
    if (self.doing == Doing::running) {
      Cpu& on = cpu(host_of(life), self.cpu);
      if (on.current == life) {
        on.current = kUnknown;
        on.since_ns = kForever;
      }
    }
    self.doing = Doing::unknown;
    self.tentative = false;
    self.wake_up = -1;
    self.waking_ns = kNoTime;
  }

  // The state is known up to `time` and unknown afterwards.
  void cut(std::int32_t life, std::int64_t time) {
    Life& self = at(life);
    if (self.doing == Doing::preempted || self.doing == Doing::woken) {
      end_wait(life, time);
    } else if (self.doing != Doing::unknown && time > self.since_ns) {
      push_state(life, time);
    }
    self.doing = Doing::unknown;
    self.tentative = false;
    self.wake_up = -1;
    self.waking_ns = kNoTime;
  }

  void apply(Host& of, const Loss& loss) {
    for (const std::int32_t life : of.lives) {
      if (at(life).doing == Doing::running && loss.cpu && at(life).cpu != *loss.cpu) continue;
      cut(life, std::max(loss.begin_ns, at(life).since_ns));
      at(life).futex = -1;  // the call may have returned meanwhile
    }
    if (loss.cpu) cpu(of, *loss.cpu);
    for (std::size_t i = 0; i < of.cpus.size(); ++i) {
      if (loss.cpu && i != place(*loss.cpu)) continue;
      Cpu& on = of.cpus[i];
      on.loss_end_ns = std::max(on.loss_end_ns, loss.end_ns);
      on.current = kUnknown;
      on.since_ns = of.filtered ? kForever : on.loss_end_ns;
      on.seen = true;
    }
    of.loss_end_ns = std::max(of.loss_end_ns, loss.end_ns);
    if (!loss.cpu) of.all_loss_end_ns = std::max(of.all_loss_end_ns, loss.end_ns);
  }

  // Events ------------------------------------------------------------

  void add(const SchedulerEvent& event) {
    Host& of = host(event.host);
    const std::int64_t time = std::max(event.time_ns, of.last_ns);
    while (!of.losses.empty() && of.losses.back().begin_ns < time) {
      const Loss loss = of.losses.back();
      of.losses.pop_back();
      apply(of, loss);
    }
    of.last_ns = time;
    ++coverage.events;
    if (!coverage.begin_ns || time < *coverage.begin_ns) coverage.begin_ns = time;
    if (!coverage.end_ns || time > *coverage.end_ns) coverage.end_ns = time;
    Cpu& on = cpu(of, event.cpu);
    if (!on.seen) {
      on.seen = true;
      if (!of.filtered) on.since_ns = std::max(time, on.loss_end_ns);
    }
    if (event.emitter_tid > 0 && event.emitter_pid > 0) note_process(event, time);
    // After a wake-up the thread runs on the CPU that the event names; after a migration it may not.
    const bool wakes =
        event.kind == SchedulerEvent::Kind::wakeup || event.kind == SchedulerEvent::Kind::wakeup_new;
    if (wakes && event.target_cpu) cpu(of, *event.target_cpu).named = true;
    using Kind = SchedulerEvent::Kind;
    const bool may_be_idle =
        event.kind == Kind::switched || event.kind == Kind::exec || event.kind == Kind::cpu_held;
    if (!may_be_idle && event.tid <= 0) return;
    switch (event.kind) {
      case Kind::switched:
        return switched(event, time);
      case Kind::waking:
        return waking(event, time);
      case Kind::wakeup:
      case Kind::wakeup_new:
        return woken(event, time);
      case Kind::migrate:
        return migrated(event, time);
      case Kind::fork:
        return forked(event, time);
      case Kind::exec:
        return executed(event, time);
      case Kind::exit:
        return exits(event, time);
      case Kind::wakeup_recovered:
        return woken_unseen(event, time);
      case Kind::cpu_held:
        return held(event, time);
      case Kind::futex_wait:
        return waits_at_futex(event, time);
      case Kind::futex_return:
        return returns_from_futex(event, time);
      case Kind::kept:
        return keep(event, time);
    }
  }

  // Sets the process of the running thread from the event.
  void note_process(const SchedulerEvent& event, std::int64_t time) {
    Directory::Thread& row = directory.thread_row(at(life(event.host, event.emitter_tid, time)).thread);
    if (!row.process) row.process = directory.process(event.host, event.emitter_pid);
  }

  // A process gets the last name of its first thread: the program's name, or a name set at run time.
  void name_processes() {
    for (const Directory::Thread& thread : directory.threads()) {
      if (!thread.process || thread.name.empty()) continue;
      Directory::Process& process = directory.process_row(*thread.process);
      if (process.pid == thread.tid) process.name = thread.name;
    }
  }

  // Whether a thread that is switched away ran on that CPU since the CPU's events began, although no switch
  // to it was recorded.
  bool ran_before(std::int32_t life, const Cpu& on, std::int64_t time) {
    const Life& self = at(life);
    const bool open = self.doing == Doing::unknown || (self.doing == Doing::woken && self.tentative);
    return open && on.current == kUnknown && on.since_ns <= time && self.off_cpu_ns <= on.since_ns;
  }

  void switched(const SchedulerEvent& event, std::int64_t time) {
    coverage.has_switches = true;
    const std::int32_t previous = event.previous_tid > 0 ? life(event.host, event.previous_tid, time) : kIdle;
    if (previous >= 0) rename(previous, event.previous_name);
    const std::int32_t next = event.tid > 0 ? life(event.host, event.tid, time) : kIdle;
    if (next >= 0) rename(next, event.name);

    Host& of = host(event.host);
    Cpu& on = cpu(of, event.cpu);
    if (on.current == kUnknown && previous >= 0 && ran_before(previous, on, time)) {
      if (at(previous).doing == Doing::woken)
        rows.wake_ups[static_cast<std::size_t>(at(previous).wake_up)].already_running = true;
      const std::int64_t since = on.since_ns;
      const std::int64_t waking = at(previous).waking_ns;  // may precede the switch away
      forget(previous);
      Life& self = at(previous);
      self.waking_ns = waking;
      self.doing = Doing::running;
      self.since_ns = since;
      self.cpu = self.home = event.cpu;
      note_priority(previous, event.previous_priority);
      on.current = previous;
    } else if (on.current == kUnknown && previous == kIdle) {
      on.current = kIdle;
    } else if (on.current != kUnknown && on.current != previous) {
      ++coverage.contradictions;
      if (on.current >= 0) forget(on.current);
      on.current = kUnknown;
      on.since_ns = kForever;
    }
    for (const std::int32_t waiting : on.waiting) {
      write_hold(waiting, time, on.current, on.since_ns);
    }
    if (previous >= 0) leave(previous, event, time, on.last_switch_ns);
    const std::int64_t known_from = std::max(time, cpu(of, event.cpu).loss_end_ns);
    if (next >= 0) enter(next, event, time);
    Cpu& now = cpu(of, event.cpu);
    now.current = known_from > time ? kUnknown : next;
    now.since_ns = known_from;
    now.last_switch_ns = time;
    if (of.filtered) uncover(now, time);
  }

  // Switches of a CPU on which no thread of a tree runs or waits are not recorded.
  void uncover(Cpu& on, std::int64_t time) {
    if (on.current >= 0 && at(on.current).kept) return;
    if (std::any_of(on.waiting.begin(), on.waiting.end(),
                    [this](std::int32_t life) { return at(life).kept; }))
      return;
    if (on.current >= 0 && at(on.current).doing == Doing::running) cut(on.current, time);
    on.current = kUnknown;
    on.since_ns = kForever;
  }

  void held(const SchedulerEvent& event, std::int64_t time) {
    if (!event.target_cpu || !event.held_ns) return;
    const std::int32_t holder = event.tid > 0 ? life(event.host, event.tid, time) : kIdle;
    if (holder >= 0) rename(holder, event.name);
    auto& all = cpu(host(event.host), *event.target_cpu).held;
    Held one{time - *event.held_ns, time - event.waited_ns, holder};
    // The recorder repeats the report for the next thread that waited.
    const auto before = std::find_if(all.begin(), all.end(), [&](const Held& other) {
      return other.holder == holder && other.end_ns >= one.begin_ns && other.begin_ns <= one.end_ns;
    });
    if (before != all.end()) {
      before->end_ns = std::max(before->end_ns, one.end_ns);
      return;
    }
    const auto next = std::find_if(all.begin(), all.end(),
                                   [&](const Held& other) { return other.begin_ns >= one.begin_ns; });
    if (next != all.end()) one.end_ns = std::min(one.end_ns, next->begin_ns);
    if (next != all.begin()) one.begin_ns = std::max(one.begin_ns, std::prev(next)->end_ns);
    if (one.begin_ns < one.end_ns) all.insert(next, one);
    if (all.size() > kHeldKept) all.erase(all.begin());
  }

  void keep(const SchedulerEvent& event, std::int64_t time) {
    const std::int32_t about = life(event.host, event.tid, time);
    rename(about, event.name);
    at(about).kept = true;
  }

  void waits_at_futex(const SchedulerEvent& event, std::int64_t time) {
    const std::int32_t about = life(event.host, event.tid, time);
    rename(about, event.name);
    const std::int32_t named =
        event.owner > 0 ? life_by_tid.find(number_key(event.host, event.owner)) : kUnknown;
    const std::int32_t owner = named >= 0 && !at(named).dead ? named : kUnknown;
    Life& self = at(about);
    self.futex = static_cast<std::int64_t>(rows.futex_waits.size());
    rows.futex_waits.push_back({time, kNoTime, about, owner, event.priority.value_or(kNoNumber),
                                event.address, event.operation, std::nullopt});
  }

  void returns_from_futex(const SchedulerEvent& event, std::int64_t time) {
    const std::int32_t about = life(event.host, event.tid, time);
    rename(about, event.name);
    const std::int64_t call = at(about).futex;
    if (call < 0 || rows.futex_waits[static_cast<std::size_t>(call)].address != event.address) return;
    rows.futex_waits[static_cast<std::size_t>(call)].result = event.result;
    end_futex(about, time);
  }

  void end_futex(std::int32_t life, std::int64_t time) {
    const std::int64_t call = std::exchange(at(life).futex, -1);
    if (call >= 0) rows.futex_waits[static_cast<std::size_t>(call)].end_ns = time;
  }

  void leave(std::int32_t life, const SchedulerEvent& event, std::int64_t time, std::int64_t last_switch) {
    if (at(life).doing == Doing::running && at(life).cpu == event.cpu) {
      if (time > at(life).since_ns) {
        StateRow& row = push_state(life, time);
        row.has_end_state = true;
        row.end_state = event.previous_state;
      }
      at(life).doing = Doing::unknown;
    } else {
      if (at(life).doing != Doing::unknown) ++coverage.contradictions;
      if (at(life).kept) note_gap(life, event, time, last_switch);
      forget(life);
    }
    Life& self = at(life);
    self.begun = true;
    self.off_cpu_ns = time;
    self.home = event.cpu;
    note_priority(life, event.previous_priority);
    const bool ended =
        event.previous_state == EndState::ended || (self.exiting && event.previous_state == EndState::other);
    if (ended) return end(life, time);
    if (time < host_of(life).loss_end_ns || !self.kept) return;
    if (event.previous_state == EndState::preempted) {
      begin_wait(life, Doing::preempted, time, event.cpu);
    } else {
      self.doing = asleep_after(event.previous_state);
      self.since_ns = time;
    }
  }

  // The switch to the thread is missing. It happened after the last known event of both the CPU and the
  // thread.
  void note_gap(std::int32_t life, const SchedulerEvent& event, std::int64_t time, std::int64_t last_switch) {
    const Life& self = at(life);
    if (self.doing == Doing::running || last_switch == kNoTime) return;
    const std::int64_t known =
        self.doing == Doing::unknown ? self.off_cpu_ns : std::max(self.since_ns, self.off_cpu_ns);
    const std::int64_t begin = std::max({known, last_switch, host_of(life).loss_end_ns});
    const std::int32_t priority = event.previous_priority.value_or(self.priority);
    if (begin < time) gaps.push_back({begin, time, life, event.cpu, priority, event.previous_state});
  }

  // The thread ran from its first evidence in a gap until the switch away from it, unless two more switches
  // are missing.
  void fill_gaps(const Evidence& ran) {
    if (!ran) return;
    for (const Gap& gap : gaps) {
      const auto first = ran(lives[place(gap.life)].thread, gap.begin_ns, gap.end_ns);
      if (!first || *first >= gap.end_ns || reaches_into_late_loss(gap)) continue;
      rows.states.push_back({*first, gap.end_ns, gap.life, gap.cpu, gap.priority, ThreadState::running, true,
                             gap.end_state, false, true});
      ++coverage.inferred_states;
    }
    gaps = {};
    if (coverage.inferred_states == 0) return;
    std::stable_sort(rows.states.begin(), rows.states.end(),
                     [](const StateRow& a, const StateRow& b) { return a.start_ns < b.start_ns; });
  }

  [[nodiscard]] bool reaches_into_late_loss(const Gap& gap) const {
    return std::any_of(late_losses.begin(), late_losses.end(), [&](const Loss& loss) {
      return loss.host == lives[place(gap.life)].host && loss.begin_ns < gap.end_ns &&
             loss.end_ns > gap.begin_ns;
    });
  }

  // A thread that emitted a user-space event was running. If it waited or slept according to its scheduler events, some
  // of these are missing.
  void forget_waits_in_which_threads_ran(const Evidence& ran) {
    if (!ran) return;
    const auto ran_within = [&](std::int32_t life, std::int64_t begin, std::int64_t end) {
      begin += kClocksApartNs;
      end -= kClocksApartNs;
      return begin < end && ran(lives[place(life)].thread, begin, end).has_value();
    };
    std::erase_if(rows.states, [&](const StateRow& row) {
      if (row.state == ThreadState::running || !ran_within(row.life, row.start_ns, row.end_ns)) return false;
      ++coverage.contradictions;
      return true;
    });
    std::erase_if(rows.holds,
                  [&](const HoldRow& row) { return ran_within(row.life, row.start_ns, row.end_ns); });
    for (WakeUpRow& row : rows.wake_ups) {
      if (row.switch_ns != kNoTime && ran_within(row.life, row.wakeup_ns, row.switch_ns))
        row.switch_ns = kNoTime;
    }
  }

  void enter(std::int32_t life, const SchedulerEvent& event, std::int64_t time) {
    if (at(life).doing == Doing::running) {
      ++coverage.contradictions;
      forget(life);
    } else if (is_asleep(at(life).doing)) {
      if (time > at(life).since_ns) push_state(life, time).unwoken = true;
    } else if (at(life).doing != Doing::unknown) {
      end_wait(life, time);
    }
    Life& self = at(life);
    if (self.wake_up >= 0) rows.wake_ups[static_cast<std::size_t>(self.wake_up)].switch_ns = time;
    self.wake_up = -1;
    self.waking_ns = kNoTime;
    self.tentative = false;
    self.begun = true;
    note_priority(life, event.priority);
    if (self.kept && self.home != kNoNumber && self.home != event.cpu)
      rows.migrations.push_back({time, life, self.home, event.cpu});
    self.home = event.cpu;
    if (time < cpu(host_of(life), event.cpu).loss_end_ns) {
      self.doing = Doing::unknown;
      return;
    }
    self.doing = Doing::running;
    self.since_ns = time;
    self.cpu = event.cpu;
  }

  void waking(const SchedulerEvent& event, std::int64_t time) {
    coverage.has_waking = true;
    const std::int32_t about = life(event.host, event.tid, time);
    rename(about, event.name);
    const std::int32_t waker = runs_on(event);
    Life& self = at(about);
    if (self.waking_ns != kNoTime) return;
    self.waking_ns = time;
    self.waker = waker;
  }

  std::int32_t runs_on(const SchedulerEvent& event) {
    Host& of = host(event.host);
    const std::int32_t current = cpu(of, event.cpu).current;
    if (current >= 0) return current;
    // On a CPU that is not covered, the event itself may name the thread.
    const bool says = of.filtered && current == kUnknown && event.emitter_tid > 0;
    return says ? life(event.host, event.emitter_tid, event.time_ns) : kUnknown;
  }

  void woken(const SchedulerEvent& event, std::int64_t time) {
    coverage.has_wakeups = true;
    host(event.host).has_wakeups = true;
    if (event.kind == SchedulerEvent::Kind::wakeup_new) begins(event, time);
    const std::int32_t about = life(event.host, event.tid, time);
    rename(about, event.name);
    const std::int32_t runs_there = runs_on(event);
    Life& self = at(about);
    self.begun = true;
    const std::int64_t waking = self.waking_ns;
    const std::int32_t waker = waking == kNoTime ? runs_there : self.waker;
    self.waking_ns = kNoTime;
    if (self.wake_up >= 0) return;
    const bool runs = self.doing == Doing::running;
    if (!runs && time >= host(event.host).loss_end_ns)
      self.wake_up = static_cast<std::int64_t>(rows.wake_ups.size());
    rows.wake_ups.push_back({waking, time, kNoTime, about, waker, event.target_cpu.value_or(kNoNumber),
                             event.priority.value_or(kNoNumber), runs});
    if (runs || self.doing == Doing::preempted || self.wake_up < 0)
      return note_priority(about, event.priority);
    self.tentative = self.doing == Doing::unknown && event.kind == SchedulerEvent::Kind::wakeup;
    if (is_asleep(self.doing) && time > self.since_ns) push_state(about, time);
    note_priority(about, event.priority);
    begin_wait(about, Doing::woken, time, event.target_cpu.value_or(self.home));
  }

  // Handles a wake-up that is reported only when the thread is switched in or moved.
  void woken_unseen(const SchedulerEvent& event, std::int64_t time) {
    const std::int32_t about = life(event.host, event.tid, time);
    rename(about, event.name);
    Host& of = host(event.host);
    Life& self = at(about);
    const std::int64_t woken_ns = time - event.waited_ns;
    const std::int64_t known_ns = is_asleep(self.doing) ? self.since_ns : self.off_cpu_ns;
    const bool open = is_asleep(self.doing) || self.doing == Doing::unknown;
    if (!open || self.wake_up >= 0 || woken_ns < std::max(known_ns, of.loss_end_ns)) return;
    coverage.has_wakeups = of.has_wakeups = true;
    ++coverage.recovered_wakeups;
    self.begun = true;
    self.wake_up = static_cast<std::int64_t>(rows.wake_ups.size());
    const std::int32_t waker = self.waking_ns == kNoTime ? kUnknown : self.waker;
    rows.wake_ups.push_back({self.waking_ns, woken_ns, kNoTime, about, waker, *event.target_cpu,
                             event.priority.value_or(kNoNumber), false});
    self.waking_ns = kNoTime;
    if (is_asleep(self.doing) && woken_ns > self.since_ns) push_state(about, woken_ns);
    note_priority(about, event.priority);
    // The recorder did not know that the thread waited on this CPU, so a filtered recording may lack the switches.
    Cpu& on = cpu(of, *event.target_cpu);
    if (on.current == kUnknown && on.since_ns == kForever) {
      const bool says = event.held_ns && event.cpu == *event.target_cpu;
      on.since_ns = std::max({says ? time - *event.held_ns : time, on.loss_end_ns, on.last_switch_ns});
    }
    begin_wait(about, Doing::woken, woken_ns, *event.target_cpu);
  }

  // A thread is woken for the first time. Its fork may or may not have been recorded.
  void begins(const SchedulerEvent& event, std::int64_t time) {
    const std::int32_t known = life_by_tid.find(number_key(event.host, event.tid));
    if (known >= 0 && !at(known).dead) {
      if (!at(known).begun) return;
      end(known, time);
    }
    begin_life(event.host, event.tid, new_thread(event.host, event.tid, time), time);
  }

  void migrated(const SchedulerEvent& event, std::int64_t time) {
    coverage.has_migrations = true;
    const std::int32_t about = life(event.host, event.tid, time);
    rename(about, event.name);
    if (!event.target_cpu) return;
    const std::int32_t to = *event.target_cpu;
    const std::int32_t from = event.origin_cpu.value_or(at(about).home);
    if (from != kNoNumber && from != to) rows.migrations.push_back({time, about, from, to});
    Life& self = at(about);
    self.home = to;
    if (self.doing == Doing::running) return;
    self.off_cpu_ns = time;
    self.tentative = false;
    if ((self.doing == Doing::preempted || self.doing == Doing::woken) && self.cpu != to) {
      const Doing doing = self.doing;
      const std::int32_t left = self.cpu;
      end_wait(about, time);
      begin_wait(about, doing, time, to);
      Host& of = host(event.host);
      if (of.filtered && left != kNoNumber) uncover(cpu(of, left), time);
    }
    note_priority(about, event.priority);
  }

  void forked(const SchedulerEvent& event, std::int64_t time) {
    std::int32_t child = life_by_tid.find(number_key(event.host, event.tid));
    if (child >= 0 && !at(child).dead) end(child, time);
    std::int32_t thread = new_thread(event.host, event.tid, time);
    if (event.pid) {
      const std::int32_t process = directory.process(event.host, *event.pid);
      Directory::Thread& row = directory.thread_row(thread);
      if (row.process && *row.process != process) {
        thread = directory.add_thread(event.host, event.tid, process, time);
      } else {
        row.process = process;
      }
      std::string& name = directory.process_row(process).name;
      if (name.empty()) name = event.name;
    }
    child = begin_life(event.host, event.tid, thread, time);
    at(child).kept = true;  // only forks of kept threads are recorded
    rename(child, event.name);
  }

  void executed(const SchedulerEvent& event, std::int64_t time) {
    const std::int32_t about = event.tid > 0   ? life(event.host, event.tid, time)
                               : event.tid < 0 ? runs_on(event)
                                               : kUnknown;
    if (about < 0) return;
    const std::string_view name = name_of_program(event.name);
    rename(about, name);
    if (const auto process = directory.thread_row(at(about).thread).process; process && !name.empty()) {
      Directory::Process& row = directory.process_row(*process);
      if (row.events == 0) row.name = name;
    }
  }

  void exits(const SchedulerEvent& event, std::int64_t time) {
    const std::int32_t about = life(event.host, event.tid, time);
    rename(about, event.name);
    at(about).exiting = true;
  }

  // Tables ------------------------------------------------------------

  void close_open_states() {
    for (Host& of : hosts) {
      while (!of.losses.empty() && of.losses.back().begin_ns < of.last_ns) {
        const Loss loss = of.losses.back();
        of.losses.pop_back();
        apply(of, loss);
      }
      for (const std::int32_t life : of.lives) {
        cut(life, of.last_ns);
        end_futex(life, of.last_ns);
      }
    }
    for (const Life& life : lives) {
      Directory::Thread& row = directory.thread_row(life.thread);
      row.first_ns = std::min(row.first_ns.value_or(life.first_ns), life.first_ns);
      row.last_ns = std::max(row.last_ns.value_or(life.last_ns), life.last_ns);
    }
  }

  // Applies a loss that was reported after events beyond its begin: states that reach into it end there.
  void apply_late(const Loss& loss) {
    const auto concerned = [&](std::int32_t life, bool runs, std::int32_t on) {
      return at(life).host == loss.host && !(runs && loss.cpu && on != *loss.cpu);
    };
    const auto shorten = [&](auto& row) {
      if (row.start_ns < loss.end_ns && row.end_ns > loss.begin_ns)
        row.end_ns = std::max(row.start_ns, loss.begin_ns);
    };
    for (StateRow& row : rows.states) {
      if (!concerned(row.life, row.state == ThreadState::running, row.cpu)) continue;
      const std::int64_t end_ns = row.end_ns;
      shorten(row);
      if (row.end_ns != end_ns) row.has_end_state = false;
    }
    for (HoldRow& row : rows.holds) {
      if (concerned(row.life, false, row.cpu)) shorten(row);
    }
    for (WakeUpRow& row : rows.wake_ups) {
      if (concerned(row.life, false, row.cpu) && row.wakeup_ns < loss.end_ns && row.switch_ns > loss.begin_ns)
        row.switch_ns = kNoTime;
    }
    for (FutexRow& row : rows.futex_waits) {
      const bool reaches_in = row.start_ns < loss.end_ns && row.end_ns > loss.begin_ns;
      if (reaches_in && !row.result && at(row.life).host == loss.host) row.end_ns = kNoTime;
    }
    std::erase_if(rows.states, [](const StateRow& row) { return row.end_ns <= row.start_ns; });
  }

  bool are_of_one_process(std::int32_t a, std::int32_t b) {
    const auto process = directory.thread_row(at(a).thread).process;
    return process && process == directory.thread_row(at(b).thread).process;
  }

  // Leaves out waits without a recorded end, and sleeps without a wake-up.
  SchedulerRows& finished_rows() {
    std::erase_if(rows.states,
                  [&](const StateRow& row) { return row.unwoken && host_of(row.life).has_wakeups; });
    std::erase_if(rows.holds,
                  [&](const HoldRow& row) { return !waits[row.wait] || row.end_ns <= row.start_ns; });
    for (const Life& life : lives) rows.thread_of_life.push_back(life.thread);
    for (FutexRow& row : rows.futex_waits) {
      if (row.owner_life >= 0 && !are_of_one_process(row.life, row.owner_life)) row.owner_life = kUnknown;
    }
    if (coverage.recovered_wakeups > 0)
      std::ranges::stable_sort(rows.wake_ups, {}, [](const WakeUpRow& row) { return row.wakeup_ns; });
    rows.threads = directory.threads().size();
    return rows;
  }
};

Scheduler::Scheduler(Directory& directory) : state_(std::make_unique<State>(directory, coverage_)) {}
Scheduler::~Scheduler() = default;

void Scheduler::filtered(std::int32_t host) { state_->host(host).filtered = true; }

void Scheduler::recorded(std::int32_t host, std::int32_t cpu) {
  state_->cpu(state_->host(host), cpu).recorded = true;
}

std::vector<std::pair<std::int32_t, std::int32_t>> Scheduler::missing_cpus() const {
  std::vector<std::pair<std::int32_t, std::int32_t>> found;
  for (std::size_t host = 0; host < state_->hosts.size(); ++host) {
    const auto& cpus = state_->hosts[host].cpus;
    if (std::none_of(cpus.begin(), cpus.end(), [](const Cpu& cpu) { return cpu.recorded; })) continue;
    for (std::size_t cpu = 0; cpu < cpus.size(); ++cpu) {
      if (cpus[cpu].named && !cpus[cpu].recorded) found.emplace_back(host, cpu);
    }
  }
  return found;
}

bool Scheduler::knows(std::int32_t host, std::int32_t tid) const {
  return state_->life_by_tid.find(number_key(host, tid)) >= 0;
}

void Scheduler::add(const SchedulerEvent& event) { state_->add(event); }

void Scheduler::lost(std::int32_t host, std::optional<std::int32_t> cpu, std::int64_t begin_ns,
                     std::int64_t end_ns) {
  const Loss loss{host, cpu, begin_ns, std::max(begin_ns, end_ns)};
  Host& of = state_->host(host);
  if (begin_ns < of.last_ns) {
    state_->late_losses.push_back(loss);
    return;
  }
  const auto later = [](const Loss& a, const Loss& b) { return a.begin_ns > b.begin_ns; };
  of.losses.insert(std::upper_bound(of.losses.begin(), of.losses.end(), loss, later), loss);
}

void Scheduler::finish(const Evidence& ran) {
  state_->close_open_states();
  state_->fill_gaps(ran);
  state_->forget_waits_in_which_threads_ran(ran);
  for (const Loss& loss : state_->late_losses) state_->apply_late(loss);
  write(state_->finished_rows());
  state_->rows = {};
  state_->name_processes();
}

}  // namespace perflab::traceview
