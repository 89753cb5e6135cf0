// The controllers of a loop, which of them run, and switching them: ros2_control's switch_controller (Jazzy),
// for controllers that are loaded and configured from the beginning and neither chained nor asynchronous.
//
// Threads: running() is for the control loop, once per cycle; the other functions are for one thread at a
// time.
//
// Example:
//   ControllerSet controllers({{"joint_state_broadcaster", ...}, {"panda_arm_controller", ...}});
//   const Switch change = controllers.plan({}, {"panda_arm_controller"}, Strictness::kStrict);
//   if (change.ok) controllers.ask(change);          // the next cycle does it
//   const bool done = controllers.done();
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace perflab::manipulation {

struct ControllerDescription {
  std::string name;
  std::string type;  // of ros2_control's plug-in
  std::vector<std::string> command_interfaces, state_interfaces;  // that it requires: "panda_joint1/position"
};

enum class Strictness { kBestEffort, kStrict };

// The result of a request. The texts are ros2_control's.
struct Switch {
  bool ok = false;
  std::string message;
  std::vector<std::size_t> activate, deactivate;
};

class ControllerSet {
 public:
  static constexpr std::size_t kMost = 32;
  using Running = std::uint32_t;  // one bit per controller

  // All run initially. Throws BadInput for more than kMost.
  explicit ControllerSet(std::vector<ControllerDescription> controllers);

  [[nodiscard]] const std::vector<ControllerDescription>& all() const noexcept { return controllers_; }
  [[nodiscard]] bool active(std::size_t controller) const noexcept { return bit(running_.load(), controller); }

  // The possible part of the requested change. An impossible one is omitted, or (kStrict) nothing changes; an
  // empty rest is not a failure.
  [[nodiscard]] Switch plan(const std::vector<std::string>& activate, const std::vector<std::string>& deactivate,
                            Strictness strictness) const;
  void ask(const Switch& change) noexcept;
  // True once the loop has made the requested change.
  [[nodiscard]] bool done() const noexcept { return running_.load() == asked_.load(); }

  // The controllers that run in this cycle.
  [[nodiscard]] Running running() noexcept {
    const Running asked = asked_.load(std::memory_order_acquire);
    running_.store(asked, std::memory_order_release);
    return asked;
  }
  [[nodiscard]] static bool bit(Running running, std::size_t controller) noexcept { return (running >> controller & 1U) != 0; }

 private:
  const std::vector<ControllerDescription> controllers_;
  std::atomic<Running> asked_, running_;
};

}  // namespace perflab::manipulation
