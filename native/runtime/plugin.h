// Runtimes outside of perflab-node: a library that is loaded only if a graph asks for it, so that a process
// without ROS 2 has no part of ROS 2 in its memory.
//
// Both sides are built together, by the same compiler, from the same headers: `abi` changes with this header
// and with runtime.h.
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
  std::string network = "lo"; // name of the network interface
  std::uint32_t participants_expected = 1;  // in the whole graph
  std::uint32_t participants = 1;           // of this process; EndpointSettings::participant is an index into
                                            // them
  bool intra_process = false;
  bool structs = false;  // pass messages as structs; otherwise encoded
  std::optional<ServiceFraming> service_framing{};
  bool traced = false;  // record ROS 2 events; fail if the library was built without tracepoints
  std::vector<std::pair<std::string, std::string>> options{};
};

// The entry point of a plug-in, in static storage.
struct PluginApi {
  std::uint32_t abi;
  const char* name;     // "rclcpp"
  const char* version;  // version of the underlying library
  // Throws Error. Clock and sink must outlive the runtime.
  std::unique_ptr<Runtime> (*open)(const PluginSettings& settings, const measure::Clock& clock, EventSink& sink);
  // The library's own threads, not the middleware's: those that code linked into it has registered.
  std::vector<realtime::OwnThread> (*own_threads)();
};

class Plugin {
 public:
  // The capabilities of runtimes on ROS 2.
  static constexpr Capabilities kCapabilities{
      .own_tracepoints = true, .structs = true, .structs_unless_asked = true, .times_encoding = false,
      .source_timestamps = false, .tells_writers = false, .loaded = true};

  // Throws Error (kUnsupported) with one line that names the file and the reason. The library stays in memory
  // until the process ends.
  static Plugin load(const std::filesystem::path& file);

  [[nodiscard]] std::string_view name() const noexcept { return api_->name; }
  [[nodiscard]] std::unique_ptr<Runtime> open(const PluginSettings& settings, const measure::Clock& clock,
                                              EventSink& sink) const {
    return api_->open(settings, clock, sink);
  }
  [[nodiscard]] std::vector<realtime::OwnThread> own_threads() const { return api_->own_threads(); }
  // Threads started while the library was loaded, e.g. by a tracer.
  [[nodiscard]] const std::vector<int>& threads() const noexcept { return threads_; }

 private:
  Plugin(const PluginApi* api, std::vector<int> threads) : api_(api), threads_(std::move(threads)) {}

  const PluginApi* api_;
  std::vector<int> threads_;
};

}  // namespace perflab::runtime
