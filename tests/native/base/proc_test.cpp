// Parsing of /proc, on sample texts and on this process.
#include "base/proc.h"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <algorithm>

#include "../rows.h"
#include "base/scheduling.h"

namespace perflab::proc {
namespace {

constexpr std::string_view kStat =
    "1234 (a (strange) name) R 99 1234 1234 0 -1 4194304 100 0 0 0 70 30 5 6 -51 -7 3 0 4321 1000000 250 "
    "18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 2 50 1 0 0 0 0 0 0 0 0 0 0 0\n";

TEST(Proc, StatHasItsFieldsWhereTheManualSaysWhateverTheName) {
  const auto stat = parse_stat(kStat);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->name, "a (strange) name");
  EXPECT_EQ(stat->state, 'R');
  EXPECT_EQ(stat->parent, 99);
  EXPECT_EQ(stat->cpu_ticks, 100u);
  EXPECT_EQ(stat->priority, -51);
  EXPECT_EQ(stat->threads, 3);
  EXPECT_EQ(stat->start_ticks, 4321u);
  EXPECT_EQ(stat->cpu, 2);
  EXPECT_FALSE(stat->dead());
}

TEST(Proc, APartOfAStatIsNone) {
  EXPECT_FALSE(parse_stat(kStat.substr(0, kStat.find(" 17 2"))));
  EXPECT_FALSE(parse_stat("1234 (name)"));
  EXPECT_FALSE(parse_stat(""));
}

TEST(Proc, SaysOfThisProcessWhatTheSystemSays) {
  const Descriptor file = open_file(AT_FDCWD, "/proc/self/stat");
  const auto text = read_again(file);
  ASSERT_TRUE(text);
  const auto stat = parse_stat(*text);
  ASSERT_TRUE(stat);
  EXPECT_EQ(stat->parent, getppid());
  EXPECT_TRUE(read_again(file)) << "again from its beginning";
}

TEST(Proc, AFolderOfNumbersListsThemAndNothingElse) {
  NumberFolder processes(AT_FDCWD, "/proc");
  ASSERT_TRUE(processes.open());
  Numbers numbers{-1};
  processes.read(numbers);
  EXPECT_NE(std::ranges::find(numbers, getpid()), numbers.end());
  EXPECT_GT(*std::ranges::min_element(numbers), 0);
  NumberFolder none(AT_FDCWD, "/no/such/folder");
  EXPECT_FALSE(none.open());
  none.read(numbers);
  EXPECT_TRUE(numbers.empty());
}

TEST(Scheduling, IsWhatTheSystemSaysOfThisThread) {
  Scheduling scheduling;
  ASSERT_TRUE(read_scheduling(0, scheduling));
  EXPECT_EQ(scheduling.policy, static_cast<std::uint32_t>(sched_getscheduler(0)));
  cpu_set_t set;
  ASSERT_EQ(sched_getaffinity(0, sizeof set, &set), 0);
  const std::vector<int> cpus = cpus_of(scheduling.cpus);
  EXPECT_EQ(static_cast<int>(cpus.size()), CPU_COUNT(&set));
  for (const int cpu : cpus) EXPECT_TRUE(CPU_ISSET(static_cast<std::size_t>(cpu), &set)) << cpu;
}

struct PolicyName {
  std::string text;
  std::uint32_t policy;
};
class SchedulingPolicy : public testing::TestWithParam<PolicyName> {};

TEST_P(SchedulingPolicy, IsCalledAsChrtCallsIt) {
  EXPECT_EQ(policy_text(GetParam().policy), GetParam().text);
}

INSTANTIATE_TEST_SUITE_P(, SchedulingPolicy,
                         rows::of<PolicyName>({{"OTHER", SCHED_OTHER},
                                               {"RR", SCHED_RR},
                                               {"IDLE", SCHED_IDLE},
                                               {"DEADLINE", 6},
                                               {"4", 4},
                                               {"100", 100}}),
                         rows::by_text);

}  // namespace
}  // namespace perflab::proc
