// Scheduling as requested, applied, inherited and read back. Without privileges, the error must name the
// limit.
#include "realtime/scheduling.h"

#include <gtest/gtest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <future>
#include <thread>

#include "../rows.h"
#include "realtime/thread.h"

namespace perflab::realtime {
namespace {

ThreadState self() { return read_thread(gettid()).value(); }

std::vector<int> all_cpus() { return self().cpus; }

// Runs `body` in a separate thread, so that its settings end with it.
template <typename Body>
void in_a_thread(Body body) {
  std::thread(body).join();
}

bool real_time_permitted() {
  bool permitted = false;
  in_a_thread([&permitted] {
    try {
      apply({.policy = Policy::kFifo, .priority = 1});
      permitted = true;
    } catch (const SchedulingError&) {
    }
  });
  return permitted;
}

TEST(Scheduling, NamesOfPoliciesAreThoseOfChrt) {
  EXPECT_EQ(policy_from_text("RR"), Policy::kRoundRobin);
  EXPECT_EQ(policy_from_text("FIFO"), Policy::kFifo);
  EXPECT_EQ(policy_from_text("OTHER"), Policy::kOther);
  EXPECT_EQ(policy_from_text("rr"), std::nullopt);
  for (const Policy policy : {Policy::kOther, Policy::kFifo, Policy::kRoundRobin})
    EXPECT_EQ(policy_from_text(to_text(policy)), policy);
}

TEST(Scheduling, ACpuSetIsAppliedAndReadBack) {
  in_a_thread([] {
    const int last = all_cpus().back();
    apply({.cpus = {last}});
    EXPECT_EQ(self().cpus, std::vector<int>{last});
    EXPECT_EQ(sched_getcpu(), last);
  });
}

TEST(Scheduling, APolicyIsAppliedAndReadBack) {
  if (!real_time_permitted()) GTEST_SKIP() << "real-time priorities are not permitted here";
  in_a_thread([] {
    apply({.policy = Policy::kRoundRobin, .priority = 7});
    EXPECT_EQ(self().policy, "RR");
    EXPECT_EQ(self().priority, 7);
    apply({.policy = Policy::kOther});
    EXPECT_EQ(self().policy, "OTHER");
    EXPECT_EQ(self().priority, 0);
  });
}

TEST(Scheduling, AThreadCreatedMeanwhileInheritsAndTheCreatorIsAsBefore) {
  if (!real_time_permitted()) GTEST_SKIP() << "real-time priorities are not permitted here";
  in_a_thread([] {
    const ThreadState before = self();
    ThreadState child;
    {
      const Inherited inherited({.policy = Policy::kFifo, .priority = 3, .cpus = {all_cpus().front()}});
      in_a_thread([&child] { child = self(); });
    }
    EXPECT_EQ(child.policy, "FIFO");
    EXPECT_EQ(child.priority, 3);
    EXPECT_EQ(child.cpus, std::vector<int>{before.cpus.front()});
    EXPECT_EQ(self().policy, before.policy);
    EXPECT_EQ(self().cpus, before.cpus);
  });
}

TEST(Scheduling, AMissingCpuIsNamed) {
  in_a_thread([] {
    const std::vector<int> before = all_cpus();
    for (const std::vector<int>& cpus : {std::vector<int>{1000}, std::vector<int>{before.front(), 1000}}) {
      try {
        apply({.cpus = cpus});
        ADD_FAILURE() << "CPU 1000 was accepted";
      } catch (const SchedulingError& error) {
        EXPECT_NE(std::string(error.what()).find("1000"), std::string::npos) << error.what();
      }
    }
  });
}

struct Words {
  const char* name;
  ThreadSettings asked;
  std::string described;
  std::string difference;  // from a thread of policy OTHER on CPUs 0 and 1
};
class AskedScheduling : public testing::TestWithParam<Words> {};

TEST_P(AskedScheduling, ReadsAsWords) { EXPECT_EQ(describe(GetParam().asked), GetParam().described); }

TEST_P(AskedScheduling, SaysWhatIsInsteadOfIt) {
  const ThreadState found{.tid = 1, .name = "x", .policy = "OTHER", .priority = 0, .nice = 0, .cpus = {0, 1}};
  EXPECT_EQ(difference(GetParam().asked, found), GetParam().difference);
}

INSTANTIATE_TEST_SUITE_P(
    , AskedScheduling,
    rows::of<Words>({{"Nothing", {}, "as started", ""},
                     {"ThePolicyThatItHas", {.policy = Policy::kOther}, "OTHER", ""},
                     {"AllThatItHas", {.policy = Policy::kOther, .cpus = {0, 1}}, "OTHER on CPUs 0,1", ""},
                     {"AnotherPolicy",
                      {.policy = Policy::kRoundRobin, .priority = 9},
                      "RR 9",
                      "policy OTHER 0 instead of RR 9"},
                     {"AnotherCpu", {.cpus = {1}}, "on CPUs 1", "CPUs 0,1 instead of 1"},
                     {"AnotherPolicyThere",
                      {.policy = Policy::kRoundRobin, .priority = 98, .cpus = {0, 1}},
                      "RR 98 on CPUs 0,1",
                      "policy OTHER 0 instead of RR 98"}}),
    rows::by_name);

TEST(Scheduling, AllThreadsOfTheProcessAreRead) {
  std::promise<int> tid;
  std::promise<void> end;
  std::thread thread([&] {
    name_this_thread("a_long_name_for_a_thread");
    register_this_thread(Role::kExecutor, {.cpus = {0}});
    tid.set_value(gettid());
    end.get_future().wait();
  });
  const int other = tid.get_future().get();
  const std::vector<ThreadState> threads = read_threads();
  const auto found = std::ranges::find(threads, other, &ThreadState::tid);
  ASSERT_NE(found, threads.end());
  EXPECT_EQ(found->name, "a_long_name_for");
  EXPECT_NE(std::ranges::find(threads, gettid(), &ThreadState::tid), threads.end());
  const std::vector<OwnThread> own = own_threads();
  const auto registered = std::ranges::find(own, other, &OwnThread::tid);
  ASSERT_NE(registered, own.end());
  EXPECT_EQ(registered->role, Role::kExecutor);
  EXPECT_EQ(registered->asked.cpus, std::vector<int>{0});
  end.set_value();
  thread.join();
  EXPECT_EQ(read_thread(other), std::nullopt);
}

}  // namespace
}  // namespace perflab::realtime
