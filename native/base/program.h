// What programs of perflab have in common: options, the control channel, how they end with perflab, and what
// becomes of an error: a line on standard error, a message to perflab (docs/formats.md, section 3) and the
// exit code.
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

// How long a program may go on when perflab has ended.
enum class WhenPerflabEnds {
  kFinish,     // until it has ended in order by its closed channel; some seconds
  kTerminate,  // as after SIGTERM, which the program handles
  kKill        // not at all
};

class Program {
 public:
  // `arguments` as the usage has them, e.g. "--config FILE [--control-fd N]".
  Program(std::string name, const std::string& arguments, WhenPerflabEnds end);

  // To be added to; --control-fd is there.
  [[nodiscard]] Options& options() noexcept { return options_; }

  // Reads the options and runs `body`, with a control channel that may be unattached. Nothing may stand
  // behind the options. Returns the exit code; what `body` throws is reported.
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
