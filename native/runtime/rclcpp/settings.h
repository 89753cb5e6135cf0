// Passes the user's ROS 2 options to rcl and to the RMW: as environment variables, which both read when the
// first context is created.
//
// The user's environment wins: our settings come before those of CYCLONEDDS_URI, and a Fast DDS profile file
// of the user replaces ours. The record states the settings in force and those that could not be applied.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>

#include "runtime/plugin.h"

namespace perflab::runtime::ros {

struct Settings {
  bool lifecycle = false;
  bool parameter_services = true;
  bool rosout = true;
  bool udp = false;  // Fast DDS over UDP alone
  std::string rmw;   // "rmw_cyclonedds_cpp"
};

// Throws Error (kBadInput) that names the option.
Settings read_settings(const PluginSettings& given);

// Files of Fast DDS in /dev/shm that this process uses, by their names, sorted: they stay if it is killed.
std::set<std::string> shared_memory_files();

// A text that a library reads from a file. Fast DDS resolves the path, so the file needs a name.
class TemporaryFile {
 public:
  // Throws Error.
  explicit TemporaryFile(const std::string& text);
  ~TemporaryFile();
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
};

// Before the first context. Returns what describe() says of it: what perflab sets of DDS, as its plug-ins
// tell it, `environment`, and as sentences in `not_set` what this RMW, or the user's own environment, does
// not let perflab set. Throws Error. A profile of Fast DDS is in `profile_file`, which has to stay until the
// first node is made.
nlohmann::json set_environment(const Settings& settings, const PluginSettings& given,
                               std::optional<TemporaryFile>& profile_file);

}  // namespace perflab::runtime::ros
