#include "runtime/plugin.h"

#include <dlfcn.h>

#include <algorithm>
#include <iterator>

#include "realtime/scheduling.h"

namespace perflab::runtime {
namespace {

std::vector<int> thread_ids() {
  std::vector<int> ids;
  for (const realtime::ThreadState& state : realtime::read_threads()) ids.push_back(state.tid);
  std::ranges::sort(ids);
  return ids;
}

std::string reason() {
  const char* const text = dlerror();
  std::string line = text == nullptr ? "unknown reason" : text;
  std::ranges::replace(line, '\n', ' ');
  return line;
}

}  // namespace

Plugin Plugin::load(const std::filesystem::path& file) {
  const std::vector<int> before = thread_ids();
  // Never unloaded: its libraries leave functions behind that run when threads and the process end.
  void* const library = dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    throw Error(Error::Kind::kUnsupported, file.string() + " cannot be loaded: " + reason() +
                                               "; source the setup.bash of the ROS 2 that it was built with");
  }
  const auto entry = reinterpret_cast<const PluginApi* (*)()>(dlsym(library, kPluginEntry));
  if (entry == nullptr)
    throw Error(Error::Kind::kUnsupported, file.string() + " is no runtime: it has no " + kPluginEntry);
  const PluginApi* const api = entry();
  if (api->abi != kPluginAbi) {
    throw Error(Error::Kind::kUnsupported, file.string() + " was built for runtime interface " +
                                               std::to_string(api->abi) + ", this is " +
                                               std::to_string(kPluginAbi) + "; build it again");
  }
  std::vector<int> started;
  std::ranges::set_difference(thread_ids(), before, std::back_inserter(started));
  return {api, std::move(started)};
}

}  // namespace perflab::runtime
