#include "runtime/rclcpp/settings.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "middleware/support/cyclonedds.h"
#include "middleware/support/fastdds.h"
#include "runtime/rclcpp/distribution.h"

namespace perflab::runtime::ros {
namespace {

constexpr std::array kProfileFiles{"FASTRTPS_DEFAULT_PROFILES_FILE", "FASTDDS_DEFAULT_PROFILES_FILE"};

bool switched(const std::string& key, const std::string& value) {
  if (value == "on" || value == "true") return true;
  if (value == "off" || value == "false") return false;
  throw Error(Error::Kind::kBadInput, "rclcpp: option " + key + "=" + value + "; right would be on or off");
}

std::optional<std::string> environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

// The user's own variables that stay in force, as they were before the first runtime of this process.
const std::map<std::string, std::string>& own_environment() {
  static const std::map<std::string, std::string> own = [] {
    std::map<std::string, std::string> found;
    for (const char* const name : {"CYCLONEDDS_URI", kProfileFiles[0], kProfileFiles[1],
                                   "RMW_FASTRTPS_PUBLICATION_MODE", "RMW_FASTRTPS_USE_QOS_FROM_XML"}) {
      if (auto value = environment(name)) found.emplace(name, std::move(*value));
    }
    return found;
  }();
  return own;
}

// The environment variables that perflab sets, and what it reports about them.
class Environment {
 public:
  Environment(const Settings& settings, const PluginSettings& given)
      : settings_(settings),
        given_(given),
        interface_(middleware::support::find_interface("rclcpp", given.network)),
        fastdds_(settings.rmw.starts_with("rmw_fastrtps")),
        cyclonedds_(settings.rmw == "rmw_cyclonedds_cpp"),
        own_profile_(fastdds_ && (own(kProfileFiles[0]) || own(kProfileFiles[1]))) {}

  nlohmann::json set(std::optional<TemporaryFile>& profile) {
    // A profile file of the user stays in force and then determines the transport.
    if (settings_.udp && own_profile_)
      throw Error(
          Error::Kind::kUnsupported,
          "rclcpp: transport=udp conflicts with your own profile file; right would be to unset "
          "FASTRTPS_DEFAULT_PROFILES_FILE and FASTDDS_DEFAULT_PROFILES_FILE, or to set the transport there");
    if (!settings_.rmw.empty()) put("RMW_IMPLEMENTATION", settings_.rmw);
    const bool configured = cyclonedds_ || (fastdds_ && !own_profile_);
    limit_discovery(configured);
    nlohmann::json told;
    if (configured) {
      const auto dds = middleware::support::dds_settings("rclcpp", given_.domain, given_.network,
                                                         given_.participants_expected);
      told = middleware::support::describe(dds);
      if (cyclonedds_) {
        configure_cyclonedds(dds, told);
      } else {
        configure_fastdds(dds, profile);
      }
    } else {
      not_set_.push_back(own_profile_
                             ? "all DDS settings except the discovery range: your own profile file is in "
                               "force"
                             : "all DDS settings except the discovery range: perflab only knows "
                               "rmw_cyclonedds_cpp and rmw_fastrtps");
    }
    if (fastdds_) note_own_of_fastdds();
    told["environment"] = environment_;
    told["not_set"] = not_set_;
    return told;
  }

 private:
  static const std::string* own(const char* name) {
    const auto found = own_environment().find(name);
    return found == own_environment().end() ? nullptr : &found->second;
  }

  void put(const char* name, const std::string& value) {
    setenv(name, value.c_str(), 1);
    environment_[name] = value;
  }

  // If a configuration names the interface, LOCALHOST would add transports and announce no loopback address.
  void limit_discovery(bool configured) {
    const bool loopback = interface_.loopback;
    if (kHasDiscoveryRange) {
      put("ROS_AUTOMATIC_DISCOVERY_RANGE", configured ? "SYSTEM_DEFAULT" : loopback ? "LOCALHOST" : "SUBNET");
      unsetenv("ROS_LOCALHOST_ONLY");  // older, and takes precedence over the above
    } else {
      put("ROS_LOCALHOST_ONLY", loopback && !configured ? "1" : "0");
    }
  }

  void configure_cyclonedds(const middleware::support::DdsSettings& dds, nlohmann::json& told) {
    const std::string* const behind = own("CYCLONEDDS_URI");
    put("CYCLONEDDS_URI",
        middleware::support::cyclonedds_xml(dds) + (behind != nullptr ? "," + *behind : ""));
    told["max_message_size"] = middleware::support::cyclonedds_message_size(dds);
    told.erase("max_blocking_time_ns");
    not_set_.push_back(
        "max_blocking_time: rmw_cyclonedds_cpp lets a reliable writer wait for space without limit");
    if (behind != nullptr) not_set_.push_back("what your CYCLONEDDS_URI sets, which takes precedence");
  }

