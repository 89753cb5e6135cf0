// Runs a command and ensures that no process of it outlives perflab.
//
// The guard is a child subreaper: whatever its descendants do (double fork, setsid, their own process group),
// they remain its descendants, and when wait() has no child left, no process of the command is left.
#pragma once

#include <sys/types.h>

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/channel.h"
#include "base/descendants.h"
#include "base/descendants.h"
#include "base/error.h"
#include "measure/clock.h"

namespace perflab::guard {

struct Settings {
  int control_fd = -1;
  Nanoseconds grace_ns = 0;
  bool give_control = false;
  std::vector<std::string> command;
};

class Guard {
 public:
  // Takes ownership of the control channel; `settings` must outlive the guard.
  explicit Guard(const Settings& settings);
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Starts the command and returns when no descendant is left. Reports errors on the control channel and on
  // stderr. Returns the exit code.
  int run();

 private:
  enum class Phase { kRunning, kTerminating, kKilling };

  void prepare();
  void start_command();
  [[noreturn]] void become_command(int control, int problem) const;
  bool reap();
  void stop(Nanoseconds grace_ns);
  void kill_all();
  void advance();
  void wait_for_something();
  void on_signals();
  void on_control();
  bool on_command_channel();
  void tell(const nlohmann::json& message);
  void tell_error(Error::Kind kind, const std::string& text);
  void fail(const std::string& text);
  void flush();
  int finish();
  [[nodiscard]] int milliseconds_until_due() const;

  const Settings& settings_;
  const measure::MonotonicClock clock_;
  const pid_t perflab_;
  Channel control_;
  std::optional<Channel> command_channel_;
  Descriptor signals_;
  Descriptor perflab_pidfd_;
  pid_t command_ = 0;  // 0 before it starts and after it was waited for
  Phase phase_ = Phase::kRunning;
  Nanoseconds due_ns_ = kUnknownTime;      // next step of ending the command
  Nanoseconds give_up_ns_ = kUnknownTime;  // set while killing
  std::set<proc::Identity> killed_;
  bool failed_ = false;
};

}  // namespace perflab::guard
