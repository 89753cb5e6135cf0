// Helpers for plug-ins over a library: its version and its log.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace perflab::middleware::support {

// The version in the file name of the shared object that contains this function, "0.10.2" for
// libddsc.so.0.10.2; "unknown" if the name has none.
std::string version_of(const void* function);

// Libraries write warnings and errors to the terminal, but a plug-in must not print. The last lines are kept
// here, for error texts and describe(). Thread-safe.
class Log {
 public:
  void keep(std::string line);
  [[nodiscard]] std::vector<std::string> lines();
  void clear();

 private:
  std::mutex mutex_;
  std::deque<std::string> lines_;
};

}  // namespace perflab::middleware::support
