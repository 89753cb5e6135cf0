// Runtimes that are not a part of perflab-node: a library that is loaded where a graph asks for it, so that a
// process which does not use ROS 2 has nothing of it in its memory.
//
// Both sides are built together, by the same compiler, from the same headers: `abi` is a number that changes
// with this header and with runtime.h.
//
// Example:
//   const runtime::Plugin plugin = runtime::Plugin::load("lib/perflab/runtime/rclcpp.so");
//   const std::unique_ptr<runtime::Runtime> runtime = plugin.open(settings, clock, sink);
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "realtime/thread.h"
#include "runtime/capabilities.h"
#include "runtime/runtime.h"

namespace perflab::runtime {

inline constexpr std::uint32_t kPluginAbi = 11;
inline constexpr const char* kPluginEntry = "perflab_runtime_plugin";

struct PluginSettings {
  std::string middleware;     // as the user named it, "rclcpp/rmw_cyclonedds_cpp"
  std::uint32_t domain = 0;
  std::string network = "lo"; // interface
  std::uint32_t participants_expected = 1;  // of the whole graph
  std::uint32_t participants = 1;           // of this process; EndpointSettings::participant counts them
  bool intra_process = false;
  bool structs = false;  // messages are given and taken as structs, otherwise encoded
  std::optional<ServiceFraming> service_framing{};
  bool traced = false;  // events of ROS 2 are recorded: fail where the library has none
  std::vector<std::pair<std::string, std::string>> options{};
};

// What a plug-in exports, in static storage.
struct PluginApi {
  std::uint32_t abi;
  const char* name;     // "rclcpp"
  const char* version;  // of what stands behind it
  // Throws Error. Clock and sink outlive the runtime.
  std::unique_ptr<Runtime> (*open)(const PluginSettings& settings, const measure::Clock& clock, EventSink& sink);
  // Threads that are its own and not the middleware's; what was linked into the library registers there.
  std::vector<realtime::OwnThread> (*own_threads)();
};

class Plugin {
 public:
  // Of the runtimes on ROS 2.
  static constexpr Capabilities kCapabilities{
      .own_tracepoints = true, .structs = true, .structs_unless_asked = true, .times_encoding = false,
      .source_timestamps = false, .tells_writers = false, .loaded = true};

  // Throws Error (kUnsupported) with one line that names the file and what is wrong with it. The library stays
  // in memory until the process ends.
  static Plugin load(const std::filesystem::path& file);

  [[nodiscard]] std::string_view name() const noexcept { return api_->name; }
  [[nodiscard]] std::unique_ptr<Runtime> open(const PluginSettings& settings, const measure::Clock& clock,
                                              EventSink& sink) const {
    return api_->open(settings, clock, sink);
  }
  [[nodiscard]] std::vector<realtime::OwnThread> own_threads() const { return api_->own_threads(); }
  // Threads that its libraries started while they were loaded: a tracer's.
  [[nodiscard]] const std::vector<int>& threads() const noexcept { return threads_; }

 private:
  Plugin(const PluginApi* api, std::vector<int> threads) : api_(api), threads_(std::move(threads)) {}

  const PluginApi* api_;
  std::vector<int> threads_;
};

}  // namespace perflab::runtime
