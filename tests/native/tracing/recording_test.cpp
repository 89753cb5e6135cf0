// A recording of a source scripted by the test.
#include "tracing/scheduler/recording.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <set>
#include <string>

#include "ctf/stream.h"
#include "ctf/trace.h"
#include "traceview/view.h"

namespace perflab::tracing {
namespace {

namespace fs = std::filesystem;

class FakeSource final : public Source {
 public:
  const char* name() const noexcept override { return "fake"; }
  bool filters() const noexcept override { return filtering; }
  std::vector<unsigned> cpus() const override { return {0, 1}; }
  void start() override {}
  void stop() noexcept override {}
  void drain(const Handler& handler, std::int64_t) override {
    for (auto& [cpu, events] : std::exchange(batches, {})) {
      for (const Loss& loss : std::exchange(next_losses, {})) losses.push_back(loss);
      handler(cpu, events);
    }
  }
  std::vector<Loss> take_losses() override { return std::exchange(losses, {}); }

  std::vector<std::pair<unsigned, std::vector<SchedulerEvent>>> batches;
  std::vector<Loss> losses, next_losses;
  bool filtering = false;
};

SchedulerEvent switched(std::int64_t time_ns, int from, int to) {
  SchedulerEvent event;
  event.time_ns = time_ns;
  event.kind = EventKind::switched;
  event.pid = event.tid = event.subject = from;
  event.other = to;
  event.state = 1;
  return event;
}

class Recorded : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "perflab-recording-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    settings.folder = folder + "/t";
  }
  void TearDown() override { fs::remove_all(folder); }

  std::vector<std::int64_t> times(unsigned cpu) const {
    const fs::path path = settings.folder;
    const auto set = ctf::TraceSet::open(std::span(&path, 1));
    std::vector<std::int64_t> result;
    const ctf::Trace& trace = *set.traces().at(0);
    for (std::size_t i = 0; i < trace.streams.size(); ++i) {
      if (trace.streams[i].cpu != cpu) continue;
      ctf::StreamReader reader(trace, i);
      for (ctf::Event event; reader.next(event);) result.push_back(event.time_ns);
    }
    return result;
  }

  std::string folder;
  RecordingSettings settings;
  FakeSource source;
};

TEST_F(Recorded, ASwitchFromAnotherThanTheOneThatCameIsAChainBreak) {
  Recording recording(settings, source);
  source.batches = {{0, {switched(10, 1, 2), switched(20, 2, 3), switched(30, 4, 5)}},
                    {1, {switched(15, 9, 0)}}};
  recording.step(0);
  source.batches = {{0, {switched(40, 6, 7)}}};
  recording.step(0);
  recording.stop();
  const RecordingTotals totals = recording.totals();
  EXPECT_EQ(totals.chain_breaks, 2U);
  EXPECT_EQ(totals.events, 5U);
  EXPECT_EQ(totals.by_event[0], 5U);
  EXPECT_EQ(totals.lost, 0U);
}

// A source is switched off CPU by CPU: after the first one only some have events.
TEST_F(Recorded, EveryCpuEndsWhenTheRecordingDoes) {
  Recording recording(settings, source);
  source.batches = {{0, {switched(10, 1, 2)}}, {1, {switched(20, 3, 4)}}};
  recording.step(0);
  constexpr std::int64_t kAfterTheEnd = std::numeric_limits<std::int64_t>::max() / 2;
  source.batches = {{0, {switched(30, 2, 1), switched(kAfterTheEnd, 1, 2)}}};
  recording.stop();
  EXPECT_EQ(times(0), (std::vector<std::int64_t>{10, 30}));
  EXPECT_EQ(times(1), (std::vector<std::int64_t>{20}));
  EXPECT_EQ(recording.totals().events, 3U);
  const fs::path path = settings.folder;
  const auto set = ctf::TraceSet::open(std::span(&path, 1));
  std::set<std::uint64_t> ends;
  for (const ctf::Stream& stream : set.traces().at(0)->streams)
    ends.insert(stream.packets.back().end_cycles.value());
  EXPECT_EQ(ends.size(), 1U);
}

TEST_F(Recorded, ALossIsNoChainBreakAndIsWrittenWhereItWas) {
  Recording recording(settings, source);
  source.batches = {{0, {switched(10, 1, 2)}}};
  recording.step(0);
  source.batches = {{0, {switched(30, 4, 5)}}};
  source.next_losses = {{0U, 10, 30, 8}};
  recording.step(0);
  recording.stop();
  EXPECT_EQ(recording.totals().chain_breaks, 0U);
  EXPECT_EQ(recording.totals().lost, 8U);
  const fs::path path = settings.folder;
  const auto set = ctf::TraceSet::open(std::span(&path, 1));
  ASSERT_EQ(set.ledger().size(), 1U);
  EXPECT_EQ(set.ledger()[0].count, 8U);
  EXPECT_EQ(set.ledger()[0].begin_ns, 10);
  EXPECT_EQ(set.ledger()[0].end_ns, 30);
}

