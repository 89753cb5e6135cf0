// Programs at the scheduler's tracepoints, with access to the kernel's own structures through its type
// information (BTF). libbpf fills in the field offsets of the running kernel at load time (CO-RE).
//
// Order. Each CPU has its own ring instead of one for all: a common ring would keep the order per CPU, but
// every CPU would take its lock for every switch, and a busy CPU would use up the space of a quiet one.
// Records of a CPU are reserved in order of time, except for an interrupt that wakes a thread while a fork is
// being written: the reader corrects that by microseconds.
//
// Filter. With roots, each thread of their processes has a `member` in its task: `enter` adds it to existing
// threads, the fork program to their children before these run; the kernel frees it with the task. It records
// the CPU for which the thread waits, and each CPU counts the waiting threads of the tree: from wake-up,
// migration, and the switch away from a thread that could continue. Kept are events with a thread of the tree
// as subject or other, and switches on a CPU where one waits. All changes of one member happen under the
// kernel's run queue locks; several CPUs change the counts, so these are atomic.
#include <linux/bpf.h>
#include <linux/futex.h>
// must come after bpf.h
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include <linux/version.h>
#include <stdbool.h>
#include <stddef.h>

#include "tracing/scheduler/ebpf_record.h"

// The kernel exports its structures only to GPL-compatible programs; this file is dual-licensed for that
// purpose.
char LICENSE[] SEC("license") = "Dual MIT/GPL";

// As in source.h.
enum event_kind {
  kSwitched,
  kWaking,
  kWakeup,
  kWakeupNew,
  kMigrate,
  kFork,
  kExec,
  kExit,
  kWakeupRecovered,
  kCpuHeld,
  kFutexWait,
  kFutexReturn
};

// The fields of kernel structures that are read here. A suffix ___ marks an older layout of the same
// structure.
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
struct thread_info {
  __u32 cpu;
};
// Only with CONFIG_SCHED_INFO.
struct sched_info {
  unsigned long long run_delay;     // total waiting time for CPUs, until it last got one or left a queue
  unsigned long long last_arrival;  // at a CPU
  unsigned long long last_queued;   // 0: it is not waiting
};
struct rq {
  __u64 clock;  // updated at the beginning of a switch
};
// Only with CONFIG_FAIR_GROUP_SCHED; then also for threads of other policies.
struct cfs_rq {
  struct rq *rq;
};
struct sched_entity {
  struct cfs_rq *cfs_rq;
  unsigned char sched_delayed;  // since 6.12: it sleeps, but stays on its queue for a while
};
struct task_struct {
  struct thread_info thread_info;
  __u32 __state;
  int exit_state;
  int prio;
  int on_rq;
  int pid, tgid;
  struct task_struct *real_parent, *group_leader;
  char comm[16];
  struct sched_info sched_info;
  struct sched_entity se;
};
struct task_struct___before_5_14 {
  long state;
};
struct task_struct___before_5_16 {
  __u32 cpu;
};
struct linux_binprm {
  const char *filename;
};
// Registers of a system call, by architecture.
struct pt_regs___x86 {
  unsigned long di, si, orig_ax;
  __u16 cs;
};
struct pt_regs___arm64 {
  __u64 regs[31];
  __u64 pstate, orig_x0;
  __s32 syscallno;
};
struct bpf_iter__task {
  struct bpf_iter_meta *meta;
  struct task_struct *task;
};
#pragma clang attribute pop

extern int LINUX_KERNEL_VERSION __kconfig;

// Turned off if this kernel's verifier refuses what it needs.
const volatile bool recover SEC(".rodata.recover") = true;
// Number of the futex system call on this machine.
const volatile long futex_number SEC(".rodata.futex") = -1;

struct scheduler_shared shared;

struct ring {
  __uint(type, BPF_MAP_TYPE_RINGBUF);
  __uint(max_entries, 1 << 16);
};
// By CPU; an unrecorded CPU has none.
struct {
  __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
  __uint(max_entries, kMostCpus);
  __type(key, __u32);
  __array(values, struct ring);
} rings SEC(".maps");

