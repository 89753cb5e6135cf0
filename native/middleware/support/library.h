// What plug-ins want to know of a library that they use, and what becomes of its log.
#pragma once

#include <deque>
#include <mutex>
#include <string>
#include <vector>

namespace perflab::middleware::support {

// The version in the name of the shared object that has this function, "0.10.2" of libddsc.so.0.10.2;
// "unknown" if the name does not tell.
std::string version_of(const void* function);

// Libraries write warnings and errors to the terminal. A plug-in prints nothing: the last lines are kept
// here, and end up in error texts and in describe(). From any thread.
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
