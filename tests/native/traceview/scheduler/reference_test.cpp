// Scheduling in a recorded trace, compared with figures computed by babeltrace2. PERFLAB_REFERENCE_TRACES
// names the folder with the archives; the default is ../shared/traces next to the repository.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <set>

#include "ctf/merge.h"
#include "ctf/trace.h"
#include "traceview/scheduler.h"
#include "traceview/schema.h"

namespace perflab::traceview {
namespace {

using Path = std::filesystem::path;

Path archive(const std::string& name) {
  const char* named = std::getenv("PERFLAB_REFERENCE_TRACES");
  const Path folder =
      named != nullptr && *named != '\0' ? Path(named) : Path(PERFLAB_SOURCE_DIR) / "../shared/traces";
  return folder / (name + ".tar.xz");
}

// A folder that is removed with the test.
class Unpacked {
 public:
  explicit Unpacked(const Path& file) {
    std::string pattern = ::testing::TempDir() + "perflab_scheduler_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    const std::string command = "tar -xJf '" + file.string() + "' -C '" + folder_.string() + "'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  ~Unpacked() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }
  Unpacked(const Unpacked&) = delete;
  Unpacked& operator=(const Unpacked&) = delete;
  [[nodiscard]] const Path& folder() const { return folder_; }

 private:
  Path folder_;
};

// The scheduler events of all traces below a folder.
struct Replay {
  Directory directory;
  Scheduler scheduler{directory};
  std::map<SchedulerEvent::Kind, std::uint64_t> kinds;
  std::uint64_t incomplete = 0;

  explicit Replay(const Path& folder) {
    const std::vector<Path> paths{folder};
    const auto set = ctf::TraceSet::open(paths);
    std::vector<ctf::MergeInput> inputs;
    std::vector<std::vector<BoundEvent>> bounds;
    for (const auto& trace : set.traces()) {
      auto& bound = bounds.emplace_back();
      std::vector<bool> wanted;
      for (const auto& layout : trace->layouts) {
        bound.push_back(bind(*trace, layout));
        wanted.push_back(is_scheduler(bound.back().kind));
      }
      for (std::size_t i = 0; i < trace->streams.size(); ++i) {
        inputs.push_back({trace.get(), static_cast<std::uint32_t>(bounds.size() - 1), i, 0, wanted});
      }
    }
    ctf::Merger merger(inputs, 1);
    for (ctf::MergedEvent merged; merger.next(merged);) {
      const auto& trace = *set.traces()[merged.trace_index];
      const auto event = scheduler_event(bounds[merged.trace_index][merged.event.class_index], merged.event,
                                         directory.host("host"), trace.streams[merged.event.stream].cpu);
      if (!event) {
        ++incomplete;
        continue;
      }
      ++kinds[event->kind];
      scheduler.add(*event);
    }
    scheduler.finish();
  }