enum { kRuns = 0x7ffffffe, kNeither = 0x7fffffff };
struct member {
  __u32 waits_on;   // a CPU number, or one of these
  __u32 was_there;  // existed when its root was named
  // The last time it was seen to fall asleep:
  __u64 left_clock;  // run queue clock; 0: not seen, or its queue may have counted it as waiting
  __u64 run_delay;
};
struct {
  __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
  __uint(map_flags, BPF_F_NO_PREALLOC);
  __type(key, int);
  __type(value, struct member);
} tree SEC(".maps");

// Tasks
// ---------------------------------------------------------------------------------------------------------

static __always_inline __u32 cpu_of(const struct task_struct *task) {
  if (bpf_core_field_exists(task->thread_info.cpu)) return task->thread_info.cpu;
  const struct task_struct___before_5_16 *older = (const void *)task;
  return bpf_core_field_exists(older->cpu) ? older->cpu : 0;
}

static __always_inline __u32 state_of(const struct task_struct *task) {
  if (bpf_core_field_exists(task->__state)) return task->__state;
  const struct task_struct___before_5_14 *older = (const void *)task;
  return (__u32)older->state;
}

// As reported by the tracepoint (include/linux/sched.h, __task_state_index): the highest of the reported
// states.
static __always_inline __s64 reported_state(bool preempted, __u32 state, __u32 exit_state) {
  enum {
    kUninterruptible = 0x02,
    kReported = 0x7f,
    kIdle = 0x402,
    kReportedIdle = 0x80,
    kReportedPreempted = 0x100,
    kRtLockWait = 0x1000,
    kFrozen = 0x8000
  };
  if (preempted) return kReportedPreempted;
  if (state & (kRtLockWait | kFrozen)) return kUninterruptible;
  if ((state & kIdle) == kIdle) return kReportedIdle;
  const __u32 reported = (state | exit_state) & kReported;
  __s64 highest = 0;
  for (__u32 bit = 1; bit <= reported; bit <<= 1) {
    if (reported & bit) highest = bit;
  }
  return highest;
}

// Without any of these bits it continues as soon as it can.
static __always_inline bool sleeps(__s64 reported) { return (reported & 0xff) != 0; }

// The clock of the thread's run queue; 0 if unavailable.
static __always_inline __u64 queue_clock(const struct task_struct *task) {
  if (!recover || !bpf_core_field_exists(task->se.cfs_rq) || !bpf_core_field_exists(task->se.cfs_rq->rq) ||
      !bpf_core_field_exists(task->se.cfs_rq->rq->clock))
    return 0;
  return task->se.cfs_rq->rq->clock;
}

// The age of the run queue's clock at a switch. The kernel does not update it if a wake-up just did, and may
// do much work in between; but one of the recent switches was quick. 0 for that one: its own duration is not
// subtracted.
static __always_inline __u64 age_of(struct clock_lead *lead, __u64 clock, __u64 now) {
  enum { kWindowNs = 50000000 };
  if (!clock || !now) return 0;
  const __s64 ahead = now - clock;
  const __u64 window = now - lead->window_ns;
  if (window > kWindowNs) {
    lead->least_before = window > 2 * kWindowNs ? ahead : lead->least;
    lead->least = ahead;
    lead->window_ns = now;
  }
  if (ahead < lead->least) lead->least = ahead;
  return ahead - (lead->least < lead->least_before ? lead->least : lead->least_before);
}

static __always_inline bool says_waits(const struct task_struct *task) {
  return recover && bpf_core_field_exists(task->sched_info.run_delay) &&
         bpf_core_field_exists(task->sched_info.last_arrival) &&
         bpf_core_field_exists(task->sched_info.last_queued);
}

static __always_inline void copy_comm(char *to, const struct task_struct *task) {
  const __u64 *const from = (const void *)task->comm;
  ((__u64 *)to)[0] = from[0];
  ((__u64 *)to)[1] = from[1];
}

