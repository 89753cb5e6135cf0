// What the user asked of ROS 2, and how it is told to rcl and to the RMW: by their environment variables, which
// they read when the first context is made.
//
// What the user's own environment says wins: CYCLONEDDS_URI is put behind ours, and a profile file of Fast DDS
// takes the place of ours. What is in force is described for the records.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <set>
#include <string>

#include "runtime/plugin.h"

namespace perflab::runtime::ros {

struct Settings {
  bool lifecycle = false;
  bool parameter_services = true;
  bool rosout = true;
  bool udp = false;  // Fast DDS over UDP alone
  std::string rmw;  // "rmw_cyclonedds_cpp"
};

// Throws Error (kBadInput) that names the option.
Settings read_settings(const PluginSettings& given);

// Files of Fast DDS in /dev/shm that this process uses, by their names, sorted: they stay if it is killed.
std::set<std::string> shared_memory_files();

// Before the first context. Returns what was set, for describe(). Throws Error.
nlohmann::json set_environment(const Settings& settings, const PluginSettings& given);

}  // namespace perflab::runtime::ros