  // Sorted; of all threads, or of those woken with that priority.
  [[nodiscard]] std::vector<std::int64_t> latencies(
      std::optional<std::int32_t> priority = std::nullopt) const {
    const WakeUps& table = scheduler.wake_ups();
    std::vector<std::int64_t> values;
    for (std::size_t i = 0; i < table.thread.size(); ++i) {
      if (table.switch_ns.valid(i) && (!priority || table.priority.at(i) == priority)) {
        values.push_back(table.switch_ns[i] - table.wakeup_ns[i]);
      }
    }
    std::sort(values.begin(), values.end());
    return values;
  }
};

// n, minimum, median, 99th percentile, maximum.
void expect_latencies(const std::vector<std::int64_t>& values, std::size_t n, std::int64_t least,
                      std::int64_t middle, std::int64_t high, std::int64_t greatest) {
  ASSERT_EQ(values.size(), n);
  EXPECT_EQ(values.front(), least);
  EXPECT_EQ(values[n / 2], middle);
  EXPECT_EQ(values[static_cast<std::size_t>(static_cast<double>(n) * 0.99)], high);
  EXPECT_EQ(values.back(), greatest);
}

TEST(ReferenceScheduler, OfARealTimeKernelWith16Cores) {
  const Path file = archive("kernel_16_cores_rt");
  if (!std::filesystem::exists(file)) {
    GTEST_SKIP() << "no " << file.string()
                 << "; PERFLAB_REFERENCE_TRACES names the folder with recorded traces";
  }
  const Unpacked trace(file);
  const Replay replay(trace.folder());
  using Kind = SchedulerEvent::Kind;
  const std::map<Kind, std::uint64_t> kinds{
      {Kind::switched, 25'358}, {Kind::waking, 16'025}, {Kind::wakeup, 16'025}, {Kind::wakeup_new, 2},
      {Kind::migrate, 342},     {Kind::fork, 2},        {Kind::exec, 2},        {Kind::exit, 2}};
  EXPECT_EQ(replay.kinds, kinds);
  EXPECT_EQ(replay.incomplete, 0u);
  EXPECT_EQ(replay.scheduler.coverage().contradictions, 0u);

  expect_latencies(replay.latencies(), 15'986, 978, 3'742, 7'608, 4'687'570);
  expect_latencies(replay.latencies(49), 306, 1'345, 1'585, 2'430, 6'905);
  expect_latencies(replay.latencies(98), 15'191, 978, 3'774, 7'643, 4'687'570);
  const WakeUps& wake_ups = replay.scheduler.wake_ups();
  std::size_t running = 0, without_waking = 0;
  for (std::size_t i = 0; i < wake_ups.thread.size(); ++i) {
    running += wake_ups.already_running[i];
    without_waking += !wake_ups.waking_ns.valid(i);
  }
  EXPECT_EQ(running, 41u);
  EXPECT_EQ(without_waking, 2u) << "new threads";

  // 1,024 is "preempted" in this kernel, 64 is "dead".
  const ThreadStates& states = replay.scheduler.states();
  std::map<std::string, int> ends;
  for (std::size_t i = 0; i < states.thread.size(); ++i) {
    if (states.end_state.valid(i)) ++ends[names(EndState{})[static_cast<std::size_t>(states.end_state[i])]];
  }
  EXPECT_EQ(ends["preempted"], 133);
  EXPECT_EQ(ends["ended"], 2);
  EXPECT_EQ(ends["other"], 0);
  EXPECT_GE(replay.scheduler.migrations().thread.size(), 342u - 2u);

  // While a thread waits, every instant has a row with the holder of its CPU.
  std::int64_t waited = 0, held = 0;
  for (std::size_t i = 0; i < states.thread.size(); ++i) {
    const bool waits = states.state[i] == ThreadState::preempted || states.state[i] == ThreadState::woken;
    if (waits && states.cpu.valid(i)) waited += states.end_ns[i] - states.start_ns[i];
  }
  const Holds& holds = replay.scheduler.holds();
  for (std::size_t i = 0; i < holds.thread.size(); ++i) held += holds.end_ns[i] - holds.start_ns[i];
  EXPECT_GT(held, 0);
  EXPECT_EQ(held, waited);
}

TEST(ReferenceScheduler, OfPerfWithoutWaking) {
  const Path file = archive("lttng_ust_plus_perf");
  if (!std::filesystem::exists(file)) {
    GTEST_SKIP() << "no " << file.string()
                 << "; PERFLAB_REFERENCE_TRACES names the folder with recorded traces";
  }
  const Unpacked trace(file);
  const Replay replay(trace.folder());
  EXPECT_TRUE(replay.scheduler.coverage().has_wakeups);
  EXPECT_TRUE(replay.scheduler.coverage().has_migrations);
  EXPECT_FALSE(replay.scheduler.coverage().has_waking);
  EXPECT_GT(replay.scheduler.coverage().contradictions, 0u)
      << "one program was recorded, not the whole machine";
  EXPECT_EQ(replay.incomplete, 0u);
  // perf has the kernel's own priorities and short names.
  std::set<std::string> threads;
  for (const auto& thread : replay.directory.threads()) threads.insert(thread.name);
  EXPECT_TRUE(threads.contains("migration/0"));
  EXPECT_FALSE(replay.latencies(0).empty()) << "migration/0 has the highest priority";
  EXPECT_FALSE(replay.latencies(120).empty());
}

}  // namespace
}  // namespace perflab::traceview
