#include "base/program.h"

#include <sys/prctl.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <utility>

namespace perflab {
namespace {

// Time for an orderly exit after the channel closes, in which shared memory is removed.
constexpr unsigned kSecondsToEnd = 3;

int signal_of(WhenPerflabEnds end) noexcept {
  if (end == WhenPerflabEnds::kFinish) return SIGRTMIN;
  return end == WhenPerflabEnds::kTerminate ? SIGTERM : SIGKILL;
}

}  // namespace

Program::Program(std::string name, const std::string& arguments, WhenPerflabEnds end)
    : name_(std::move(name)), end_(end), options_(name_ + " " + arguments) {
  options_.number(kControlOption, control_fd_, 0, kMostDescriptors);
}

// The kernel sends the signal when the thread that started this process ends. False if it already has.
bool Program::end_with_perflab() const noexcept {
  const pid_t parent = getppid();
  if (end_ == WhenPerflabEnds::kFinish) std::signal(SIGRTMIN, [](int) { alarm(kSecondsToEnd); });
  if (prctl(PR_SET_PDEATHSIG, signal_of(end_)) != 0) return false;
  // The parent may have ended between fork and prctl; then the signal never comes.
  return getppid() == parent;
}

int Program::run(int argc, char** argv, const std::function<void(Control&)>& body) {
  std::exception_ptr wrong;
  try {
    options_.require(options_.parse(argc, argv).empty());
  } catch (const Error&) {
    wrong = std::current_exception();
  }
  // First of all, before anything that must not outlive perflab.
  const bool alone = control_fd_ >= 0 && !end_with_perflab();
  // Exceeding the file size limit is an ordinary write error and must not kill the process.
  std::signal(SIGXFSZ, SIG_IGN);
  Control control(control_fd_);
  try {
    if (alone) throw Failed("perflab has ended");
    if (wrong) std::rethrow_exception(wrong);
    body(control);
    return 0;
  } catch (const std::exception& error) {
    return report(control, error);
  }
}

int Program::report(Control& control, const std::exception& error) const {
  const bool is_usage = dynamic_cast<const Usage*>(&error) != nullptr;
  const Error::Kind kind = kind_of(error);
  std::fprintf(stderr, "%s%s\n", is_usage ? "" : (name_ + ": ").c_str(), error.what());
  control.send({{"type", "error"}, {"kind", to_text(kind)}, {"text", error.what()}});
  return exit_code(kind);
}

}  // namespace perflab
