// The common part of perflab's programs: options, the control channel, ending with perflab, and error
// reporting as a line on standard error, a message to perflab (docs/formats.md, section 3) and an exit code.
//
// Example:
//   int main(int argc, char** argv) {
//     std::string file;
//     Program program("perflab-x", "--config FILE [--control-fd N]", Program::End::kByChannel);
//     program.options().text("config", file);
//     return program.run(argc, argv, [&](Control& control) {
//       program.options().require(!file.empty());
//       ...
//     });
//   }
#pragma once

#include <exception>
#include <functional>
#include <string>

#include "base/control.h"
#include "base/options.h"

namespace perflab {

// The option --control-fd.
inline constexpr const char* kControlOption = "control-fd";
inline constexpr int kMostDescriptors = 1'000'000;

// What a program does when perflab has ended.
enum class WhenPerflabEnds {
  kFinish,     // exits in order, triggered by the closed channel, within a few seconds
  kTerminate,  // exits as after SIGTERM, which the program handles
  kKill        // is killed at once
};

class Program {
 public:
  // `arguments` is the usage text, e.g. "--config FILE [--control-fd N]".
  Program(std::string name, const std::string& arguments, WhenPerflabEnds end);

  // Add the program's own options here; --control-fd is predefined.
  [[nodiscard]] Options& options() noexcept { return options_; }

  // Parses the options and runs `body` with a control channel, which may be unconnected. Positional arguments
  // are refused. Returns the exit code; exceptions of `body` are reported.
  int run(int argc, char** argv, const std::function<void(Control&)>& body);

 private:
  [[nodiscard]] bool end_with_perflab() const noexcept;
  int report(Control& control, const std::exception& error) const;

  const std::string name_;
  const WhenPerflabEnds end_;
  Options options_;
  int control_fd_ = -1;
};

}  // namespace perflab
