#include "tracing/scheduler/tracepoint.h"

#include <gtest/gtest.h>

#include "tracing/scheduler/source.h"

namespace perflab::tracing {
namespace {

constexpr const char* kFork = R"(name: sched_process_fork
ID: 366
format:
	field:unsigned short common_type;	offset:0;	size:2;	signed:0;
	field:int common_pid;	offset:4;	size:4;	signed:1;

	field:__data_loc char[] parent_comm;	offset:8;	size:4;	signed:0;
	field:pid_t parent_pid;	offset:12;	size:4;	signed:1;
	field:char child_comm[16];	offset:16;	size:16;	signed:0;

print fmt: "field:int no_field;	offset:1;	size:1;", REC->parent_pid
)";

TEST(TracepointFormat, HasThePlacesThatTracefsSays) {
  const TracepointFormat format = parse_tracepoint_format(kFork);
  EXPECT_EQ(format.name, "sched_process_fork");
  EXPECT_EQ(format.id, 366U);
  ASSERT_NE(format.find("parent_pid"), nullptr);
  EXPECT_EQ(format.find("parent_pid")->offset, 12U);
  EXPECT_TRUE(format.find("parent_comm")->located);
  EXPECT_FALSE(format.find("child_comm")->located);
  EXPECT_EQ(format.find("child_comm")->size, 16U);
  EXPECT_EQ(format.find("no_field"), nullptr);
}

TEST(TracepointFormat, WithoutNameOrFieldsIsNone) {
  EXPECT_THROW(parse_tracepoint_format(""), Unsupported);
  EXPECT_THROW(parse_tracepoint_format("name: x\nID: 3\n"), Unsupported);
}

TEST(TracepointFormat, OfATracepointThatTheKernelHasNotSaysSo) {
  EXPECT_THROW(static_cast<void>(read_tracepoint_format("sched", "no_such_event")), Unsupported);
}

}  // namespace
}  // namespace perflab::tracing
