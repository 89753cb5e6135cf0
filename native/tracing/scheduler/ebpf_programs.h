// The BPF programs of the scheduler's tracepoints: what they write down, what they share with user space, and
// their code.
//
// Order. Each CPU has a ring buffer of its own (a map of maps, by CPU), not one for all: programs of
// tracepoints do not run inside one another on a CPU (the kernel counts `bpf_prog_active` and leaves the
// second one out; see Source::take_losses), so that a CPU's records are reserved in the order in which its
// programs run, and that is the order of their times. One ring for all would have the same order per CPU, but
// its lock would be taken by every CPU for every switch, and a busy CPU would take the place of a quiet one's
// events.
//
// Filter. With roots, `tree` has every thread of their processes: from /proc at first, then kept up by the
// programs of fork, exec and free. With each thread stands where it waits for a CPU, and with each CPU how
// many wait there: from wake-up, migration, and the switch away from a thread that could go on running. Kept
// are events that name a thread of the tree as subject or other, and switches on a CPU where one waits. All
// changes of one thread happen under the kernel's locks of its run queue, so its entry is never changed by
// two CPUs at once; the counts are, and are changed atomically. What the kernel left out (above) may leave a
// count wrong until the thread is seen again.
#pragma once

#include <linux/bpf.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "tracing/scheduler/source.h"

namespace perflab::tracing::bpf {

// Shared memory
// ------------------------------------------------------------------------------------------------------------------

// What user space writes and the programs read, and the other way round, without a system call: bpf(2) on
// maps keeps every program of a tracepoint from running on that CPU meanwhile.
enum class Filter : std::uint32_t {
  off,     // no tree
  follow,  // the tree is kept up, but everything is written down
  on
};

struct alignas(64) CpuCounts {
  std::uint32_t lost = 0;     // no place in the ring; modulo 2^32
  std::uint32_t waiting = 0;  // threads of the tree that could run here but do not
  std::uint64_t filtered = 0;
};

struct alignas(64) Shared {
  std::uint32_t recording = 0;
  Filter filter = Filter::off;
  std::uint64_t not_followed = 0;  // threads for which `tree` had no place
  // and then CpuCounts of every CPU that there can be
};

constexpr std::size_t shared_bytes(unsigned possible_cpus) {
  return sizeof(Shared) + possible_cpus * sizeof(CpuCounts);
}

// The value of `tree`, whose key is the tid: the CPU that the thread waits for, or one of these.
constexpr std::uint32_t kRuns = 0x7ffffffe, kNeither = 0x7fffffff;

// `births`: by tid of a thread that is being made its process. The tracepoint of forks does not say it; the
// one of new tasks, right before it, does in a way.

// Records
// ------------------------------------------------------------------------------------------------------------------

// What all records begin with.
struct RecordHead {
  std::uint64_t time_ns;
  std::uint32_t tid, pid;  // of what ran
  std::uint32_t
      lost;  // CpuCounts::lost at that instant: a difference to the record before tells where they were
  std::uint32_t kind;                      // EventKind
  std::int32_t subject, subject_priority;  // the priority only where the event has it
  std::array<char, kCommBytes> subject_comm;
};

// switched, fork. Of a fork, `state` is the child's process, 0 where it is not known.
struct PairRecord {
  RecordHead head;
  std::int32_t other, other_priority;
  std::int64_t state;
  std::array<char, kCommBytes> other_comm;
};

// waking, wakeup, wakeup_new; migrate, which alone has from_cpu; exit, without CPUs
struct TargetRecord {
  RecordHead head;
  std::int32_t target_cpu, from_cpu;
};

// With one of kFilenameBytes after it, ended by a zero. Longer paths are cut.
struct ExecRecord {
  RecordHead head;
  std::int32_t old_tid;
  std::uint32_t reserved;
};
constexpr std::array<std::uint16_t, 3> kFilenameBytes = {64, 256, 1024};

static_assert(sizeof(RecordHead) == 48 && sizeof(PairRecord) == 80 && sizeof(TargetRecord) == 56 &&
              sizeof(ExecRecord) == 56);

// Programs
// ------------------------------------------------------------------------------------------------------------------

struct Maps {
  int shared = -1;  // BPF_MAP_TYPE_ARRAY with one entry
  int rings = -1;   // BPF_MAP_TYPE_ARRAY_OF_MAPS by CPU
  int tree = -1;    // BPF_MAP_TYPE_HASH
  int births = -1;  // BPF_MAP_TYPE_LRU_HASH
  unsigned possible_cpus = 0;
  std::size_t ring_bytes = 0;
  // What happens on a CPU without a ring counts as lost there; else it was not asked for.
  bool all_cpus = true;
};

struct Program {
  std::string name, tracepoint;
  std::uint64_t tracepoint_id = 0;
  std::vector<bpf_insn> code;
  bool writes = true;         // or it only keeps up the tree
  bool reads_memory = false;  // with helpers that the kernel gives to GPL-compatible programs alone
};

// For this kernel; throws Unavailable where its tracepoints cannot be read or are not as these programs need
// them.
[[nodiscard]] std::vector<Program> make_programs(const Maps& maps);

[[nodiscard]] std::optional<RecordHead> head_of(std::span<const std::byte> record) noexcept;
// From a record; false where it is none of these. `filename` points into the record.
[[nodiscard]] bool decode(std::span<const std::byte> record, SchedulerEvent& event) noexcept;

}  // namespace perflab::tracing::bpf