// CPUs are below kMostCpus (user space ensures that); the mask proves it to the verifier.
static __always_inline struct cpu_counts *counts_of(__u32 cpu) {
  barrier_var(cpu);
  return &shared.cpus[cpu & (kMostCpus - 1)];
}

// The tree
// ---------------------------------------------------------------------------------------------------------

// NULL: not in a tree.
static __always_inline struct member *member_of(struct task_struct *task) {
  return shared.filter == kFilterOff ? NULL : bpf_task_storage_get(&tree, task, NULL, 0);
}

static __always_inline void count_waiting(__u32 cpu, int difference) {
  if (cpu < kMostCpus) __sync_fetch_and_add(&counts_of(cpu)->waiting, difference);
}

static __always_inline void change(struct member *member, __u32 waits_on) {
  count_waiting(waits_on, 1);
  count_waiting(member->waits_on, -1);
  member->waits_on = waits_on;
}

static __always_inline void fall_asleep(struct member *member, const struct task_struct *task, __u64 clock) {
  member->left_clock = says_waits(task) ? clock : 0;
  if (says_waits(task)) member->run_delay = task->sched_info.run_delay;
}

// How long a thread waited that was seen to fall asleep but not to be woken, and is now switched in: from
// being queued, across migrations, to the clock reading. Negative: unknown.
static __always_inline __s64 waited_unseen(const struct member *member, const struct task_struct *task,
                                           __u64 clock) {
  if (!member || member->waits_on != kNeither || !member->left_clock || !clock || !says_waits(task))
    return -1;
  const __u64 queued = task->sched_info.last_queued;
  const __u64 since = queued ? queued : task->sched_info.last_arrival;
  const __u64 before = task->sched_info.run_delay - member->run_delay;
  if (since < member->left_clock || since > clock) return -1;
  const __u64 waited = clock - since + before;
  return waited <= clock - member->left_clock ? (__s64)waited : -1;
}

// Writing down
// ---------------------------------------------------------------------------------------------------------

struct place {
  void *ring;
  struct scheduler_record *record;  // NULL: the ring is full, or nothing needs recording
  __u64 bytes;
};

// Reserves a record and fills in the common fields. `of_tree`: the filter keeps the event.
static __always_inline struct place reserve(bool of_tree, enum event_kind kind, struct task_struct *subject,
                                            __u64 bytes) {
  struct place place = {};
  if (!shared.recording) return place;
  const __u32 cpu = bpf_get_smp_processor_id();
  struct cpu_counts *const counts = counts_of(cpu);
  if (!of_tree && shared.filter == kFilterOn) {
    __sync_fetch_and_add(&counts->filtered, 1);
    return place;
  }
  place.ring = bpf_map_lookup_elem(&rings, &cpu);
  if (place.ring) place.record = bpf_ringbuf_reserve(place.ring, bytes, 0);
  if (!place.record) {
    __sync_fetch_and_add(&counts->lost, 1);
    return place;
  }
  place.bytes = bytes;
  struct scheduler_record *const record = place.record;
  record->time_ns = bpf_ktime_get_ns();
  const __u64 running = bpf_get_current_pid_tgid();
  record->tid = (__u32)running;
  record->pid = running >> 32;
  record->lost = counts->lost;
  record->kind = kind;
  record->subject = subject->pid;
  record->subject_priority = subject->prio;
  copy_comm(record->subject_comm, subject);
  record->target_cpu = record->from_cpu = record->other = record->other_pid = 0;
  return place;
}

