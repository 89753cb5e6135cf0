// Data shared by the BPF programs of scheduler.bpf.c and user space: ring records, and one mapped struct. C
// and C++.
#pragma once

#include <linux/types.h>

enum {
  kMostCpus = 1024,      // maximum supported
  kFilenameBytes = 1024  // of an executed program, including the zero; longer names are truncated
};

// State of a thread whose departure was not seen: whether it sleeps is unknown (kStateUnknown in source.h).
#define STATE_UNKNOWN ((1LL << 30) | 0x80)

// A SchedulerEvent. Most kinds use only the first part in the ring; for an exec the program name follows.
struct scheduler_record {
  __u64 time_ns;
  __u32 tid, pid;
  __u32 lost;  // cpu_counts.lost at that time: an increase since the previous record shows where events were
               // lost
  __u32 kind;  // EventKind
  __s32 subject, subject_priority;
  char subject_comm[16];
  __s32 target_cpu, from_cpu;
  __s32 other, other_pid;
  // only for switched and fork
  __s32 other_priority, reserved;
  __s64 state;
  char other_comm[16];
  // also wakeup_recovered and cpu_held
  __s64 waited_ns, held_ns;
};
// Follows the first part of futex_wait and futex_return.
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
  kFilterOff,     // no tree
  kFilterFollow,  // the tree is tracked, but everything is recorded
  kFilterOn
};

// A thread that was switched in.
struct thread_there {
  __s32 tid, pid, priority;
  __u32 known;    // 0: its arrival was not seen
  __u64 came_ns;  // 0: unknown
  char comm[16];
};
enum { kLastThreads = 8 };  // number kept per CPU; a power of two

// How far CLOCK_MONOTONIC is ahead of the run queue's clock at switches.
struct clock_lead {
  __u64 window_ns;  // start of the newer of two windows
  __s64 least, least_before;
};

struct cpu_counts {
  __u32 lost;     // records lost because the ring was full; modulo 2^32
  __u32 waiting;  // runnable threads of the tree waiting for this CPU
  __u64 filtered;
  __u64 recovered;  // switches known only from the incoming thread, including filtered ones
  __u64 recovered_wakeups;
  struct clock_lead lead;
  __u64 came;                              // total number of switched-in threads; the last one is running
  struct thread_there last[kLastThreads];  // the n-th is at index n modulo the array size
} __attribute__((aligned(64)));

// Both sides read and write it without system calls.
struct scheduler_shared {
  __u32 recording;
  __u32 filter;
  __u32 ring_bytes;        // size of one CPU's ring
  __s32 root;              // the process whose tree `enter` looks for
  __u64 found;             // threads of that process found by `enter`
  __u64 entered;           // new threads of a tree found by `enter`
  __u64 not_followed;      // threads of a tree for which the kernel had no memory
  __u32 recovers_wakeups;  // this kernel has what recovery needs; set by `enter`
  struct cpu_counts cpus[kMostCpus];
};
