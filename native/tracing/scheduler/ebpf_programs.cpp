#include "tracing/scheduler/ebpf_programs.h"

#include <algorithm>
#include <cstring>
#include <initializer_list>
#include <optional>

#include "tracing/scheduler/ebpf_assembler.h"
#include "tracing/scheduler/tracepoint.h"

namespace perflab::tracing::bpf {
namespace {

// prev_state: what a thread that leaves its CPU waits for. Without one of these bits it goes on running as
// soon as it may (preempted: TASK_REPORT_MAX, above them; since Linux 4.14).
constexpr std::int32_t kStateSleeps = 0xff;
constexpr std::int32_t kCloneThread = 0x00010000;  // linux/sched.h
constexpr std::size_t kFarthest = 0x7000;          // what an instruction's offset can hold, and a string

// Registers that outlive calls
constexpr Register context = r6;  // the tracepoint's record
constexpr Register counts = r7;   // CpuCounts of this CPU
constexpr Register ring = r8;
constexpr Register keep = r9;    // of switches, while it is not decided: whether to write them down
constexpr Register record = r9;  // then what is written
// Stack
constexpr std::int16_t kCpuKey = -4, kTidKey = -8, kValue = -12;

constexpr std::int16_t place(std::size_t offset) { return static_cast<std::int16_t>(offset); }

constexpr std::int16_t kLost = place(offsetof(CpuCounts, lost));
constexpr std::int16_t kWaiting = place(offsetof(CpuCounts, waiting));
constexpr std::int16_t kFiltered = place(offsetof(CpuCounts, filtered));
constexpr int kCountsShift = 6;
static_assert(sizeof(CpuCounts) == 1 << kCountsShift && sizeof(Shared) == 64);

// One program. What it says at its end is 1: the kernel takes 0 for "not for anybody", and would keep the
// event from all that read this tracepoint with perf_event_open.
class Builder {
 public:
  Builder(const Maps& maps, TracepointFormat tracepoint)
      : maps_(maps),
        tracepoint_(std::move(tracepoint)),
        write_(code_.label()),
        drop_(code_.label()),
        lost_(code_.label()),
        done_(code_.label()) {
    code_.move(context, r1);
    code_.call(BPF_FUNC_get_smp_processor_id);
    code_.store(Width::word, r10, kCpuKey, r0);
    code_.jump_if(r0, Condition::at_least, static_cast<std::int32_t>(maps_.possible_cpus), done_);
    code_.shift_left(r0, kCountsShift);
    code_.load_map_value(counts, maps_.shared, sizeof(Shared));
    code_.add(counts, r0);
  }

  void switched() {
    jump_if_no_filter(write_);
    code_.load(Width::word, keep, counts, kWaiting);

    const auto prev_done = code_.label(), prev_sleeps = code_.label(), next_done = code_.label();
    look_up("prev_pid", prev_done);
    stop_waiting();
    code_.move(keep, 1);
    code_.load(Width::quad, r1, context, at("prev_state", 8));
    code_.bit_and(r1, kStateSleeps);
    code_.jump_if(r1, Condition::not_equal, 0, prev_sleeps);
    code_.load(Width::word, r1, r10, kCpuKey);
    code_.store(Width::word, r0, 0, r1);
    code_.move(r1, 1);
    code_.atomic_add(Width::word, counts, kWaiting, r1);
    code_.jump(prev_done);
    code_.place(prev_sleeps);
    code_.store(Width::word, r0, 0, static_cast<std::int32_t>(kNeither));

    code_.place(prev_done);
    look_up("next_pid", next_done);
    stop_waiting();
    code_.move(keep, 1);
    code_.store(Width::word, r0, 0, static_cast<std::int32_t>(kRuns));
    code_.place(next_done);
    code_.jump_if(keep, Condition::equal, 0, drop_);

    begin_writing(EventKind::switched, sizeof(PairRecord));
    copy(offsetof(RecordHead, subject), at("prev_pid", 4), 4);
    copy(offsetof(RecordHead, subject_priority), at("prev_prio", 4), 4);
    copy(offsetof(RecordHead, subject_comm), at("prev_comm", kCommBytes), kCommBytes);
    copy(offsetof(PairRecord, other), at("next_pid", 4), 4);
    copy(offsetof(PairRecord, other_priority), at("next_prio", 4), 4);
    copy(offsetof(PairRecord, state), at("prev_state", 8), 8);
    copy(offsetof(PairRecord, other_comm), at("next_comm", kCommBytes), kCommBytes);
    end_writing(sizeof(PairRecord));
  }

