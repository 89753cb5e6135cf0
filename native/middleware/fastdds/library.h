// Global state of the loaded libfastrtps or libfastdds: its version, log, settings, and environment.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "middleware/fastdds/fast.h"

namespace perflab::middleware::fastdds {

// The version of the loaded library.
const char* library_version();

// From the first call on, keeps the last lines of the log, which Fast DDS otherwise writes to stdout.
void capture_log();
std::vector<std::string> log_lines();
void clear_log();
// Ends the log thread, which starts with the first logged line.
void stop_log();

// "fastdds: <what>; <last line of the log>"
[[noreturn]] void fail(const std::string& what, perflab_status status = PERFLAB_FAILED);

// Fast DDS reads environment variables, and a file in the working directory, whenever a participant is
// created. An object of this class hides them. setenv() interferes with other threads that read the
// environment at the same time, so it is only used during creation.
class EnvironmentGuard {
 public:
  EnvironmentGuard();
  ~EnvironmentGuard();
  EnvironmentGuard(const EnvironmentGuard&) = delete;
  EnvironmentGuard& operator=(const EnvironmentGuard&) = delete;

 private:
  std::vector<std::pair<const char*, std::string>> hidden_;
  std::string skip_;
  bool had_skip_;
};

// The variables and files that the guard hides here, for describe().
std::vector<std::pair<std::string, std::string>> ignored_environment();

// Fast DDS 2 names none of its threads: they inherit the current name of their creator. At most 15
// characters.
class ThreadName {
 public:
  explicit ThreadName(const char* name);
  ~ThreadName();
  ThreadName(const ThreadName&) = delete;
  ThreadName& operator=(const ThreadName&) = delete;

 private:
  char before_[16];
};

// Delivery between participants of this process without a transport; one setting per process.
void set_intraprocess(bool on);
bool intraprocess();

// Reads participant profiles from XML. Afterwards default_qos() returns the profile marked as the default.
bool load_profiles(const std::string& xml);
// The participant QoS that the library would use by default.
dds::DomainParticipantQos default_qos();

}  // namespace perflab::middleware::fastdds
