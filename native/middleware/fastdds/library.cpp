#include "middleware/fastdds/library.h"

#include <dlfcn.h>
#include <sys/prctl.h>

#include <array>
#include <climits>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <memory>
#include <mutex>

#include "middleware/support/status.h"

namespace perflab::middleware::fastdds {
namespace {

constexpr std::size_t kLinesKept = 32;

// SKIP_DEFAULT_XML_FILE is not among them: it is what keeps the file in the working directory from being
// read.
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

struct Lines {
  std::mutex mutex;
  std::deque<std::string> lines;
};

Lines& lines() {
  // Never destroyed: a thread of the library may log while the process ends.
  static Lines* const instance = new Lines;
  return *instance;
}

class Keeper final : public dds::LogConsumer {
 public:
  void Consume(const dds::Log::Entry& entry) override {
    std::string text = std::string(entry.context.category != nullptr ? entry.context.category : "") + ": ";
    text += entry.message;
    Lines& kept = lines();
    const std::lock_guard lock(kept.mutex);
    if (kept.lines.size() == kLinesKept) kept.lines.pop_front();
    kept.lines.push_back(std::move(text));
  }
};

// libfastrtps.so.2.9.1 -> 2.9.1
std::string find_version() {
  Dl_info info{};
  char path[PATH_MAX];
  if (dladdr(reinterpret_cast<const void*>(&dds::DomainParticipantFactory::get_instance), &info) == 0 ||
      realpath(info.dli_fname, path) == nullptr) {
    return "unknown";
  }
  const std::string file(path);
  const std::size_t at = file.rfind(".so.");
  return at == std::string::npos ? "unknown" : file.substr(at + 4);
}

}  // namespace

const char* library_version() {
  static const std::string version = find_version();
  return version.c_str();
}

void capture_log() {
  dds::Log::ClearConsumers();
  dds::Log::RegisterConsumer(std::make_unique<Keeper>());
}

std::vector<std::string> log_lines() {
  dds::Log::Flush();
  Lines& kept = lines();
  const std::lock_guard lock(kept.mutex);
  return {kept.lines.begin(), kept.lines.end()};
}

void clear_log() {
  dds::Log::Flush();
  Lines& kept = lines();
  const std::lock_guard lock(kept.mutex);
  kept.lines.clear();
}

void stop_log() { dds::Log::KillThread(); }

void fail(const std::string& what, perflab_status status) {
  std::string text = "fastdds: " + what;
  const auto kept = log_lines();
  if (!kept.empty()) text += "; " + kept.back();
  throw support::StatusError(status, text);
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

#if PERFLAB_FASTDDS_3
void set_intraprocess(bool on) {
  LibrarySettings settings;
  settings.intraprocess_delivery = on ? kIntraprocessFull : kIntraprocessOff;
  if (!succeeded(dds::DomainParticipantFactory::get_instance()->set_library_settings(settings))) {
    fail("the library does not take the setting of intraprocess");
  }
}

bool intraprocess() {
  LibrarySettings settings;
  dds::DomainParticipantFactory::get_instance()->get_library_settings(settings);
  return settings.intraprocess_delivery != kIntraprocessOff;
}
#else
void set_intraprocess(bool on) {
  LibrarySettings settings;
  settings.intraprocess_delivery = on ? kIntraprocessFull : kIntraprocessOff;
  eprosima::fastrtps::xmlparser::XMLProfileManager::library_settings(settings);
}

bool intraprocess() {
  return eprosima::fastrtps::xmlparser::XMLProfileManager::library_settings().intraprocess_delivery !=
         kIntraprocessOff;
}
#endif

bool load_profiles(const std::string& xml) {
  auto* const factory = dds::DomainParticipantFactory::get_instance();
#if !PERFLAB_FASTDDS_3
  // A profile of the same name, from an earlier participant of this process, would be an error.
  eprosima::fastrtps::xmlparser::XMLProfileManager::DeleteInstance();
#endif
  return succeeded(factory->load_XML_profiles_string(xml.data(), xml.size()));
}

dds::DomainParticipantQos default_qos() {
  auto* const factory = dds::DomainParticipantFactory::get_instance();
  // Setting the default to the default reads the profiles again.
  factory->set_default_participant_qos(dds::PARTICIPANT_QOS_DEFAULT);
  return factory->get_default_participant_qos();
}

}  // namespace perflab::middleware::fastdds
