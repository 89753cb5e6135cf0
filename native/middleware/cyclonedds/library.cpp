#include "middleware/cyclonedds/library.h"

#include <dds/dds.h>
#include <dds/ddsrt/log.h>
#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <deque>
#include <mutex>

namespace perflab::middleware::cyclonedds {
namespace {

constexpr std::size_t kLinesKept = 32;

struct Log {
  std::mutex mutex;
  std::deque<std::string> lines;
};

Log& log() {
  // Never destroyed: a Cyclone thread may log while the process ends.
  static Log* const instance = new Log;
  return *instance;
}

void keep(void*, const dds_log_data_t* data) {
  std::string line(data->message, data->size);  // the header (time, thread) stands before it
  while (!line.empty() && line.back() == '\n') line.pop_back();
  Log& kept = log();
  const std::lock_guard lock(kept.mutex);
  if (kept.lines.size() == kLinesKept) kept.lines.pop_front();
  kept.lines.push_back(std::move(line));
}

// libddsc.so.0.10.2 -> 0.10.2
std::string find_version() {
  Dl_info info{};
  char path[PATH_MAX];
  if (dladdr(reinterpret_cast<const void*>(&dds_create_participant), &info) == 0 ||
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

void capture_log() { dds_set_log_sink(keep, nullptr); }

std::vector<std::string> log_lines() {
  Log& kept = log();
  const std::lock_guard lock(kept.mutex);
  return {kept.lines.begin(), kept.lines.end()};
}

void clear_log() {
  Log& kept = log();
  const std::lock_guard lock(kept.mutex);
  kept.lines.clear();
}

}  // namespace perflab::middleware::cyclonedds
