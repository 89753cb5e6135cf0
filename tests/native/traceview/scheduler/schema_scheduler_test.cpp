// Scheduler events of LTTng and of perf, and of several kernels, mean the same.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <map>
#include <string>

#include "traceview/schema.h"

namespace perflab::traceview {
namespace {

// An event whose fields are numbers or texts, two slots each, in the order of schema_scheduler.cpp.
class Made {
 public:
  explicit Made(Kind kind) { bound.kind = kind; }
  Made& number(std::size_t field, std::int64_t value) {
    slots_[2 * field] = static_cast<std::uint64_t>(value);
    bound.fields[field].slot = static_cast<std::int32_t>(2 * field);
    return *this;
  }
  Made& text(std::size_t field, const char* value, bool as_bytes = false) {
    slots_[2 * field] = reinterpret_cast<std::uint64_t>(value);
    slots_[2 * field + 1] = std::strlen(value) + 1;
    bound.fields[field] = {static_cast<std::int32_t>(2 * field), !as_bytes, as_bytes};
    return *this;
  }
  [[nodiscard]] std::optional<SchedulerEvent> read(std::optional<std::uint32_t> cpu = 3) const {
    ctf::Event event;
    event.time_ns = 77;
    event.slots = slots_.data();
    return scheduler_event(bound, event, 1, cpu);
  }

  BoundEvent bound;

 private:
  std::array<std::uint64_t, 2 * kMaxFields> slots_{};
};

Made made_switch(std::int64_t state) {
  return Made(Kind::sched_switch)
      .text(0, "before")
      .number(1, 10)
      .number(2, 20)
      .number(3, state)
      .text(4, "after")
      .number(5, 11)
      .number(6, -51);
}

TEST(SchedulerEvents, OfASwitchHaveBothThreads) {
  const auto event = made_switch(1).read();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, SchedulerEvent::Kind::switched);
  EXPECT_EQ(event->time_ns, 77);
  EXPECT_EQ(event->host, 1);
  EXPECT_EQ(event->cpu, 3);
  EXPECT_EQ(event->previous_tid, 10);
  EXPECT_EQ(event->previous_name, "before");
  EXPECT_EQ(event->tid, 11);
  EXPECT_EQ(event->name, "after");
}

TEST(SchedulerEvents, HavePrioritiesOnTheKernelsScale) {
  Made lttng = made_switch(0);
  EXPECT_EQ(lttng.read()->priority, 49) << "FIFO 50";
  EXPECT_EQ(lttng.read()->previous_priority, 120) << "nice 0";
  Made perf = made_switch(0).number(2, 120).number(6, 49);
  perf.bound.perf = true;
  EXPECT_EQ(perf.read()->priority, 49);
  EXPECT_EQ(perf.read()->previous_priority, 120);
}

EndState state_of(std::int64_t value, bool raw) {
  Made made = made_switch(value);
  made.bound.raw_states = raw;
  return made.read()->previous_state;
}

TEST(SchedulerEvents, HaveTheSameStatesForEveryKernel) {
  for (const bool raw : {false, true}) {
    EXPECT_EQ(state_of(0, raw), EndState::preempted);
    EXPECT_EQ(state_of(1, raw), EndState::sleeping);
    EXPECT_EQ(state_of(2, raw), EndState::uninterruptible);
    EXPECT_EQ(state_of(4, raw), EndState::stopped);
    EXPECT_EQ(state_of(8, raw), EndState::traced);
    EXPECT_EQ(state_of(16, raw), EndState::ended);
    EXPECT_EQ(state_of(32, raw), EndState::ended);
  }
  EXPECT_EQ(state_of(256, false), EndState::preempted) << "TASK_REPORT_MAX";
  for (const std::int64_t above : {1024, 2048, 4096}) EXPECT_EQ(state_of(above, true), EndState::preempted);
  EXPECT_EQ(state_of(64, true), EndState::ended) << "dead";
  EXPECT_EQ(state_of(64, false), EndState::other) << "parked";
  EXPECT_EQ(state_of(512, true), EndState::other) << "parked";
  EXPECT_EQ(state_of(128, false), EndState::other) << "idle kernel thread";
  EXPECT_EQ(state_of(130, true), EndState::uninterruptible) << "killable";
  EXPECT_EQ(state_of(132, true), EndState::stopped) << "and killable, as a stopped one is";
  EXPECT_EQ(state_of(136, true), EndState::traced) << "likewise";
  EXPECT_EQ(state_of(260, false), EndState::stopped) << "TASK_STOPPED as programs of the kernel see it";
}

TEST(SchedulerEvents, KnowTheKernelByItsRelease) {
  const auto raw = [](const char* key, const char* release) {
    ctf::Metadata metadata;
    metadata.environment[key] = std::string(release);
    return has_raw_states(metadata);
  };
  EXPECT_TRUE(raw("kernel_release", "4.1.10-rt10+"));
  EXPECT_TRUE(raw("kernel_release", "3.13.0"));
  EXPECT_TRUE(raw("release", "4.13.16"));
  EXPECT_FALSE(raw("kernel_release", "4.14.0"));
  EXPECT_FALSE(raw("release", "6.8.0-rt"));
  EXPECT_FALSE(raw("release", "unknown"));
  EXPECT_FALSE(raw("other", "3.0"));
}

TEST(SchedulerEvents, OfWakeUpsAndMigrationsHaveTheirCpus) {
  const auto woken = Made(Kind::sched_wakeup).text(0, "a").number(1, 10).number(2, 20).number(3, 5).read();
  ASSERT_TRUE(woken);
  EXPECT_EQ(woken->kind, SchedulerEvent::Kind::wakeup);
  EXPECT_EQ(woken->target_cpu, 5);
  EXPECT_FALSE(Made(Kind::sched_wakeup).number(1, 10).number(3, -1).read()->target_cpu);
  const auto moved = Made(Kind::sched_migrate_task).number(1, 10).number(3, 5).number(4, 6).read();
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->origin_cpu, 5);
  EXPECT_EQ(moved->target_cpu, 6);
}

