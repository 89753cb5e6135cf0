#include "middleware/cyclonedds/library.h"

#include <dds/dds.h>
#include <dds/ddsrt/log.h>

#include <string>
#include <utility>

namespace perflab::middleware::cyclonedds {
namespace {

void keep(void* log, const dds_log_data_t* data) {
  std::string line(data->message, data->size);  // skips the header (time, thread)
  while (!line.empty() && line.back() == '\n') line.pop_back();
  static_cast<support::Log*>(log)->keep(std::move(line));
}

}  // namespace

const char* library_version() {
  static const std::string version =
      support::version_of(reinterpret_cast<const void*>(&dds_create_participant));
  return version.c_str();
}

support::Log& library_log() {
  // Never destroyed: a Cyclone thread may log while the process ends.
  static support::Log* const log = [] {
    auto* const made = new support::Log;
    dds_set_log_sink(keep, made);
    return made;
  }();
  return *log;
}

}  // namespace perflab::middleware::cyclonedds
