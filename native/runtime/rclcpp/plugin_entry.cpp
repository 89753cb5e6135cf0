// What perflab-node loads (runtime/plugin.h).
#include <rclcpp/version.h>

#include <algorithm>

#include "realtime/scheduling.h"
#include "realtime/thread.h"
#include "runtime/rclcpp/rclcpp_runtime.h"

namespace perflab::runtime::ros {
namespace {

std::unique_ptr<Runtime> open(const PluginSettings& settings, const measure::Clock& clock, EventSink& sink) {
  return std::make_unique<RclcppRuntime>(settings, clock, sink);
}

// Threads that an executor of rclcpp started by itself (the timers of its EventsExecutor) have the name and the
// settings of the thread that made them, and belong to it.
std::vector<realtime::OwnThread> own_threads() {
  std::vector<realtime::OwnThread> own = realtime::own_threads();
  const std::vector<realtime::ThreadState> all = realtime::read_threads();
  const std::size_t registered = own.size();
  for (const realtime::ThreadState& thread : all) {
    if (std::ranges::find(own, thread.tid, &realtime::OwnThread::tid) != own.end()) continue;
    for (std::size_t i = 0; i < registered; ++i) {
      if (own[i].role != realtime::Role::kExecutor) continue;
      const auto parent = std::ranges::find(all, own[i].tid, &realtime::ThreadState::tid);
      if (parent == all.end() || parent->name != thread.name) continue;
      own.push_back({thread.tid, realtime::Role::kExecutor, own[i].asked});
      break;
    }
  }
  return own;
}

constexpr PluginApi kApi{kPluginAbi, "rclcpp", RCLCPP_VERSION_STR, &open, &own_threads};

}  // namespace
}  // namespace perflab::runtime::ros

extern "C" __attribute__((visibility("default"))) const perflab::runtime::PluginApi* perflab_runtime_plugin() {
  return &perflab::runtime::ros::kApi;
}
