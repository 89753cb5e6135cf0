#include "runtime/plugin.h"

#include <dlfcn.h>

#include <algorithm>

#include "realtime/scheduling.h"

namespace perflab::runtime {
namespace {

std::string reason() {
  const char* const text = dlerror();
  std::string line = text == nullptr ? "unknown reason" : text;
  std::ranges::replace(line, '\n', ' ');
  return line;
}

}  // namespace

Plugin Plugin::load(const std::filesystem::path& file) {
  // Never unloaded: its libraries register functions that run when threads and the process end.
  void* library = nullptr;
  std::vector<int> started = realtime::threads_started_by(
      [&] { library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE); });
  if (library == nullptr) {
    throw Unsupported(file.string() + " cannot be loaded: " + reason() +
                      "; source the setup.bash of the ROS 2 installation that it was built with");
  }
  const auto entry = reinterpret_cast<const PluginApi* (*)()>(dlsym(library, kPluginEntry));
  if (entry == nullptr) throw Unsupported(file.string() + " is not a runtime: it does not export " + kPluginEntry);
  const PluginApi* const api = entry();
  if (api->abi != kPluginAbi) {
    throw Unsupported(file.string() + " was built for runtime interface " + std::to_string(api->abi) +
                      ", but this program has " + std::to_string(kPluginAbi) + "; rebuild it");
  }
  return {api, std::move(started)};
}

}  // namespace perflab::runtime
