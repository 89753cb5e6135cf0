#include "middleware/fastdds/library.h"

#include <sys/prctl.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>

#include "base/error.h"
#include "middleware/support/library.h"
#include "middleware/types.h"

namespace perflab::middleware::fastdds {
namespace {

// SKIP_DEFAULT_XML_FILE is not included: it prevents the file in the working directory from being read.
constexpr std::array kVariables{"FASTRTPS_DEFAULT_PROFILES_FILE",
                                "FASTDDS_DEFAULT_PROFILES_FILE",
                                "FASTDDS_ENVIRONMENT_FILE",
                                "FASTDDS_BUILTIN_TRANSPORTS",
                                "FASTDDS_STATISTICS",
                                "ROS_DISCOVERY_SERVER",
                                "ROS_SUPER_CLIENT",
                                "EASY_MODE"};
constexpr const char* kSkip = "SKIP_DEFAULT_XML_FILE";
#if PERFLAB_FASTDDS_3
constexpr const char* kFile = "DEFAULT_FASTDDS_PROFILES.xml";
#else
constexpr const char* kFile = "DEFAULT_FASTRTPS_PROFILES.xml";
#endif

support::Log& library_log() {
  // Never destroyed: a thread of the library may log while the process ends.
  static support::Log* const log = new support::Log;
  return *log;
}

class Keeper final : public dds::LogConsumer {
 public:
  void Consume(const dds::Log::Entry& entry) override {
    const std::string text =
        std::string(entry.context.category != nullptr ? entry.context.category : "") + ": ";
    library_log().keep(text + entry.message);
  }
};

}  // namespace

const char* library_version() {
  static const std::string version =
      support::version_of(reinterpret_cast<const void*>(&dds::DomainParticipantFactory::get_instance));
  return version.c_str();
}

void capture_log() {
  dds::Log::ClearConsumers();
  dds::Log::RegisterConsumer(std::make_unique<Keeper>());
}

std::vector<std::string> log_lines() {
  dds::Log::Flush();
  return library_log().lines();
}

void clear_log() {
  dds::Log::Flush();
  library_log().clear();
}

void stop_log() { dds::Log::KillThread(); }

void fail(const std::string& what, perflab_status status) {
  std::string text = "fastdds: " + what;
  const auto kept = log_lines();
  if (!kept.empty()) text += "; " + kept.back();
  throw Error(kind_of(status), text);
}

EnvironmentGuard::EnvironmentGuard() {
  for (const char* const name : kVariables) {
    const char* const value = std::getenv(name);
    if (value == nullptr) continue;
    hidden_.emplace_back(name, value);
    unsetenv(name);
  }
  const char* const skip = std::getenv(kSkip);
  had_skip_ = skip != nullptr;
  if (had_skip_) skip_ = skip;
  setenv(kSkip, "1", 1);
}

EnvironmentGuard::~EnvironmentGuard() {
  for (const auto& [name, value] : hidden_) setenv(name, value.c_str(), 1);
  if (had_skip_) {
    setenv(kSkip, skip_.c_str(), 1);
  } else {
    unsetenv(kSkip);
  }
}

std::vector<std::pair<std::string, std::string>> ignored_environment() {
  std::vector<std::pair<std::string, std::string>> out;
  for (const char* const name : kVariables) {
    if (const char* const value = std::getenv(name)) out.emplace_back(name, value);
  }
  if (const char* const value = std::getenv(kSkip)) out.emplace_back(kSkip, value);
  std::error_code code;
  if (std::filesystem::exists(kFile, code)) out.emplace_back(kFile, "a file in the working directory");
  return out;
}

ThreadName::ThreadName(const char* name) {
  prctl(PR_GET_NAME, before_);
  prctl(PR_SET_NAME, name);
}

ThreadName::~ThreadName() { prctl(PR_SET_NAME, before_); }

void set_intraprocess(bool on) {
  LibrarySettings settings;
  settings.intraprocess_delivery = on ? kIntraprocessFull : kIntraprocessOff;
#if PERFLAB_FASTDDS_3
  if (!succeeded(dds::DomainParticipantFactory::get_instance()->set_library_settings(settings))) {
    fail("the library does not take the setting of intraprocess");
  }
#else
  eprosima::fastrtps::xmlparser::XMLProfileManager::library_settings(settings);
#endif
}

bool intraprocess() {
#if PERFLAB_FASTDDS_3
  LibrarySettings settings;
  dds::DomainParticipantFactory::get_instance()->get_library_settings(settings);
#else
  const LibrarySettings& settings = eprosima::fastrtps::xmlparser::XMLProfileManager::library_settings();
#endif
  return settings.intraprocess_delivery != kIntraprocessOff;
}

bool load_profiles(const std::string& xml) {
  auto* const factory = dds::DomainParticipantFactory::get_instance();
#if !PERFLAB_FASTDDS_3
  // A profile with the same name, from an earlier participant of this process, would be an error.
  eprosima::fastrtps::xmlparser::XMLProfileManager::DeleteInstance();
#endif
  return succeeded(factory->load_XML_profiles_string(xml.data(), xml.size()));
}

dds::DomainParticipantQos default_qos() {
  auto* const factory = dds::DomainParticipantFactory::get_instance();
  // Resetting the default to itself makes the library read the profiles again.
  factory->set_default_participant_qos(dds::PARTICIPANT_QOS_DEFAULT);
  return factory->get_default_participant_qos();
}

}  // namespace perflab::middleware::fastdds
