#include "tracing/scheduler/process_tree.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

namespace perflab::tracing {
namespace {

constexpr std::int64_t kRunnable = 0, kPreempted = 256, kSleeping = 1, kZombie = 32;

class Tree : public testing::Test {
 protected:
  void SetUp() override { tree.add({.pid = 7, .tid = 7}); }

  bool switched(unsigned cpu, int from, std::int64_t state, int to) {
    SchedulerEvent event;
    event.kind = EventKind::switched;
    event.subject = from;
    event.state = state;
    event.other = to;
    return tree.keep(cpu, event);
  }
  bool about(EventKind kind, int tid, int target = 0, int other = 0) {
    SchedulerEvent event;
    event.kind = kind;
    event.subject = tid;
    event.target_cpu = target;
    event.other = other;
    return tree.keep(3, event);
  }

  ProcessTree tree;
};

TEST_F(Tree, KeepsWhatNamesAThreadOfIt) {
  EXPECT_TRUE(switched(0, 7, kSleeping, 0));
  EXPECT_TRUE(about(EventKind::waking, 7));
  EXPECT_FALSE(about(EventKind::waking, 8));
  EXPECT_FALSE(about(EventKind::migrate, 8, 1));
  EXPECT_FALSE(switched(0, 8, kSleeping, 9));
  EXPECT_TRUE(about(EventKind::exec, 7));
}

TEST_F(Tree, KeepsTheSwitchesOfACpuForWhichAThreadOfItWaits) {
  EXPECT_TRUE(switched(0, 7, kPreempted, 8));
  EXPECT_TRUE(switched(0, 8, kSleeping, 9));
  EXPECT_FALSE(switched(1, 8, kSleeping, 9));  // another CPU
  EXPECT_TRUE(switched(0, 9, kSleeping, 7));
  EXPECT_TRUE(switched(0, 7, kSleeping, 9));
  EXPECT_FALSE(switched(0, 9, kSleeping, 8));  // no thread waits any more
  EXPECT_TRUE(about(EventKind::wakeup, 7, 1));
  EXPECT_TRUE(switched(1, 8, kSleeping, 9));
  EXPECT_TRUE(about(EventKind::migrate, 7, 0));
  EXPECT_FALSE(switched(1, 9, kSleeping, 8));
  EXPECT_TRUE(switched(0, 8, kSleeping, 9));
}

TEST_F(Tree, AWakeUpOfAThreadThatRunsIsNoWait) {
  EXPECT_TRUE(switched(0, 8, kSleeping, 7));
  EXPECT_TRUE(about(EventKind::wakeup, 7, 0));
  EXPECT_TRUE(switched(0, 7, kSleeping, 8));
  EXPECT_FALSE(switched(0, 8, kSleeping, 9));
}

TEST_F(Tree, ChildrenAreOfItAndThoseThatEndedAreNot) {
  EXPECT_TRUE(about(EventKind::fork, 7, 0, 17));
  EXPECT_TRUE(about(EventKind::wakeup_new, 17, 0));
  EXPECT_TRUE(switched(0, 8, kRunnable, 17));
  EXPECT_TRUE(about(EventKind::fork, 17, 0, 18));
  EXPECT_TRUE(about(EventKind::exit, 17));
  EXPECT_TRUE(switched(0, 17, kZombie, 8));
  EXPECT_FALSE(about(EventKind::wakeup, 17));
  EXPECT_TRUE(about(EventKind::wakeup, 18));
  EXPECT_EQ(tree.size(), 2U);
}

TEST_F(Tree, TheNumberOfAThreadThatEndedMayBeAnothers) {
  EXPECT_TRUE(about(EventKind::fork, 7, 0, 17));
  EXPECT_FALSE(about(EventKind::fork, 8, 0, 17));  // its end was not seen
  EXPECT_FALSE(about(EventKind::wakeup, 17));
}

TEST_F(Tree, AThreadThatExecutesAProgramTakesTheNumberOfItsProcess) {
  EXPECT_TRUE(about(EventKind::fork, 7, 0, 17));
  SchedulerEvent event;
  event.kind = EventKind::exec;
  event.subject = 7;
  event.other = 17;
  EXPECT_TRUE(tree.keep(0, event));
  EXPECT_FALSE(about(EventKind::wakeup, 17));
  EXPECT_TRUE(about(EventKind::wakeup, 7));
}

// The first thread ends, another takes its number, waits for a CPU and sleeps, and only then its exec is
// reported.
TEST_F(Tree, TheNumberOfAFirstThreadThatEndedIsOfTheTreeUntilItsProcessIsGone) {
  const auto thread_of_7 = [&](int tid) {
    SchedulerEvent event;
    event.kind = EventKind::fork;
    event.subject = 7;
    event.other = tid;
    event.other_pid = 7;
    return tree.keep(0, event);
  };
  EXPECT_TRUE(thread_of_7(17));
  EXPECT_TRUE(about(EventKind::exit, 7));
  EXPECT_TRUE(switched(0, 7, kZombie, 17));
  EXPECT_TRUE(switched(0, 7, kRunnable, 8));  // it is 17, and waits now
  EXPECT_TRUE(switched(0, 8, kSleeping, 9));
  EXPECT_TRUE(switched(0, 9, kSleeping, 7));
  EXPECT_TRUE(switched(0, 7, kSleeping, 9));
  EXPECT_FALSE(switched(0, 9, kSleeping, 8));
  EXPECT_TRUE(about(EventKind::wakeup, 7));
  EXPECT_TRUE(about(EventKind::exec, 7, 0, 17));
  EXPECT_EQ(tree.size(), 1U);

  EXPECT_TRUE(thread_of_7(18));
  EXPECT_TRUE(switched(0, 7, kZombie, 18));
  EXPECT_EQ(tree.size(), 2U);
  EXPECT_TRUE(switched(0, 18, kZombie, 0));
  EXPECT_EQ(tree.size(), 0U);
}

TEST(ThreadsBelow, FindsThisProcessAndNoneWhereThereIsNone) {
  const auto threads = threads_below(getpid());
  ASSERT_FALSE(threads.empty());
  EXPECT_EQ(threads[0].pid, getpid());
  EXPECT_TRUE(threads[0].runnable);
  EXPECT_EQ(threads[0].priority, 120 + getpriority(PRIO_PROCESS, 0));
  EXPECT_TRUE(threads_below(0x7ffffffe).empty());
}

}  // namespace
}  // namespace perflab::tracing
