// What is global to the loaded libfastrtps or libfastdds: its version, its log, its settings, the
// environment.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "middleware/fastdds/fast.h"

namespace perflab::middleware::fastdds {

// The version of the library that is loaded.
const char* library_version();

// From the first call on, the last lines of the log are kept, which Fast DDS writes to stdout by itself.
void capture_log();
std::vector<std::string> log_lines();
void clear_log();
// Ends the thread of the log, which starts with the first line logged.
void stop_log();

// "fastdds: <what>; <last line of the log>"
[[noreturn]] void fail(const std::string& what, perflab_status status = PERFLAB_FAILED);

// Fast DDS reads variables of the environment, and a file in the working directory, whenever a participant is
// made. While an object of this class lives they are not to be seen. setenv() disturbs other threads that
// read the environment at the same time, therefore only for the moment of creation.
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

// What the guard hides here, for describe().
std::vector<std::pair<std::string, std::string>> ignored_environment();

// Fast DDS 2 names none of its threads: they carry the name that the creating thread has in that moment. At
// most 15 characters.
class ThreadName {
 public:
  explicit ThreadName(const char* name);
  ~ThreadName();
  ThreadName(const ThreadName&) = delete;
  ThreadName& operator=(const ThreadName&) = delete;

 private:
  char before_[16];
};

// Delivery between participants of this process without a transport; one setting for the whole process.
void set_intraprocess(bool on);
bool intraprocess();

// Reads participant profiles from XML. Afterwards default_qos() holds the profile marked as the default.
bool load_profiles(const std::string& xml);
// The participant QoS that the library would use by itself.
dds::DomainParticipantQos default_qos();

}  // namespace perflab::middleware::fastdds