  void waking() {
    keep_only("pid");
    write_target(EventKind::waking);
  }

  // wakeup, wakeup_new: under the lock of the run queue of its CPU.
  void woken(EventKind kind) {
    const auto known = code_.label();
    keep_only("pid");
    code_.load(Width::word, r1, r0, 0);
    code_.jump_if(r1, Condition::not_equal, static_cast<std::int32_t>(kNeither), known);
    code_.load(Width::word, r1, context, at("target_cpu", 4));
    code_.jump_if(r1, Condition::at_least, static_cast<std::int32_t>(maps_.possible_cpus), known);
    code_.store(Width::word, r0, 0, r1);
    count_waiting(r1, 1);
    code_.place(known);
    write_target(kind);
  }

  void migrated() {
    const auto moved = code_.label();
    keep_only("pid");
    code_.load(Width::word, r4, r0, 0);
    code_.jump_if(r4, Condition::at_least, static_cast<std::int32_t>(maps_.possible_cpus), moved);
    code_.load(Width::word, r1, context, at("dest_cpu", 4));
    code_.jump_if(r1, Condition::at_least, static_cast<std::int32_t>(maps_.possible_cpus), moved);
    code_.store(Width::word, r0, 0, r1);
    count_waiting(r1, 1);
    count_waiting(r4, -1);
    code_.place(moved);

    begin_writing(EventKind::migrate, sizeof(TargetRecord));
    copy(offsetof(RecordHead, subject), at("pid", 4), 4);
    copy(offsetof(RecordHead, subject_priority), at("prio", 4), 4);
    copy(offsetof(TargetRecord, target_cpu), at("dest_cpu", 4), 4);
    copy(offsetof(TargetRecord, from_cpu), at("orig_cpu", 4), 4);
    copy_string(offsetof(RecordHead, subject_comm), kCommBytes, field("comm"));
    end_writing(sizeof(TargetRecord));
  }

  // Nothing of a thread is to be seen before, and its creator goes on to the tracepoint of forks.
  void born() {
    const auto process = code_.label();
    code_.call(BPF_FUNC_get_current_pid_tgid);
    code_.shift_right(r0, 32);
    load_key("pid");
    code_.load(Width::quad, r2, context, at("clone_flags", 8));
    code_.jump_if(r2, Condition::any_bit, kCloneThread, process);
    code_.move(r0, r1);
    code_.place(process);
    code_.store(Width::word, r10, kValue, r0);
    load_arguments(maps_.births);
    code_.move(r3, r10);
    code_.add(r3, kValue);
    code_.move(r4, BPF_ANY);
    code_.call(BPF_FUNC_map_update_elem);
  }

