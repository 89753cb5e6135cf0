#include "runtime/rclcpp/settings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>

#include "runtime/rclcpp/distribution.h"

namespace perflab::runtime::ros {
namespace {

constexpr std::uint32_t kSpareParticipants = 10;
constexpr std::uint32_t kMostIndexes = 119;

bool switched(const std::string& key, const std::string& value) {
  if (value == "on" || value == "true") return true;
  if (value == "off" || value == "false") return false;
  throw Error(Error::Kind::kBadInput, "rclcpp: option " + key + "=" + value + "; right would be on or off");
}

std::optional<std::string> environment(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr || *value == '\0' ? std::nullopt : std::optional<std::string>(value);
}

void set(nlohmann::json& told, const char* name, const std::string& value) {
  setenv(name, value.c_str(), 1);
  told[name] = value;
}

// The same as perflab's own plug-in sets: one interface, found without multicast where it is the loopback.
std::string cyclonedds_config(const PluginSettings& given) {
  const std::uint32_t last = std::min(given.participants_expected + kSpareParticipants, kMostIndexes);
  const bool loopback = given.network == "lo";
  std::string discovery = "<ParticipantIndex>auto</ParticipantIndex><MaxAutoParticipantIndex>" +
                          std::to_string(last) + "</MaxAutoParticipantIndex>";
  if (loopback) discovery += "<Peers><Peer address=\"127.0.0.1\"/></Peers>";
  return "<CycloneDDS><Domain id=\"any\"><General><Interfaces><NetworkInterface name=\"" + given.network +
         "\"/></Interfaces><AllowMulticast>" + (loopback ? "false" : "default") + "</AllowMulticast></General><Discovery>" +
         discovery + "</Discovery></Domain></CycloneDDS>";
}

// Profiles come from a file; this one has no name and goes with the process.
std::string in_memory(const std::string& text) {
  const int file = memfd_create("perflab_profiles.xml", 0);
  if (file < 0 || write(file, text.data(), text.size()) != static_cast<ssize_t>(text.size()))
    throw Error(Error::Kind::kFailed, "rclcpp: no memory for the profile of Fast DDS");
  return "/proc/self/fd/" + std::to_string(file);
}

std::string fastdds_profile() {
  return R"(<?xml version="1.0" encoding="UTF-8"?>
<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles"><transport_descriptors>
<transport_descriptor><transport_id>perflab_udp</transport_id><type>UDPv4</type>
<sendBufferSize>4194304</sendBufferSize><receiveBufferSize>4194304</receiveBufferSize>
<interfaceWhiteList><address>127.0.0.1</address></interfaceWhiteList><maxInitialPeersRange>64</maxInitialPeersRange></transport_descriptor>
</transport_descriptors><participant profile_name="perflab" is_default_profile="true"><rtps>
<userTransports><transport_id>perflab_udp</transport_id></userTransports><useBuiltinTransports>false</useBuiltinTransports>
</rtps></participant></profiles>
)";
}

}  // namespace

// Segments and ports are mapped; the locks beside them are open files, and a port has a semaphore as well.
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
        throw Error(Error::Kind::kBadInput, "rclcpp: option node=" + value + "; right would be node or lifecycle");
      settings.lifecycle = value == "lifecycle";
    } else if (key == "parameter_services") {
      settings.parameter_services = switched(key, value);
    } else if (key == "rosout") {
      settings.rosout = switched(key, value);
    } else if (key == "transport" && settings.rmw.starts_with("rmw_fastrtps")) {
      if (value != "udp" && value != "default")
        throw Error(Error::Kind::kBadInput, "rclcpp: option transport=" + value + "; right would be udp or default");
      settings.udp = value == "udp";
    } else {
      throw Error(Error::Kind::kBadInput, "rclcpp: unknown option '" + key +
                                              "', known are node, parameter_services, rosout and, of "
                                              "rmw_fastrtps, transport");
    }
  }
  return settings;
}

nlohmann::json set_environment(const Settings& settings, const PluginSettings& given) {
  nlohmann::json told = nlohmann::json::object();
  if (!settings.rmw.empty()) set(told, "RMW_IMPLEMENTATION", settings.rmw);
  const bool loopback = given.network == "lo";
  const bool by_configuration = settings.rmw == "rmw_cyclonedds_cpp";  // below, all of it
  if (kHasDiscoveryRange) {
    set(told, "ROS_AUTOMATIC_DISCOVERY_RANGE", by_configuration ? "SYSTEM_DEFAULT" : loopback ? "LOCALHOST" : "SUBNET");
    unsetenv("ROS_LOCALHOST_ONLY");  // older, and stronger than the above
  } else {
    set(told, "ROS_LOCALHOST_ONLY", loopback && !by_configuration ? "1" : "0");
  }
  if (by_configuration) {
    // The user's, as it was before the first runtime of this process.
    static const auto own = environment("CYCLONEDDS_URI");
    set(told, "CYCLONEDDS_URI", cyclonedds_config(given) + (own ? "," + *own : ""));
  }
  if (settings.rmw.starts_with("rmw_fastrtps")) {
    // Likewise.
    static const std::array own{environment("FASTRTPS_DEFAULT_PROFILES_FILE"),
                                environment("FASTDDS_DEFAULT_PROFILES_FILE")};
    if (own[0]) told["FASTRTPS_DEFAULT_PROFILES_FILE"] = *own[0];
    if (own[1]) told["FASTDDS_DEFAULT_PROFILES_FILE"] = *own[1];
    // A file of the user's stays in force, and then the transport is what it says.
    if (settings.udp && (own[0] || own[1]))
      throw Error(Error::Kind::kUnsupported,
                  "rclcpp: transport=udp cannot be had beside a profile file of your own; right would be to unset "
                  "FASTRTPS_DEFAULT_PROFILES_FILE and FASTDDS_DEFAULT_PROFILES_FILE, or to say it there");
    if (settings.udp) {
      const std::string path = in_memory(fastdds_profile());
      setenv("FASTRTPS_DEFAULT_PROFILES_FILE", path.c_str(), 1);
      setenv("FASTDDS_DEFAULT_PROFILES_FILE", path.c_str(), 1);
      told["fastdds_profile"] = fastdds_profile();
    }
  }
  return told;
}

}  // namespace perflab::runtime::ros
