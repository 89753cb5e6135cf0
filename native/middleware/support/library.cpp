#include "middleware/support/library.h"

#include <dlfcn.h>

#include <climits>
#include <cstdlib>
#include <utility>

namespace perflab::middleware::support {
namespace {

constexpr std::size_t kLinesKept = 32;

}  // namespace

std::string version_of(const void* function) {
  Dl_info info{};
  char path[PATH_MAX];
  if (dladdr(function, &info) == 0 || realpath(info.dli_fname, path) == nullptr) return "unknown";
  const std::string file(path);
  const std::size_t at = file.rfind(".so.");
  return at == std::string::npos ? "unknown" : file.substr(at + 4);
}

void Log::keep(std::string line) {
  const std::lock_guard lock(mutex_);
  if (lines_.size() == kLinesKept) lines_.pop_front();
  lines_.push_back(std::move(line));
}

std::vector<std::string> Log::lines() {
  const std::lock_guard lock(mutex_);
  return {lines_.begin(), lines_.end()};
}

void Log::clear() {
  const std::lock_guard lock(mutex_);
  lines_.clear();
}

}  // namespace perflab::middleware::support