  void configure_fastdds(const middleware::support::DdsSettings& dds, std::optional<TemporaryFile>& profile) {
    const std::string xml = middleware::support::fastdds_xml(dds, !settings_.udp);
    profile.emplace(xml);
    for (const char* const name : kProfileFiles) setenv(name, profile->path().c_str(), 1);
    environment_["fastdds_profile"] = xml;
  }

  void note_own_of_fastdds() {
    for (const char* const name : kProfileFiles) {
      if (const std::string* const file = own(name)) environment_[name] = *file;
    }
    for (const char* const name : {"RMW_FASTRTPS_PUBLICATION_MODE", "RMW_FASTRTPS_USE_QOS_FROM_XML"}) {
      const std::string* const value = own(name);
      if (value == nullptr) continue;
      environment_[name] = *value;
      not_set_.push_back("what your " + std::string(name) + "=" + *value + " sets, which takes precedence");
    }
  }

  const Settings& settings_;
  const PluginSettings& given_;
  const middleware::support::Interface interface_;
  const bool fastdds_;
  const bool cyclonedds_;
  const bool own_profile_;
  nlohmann::json environment_ = nlohmann::json::object();
  std::vector<std::string> not_set_;
};

}  // namespace

// Segments and ports are mapped; their lock files are open, and a port also has a semaphore.
std::set<std::string> shared_memory_files() {
  constexpr std::string_view kFolder = "/dev/shm/";
  std::set<std::string> names;
  const auto note = [&](const std::string& path) {
    if (!path.starts_with(kFolder)) return;
    const std::string name = path.substr(kFolder.size(), path.find(' ', kFolder.size()) - kFolder.size());
    if (name.starts_with("fastrtps_") || name.starts_with("sem.fastrtps_")) names.insert(name);
  };
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    const std::size_t path = line.find('/');
    if (path != std::string::npos) note(line.substr(path));
  }
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd", none)) {
    const auto target = std::filesystem::read_symlink(entry.path(), none);
    if (!none) note(target.string());
  }
  return names;
}

Settings read_settings(const PluginSettings& given) {
  Settings settings;
  const std::size_t slash = given.middleware.find('/');
  if (slash != std::string::npos) settings.rmw = given.middleware.substr(slash + 1);
  if (settings.rmw.empty()) settings.rmw = environment("RMW_IMPLEMENTATION").value_or("");
  for (const auto& [key, value] : given.options) {
    if (key == "node") {
      if (value != "node" && value != "lifecycle")
        throw Error(Error::Kind::kBadInput,
                    "rclcpp: option node=" + value + "; right would be node or lifecycle");
      settings.lifecycle = value == "lifecycle";
    } else if (key == "parameter_services") {
      settings.parameter_services = switched(key, value);
    } else if (key == "rosout") {
      settings.rosout = switched(key, value);
    } else if (key == "transport" && settings.rmw.starts_with("rmw_fastrtps")) {
      if (value != "udp" && value != "default")
        throw Error(Error::Kind::kBadInput,
                    "rclcpp: option transport=" + value + "; right would be udp or default");
      settings.udp = value == "udp";
    } else {
      throw Error(Error::Kind::kBadInput, "rclcpp: unknown option '" + key +
                                              "', known are node, parameter_services, rosout and, of "
                                              "rmw_fastrtps, transport");
    }
  }
  return settings;
}

TemporaryFile::TemporaryFile(const std::string& text) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error)
    throw Error(Error::Kind::kFailed, "rclcpp: no folder for the profile of Fast DDS: " + error.message() +
                                          "; right would be one in TMPDIR");
  path_ = (folder / "perflab_XXXXXX.xml").string();
  const int file = mkstemps(path_.data(), 4);
  if (file < 0)
    throw Error(Error::Kind::kFailed,
                "rclcpp: no file in " + folder.string() +
                    " for the profile of Fast DDS: " + std::generic_category().message(errno));
  const bool written = write(file, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  close(file);
  if (written) return;
  unlink(path_.c_str());
  throw Error(Error::Kind::kFailed, "rclcpp: no room in " + folder.string() + " for the profile of Fast DDS");
}

TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }

nlohmann::json set_environment(const Settings& settings, const PluginSettings& given,
                               std::optional<TemporaryFile>& profile_file) {
  return Environment(settings, given).set(profile_file);
}

}  // namespace perflab::runtime::ros