  void forked() {
    const auto foreign = code_.label(), full = code_.label();
    jump_if_no_filter(write_);
    look_up("parent_pid", foreign);
    code_.store(Width::word, r10, kValue, static_cast<std::int32_t>(kNeither));
    put_in_tree("child_pid", full);
    code_.jump(write_);
    code_.place(full);
    code_.load_map_value(r1, maps_.shared, offsetof(Shared, not_followed));
    code_.move(r2, 1);
    code_.atomic_add(Width::quad, r1, 0, r2);
    code_.jump(write_);
    // Its number may have been one of the tree whose end the kernel left out.
    code_.place(foreign);
    look_up("child_pid", drop_);
    stop_waiting();
    take_from_tree("child_pid");
    code_.jump(drop_);

    begin_writing(EventKind::fork, sizeof(PairRecord));
    copy(offsetof(RecordHead, subject), at("parent_pid", 4), 4);
    copy(offsetof(PairRecord, other), at("child_pid", 4), 4);
    code_.store(Width::word, record, place(offsetof(RecordHead, subject_priority)), 0);
    code_.store(Width::word, record, place(offsetof(PairRecord, other_priority)), 0);
    const auto unknown = code_.label();
    load_key("child_pid");
    load_arguments(maps_.births);
    code_.call(BPF_FUNC_map_lookup_elem);
    code_.jump_if(r0, Condition::equal, 0, unknown);
    code_.load(Width::word, r0, r0, 0);
    code_.place(unknown);
    code_.store(Width::quad, record, place(offsetof(PairRecord, state)), r0);
    if (field("parent_comm").located) {
      // The parent is what runs, and the child is still called as it is.
      for (const std::size_t to : {offsetof(RecordHead, subject_comm), offsetof(PairRecord, other_comm)}) {
        code_.move(r1, record);
        code_.add(r1, place(to));
        code_.move(r2, kCommBytes);
        code_.call(BPF_FUNC_get_current_comm);
      }
    } else {
      copy(offsetof(RecordHead, subject_comm), at("parent_comm", kCommBytes), kCommBytes);
      copy(offsetof(PairRecord, other_comm), at("child_comm", kCommBytes), kCommBytes);
    }
    end_writing(sizeof(PairRecord));
  }

  // A thread that executes a program takes over the number of its process.
  void executed() {
    const auto put = code_.label(), gone = code_.label();
    jump_if_no_filter(write_);
    look_up("old_pid", gone);
    code_.load(Width::word, r1, context, at("old_pid", 4));
    code_.load(Width::word, r2, context, at("pid", 4));
    code_.jump_if(r1, Condition::equal, r2, write_);
    code_.store(Width::word, r10, kValue, static_cast<std::int32_t>(kRuns));
    put_in_tree("pid", put);
    code_.place(put);
    take_from_tree("old_pid");
    code_.jump(write_);
    // The first thread, which ended, got the old number in exchange, and may have been freed with it by now.
    code_.place(gone);
    look_up("pid", drop_);

    code_.place(write_);
    const TracepointField& filename = field("filename");
    if (!filename.located) refuse("filename");
    for (const std::uint16_t bytes : kFilenameBytes) {
      const auto longer = code_.label();
      if (bytes != kFilenameBytes.back()) {
        code_.load(Width::word, r1, context, place(filename.offset));
        code_.shift_right(r1, 16);
        code_.jump_if(r1, Condition::at_least, bytes + 1, longer);
      }
      reserve(EventKind::exec, sizeof(ExecRecord) + bytes);
      copy(offsetof(RecordHead, subject), at("pid", 4), 4);
      copy(offsetof(ExecRecord, old_tid), at("old_pid", 4), 4);
      copy_string(sizeof(ExecRecord), bytes, filename);
      end_writing(sizeof(ExecRecord) + bytes);
      code_.place(longer);
    }
  }

  void exits() {
    keep_only("pid");
    begin_writing(EventKind::exit, sizeof(TargetRecord));
    copy_subject();
    code_.store(Width::word, record, place(offsetof(TargetRecord, target_cpu)), 0);
    end_writing(sizeof(TargetRecord));
  }

  // Nobody can hear of the thread any more: its last switch is long over, and its number may be used again.
  void freed() {
    jump_if_no_filter(done_);
    look_up("pid", done_);
    stop_waiting();
    take_from_tree("pid");
  }

  Program finish(const char* name) {
    if (writes_) {
      // Of no interest, unless the tree is only followed.
      code_.place(drop_);
      load_filter(r1);
      code_.jump_if(r1, Condition::not_equal, static_cast<std::int32_t>(Filter::on), write_);
      code_.load_map_value(r1, maps_.shared, offsetof(Shared, recording));
      code_.load(Width::word, r1, r1, 0);
      code_.jump_if(r1, Condition::equal, 0, done_);
      code_.move(r1, 1);
      code_.atomic_add(Width::quad, counts, kFiltered, r1);
      code_.jump(done_);

      code_.place(lost_);
      code_.move(r1, 1);
      code_.atomic_add(Width::word, counts, kLost, r1);
    }
    code_.place(done_);
    code_.move(r0, 1);
    code_.exit();
    return {name, tracepoint_.name, tracepoint_.id, code_.finish(), writes_, reads_memory_};
  }

