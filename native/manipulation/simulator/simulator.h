// Takes Gazebo's place in the stack: physics at 1 kHz of wall time. With `controller: embedded` the controllers run in the same
// thread, in every second step, like gz_ros2_control. With `controller: split` perflab-controller-manager, another process of
// the graph, sends the commands through shared memory (hardware/link.h), as to a real robot's drives.
//
// Options: robot (a name of the catalog or a path), scene (likewise), state (a named state in which the arm begins), drive
// (velocity: gz's servo; torque), controller (embedded, split), may_touch (a list of {pair: [NAME, NAME]}, of links or objects
// whose contact is no collision), and with an embedded one those of Controllers.
// Threads: clock, and physics (split) or control (embedded: physics and controllers) with those of Controllers:
// joint_states, dynamic_states, arm_state, manager.
// Topics: /world/clock (rosgraph_msgs/Clock, by node /simulator), one message a step, for the clock bridge.
// A film of the trial: the scene, and its series joints and tip, 50 times a second.
// Figures: real_time_factor, late_steps. Times: step_execution. Outcome: collision.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "manipulation/control/servo.h"
#include "manipulation/controllers/controllers.h"
#include "manipulation/hardware/link.h"
#include "manipulation/physics/paced_loop.h"
#include "manipulation/physics/world.h"
#include "messages/rosgraph_msgs/msg/clock.h"
#include "program/program.h"

namespace perflab::manipulation {

// Converts commanded positions to drive commands.
class Drives {
 public:
  Drives(World::Drive kind, const World& world, const Model& model);
  // Drives towards these positions, with the corresponding velocities.
  void update(std::span<const double> positions, std::span<const double> velocities, World& world) noexcept;

 private:
  std::optional<VelocityServo> velocity_;
  std::optional<TorqueServo> torque_;
  std::vector<double> drive_;
};

class Simulator final : public program::Application {
 public:
  explicit Simulator(program::Context& context);

  void start(const program::Start& start) override;
  void end(Nanoseconds at_ns) override;
  void stop() override;

 private:
  struct Tick {
    Nanoseconds time_ns = 0, due_ns = 0;
  };

  void run(const program::Running& running);
  void step(Nanoseconds due_ns, Nanoseconds woken_ns) noexcept;
  // Sets the drive command from the embedded controllers or the controller manager.
  void control(Nanoseconds due_ns, Nanoseconds woken_ns) noexcept;
  void exchange() noexcept;
  [[nodiscard]] double hand_asked() const noexcept;
  void move_hand() noexcept;
  void look_for_collisions() noexcept;
  void publish_clock(const Tick& tick);

  program::Context& context_;
  const std::shared_ptr<const Model> model_;
  const World::Drive drive_;
  World world_;
  Drives drives_;
  std::unique_ptr<Controllers> controllers_;  // if they are embedded; otherwise:
  std::optional<HardwareLink> link_;
  HardwareLink::Sample sample_{};
  HardwareLink::Command command_{};
  std::vector<std::string> movable_;
  std::optional<std::size_t> held_;  // index in movable_

  program::Times& step_execution_;
  program::Span stepped_;  // in traces
  program::Series& joints_;
  program::Series& tip_;
  std::optional<PacedLoop> loop_;
  std::uint64_t steps_ = 0;
  struct Collision {
    const char* link = "";
    const char* other = "";
    Nanoseconds time_ns = 0;
  };
  Collision collision_;  // the first one; written before has_collision_
  std::atomic<bool> has_collision_{false};
  bool collision_told_ = false;
  std::atomic<bool> diverged_{false};

  program::Publisher<messages::rosgraph_msgs::msg::Clock> clock_;
  RealtimeStream<Tick> clock_publisher_;
};

}  // namespace perflab::manipulation
