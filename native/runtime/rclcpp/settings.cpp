#include "runtime/rclcpp/settings.h"

#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>

#include "middleware/support/cyclonedds.h"
#include "middleware/support/network.h"
#include "middleware/support/status.h"
#include "runtime/rclcpp/distribution.h"

namespace perflab::runtime::ros {
namespace {

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

// Over the interface of that address alone, and within the machine by shared memory where that is wanted.
std::string fastdds_profile(const middleware::support::Interface& interface, std::uint32_t last_index,
                            bool shared_memory) {
  const std::string address = "<address>" + interface.address + "</address>";
  const std::string locator = "<locator><udpv4>" + address + "</udpv4></locator>";
  // Without multicast each participant announces itself to every port that another might have.
  const std::string discovery = "<builtin><metatrafficUnicastLocatorList>" + locator +
                                "</metatrafficUnicastLocatorList><initialPeersList>" + locator +
                                "</initialPeersList></builtin>";
  const char* const descriptor =
      "<transport_descriptor><transport_id>perflab_shm</transport_id><type>SHM</type></transport_descriptor>";
  const char* const use = "<transport_id>perflab_shm</transport_id>";
  return R"(<?xml version="1.0" encoding="UTF-8"?>
<profiles xmlns="http://www.eprosima.com/XMLSchemas/fastRTPS_Profiles"><transport_descriptors>
<transport_descriptor><transport_id>perflab_udp</transport_id><type>UDPv4</type>
<sendBufferSize>4194304</sendBufferSize><receiveBufferSize>4194304</receiveBufferSize>
<interfaceWhiteList>)" +
         address + "</interfaceWhiteList><maxInitialPeersRange>" + std::to_string(last_index + 1) +
         "</maxInitialPeersRange></transport_descriptor>\n" + (shared_memory ? descriptor : "") +
         R"(</transport_descriptors><participant profile_name="perflab" is_default_profile="true"><rtps>
)" + (interface.multicast ? "" : discovery) +
         "<userTransports><transport_id>perflab_udp</transport_id>" + (shared_memory ? use : "") +
         R"(</userTransports><useBuiltinTransports>false</useBuiltinTransports>
</rtps></participant></profiles>
)";
}

// Of perflab's plug-ins and this runtime alike.
middleware::support::Interface interface_of(const PluginSettings& given) {
  try {
    return middleware::support::find_interface("rclcpp", given.network);
  } catch (const middleware::support::StatusError& error) {
    throw Error(Error::Kind::kBadInput, error.what());
  }
}

std::uint32_t last_index_of(const PluginSettings& given, const middleware::support::Interface& interface) {
  try {
    return middleware::support::last_participant_index("rclcpp", given.network, interface,
                                                       given.participants_expected);
  } catch (const middleware::support::StatusError& error) {
    throw Error(Error::Kind::kUnsupported, error.what());
  }
}

std::string cyclonedds_config(const PluginSettings& given, const middleware::support::Interface& interface) {
  try {
    return middleware::support::cyclonedds_xml({.middleware = "rclcpp",
                                                .network = given.network,
                                                .participants_expected = given.participants_expected},
                                               interface);
  } catch (const middleware::support::StatusError& error) {
    throw Error(Error::Kind::kUnsupported, error.what());
  }
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

TemporaryFile::TemporaryFile(const std::string& text) {
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::temp_directory_path(error);
  if (error)
    throw Error(Error::Kind::kFailed,
                "rclcpp: no folder for the profile of Fast DDS: " + error.message() + "; right would be one in TMPDIR");
  path_ = (folder / "perflab_XXXXXX.xml").string();
  const int file = mkstemps(path_.data(), 4);
  if (file < 0)
    throw Error(Error::Kind::kFailed, "rclcpp: no file in " + folder.string() +
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
  nlohmann::json told = nlohmann::json::object();
  if (!settings.rmw.empty()) set(told, "RMW_IMPLEMENTATION", settings.rmw);
  const middleware::support::Interface interface = interface_of(given);
  const bool loopback = interface.loopback;
  const bool fastdds = settings.rmw.starts_with("rmw_fastrtps");
  // The user's, as they were before the first runtime of this process.
  static const std::array own{environment("FASTRTPS_DEFAULT_PROFILES_FILE"),
                              environment("FASTDDS_DEFAULT_PROFILES_FILE")};
  static const auto own_cyclonedds = environment("CYCLONEDDS_URI");
  const bool own_profile = own[0] || own[1];
  // A file of the user's stays in force, and then the transport is what it says.
  if (fastdds && settings.udp && own_profile)
    throw Error(Error::Kind::kUnsupported,
                "rclcpp: transport=udp cannot be had beside a profile file of your own; right would be to unset "
                "FASTRTPS_DEFAULT_PROFILES_FILE and FASTDDS_DEFAULT_PROFILES_FILE, or to say it there");
  // On the loopback the range of discovery is enough; elsewhere it would be every interface.
  const bool profiled = fastdds && (settings.udp || (!loopback && !own_profile));
  const bool configured = settings.rmw == "rmw_cyclonedds_cpp";
  // LOCALHOST adds transports to those of a profile, and announces no address of the loopback.
  const bool by_configuration = configured || (profiled && loopback);
  if (kHasDiscoveryRange) {
    set(told, "ROS_AUTOMATIC_DISCOVERY_RANGE",
        by_configuration ? "SYSTEM_DEFAULT" : loopback ? "LOCALHOST" : "SUBNET");
    unsetenv("ROS_LOCALHOST_ONLY");  // older, and stronger than the above
  } else {
    set(told, "ROS_LOCALHOST_ONLY", loopback && !by_configuration ? "1" : "0");
  }
  if (configured)
    set(told, "CYCLONEDDS_URI",
        cyclonedds_config(given, interface) + (own_cyclonedds ? "," + *own_cyclonedds : ""));
  if (!fastdds) return told;
  if (own[0]) told["FASTRTPS_DEFAULT_PROFILES_FILE"] = *own[0];
  if (own[1]) told["FASTDDS_DEFAULT_PROFILES_FILE"] = *own[1];
  if (profiled) {
    const std::string profile = fastdds_profile(interface, last_index_of(given, interface), !settings.udp);
    profile_file.emplace(profile);
    setenv("FASTRTPS_DEFAULT_PROFILES_FILE", profile_file->path().c_str(), 1);
    setenv("FASTDDS_DEFAULT_PROFILES_FILE", profile_file->path().c_str(), 1);
    told["fastdds_profile"] = profile;
  }
  return told;
}

}  // namespace perflab::runtime::ros
