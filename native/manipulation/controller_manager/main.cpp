// perflab-controller-manager takes ros2_control_node's place in the stack if the controllers run in a process
// of their own (perflab-simulator with `controller: split`): a 500 Hz loop on the wall clock that reads the
// hardware, updates the controllers and writes. A late loop skips missed cycles.
//
// Options: robot (a name of the catalog or a path), and those of Controllers. Threads: control, and those of
// Controllers: joint_states, dynamic_states, arm_state, manager.
#include <algorithm>
#include <memory>
#include <optional>

#include "manipulation/controllers/controllers.h"
#include "manipulation/hardware/link.h"
#include "manipulation/physics/paced_loop.h"
#include "program/program.h"

namespace {

using namespace perflab;
using namespace perflab::manipulation;

class ControllerManager final : public program::Application {
 public:
  explicit ControllerManager(program::Context& context)
      : context_(context),
        model_(Model::load(context.options().text("robot", "panda"), Scene{})),
        controllers_(context, model_) {
    context.reentrant();
    if (model_->joints().size() > HardwareLink::kMostJoints) throw BadInput("the arm has too many joints");
    context.thread("control", [this](const program::Running& running) { run(running); });
  }

  void start(const program::Start& start) override {
    loop_.emplace(PacedLoop::Options{.period_ns = Controllers::kPeriod, .most_behind_ns = Controllers::kPeriod},
                  start.measured_from_ns);
    controllers_.start(start);
  }
  void end(Nanoseconds at_ns) override {
    loop_->measure_until(at_ns);
    controllers_.end(at_ns);
  }
  void stop() override { controllers_.stop(); }

 private:
  void run(const program::Running& running) {
    const auto stopped = [&] { return running.stopped(); };
    link_ = HardwareLink::expect(link_name(context_), stopped);
    loop_->run(running.start().at_ns, PacedLoop::Machine{}, stopped,
               [this](Nanoseconds due_ns, Nanoseconds woken_ns) { cycle(due_ns, woken_ns); });
  }

  void cycle(Nanoseconds due_ns, Nanoseconds woken_ns) noexcept {
    if (!link_->read(sample_)) return;  // the hardware has not started
    const std::size_t joints = model_->joints().size();
    const auto first = [joints](const HardwareLink::Joints& all) { return std::span(all).first(joints); };
    if (!active_) {
      controllers_.reset(first(sample_.positions));
      active_ = true;
    }
    controllers_.cycle({sample_.time_ns, first(sample_.positions), first(sample_.velocities), first(sample_.efforts),
                        sample_.hand, sample_.hand_velocity},
                       due_ns, woken_ns);
    std::copy_n(controllers_.command().begin(), joints, command_.positions.begin());
    std::copy_n(controllers_.command_velocities().begin(), joints, command_.velocities.begin());
    command_.hand = controllers_.hand_command();
    link_->write(command_);
    controllers_.written();
  }

  program::Context& context_;
  const std::shared_ptr<const Model> model_;
  Controllers controllers_;
  std::optional<PacedLoop> loop_;
  std::optional<HardwareLink> link_;
  HardwareLink::Sample sample_{};
  HardwareLink::Command command_{};
  bool active_ = false;
};

}  // namespace

int main(int argc, char** argv) {
  return perflab::program::run("perflab-controller-manager", argc, argv, [](perflab::program::Context& context) {
    return std::make_unique<ControllerManager>(context);
  });
}
