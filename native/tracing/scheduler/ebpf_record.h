// What the BPF programs of scheduler.bpf.c share with user space: records in the rings, and one piece of
// mapped memory. C and C++.
#pragma once

#include <linux/types.h>

enum {
  kMostCpus = 1024,      // that there can be
  kFilenameBytes = 1024  // of a program that is executed, with its zero; longer ones are cut
};

// Of a thread that was not seen to leave: whether it sleeps is not known (kStateUnknown of source.h).
#define STATE_UNKNOWN ((1LL << 30) | 0x80)

// A SchedulerEvent. Of most kinds the first part alone is in the ring, and of an execution the name of the
// program comes behind it.
struct scheduler_record {
  __u64 time_ns;
  __u32 tid, pid;
  __u32 lost;  // cpu_counts.lost at that instant: a difference to the record before tells where they were
  __u32 kind;  // EventKind
  __s32 subject, subject_priority;
  char subject_comm[16];
  __s32 target_cpu, from_cpu;
  __s32 other, other_pid;
  // switched and fork have the rest.
  __s32 other_priority, reserved;
  __s64 state;
  char other_comm[16];
  // wakeup_recovered and cpu_held have this too.
  __s64 waited_ns, held_ns;
};
// Behind the first part of futex_wait and futex_return.
struct futex_call {
  __u64 address;
  __s32 operation, result;
};
enum {
  kShortRecordBytes = __builtin_offsetof(struct scheduler_record, other_priority),
  kLongRecordBytes = __builtin_offsetof(struct scheduler_record, waited_ns),
  kFutexRecordBytes = kShortRecordBytes + sizeof(struct futex_call)
};

enum filter {
  kFilterOff,     // there is no tree
  kFilterFollow,  // the tree is kept up, but everything is written down
  kFilterOn
};

// A thread that came to a CPU.
struct thread_there {
  __s32 tid, pid, priority;
  __u32 known;    // 0: none was seen to come
  __u64 came_ns;  // 0: not known
  char comm[16];
};
enum { kLastThreads = 8 };  // that are kept of a CPU; a power of two

// By how much CLOCK_MONOTONIC is ahead of what a run queue takes for now, at switches.
struct clock_lead {
  __u64 window_ns;  // when the newer of two windows began
  __s64 least, least_before;
};

struct cpu_counts {
  __u32 lost;     // no place in the ring; modulo 2^32
  __u32 waiting;  // threads of the tree that could run here but do not
  __u64 filtered;
  __u64 recovered;  // switches that only the thread that came tells, also those that are filtered
  __u64 recovered_wakeups;
  struct clock_lead lead;
  __u64 came;                              // threads, in all; the last one is there
  struct thread_there last[kLastThreads];  // the n-th at n modulo their number
} __attribute__((aligned(64)));

// Read and written on both sides without a system call.
struct scheduler_shared {
  __u32 recording;
  __u32 filter;
  __u32 ring_bytes;        // of one CPU's
  __s32 root;              // the process whose tree `enter` looks for
  __u64 found;             // threads of that process, by `enter`
  __u64 entered;           // threads that `enter` found to be of a tree, and new
  __u64 not_followed;      // threads of a tree for which the kernel had no memory
  __u32 recovers_wakeups;  // this kernel says what it takes; set by `enter`
  struct cpu_counts cpus[kMostCpus];
};
