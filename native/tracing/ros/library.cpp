#include "tracing/ros/library.h"

#include <dlfcn.h>

#include <cstdlib>
#include <string>
#include <system_error>

#include "base/error.h"
#include "realtime/scheduling.h"

namespace perflab::tracing {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw Unsupported("tracepoints " + file.string() + ": " + what);
}

}  // namespace

Library Library::load(const std::filesystem::path& file) {
  // dlopen() needs an absolute path: it would look up a bare name in the library path.
  std::error_code code;
  const std::filesystem::path path = std::filesystem::absolute(file, code);
  if (code || !std::filesystem::exists(path, code)) refuse(file, "no such file");
  // By default LTTng continues after 3 s without the session daemon's answer, and loses events until it
  // comes.
  setenv("LTTNG_UST_REGISTER_TIMEOUT", std::to_string(kRegistrationTimeout.count()).c_str(), 0);
  Library loaded;
  void* library = nullptr;
  loaded.threads_ = realtime::threads_started_by(
      [&] { library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); });
  if (library == nullptr) refuse(file, dlerror());
  const auto entry =
      reinterpret_cast<perflab_ros2_tracepoints_entry>(dlsym(library, PERFLAB_ROS2_TRACEPOINTS_ENTRY_NAME));
  if (entry == nullptr) refuse(file, "does not export " PERFLAB_ROS2_TRACEPOINTS_ENTRY_NAME);
  const perflab_ros2_tracepoints* const tracepoints = entry();
  if (tracepoints == nullptr) refuse(file, PERFLAB_ROS2_TRACEPOINTS_ENTRY_NAME " returned nothing");
  if (tracepoints->abi != PERFLAB_ROS2_TRACEPOINTS_ABI) {
    refuse(file, "was built for interface version " + std::to_string(tracepoints->abi) +
                     "; this program needs " + std::to_string(PERFLAB_ROS2_TRACEPOINTS_ABI));
  }
  loaded.tracepoints_ = tracepoints;
  loaded.recorded_ = tracepoints->recorded() != 0;
  return loaded;
}

}  // namespace perflab::tracing
