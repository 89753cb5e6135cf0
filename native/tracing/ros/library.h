// The tracepoints, loaded from their file.
//
// Loading starts the tracer in this process: threads of its own, which inherit what the calling thread has,
// and a registration with the session daemon, if there is one. It is waited for, so that no event is emitted
// before it can be recorded; a daemon that does not answer is waited for kRegistrationTimeout, unless the
// environment says otherwise (LTTNG_UST_REGISTER_TIMEOUT, in milliseconds).
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

// A loaded library of tracepoints. It stays in memory until the process ends: its threads do.
class Library {
 public:
  // To be called while no other thread of this process reads the environment or starts threads. Throws
  // Unsupported, which names the file and what is wrong with it.
  static Library load(const std::filesystem::path& file);

  [[nodiscard]] const perflab_ros2_tracepoints* tracepoints() const noexcept { return tracepoints_; }
  // Whether a session recorded the events when the library had been loaded.
  [[nodiscard]] bool recorded() const noexcept { return recorded_; }
  // The threads that loading it started.
  [[nodiscard]] const std::vector<int>& threads() const noexcept { return threads_; }

 private:
  Library() = default;

  const perflab_ros2_tracepoints* tracepoints_ = nullptr;
  bool recorded_ = false;
  std::vector<int> threads_;
};

}  // namespace perflab::tracing