// Submits the record. The reader is only woken when this record fills another quarter of the ring: otherwise
// it polls.
static __always_inline void submit(struct place place) {
  const __u64 quarter = shared.ring_bytes / 4;
  const __u64 whole = (place.bytes + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
  const __u64 unread = bpf_ringbuf_query(place.ring, BPF_RB_AVAIL_DATA);
  const bool wake = unread >= quarter && (unread & (quarter - 1)) < whole;
  bpf_ringbuf_submit(place.record, wake ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP);
}

static __always_inline void write_short(bool of_tree, enum event_kind kind, struct task_struct *task,
                                        __u32 from_cpu, __u32 target_cpu) {
  struct place place = reserve(of_tree, kind, task, kShortRecordBytes);
  if (!place.record) return;
  place.record->from_cpu = from_cpu;
  place.record->target_cpu = target_cpu;
  submit(place);
}

// The n-th thread switched in on a CPU, from 1; NULL: not seen, or no longer kept.
static __always_inline struct thread_there *nth_of(struct cpu_counts *counts, __u64 n) {
  struct thread_there *const there = &counts->last[n & (kLastThreads - 1)];
  return there->known ? there : NULL;
}

// Records the threads that had a CPU since then, up to the current one. Used for a CPU for which a thread of
// the tree waited without being known to wait, or which had no switch while it waited: nothing else in the
// trace has this information.
static __always_inline void write_holders(struct cpu_counts *counts, __u32 cpu, __u64 since_ns, __u64 now,
                                          struct task_struct *waiting) {
  const __u64 came = counts->came;
  __u64 until_ns = now;
  for (int back = 0; back < kLastThreads; ++back) {
    const struct thread_there *const there = nth_of(counts, came - back);
    if (!there || !there->came_ns || there->came_ns > until_ns || until_ns <= since_ns) return;
    struct place place = reserve(true, kCpuHeld, waiting, sizeof *place.record);
    if (!place.record) return;
    place.record->tid = place.record->subject = there->tid;
    place.record->pid = there->pid;
    place.record->subject_priority = there->priority;
    __builtin_memcpy(place.record->subject_comm, there->comm, sizeof there->comm);
    place.record->target_cpu = cpu;
    place.record->held_ns = place.record->time_ns - there->came_ns;
    place.record->waited_ns = place.record->time_ns - until_ns;
    until_ns = there->came_ns;
    submit(place);
    if (counts->came != came) return;  // of another CPU, which went on meanwhile
  }
}

// Records an unseen wake-up: its time is in the record, because later records may have been written already.
// `left` leaves the CPU, or is NULL.
static __always_inline void write_recovered(struct task_struct *task, __s64 waited, __u64 age,
                                            __u32 waited_on, const struct thread_there *left, __u64 now) {
  if (waited < 0 || !shared.recording) return;
  write_holders(counts_of(waited_on), waited_on, now - waited - age, now, task);
  const __u32 cpu = bpf_get_smp_processor_id();
  __sync_fetch_and_add(&counts_of(cpu)->recovered_wakeups, 1);
  struct place place = reserve(true, kWakeupRecovered, task, sizeof *place.record);
  if (!place.record) return;
  if (left) {
    place.record->tid = left->tid;
    place.record->pid = left->pid;
  }
  place.record->target_cpu = waited_on;
  place.record->waited_ns = waited + age;
  place.record->held_ns = left && left->came_ns ? now - left->came_ns : -1;
  submit(place);
}

// The current time; 0 without a filter, which does not need it.
static __always_inline __u64 now_if_filtered(void) {
  return shared.filter == kFilterOff ? 0 : bpf_ktime_get_ns();
}

static __always_inline void comes(struct cpu_counts *counts, const struct task_struct *task, __u64 now) {
  const __u64 n = counts->came + 1;
  struct thread_there *const there = &counts->last[n & (kLastThreads - 1)];
  there->came_ns = now;
  there->tid = task->pid;
  there->pid = task->tgid;
  there->priority = task->prio;
  there->known = 1;
  copy_comm(there->comm, task);
  counts->came = n;
}

// Tracepoints
// ---------------------------------------------------------------------------------------------------------

SEC("tp_btf/sched_switch")
int BPF_PROG(on_switch, bool preempted, struct task_struct *prev, struct task_struct *next) {
  // Since 5.18 the tracepoint passes the state, which others may have changed meanwhile.
  const __u32 prev_state = LINUX_KERNEL_VERSION >= KERNEL_VERSION(5, 18, 0) ? (__u32)ctx[3] : state_of(prev);
  const __s64 state = reported_state(preempted, prev_state, prev->exit_state);
  const __u32 cpu = bpf_get_smp_processor_id();
  struct cpu_counts *const counts = counts_of(cpu);
  const bool is_waited_for = counts->waiting != 0;
  const __u64 clock = queue_clock(next), now = now_if_filtered();
  const __u64 age = age_of(&counts->lead, clock, now);
  struct member *const leaving = member_of(prev), *const coming = member_of(next);
  if (leaving) change(leaving, sleeps(state) ? kNeither : cpu);
  if (leaving) fall_asleep(leaving, prev, clock);
  write_recovered(next, waited_unseen(coming, next, clock), age, cpu, nth_of(counts, counts->came), now);
  if (coming) change(coming, kRuns);
  comes(counts, next, now);
  struct place place = reserve(is_waited_for || leaving || coming, kSwitched, prev, kLongRecordBytes);
  if (!place.record) return 0;
  place.record->other = next->pid;
  place.record->other_priority = next->prio;
  place.record->state = state;
  copy_comm(place.record->other_comm, next);
  submit(place);
  return 0;
}

// Runs in the incoming thread, whereas on_switch runs in the outgoing one: on some machines there are threads
// whose events reach no program while they run, and only this one shows that they left the CPU.
SEC("tp_btf/sched_exit_tp")
int BPF_PROG(on_came, bool is_switch) {
  if (!is_switch) return 0;
  struct task_struct *const came = bpf_get_current_task_btf();
  const __u32 cpu = bpf_get_smp_processor_id();
  struct cpu_counts *const counts = counts_of(cpu);
  const struct thread_there *const left = nth_of(counts, counts->came);
  if (left && left->tid == came->pid) return 0;
  const __u64 clock = queue_clock(came), now = now_if_filtered();
  const __u64 age = age_of(&counts->lead, clock, now);
  const bool is_waited_for = counts->waiting != 0;
  struct member *const coming = member_of(came);
  if (left) write_recovered(came, waited_unseen(coming, came, clock), age, cpu, left, now);
  if (coming) change(coming, kRuns);
  comes(counts, came, now);
  if (!left) return 0;
  if (shared.recording) __sync_fetch_and_add(&counts->recovered, 1);
  struct place place = reserve(is_waited_for || coming, kSwitched, came, kLongRecordBytes);
  if (!place.record) return 0;
  place.record->tid = left->tid;
  place.record->pid = left->pid;
  place.record->subject = left->tid;
  place.record->subject_priority = left->priority;
  __builtin_memcpy(place.record->subject_comm, left->comm, sizeof left->comm);
  place.record->other = came->pid;
  place.record->other_priority = came->prio;
  place.record->state = left->tid == 0 ? 0 : STATE_UNKNOWN;
  copy_comm(place.record->other_comm, came);
  submit(place);
  return 0;
}

SEC("tp_btf/sched_waking")
int BPF_PROG(on_waking, struct task_struct *task) {
  write_short(member_of(task) != NULL, kWaking, task, 0, cpu_of(task));
  return 0;
}

static __always_inline void woken(enum event_kind kind, struct task_struct *task) {
  struct member *const member = member_of(task);
  const __u32 cpu = cpu_of(task);
  // A running thread is about to sleep: it does not wait.
  if (member && member->waits_on == kNeither) change(member, cpu);
  write_short(member != NULL, kind, task, 0, cpu);
}

SEC("tp_btf/sched_wakeup")
int BPF_PROG(on_wakeup, struct task_struct *task) {
  woken(kWakeup, task);
  return 0;
}

SEC("tp_btf/sched_wakeup_new")
int BPF_PROG(on_wakeup_new, struct task_struct *task) {
  woken(kWakeupNew, task);
  return 0;
}

// Either it is being woken, or was woken unnoticed, or it sleeps and is still queued: then the next one
// counts it as waiting, and nothing shows when it is woken.
static __always_inline void moved_unwoken(struct member *member, struct task_struct *task, __u32 target_cpu) {
  enum { kOnRqMigrating = 2 };
  if (!says_waits(task) || !bpf_core_field_exists(task->on_rq) || task->on_rq != kOnRqMigrating) return;
  if (bpf_core_field_exists(task->se.sched_delayed) && task->se.sched_delayed) {
    member->left_clock = 0;
    return;
  }
  const __s64 waited = task->sched_info.run_delay - member->run_delay;
  if (member->left_clock) write_recovered(task, waited, 0, cpu_of(task), NULL, bpf_ktime_get_ns());
  change(member, target_cpu);
}

SEC("tp_btf/sched_migrate_task")
int BPF_PROG(on_migrate, struct task_struct *task, int target_cpu) {
  struct member *const member = member_of(task);
  if (member && member->waits_on < kMostCpus) {
    // Records the thread on the CPU that it leaves, if it arrived before the wait: no switch showed it. Its
    // queue is locked.
    const __u64 now = bpf_ktime_get_ns();
    write_holders(counts_of(member->waits_on), member->waits_on, now - 1, now, task);
    change(member, target_cpu);
  } else if (member && member->waits_on == kNeither)
    moved_unwoken(member, task, target_cpu);
  write_short(member != NULL, kMigrate, task, cpu_of(task), target_cpu);
  return 0;
}

// The child has not run yet.
SEC("tp_btf/sched_process_fork")
int BPF_PROG(on_fork, struct task_struct *parent, struct task_struct *child) {
  struct member *const member = member_of(parent);
  struct member of_child = {};
  of_child.waits_on = kNeither;
  if (member && !bpf_task_storage_get(&tree, child, &of_child, BPF_LOCAL_STORAGE_GET_F_CREATE))
    __sync_fetch_and_add(&shared.not_followed, 1);
  struct place place = reserve(member != NULL, kFork, parent, kLongRecordBytes);
  if (!place.record) return 0;
  place.record->other = child->pid;
  place.record->other_pid = child->tgid;
  place.record->other_priority = 0;
  place.record->state = 0;
  copy_comm(place.record->other_comm, child);
  submit(place);
  return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(on_exec, struct task_struct *task, int old_tid, struct linux_binprm *program) {
  struct place place = reserve(member_of(task) != NULL, kExec, task, kShortRecordBytes + kFilenameBytes);
  if (!place.record) return 0;
  place.record->other = old_tid;
  bpf_probe_read_kernel_str((char *)place.record + kShortRecordBytes, kFilenameBytes, program->filename);
  submit(place);
  return 0;
}

SEC("tp_btf/sched_process_exit")
int BPF_PROG(on_exit, struct task_struct *task) {
  write_short(member_of(task) != NULL, kExit, task, 0, 0);
  return 0;
}

// Futexes: loaded where they are asked for, as each system call of the machine then passes these programs
// ---------------------------------------------------------------------------------------------------------

// pthread_mutex_t of glibc on 64-bit machines, as far as it is read.
struct mutex {
  __u32 word, count;
  __s32 owner;
  __u32 users, kind;
};

static __always_inline bool may_wait(__u32 operation) {
  switch (operation & FUTEX_CMD_MASK) {
    case FUTEX_WAIT:
    case FUTEX_WAIT_BITSET:
    case FUTEX_WAIT_REQUEUE_PI:
    case FUTEX_LOCK_PI:
    case FUTEX_LOCK_PI2:
      return true;
    default:
      return false;
  }
}

// The owner of a lock according to its memory: for a lock with priority inheritance and for a robust one, the
// word itself; for other mutexes the field after it, if everything read looks like a held mutex. 0: none.
// Readers check that such a thread exists.
static __always_inline __s32 owner_of(__u64 address, __u32 operation) {
  enum { kKinds = 1 << 10 };  // the type without its flags is below this
  const __u32 command = operation & FUTEX_CMD_MASK;
  struct mutex mutex = {};
  if (command == FUTEX_WAIT_REQUEUE_PI) return 0;  // at a condition variable
  if (bpf_probe_read_user(&mutex.word, sizeof mutex.word, (const void *)address)) return 0;
  if (command == FUTEX_LOCK_PI || command == FUTEX_LOCK_PI2) return mutex.word & FUTEX_TID_MASK;
  if (mutex.word & FUTEX_WAITERS) return mutex.word & FUTEX_TID_MASK;
  if (mutex.word != 1 && mutex.word != 2) return 0;
  if (bpf_probe_read_user(&mutex, sizeof mutex, (const void *)address)) return 0;
  return mutex.users && mutex.kind < kKinds ? mutex.owner : 0;
}

// True if these are the registers of a 64-bit thread that makes this system call to wait; then with its
// arguments.
static __always_inline bool is_futex_wait(const void *registers, struct futex_call *call) {
  enum { kUserCode = 0x33, kMode32 = 0x10 };  // a segment on x86, a bit on arm64
  const struct pt_regs___x86 *const x86 = registers;
  const struct pt_regs___arm64 *const arm64 = registers;
  if (bpf_core_field_exists(x86->orig_ax)) {
    if ((long)x86->orig_ax != futex_number || x86->cs != kUserCode) return false;
    call->address = x86->di;
    call->operation = x86->si;
  } else if (bpf_core_field_exists(arm64->syscallno)) {
    if (arm64->syscallno != futex_number || arm64->pstate & kMode32) return false;
    call->address = arm64->orig_x0;
    call->operation = arm64->regs[1];
  }
  return may_wait(call->operation);
}

static __always_inline void write_futex(enum event_kind kind, const struct futex_call *call) {
  struct task_struct *const task = bpf_get_current_task_btf();
  struct member *const member = member_of(task);
  const bool of_tree = member || shared.filter != kFilterOn;
  const __s32 owner = kind == kFutexWait && of_tree ? owner_of(call->address, call->operation) : 0;
  struct place place = reserve(member != NULL, kind, task, kFutexRecordBytes);
  if (!place.record) return;
  place.record->other = owner;
  __builtin_memcpy((char *)place.record + kShortRecordBytes, call, sizeof *call);
  submit(place);
}

SEC("tp_btf/sys_enter")
int BPF_PROG(on_call, struct pt_regs *registers, long number) {
  struct futex_call call = {};
  if (number == futex_number && is_futex_wait(registers, &call)) write_futex(kFutexWait, &call);
  return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(on_return, struct pt_regs *registers, long result) {
  struct futex_call call = {};
  if (!is_futex_wait(registers, &call)) return 0;
  call.result = result;
  write_futex(kFutexReturn, &call);
  return 0;
}

// Enters the existing threads of a process tree: called for each thread of the machine when user space reads
// the iterator, which it repeats until no more are entered, because a child may come before its parent.
SEC("iter/task")
int enter(struct bpf_iter__task *ctx) {
  struct task_struct *const task = ctx->task;
  if (!task) return 0;
  shared.recovers_wakeups = says_waits(task) && queue_clock(task);
  if (task->tgid == shared.root)
    ++shared.found;
  else if (!member_of(task->group_leader) && !member_of(task->real_parent))
    return 0;
  if (member_of(task)) return 0;
  // It may be running there; its next switch shows that. Counted first, because it may be counted down as
  // soon as it is entered.
  const bool waits = state_of(task) == 0;
  struct member start = {.waits_on = waits ? cpu_of(task) : kNeither, .was_there = 1};
  count_waiting(start.waits_on, 1);
  const struct member *const entered =
      bpf_task_storage_get(&tree, task, &start, BPF_LOCAL_STORAGE_GET_F_CREATE);
  if (entered && entered->was_there) {
    ++shared.entered;
    return 0;
  }
  count_waiting(start.waits_on, -1);
  if (!entered) __sync_fetch_and_add(&shared.not_followed, 1);
  return 0;
}