 private:
  // Fields
  // ----------------------------------------------------------------------------------------------------------------

  const TracepointField& field(std::string_view name) const {
    const TracepointField* const found = tracepoint_.find(name);
    if (found == nullptr || found->offset > kFarthest) refuse(name);
    return *found;
  }

  std::int16_t at(std::string_view name, std::size_t size) const {
    const TracepointField& found = field(name);
    if (found.size != size || found.located) refuse(name);
    return place(found.offset);
  }

  [[noreturn]] void refuse(std::string_view name) const {
    throw Unavailable("eBPF: this kernel's tracepoint " + tracepoint_.name + " has no field " +
                      std::string(name) + " as the programs need it; use the source perf_event");
  }

  // In the widest steps that the places allow: the verifier wants loads from the context aligned.
  void copy(std::size_t to, std::size_t from, std::size_t bytes) {
    while (bytes > 0) {
      std::size_t step = 8;
      Width width = Width::quad;
      for (const Width smaller : {Width::word, Width::half, Width::byte}) {
        if (step <= bytes && from % step == 0 && to % step == 0) break;
        step /= 2;
        width = smaller;
      }
      code_.load(width, r1, context, place(from));
      code_.store(width, record, place(to), r1);
      to += step, from += step, bytes -= step;
    }
  }

  // With its zero, cut where it is longer. Where the string may lie anywhere in the tracepoint's record, only
  // a helper that reads memory gets at it.
  void copy_string(std::size_t to, std::uint16_t bytes, const TracepointField& field) {
    if (!field.located) return copy(to, at(field.name, bytes), bytes);
    reads_memory_ = true;
    code_.load(Width::word, r3, context, place(field.offset));
    code_.bit_and(r3, 0xffff);
    code_.add(r3, context);
    code_.move(r1, record);
    code_.add(r1, place(to));
    code_.move(r2, bytes);
    code_.call(BPF_FUNC_probe_read_kernel_str);
  }

  void copy_subject() {
    copy(offsetof(RecordHead, subject), at("pid", 4), 4);
    copy(offsetof(RecordHead, subject_priority), at("prio", 4), 4);
    copy(offsetof(RecordHead, subject_comm), at("comm", kCommBytes), kCommBytes);
  }

  // The tree
  // ----------------------------------------------------------------------------------------------------------------

  void load_filter(Register to) {
    code_.load_map_value(to, maps_.shared, offsetof(Shared, filter));
    code_.load(Width::word, to, to, 0);
  }

  void jump_if_no_filter(Assembler::Label to) {
    load_filter(r1);
    code_.jump_if(r1, Condition::equal, static_cast<std::int32_t>(Filter::off), to);
  }

  void load_key(std::string_view tid_field) {
    code_.load(Width::word, r1, context, at(tid_field, 4));
    code_.store(Width::word, r10, kTidKey, r1);
  }

  void load_arguments(int map) {
    code_.load_map(r1, map);
    code_.move(r2, r10);
    code_.add(r2, kTidKey);
  }

  // r0: the entry of the thread that the field names. The idle task (0) never has one.
  void look_up(std::string_view tid_field, Assembler::Label absent) {
    load_key(tid_field);
    code_.jump_if(r1, Condition::equal, 0, absent);
    load_arguments(maps_.tree);
    code_.call(BPF_FUNC_map_lookup_elem);
    code_.jump_if(r0, Condition::equal, 0, absent);
  }

  // With kValue.
  void put_in_tree(std::string_view tid_field, Assembler::Label failed) {
    load_key(tid_field);
    load_arguments(maps_.tree);
    code_.move(r3, r10);
    code_.add(r3, kValue);
    code_.move(r4, BPF_ANY);
    code_.call(BPF_FUNC_map_update_elem);
    code_.jump_if(r0, Condition::not_equal, 0, failed);
  }

  void take_from_tree(std::string_view tid_field) {
    load_key(tid_field);
    load_arguments(maps_.tree);
    code_.call(BPF_FUNC_map_delete_elem);
  }

