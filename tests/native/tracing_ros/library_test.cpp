// Loading the tracepoints: what is refused, and what is unaffected.
#include "tracing/ros/library.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <string>

#include "realtime/scheduling.h"

namespace perflab::tracing {
namespace {

std::string refusal_of(const std::string& file) {
  try {
    Library::load(file);
  } catch (const Error& refusal) {
    EXPECT_EQ(std::string(refusal.what()).find('\n'), std::string::npos);
    return refusal.what();
  }
  return "loaded";
}

TEST(TracepointLibrary, WhatIsNoneIsRefusedInOneLine) {
  EXPECT_EQ(refusal_of("/nowhere/x.so"), "tracepoints /nowhere/x.so: no such file");
  EXPECT_NE(refusal_of(PERFLAB_NO_LIBRARY).find(PERFLAB_NO_LIBRARY), std::string::npos);
  EXPECT_EQ(refusal_of(PERFLAB_OTHER_LIBRARY), std::string("tracepoints ") + PERFLAB_OTHER_LIBRARY +
                                                   ": does not export " PERFLAB_ROS2_TRACEPOINTS_ENTRY_NAME);
  EXPECT_NE(refusal_of(PERFLAB_OLD_LIBRARY).find("was built for interface version 999"), std::string::npos);
}

#ifdef PERFLAB_TRACEPOINTS
TEST(TracepointLibrary, ItsThreadsAreKnownAndWithoutADaemonNothingIsRecorded) {
  // A session daemon, if there is one, is not contacted.
  setenv("LTTNG_HOME", "/nonexistent", 1);
  setenv("LTTNG_UST_REGISTER_TIMEOUT", "0", 1);
  const Library library = Library::load(PERFLAB_TRACEPOINTS);
  EXPECT_STREQ(std::getenv("LTTNG_UST_REGISTER_TIMEOUT"), "0");
  for (const int tid : library.threads()) EXPECT_TRUE(realtime::read_thread(tid));
  EXPECT_FALSE(library.threads().empty());
  const perflab_ros2_tracepoints& trace = *library.tracepoints();
  EXPECT_EQ(trace.abi, PERFLAB_ROS2_TRACEPOINTS_ABI);
  trace.rcl_init(&library, PERFLAB_ROS2_TRACETOOLS_VERSION);
  const std::uint8_t gid[PERFLAB_ROS2_GID_BYTES] = {};
  trace.rmw_publisher_init(&library, gid);
  trace.callback_start(&library, 0);
  trace.callback_end(&library);
  trace.timer_due(&library, 1);
  // Loading it again gives the same library, and starts nothing.
  const Library again = Library::load(PERFLAB_TRACEPOINTS);
  EXPECT_EQ(again.tracepoints(), library.tracepoints());
  EXPECT_TRUE(again.threads().empty());
}
#endif

}  // namespace
}  // namespace perflab::tracing
