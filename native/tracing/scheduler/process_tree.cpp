#include "tracing/scheduler/process_tree.h"

#include <fcntl.h>

#include <unordered_set>

#include "base/proc.h"

namespace perflab::tracing {
namespace {

// prev_state: the state that the thread reports when it leaves; the bit above means "preempted".
constexpr std::int64_t kStates = 0xff;
constexpr std::int64_t kEnded = 16 | 32;

}  // namespace

std::optional<ProcThread> read_thread(std::int32_t pid, std::int32_t tid) {
  const auto text = read_file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(tid) + "/stat");
  const auto stat = text ? proc::parse_stat(*text) : std::nullopt;
  if (!stat) return std::nullopt;
  ProcThread thread{.pid = pid, .tid = tid, .priority = stat->priority + 100, .cpu = stat->cpu};
  stat->name.copy(thread.comm.data(), kCommBytes - 1);
  thread.runnable = stat->state == 'R';
  return thread;
}

std::vector<ProcThread> threads_below(std::int32_t root) {
  std::vector<ProcThread> threads;
  std::unordered_set<std::int32_t> seen{root};
  proc::Numbers tids, children;
  for (std::vector<std::int32_t> processes{root}; !processes.empty();) {
    const std::int32_t pid = processes.back();
    processes.pop_back();
    const std::string process = "/proc/" + std::to_string(pid);
    proc::NumberFolder(AT_FDCWD, (process + "/task").c_str()).read(tids);
    for (const std::int32_t tid : tids) {
      if (const auto thread = read_thread(pid, tid)) threads.push_back(*thread);
      proc::parse_numbers(read_file(process + "/task/" + std::to_string(tid) + "/children").value_or(""),
                          children);
      for (const std::int32_t child : children)
        if (seen.insert(child).second) processes.push_back(child);
    }
  }
  return threads;
}

void ProcessTree::add(const ProcThread& thread) {
  if (contains(thread.tid)) return;
  Member& member = enter(thread.tid, thread.pid);
  // It may be running there; the first switch shows that. Until then a few more events are kept.
  if (thread.runnable) wait(member, thread.cpu);
}

bool ProcessTree::keep(unsigned cpu, const SchedulerEvent& event) {
  if (members_.empty()) return false;
  switch (event.kind) {
    case EventKind::switched: {
      const bool kept = is_waited_for(cpu) || contains(event.subject) || contains(event.other);
      if (kept) switched(cpu, event);
      return kept;
    }
    case EventKind::waking:
      return contains(event.subject);
    case EventKind::wakeup:
    case EventKind::wakeup_new:
      if (!contains(event.subject)) return false;
      woken(event);
      return true;
    case EventKind::migrate: {
      const auto found = members_.find(event.subject);
      if (found == members_.end()) return false;
      if (found->second.waits_on >= 0) wait(found->second, event.target_cpu);
      return true;
    }
    case EventKind::fork: {
      const bool is_ours = contains(event.subject);
      if (is_ours) {
        forked(event);
      } else {
        remove(event.other);  // the number of an ended thread was reused
      }
      return is_ours;
    }
    case EventKind::exec:
      if (!contains(event.subject) && !contains(event.other)) return false;
      executed(event);
      return true;
    case EventKind::exit: {
      const auto found = members_.find(event.subject);
      if (found == members_.end()) return false;
      found->second.exiting = true;
      return true;
    }
    case EventKind::wakeup_recovered:
    case EventKind::futex_wait:
    case EventKind::futex_return:
      return contains(event.subject);
    case EventKind::cpu_held:
      return true;
  }
  return false;
}

void ProcessTree::switched(unsigned cpu, const SchedulerEvent& event) {
  if (const auto left = members_.find(event.subject); left != members_.end()) {
    left->second.running = false;
    if ((event.state & kEnded) != 0 || (left->second.exiting && (event.state & kStates) != 0)) {
      end(event.subject);
    } else if ((event.state & kStates) == 0) {
      wait(left->second, static_cast<std::int32_t>(cpu));
    } else {
      no_wait(left->second);
    }
  }
  if (const auto came = members_.find(event.other); came != members_.end()) {
    no_wait(came->second);
    came->second.running = true;
  }
}

void ProcessTree::woken(const SchedulerEvent& event) {
  Member& member = members_.find(event.subject)->second;
  if (!member.running) wait(member, event.target_cpu);
}

void ProcessTree::forked(const SchedulerEvent& event) { enter(event.other, event.other_pid); }

// The thread that calls exec becomes the first of its process, and all others end. It takes the number of the
// first thread, which ended some time before this event.
void ProcessTree::executed(const SchedulerEvent& event) {
  if (event.other == event.subject || event.other == 0) return;
  remove(event.other);
  enter(event.subject, event.subject).running = true;
}

void ProcessTree::wait(Member& member, std::int32_t cpu) {
  no_wait(member);
  if (cpu < 0) return;
  const auto index = static_cast<std::size_t>(cpu);
  if (waiting_.size() <= index) waiting_.resize(index + 1);
  ++waiting_[index];
  member.waits_on = cpu;
}

void ProcessTree::no_wait(Member& member) {
  if (member.waits_on >= 0) --waiting_[static_cast<std::size_t>(member.waits_on)];
  member.waits_on = -1;
}

ProcessTree::Member& ProcessTree::enter(std::int32_t tid, std::int32_t pid) {
  remove(tid);
  Member& member = members_[tid];
  member.pid = pid;
  if (pid != 0) ++living_[pid];
  return member;
}

void ProcessTree::end(std::int32_t tid) {
  Member& member = members_.find(tid)->second;
  if (member.ended || member.pid != tid || living_[tid] < 2) return remove(tid);
  no_wait(member);
  member.exiting = false;
  member.ended = true;
  --living_[tid];
}

void ProcessTree::remove(std::int32_t tid) {
  const auto found = members_.find(tid);
  if (found == members_.end()) return;
  const Member member = found->second;
  no_wait(found->second);
  members_.erase(found);
  if (member.ended || member.pid == 0) return;
  const auto process = living_.find(member.pid);
  if (--process->second > 0) return;
  living_.erase(process);
  // No thread is left that could take the number of the first one.
  if (const auto first = members_.find(member.pid); first != members_.end() && first->second.ended) {
    no_wait(first->second);
    members_.erase(first);
  }
}

}  // namespace perflab::tracing