  // With a filter only what is about a thread of the tree, whose entry is then in r0.
  void keep_only(std::string_view tid_field) {
    jump_if_no_filter(write_);
    look_up(tid_field, drop_);
  }

  // Uses r2, r3. `cpu` is below possible_cpus.
  void count_waiting(Register cpu, std::int32_t difference) {
    code_.move(r3, cpu);
    code_.shift_left(r3, kCountsShift);
    code_.load_map_value(r2, maps_.shared, sizeof(Shared));
    code_.add(r2, r3);
    code_.move(r3, difference);
    code_.atomic_add(Width::word, r2, kWaiting, r3);
  }

  // The thread whose entry is in r0 waits no longer where it did.
  void stop_waiting() {
    const auto did_not = code_.label();
    code_.load(Width::word, r1, r0, 0);
    code_.jump_if(r1, Condition::at_least, static_cast<std::int32_t>(maps_.possible_cpus), did_not);
    count_waiting(r1, -1);
    code_.place(did_not);
  }

  // Writing down
  // ----------------------------------------------------------------------------------------------------------------

  void begin_writing(EventKind kind, std::size_t bytes) {
    code_.place(write_);
    reserve(kind, bytes);
  }

  // Place for a record, with its head filled in as far as all kinds have it alike.
  void reserve(EventKind kind, std::size_t bytes) {
    writes_ = true;
    code_.load_map_value(r1, maps_.shared, offsetof(Shared, recording));
    code_.load(Width::word, r1, r1, 0);
    code_.jump_if(r1, Condition::equal, 0, done_);
    code_.load_map(r1, maps_.rings);
    code_.move(r2, r10);
    code_.add(r2, kCpuKey);
    code_.call(BPF_FUNC_map_lookup_elem);
    code_.jump_if(r0, Condition::equal, 0, maps_.all_cpus ? lost_ : done_);
    code_.move(ring, r0);
    code_.move(r1, r0);
    code_.move(r2, static_cast<std::int32_t>(bytes));
    code_.move(r3, 0);
    code_.call(BPF_FUNC_ringbuf_reserve);
    code_.jump_if(r0, Condition::equal, 0, lost_);
    code_.move(record, r0);
    code_.call(BPF_FUNC_ktime_get_ns);
    code_.store(Width::quad, record, place(offsetof(RecordHead, time_ns)), r0);
    code_.call(BPF_FUNC_get_current_pid_tgid);
    code_.store(Width::quad, record, place(offsetof(RecordHead, tid)), r0);
    code_.load(Width::word, r1, counts, kLost);
    code_.store(Width::word, record, place(offsetof(RecordHead, lost)), r1);
    code_.store(Width::word, record, place(offsetof(RecordHead, kind)), static_cast<std::int32_t>(kind));
  }