TEST(SchedulerEvents, OfProcessesHaveWhatTheTracerSays) {
  const auto lttng = Made(Kind::process_fork).number(3, 12).number(4, 10).text(5, "child").read();
  EXPECT_EQ(lttng->tid, 12);
  EXPECT_EQ(lttng->pid, 10);
  EXPECT_EQ(lttng->name, "child");
  EXPECT_FALSE(Made(Kind::process_fork).number(3, 12).read()->pid) << "perf has no process of the child";
  EXPECT_EQ(Made(Kind::process_exec).text(0, "/bin/ls").read()->tid, -1) << "the one that runs there";
  EXPECT_EQ(Made(Kind::process_exit).number(1, 9).read()->tid, 9);
}

TEST(SchedulerEvents, TakeNamesFromTextsAndFromArraysOfBytes) {
  EXPECT_EQ(Made(Kind::sched_waking).text(0, "thread", true).number(1, 9).read()->name, "thread");
  EXPECT_EQ(Made(Kind::sched_waking).number(1, 9).read()->name, "");
}

TEST(SchedulerEvents, WithoutWhatTheyNeedAreNone) {
  EXPECT_FALSE(made_switch(0).read(std::nullopt)) << "no CPU";
  EXPECT_FALSE(made_switch(0).read(1u << 20)) << "no CPU has that number";
  EXPECT_FALSE(Made(Kind::sched_switch).number(5, 11).read());
  EXPECT_FALSE(Made(Kind::sched_wakeup).text(0, "a").read());
  EXPECT_FALSE(Made(Kind::sched_migrate_task).number(1, 10).read());
  EXPECT_FALSE(Made(Kind::callback_start).number(1, 10).read());
}

TEST(SchedulerEvents, WithoutAStateLeaveItOpen) {
  Made made = made_switch(0);
  made.bound.fields[3] = {};
  ASSERT_TRUE(made.read());
  EXPECT_EQ(made.read()->previous_state, EndState::other);
}

}  // namespace
}  // namespace perflab::traceview
