/* A library of tracepoints of another version. */
#include "tracing/ros/tracepoints.h"

const perflab_ros2_tracepoints* perflab_ros2_tracepoints_library(void);

const perflab_ros2_tracepoints* perflab_ros2_tracepoints_library(void) {
  static const perflab_ros2_tracepoints kOld = {.abi = 999};
  return &kOld;
}