  // Hands the record over. The reader is woken only when another quarter of the ring is full with this
  // record: else it comes by itself.
  void end_writing(std::size_t bytes) {
    const auto quarter = static_cast<std::int32_t>(maps_.ring_bytes / 4);
    const auto whole = static_cast<std::int32_t>((bytes + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8);
    const auto quietly = code_.label();
    code_.move(r1, ring);
    code_.move(r2, BPF_RB_AVAIL_DATA);
    code_.call(BPF_FUNC_ringbuf_query);
    code_.move(r2, BPF_RB_NO_WAKEUP);
    code_.jump_if(r0, Condition::below, quarter, quietly);
    code_.bit_and(r0, quarter - 1);
    code_.jump_if(r0, Condition::at_least, whole, quietly);
    code_.move(r2, BPF_RB_FORCE_WAKEUP);
    code_.place(quietly);
    code_.move(r1, record);
    code_.call(BPF_FUNC_ringbuf_submit);
    code_.jump(done_);
  }

  void write_target(EventKind kind) {
    begin_writing(kind, sizeof(TargetRecord));
    copy_subject();
    copy(offsetof(TargetRecord, target_cpu), at("target_cpu", 4), 4);
    end_writing(sizeof(TargetRecord));
  }

  const Maps& maps_;
  const TracepointFormat tracepoint_;
  Assembler code_;
  // Write the event down; leave it out if there is a filter; there was no place; the end.
  const Assembler::Label write_, drop_, lost_, done_;
  bool writes_ = false, reads_memory_ = false;
};

template <typename T>
std::optional<T> read_as(std::span<const std::byte> record) noexcept {
  if (record.size() < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, record.data(), sizeof value);
  return value;
}

// Without what stands behind the end of the name.
Comm comm_of(const std::array<char, kCommBytes>& bytes) noexcept {
  Comm comm{};
  const auto end = std::find(bytes.begin(), bytes.end() - 1, '\0');
  std::copy(bytes.begin(), end, comm.begin());
  return comm;
}

}  // namespace

std::vector<Program> make_programs(const Maps& maps) {
  std::vector<Program> programs;
  const auto add = [&](const char* group, const char* tracepoint, const char* name, auto body) {
    Builder builder(maps, read_tracepoint_format(group, tracepoint));
    body(builder);
    programs.push_back(builder.finish(name));
  };
  add("task", "task_newtask", "perflab_birth", [](Builder& b) { b.born(); });
  add("sched", "sched_process_fork", "perflab_fork", [](Builder& b) { b.forked(); });
  add("sched", "sched_process_exec", "perflab_exec", [](Builder& b) { b.executed(); });
  add("sched", "sched_process_exit", "perflab_exit", [](Builder& b) { b.exits(); });
  add("sched", "sched_process_free", "perflab_free", [](Builder& b) { b.freed(); });
  add("sched", "sched_migrate_task", "perflab_migrate", [](Builder& b) { b.migrated(); });
  add("sched", "sched_waking", "perflab_waking", [](Builder& b) { b.waking(); });
  add("sched", "sched_wakeup", "perflab_wakeup", [](Builder& b) { b.woken(EventKind::wakeup); });
  add("sched", "sched_wakeup_new", "perflab_new", [](Builder& b) { b.woken(EventKind::wakeup_new); });
  add("sched", "sched_switch", "perflab_switch", [](Builder& b) { b.switched(); });
  return programs;
}

std::optional<RecordHead> head_of(std::span<const std::byte> record) noexcept {
  return read_as<RecordHead>(record);
}

bool decode(std::span<const std::byte> record, SchedulerEvent& event) noexcept {
  const auto head = read_as<RecordHead>(record);
  if (!head || head->kind >= kEventNames.size()) return false;
  event = SchedulerEvent{};
  event.kind = static_cast<EventKind>(head->kind);
  event.time_ns = static_cast<std::int64_t>(head->time_ns);
  event.pid = static_cast<std::int32_t>(head->pid);
  event.tid = static_cast<std::int32_t>(head->tid);
  event.subject = head->subject;
  if (event.kind != EventKind::exec) {
    event.subject_priority = head->subject_priority;
    event.subject_comm = comm_of(head->subject_comm);
  }
  switch (event.kind) {
    case EventKind::switched:
    case EventKind::fork: {
      const auto pair = read_as<PairRecord>(record);
      if (!pair) return false;
      event.other = pair->other;
      event.other_priority = pair->other_priority;
      event.other_comm = comm_of(pair->other_comm);
      if (event.kind == EventKind::fork) {
        event.other_pid = static_cast<std::int32_t>(pair->state);
      } else {
        event.state = pair->state;
      }
      return true;
    }
    case EventKind::waking:
    case EventKind::wakeup:
    case EventKind::wakeup_new:
    case EventKind::migrate: {
      const auto target = read_as<TargetRecord>(record);
      if (!target) return false;
      event.target_cpu = target->target_cpu;
      if (event.kind == EventKind::migrate) event.from_cpu = target->from_cpu;
      return true;
    }
    case EventKind::exec: {
      const auto executed = read_as<ExecRecord>(record);
      if (!executed) return false;
      event.other = executed->old_tid;
      const auto rest = record.subspan(sizeof(ExecRecord));
      const std::string_view bytes(reinterpret_cast<const char*>(rest.data()), rest.size());
      event.filename = bytes.substr(0, bytes.find('\0'));
      return true;
    }
    case EventKind::exit:
      return true;
  }
  return false;
}

}  // namespace perflab::tracing::bpf
