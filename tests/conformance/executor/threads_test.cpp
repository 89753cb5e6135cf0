// Settings of threads: applied in the thread that runs the callbacks, or refused before anything runs.
#include <pthread.h>
#include <sched.h>

#include "fixture.h"
#include "realtime/scheduling.h"

namespace perflab::runtime::conformance {
namespace {

class Threads : public AnyExecutor {};

std::vector<int> cpus_of_this_thread() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::vector<int> cpus;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(static_cast<std::size_t>(cpu), &set)) cpus.push_back(cpu);
  }
  return cpus;
}

std::string name_of_this_thread() {
  std::array<char, 16> name{};
  pthread_getname_np(pthread_self(), name.data(), name.size());
  return name.data();
}

TEST_P(Threads, HaveTheSettingsThatWereAskedFor) {
  const int cpu = cpus_of_this_thread().back();
  const std::size_t on = runtime().add_executor(
      {.kind = GetParam().kind, .name = "executor_5", .threads = 1, .thread = {.cpus = {cpu}}});
  Ticks& ticks = timer(on, 100'000, 1, 20);
  ticks.on_each = [&] {
    EXPECT_EQ(cpus_of_this_thread(), std::vector<int>{cpu});
    EXPECT_EQ(name_of_this_thread(), "executor_5");
  };
  runtime().start(clock_.now());
  EXPECT_TRUE(eventually([&] { return runtime().timers_done(); }));
  runtime().stop();
}

TEST_P(Threads, ThatCannotHaveTheirSettingsKeepEverythingFromRunning) {
  const std::size_t possible = executor();
  const std::size_t impossible = runtime().add_executor(
      {.kind = GetParam().kind, .name = "executor_6", .threads = 2, .thread = {.cpus = {1000}}});
  Ticks& some = timer(possible, 100'000, 1, 1'000);
  Ticks& none = timer(impossible, 100'000, 1, 1'000);
  Inbox& inbox = subscribe(possible, "/a", keep_last(10));
  Publisher& writer = publisher("/a", keep_last(10));
  ASSERT_TRUE(all_matched(1));
  try {
    runtime().start(clock_.now());
    ADD_FAILURE() << "started on CPU 1000";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kUnsupported);
    const std::string text = error.what();
    EXPECT_NE(text.find("executor_6"), std::string::npos) << text;
    EXPECT_NE(text.find("1000"), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
  EXPECT_TRUE(send(writer, 0));
  runtime().stop();
  EXPECT_EQ(some.count() + none.count() + inbox.count(), 0u);
}

INSTANTIATE_TEST_SUITE_P(, Threads, testing::ValuesIn(all_executors()), case_name);

}  // namespace
}  // namespace perflab::runtime::conformance
