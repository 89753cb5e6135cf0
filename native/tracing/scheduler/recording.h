// From a source to a trace: checks what comes, leaves out what does not concern the process trees, writes the
// rest.
//
// Example:
//   Recording recording({.folder = "trace/scheduler"}, *source);
//   source->start();
//   while (running) recording.step(100ms);
//   recording.stop();
//   report(recording.totals());
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "tracing/ctf_writer.h"
#include "tracing/scheduler/process_tree.h"
#include "tracing/scheduler/source.h"

namespace perflab::tracing {

struct RecordingSettings {
  std::string folder;
  std::size_t flight_recorder_bytes = 0;  // 0: everything is written as it comes
  std::vector<std::int32_t> roots;        // of process trees; empty: everything is kept
};

struct RecordingTotals {
  std::uint64_t events = 0;  // written
  std::array<std::uint64_t, kEventNames.size()> by_event{};
  std::uint64_t lost = 0;
  std::vector<Loss> losses;
  std::uint64_t bytes = 0;
  std::uint64_t filtered_out = 0;
  // Switches away from another thread than the one that came last, on a CPU without a loss in between:
  // something is missing that nobody reported.
  std::uint64_t chain_breaks = 0;
  std::uint64_t recovered = 0;  // switches that only the kernel's other records show
  std::optional<std::uint64_t> recovered_wakeups;  // likewise; none where the source cannot know of any
  std::uint64_t withheld = 0;   // events that the kernel counted and gave to no buffer
  std::uint64_t backwards = 0;  // events that came after a later one had been written; they have its time
};

class Recording {
 public:
  // Throws CtfOutputError, BadInput (no such process).
  Recording(RecordingSettings settings, Source& source);

  // Waits for events at most that long and writes what there is.
  void step(std::int64_t timeout_ns);
  // A further process tree to keep. Throws BadInput where there is no such process.
  void add_root(std::int32_t pid);
  // What is not on disk yet, is then.
  void flush();
  // Stops the source, writes what is left.
  void stop();
  // After stop(): all of it; before: so far.
  [[nodiscard]] RecordingTotals totals() const;

 private:
  struct Queued {
    SchedulerEvent event;
    std::string filename;
    std::optional<Loss> loss;  // then it is no event
  };
  struct Cpu {
    unsigned number = 0;
    std::int64_t last_ns = 0;  // as it came
    std::int32_t next_tid = -1;
    bool lost_since = false;
    std::deque<Queued> queue;  // while events of all CPUs are brought into one order
  };

  struct Member {
    std::int64_t from_ns = 0, until_ns = 0;
    ProcThread thread;
  };

  void take(unsigned cpu, std::span<const SchedulerEvent> events);
  void take_losses(std::optional<unsigned> cpu, std::int64_t until_ns);
  void place(std::size_t stream, const Loss& loss);
  void check(Cpu& cpu, const SchedulerEvent& event);
  void write(std::size_t stream, const SchedulerEvent& event);
  void filter_until(std::int64_t time_ns);
  void remember(const SchedulerEvent& event, std::int64_t time_ns);
  void restate(std::int64_t begin_ns);
  void begin_filter();
  [[nodiscard]] std::size_t stream_of(unsigned cpu) const;

  RecordingSettings settings_;
  Source& source_;
  CtfUuid uuid_;
  bool filtering_;
  CtfWriter writer_;
  std::vector<Cpu> cpus_;
  std::vector<std::size_t> stream_of_cpu_;
  ProcessTree tree_;
  std::vector<Member> members_;  // of the trees, now and before; only where packets may be forgotten
  std::size_t most_members_ = 4096;
  std::vector<Loss> waiting_losses_;
  std::int64_t filtered_until_ns_ = 0;
  std::int64_t until_ns_ = std::numeric_limits<std::int64_t>::max();  // later events are not written
  RecordingTotals totals_;
};

}  // namespace perflab::tracing