TEST_F(Recorded, ACountBeyondWhatTablesCountIsTheirMostAndNotExact) {
  Recording recording(settings, source);
  source.batches = {{0, {switched(10, 1, 2)}}};
  recording.step(0);
  source.batches = {{0, {switched(30, 4, 5)}}};
  source.next_losses = {{0U, 10, 30, std::uint64_t{3} << 62U}};
  recording.step(0);
  recording.stop();
  const fs::path path = settings.folder;
  const std::string facts = traceview::View::open(std::span(&path, 1), {})->facts();
  EXPECT_NE(facts.find("9223372036854775807"), std::string::npos) << facts;
  EXPECT_NE(facts.find("\"exact\":false"), std::string::npos) << facts;
}

TEST_F(Recorded, WhatComesBehindALaterEventIsCountedAndNeverGoesBackwards) {
  Recording recording(settings, source);
  source.batches = {{0, {switched(10, 1, 2), switched(30, 2, 3)}}};
  recording.step(0);
  source.batches = {{0, {switched(25, 3, 4), switched(40, 4, 5)}}};
  recording.step(0);
  recording.stop();
  EXPECT_EQ(recording.totals().backwards, 1U);
  EXPECT_EQ(times(0), (std::vector<std::int64_t>{10, 30, 30, 40}));
}

TEST_F(Recorded, ATreeLeavesOutTheRestInTheOrderOfAllCpus) {
  settings.roots = {static_cast<std::int32_t>(getpid())};
  const auto own = static_cast<int>(getpid());
  Recording recording(settings, source);
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  const std::int64_t t = 1'000'000'000LL * time.tv_sec + time.tv_nsec;
  SchedulerEvent woken;
  woken.kind = EventKind::wakeup;
  woken.time_ns = t + 20;
  woken.subject = own;
  woken.target_cpu = 1;
  // CPU 1 comes first in the batch; the wake-up on CPU 0 determines which of its switches are kept.
  source.batches = {{1,
                     {switched(t + 1, own, 50), switched(t + 10, 50, 51), switched(t + 30, 51, 52),
                      switched(t + 40, 52, own)}},
                    {0, {switched(t + 5, 60, 61), woken, switched(t + 35, 61, 62)}}};
  recording.step(0);
  recording.stop();
  EXPECT_EQ(times(1), (std::vector<std::int64_t>{t + 1, t + 30, t + 40}));
  EXPECT_EQ(times(0).back(), t + 20);
  EXPECT_EQ(recording.totals().filtered_out, 3U);
  EXPECT_EQ(recording.totals().events, 4U);
}

// Events in the buffers when a root is added happened before.
TEST_F(Recorded, ARootLeavesTheTimesOfWhatWasNotDrainedYet) {
  for (const bool filtering : {false, true}) {
    SCOPED_TRACE(filtering);
    settings.folder = folder + (filtering ? "/in_kernel" : "/here");
    source.filtering = filtering;
    timespec time{};
    clock_gettime(CLOCK_MONOTONIC, &time);
    const std::int64_t t = 1'000'000'000LL * time.tv_sec + time.tv_nsec;
    const auto own = static_cast<int>(getpid());
    Recording recording(settings, source);
    source.batches = {{0, {switched(t - 9'000'000, 0, own)}}, {1, {switched(t - 3'000'000, 50, 51)}}};
    recording.step(0);
    source.batches = {{0, {switched(t - 5'000'000, own, 0), switched(t - 1'000'000, 0, own)}}};
    recording.add_root(own);
    recording.stop();
    const auto written = times(0);
    ASSERT_GT(written.size(), 3U);
    EXPECT_EQ((std::vector<std::int64_t>(written.begin(), written.begin() + 3)),
              (std::vector<std::int64_t>{t - 9'000'000, t - 5'000'000, t - 1'000'000}));
    EXPECT_GE(written[3], t);  // a thread of the tree
  }
}

TEST_F(Recorded, ARootThatIsNoProcessIsRefused) {
  settings.roots = {0x7ffffffe};
  EXPECT_THROW(Recording(settings, source), BadInput);
}

}  // namespace
}  // namespace perflab::tracing
