// Loads the library of tracepoints.
//
// Loading starts the tracer in this process: threads of its own, which inherit the calling thread's settings,
// and a registration with the session daemon, if there is one. Loading waits for it, so that no event is
// emitted before it can be recorded, for at most kRegistrationTimeout unless the environment says otherwise
// (LTTNG_UST_REGISTER_TIMEOUT, in milliseconds).
//
// Example:
//   const tracing::Library library = tracing::Library::load("lib/perflab/libperflab_ros2_tracepoints.so");
//   library.tracepoints()->rcl_init(this, PERFLAB_ROS2_TRACETOOLS_VERSION);
#pragma once

#include <chrono>
#include <filesystem>
#include <vector>

#include "tracing/ros/tracepoints.h"

namespace perflab::tracing {

inline constexpr std::chrono::milliseconds kRegistrationTimeout{30'000};

// A loaded library of tracepoints. It stays in memory until the process ends, because its threads do.
class Library {
 public:
  // Call it while no other thread of this process reads the environment or starts threads. Throws Unsupported
  // with the file and the reason.
  static Library load(const std::filesystem::path& file);

  [[nodiscard]] const perflab_ros2_tracepoints* tracepoints() const noexcept { return tracepoints_; }
  // True if a session recorded the events when the library was loaded.
  [[nodiscard]] bool recorded() const noexcept { return recorded_; }
  // The threads started by loading it.
  [[nodiscard]] const std::vector<int>& threads() const noexcept { return threads_; }

 private:
  Library() = default;

  const perflab_ros2_tracepoints* tracepoints_ = nullptr;
  bool recorded_ = false;
  std::vector<int> threads_;
};

}  // namespace perflab::tracing
