// Turns a source's events into a trace: checks them, filters by process tree, writes the rest.
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
  std::size_t flight_recorder_bytes = 0;  // 0: events are written as they come
  std::vector<std::int32_t> roots;        // roots of process trees; empty: everything is kept
};

struct RecordingTotals {
  std::uint64_t events = 0;  // written
  std::array<std::uint64_t, kEventNames.size()> by_event{};
  std::uint64_t lost = 0;
  std::vector<Loss> losses;
  std::uint64_t bytes = 0;
  std::uint64_t filtered_out = 0;
  // Switches from a thread other than the last one switched in, on a CPU without a loss in between: an event
  // is missing that nobody reported.
  std::uint64_t chain_breaks = 0;
  std::uint64_t recovered = 0;  // switches known only from the kernel's other records
  std::optional<std::uint64_t> recovered_wakeups;  // likewise; empty if the source cannot recover any
  std::uint64_t withheld = 0;   // events that the kernel counted but delivered to no buffer
  std::uint64_t backwards = 0;  // events that came after a later one had been written; they get its time
};

class Recording {
 public:
  // Throws CtfOutputError, or BadInput if a process does not exist.
  Recording(RecordingSettings settings, Source& source);

  // Waits for events for at most `timeout_ns` and writes what there is.
  void step(std::int64_t timeout_ns);
  // Adds a process tree to keep. Throws BadInput if the process does not exist.
  void add_root(std::int32_t pid);
  // Writes everything to disk.
  void flush();
  // Stops the source and writes the rest.
  void stop();
  // After stop() the totals; before, the counts so far.
  [[nodiscard]] RecordingTotals totals() const;

 private:
  struct Queued {
    SchedulerEvent event;
    std::string filename;
    std::optional<Loss> loss;  // then it is not an event
  };
  struct Cpu {
    unsigned number = 0;
    std::int64_t last_ns = 0;  // time as received
    std::int32_t next_tid = -1;
    bool lost_since = false;
    std::deque<Queued> queue;  // for ordering events of all CPUs
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
  std::vector<Member> members_;  // current and former members of the trees; only if packets may be dropped
  std::size_t most_members_ = 4096;
  std::vector<Loss> waiting_losses_;
  std::int64_t filtered_until_ns_ = 0;
  std::int64_t until_ns_ = std::numeric_limits<std::int64_t>::max();  // later events are not written
  RecordingTotals totals_;
};

}  // namespace perflab::tracing
