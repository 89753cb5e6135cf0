#include "traceview/directory.h"

#include <gtest/gtest.h>

namespace perflab::traceview {
namespace {

TEST(Directory, SameNumbersOnTwoHostsAreTwoProcessesAndThreads) {
  Directory directory;
  const auto a = directory.process(directory.host("a"), 10);
  const auto b = directory.process(directory.host("b"), 10);
  EXPECT_NE(a, b);
  EXPECT_NE(directory.thread_of(a, 11), directory.thread_of(b, 11));
  EXPECT_EQ(directory.thread_of(a, 11), directory.thread_of(a, 11));
}

TEST(Directory, ANumberThatAnotherProcessUsesIsAnotherThread) {
  Directory directory;
  const auto host = directory.host("a");
  const auto first = directory.thread_of(directory.process(host, 10), 11);
  const auto second = directory.thread_of(directory.process(host, 20), 11);
  EXPECT_NE(first, second);
  EXPECT_EQ(directory.thread_of(directory.process(host, 10), 11), first);
}

TEST(Directory, TheSchedulersThreadIsThatOfUserSpace) {
  Directory directory;
  const auto host = directory.host("a");
  const auto process = directory.process(host, 10);
  const auto user = directory.thread_of(process, 11);
  directory.thread_row(user).first_ns = 100;
  EXPECT_EQ(directory.thread_at(host, 11, 50), user) << "it ran before its first event";
  EXPECT_EQ(directory.thread_at(host, 11, 500), user);
  const auto scheduled = directory.thread_at(host, 12, 60);
  EXPECT_FALSE(directory.thread_row(scheduled).process);
  EXPECT_EQ(directory.thread_of(process, 12), scheduled) << "its process becomes known";
  EXPECT_EQ(directory.thread_row(scheduled).process, process);
}

TEST(Directory, OfSeveralThreadsWithANumberTheOneThatLivesThen) {
  Directory directory;
  const auto host = directory.host("a");
  const auto first = directory.thread_of(directory.process(host, 10), 11);
  const auto second = directory.thread_of(directory.process(host, 20), 11);
  directory.thread_row(first).first_ns = 10;
  directory.thread_row(second).first_ns = 200;
  EXPECT_EQ(directory.thread_at(host, 11, 5), first);
  EXPECT_EQ(directory.thread_at(host, 11, 100), first);
  EXPECT_EQ(directory.thread_at(host, 11, 200), second);
  EXPECT_EQ(directory.reused_ns(first), 200);
  EXPECT_FALSE(directory.reused_ns(second));
  directory.end_thread(first, 100);
  EXPECT_EQ(directory.thread_at(host, 11, 150), second) << "started, but has not said anything yet";
  directory.end_thread(second, 300);
  const auto third = directory.thread_at(host, 11, 400);
  EXPECT_NE(third, first);
  EXPECT_NE(third, second);
}

TEST(Directory, TablesHaveNullsForWhatIsNotKnown) {
  Directory directory;
  directory.host("");
  directory.thread_at(0, 11, 5);
  EXPECT_FALSE(directory.host_table().name.valid(0));
  const Threads threads = directory.thread_table();
  EXPECT_FALSE(threads.process.valid(0));
  EXPECT_FALSE(threads.name.valid(0));
  EXPECT_EQ(threads.events[0], 0u);
}

}  // namespace
}  // namespace perflab::traceview
