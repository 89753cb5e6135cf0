#include "manipulation/simulator/simulator.h"

#include <algorithm>

#include "manipulation/controllers/messages.h"
#include "manipulation/robot/stage.h"

namespace perflab::manipulation {
namespace {

constexpr Nanoseconds kStep = 1'000'000;
constexpr std::uint64_t kStepsPerCycle = Controllers::kPeriod / kStep;
constexpr std::uint64_t kStepsPerPicture = Controllers::kFilmPeriod / kStep;
// The largest delay of the simulation that is made up for.
constexpr Nanoseconds kMostBehind = 100'000'000;
// The hand releases its object when told to open by more than this, m.
constexpr double kOpening = 0.002;

World::Drive drive_of(program::Options& options) {
  return options.word("drive", {"velocity", "torque"}, "velocity") == "velocity" ? World::Drive::kVelocity
                                                                               : World::Drive::kTorque;
}

std::vector<double> each_limit(const Model& model, double JointLimits::* limit) {
  std::vector<double> limits;
  for (const JointLimits& each : model.limits()) limits.push_back(each.*limit);
  return limits;
}

}  // namespace

Drives::Drives(World::Drive kind, const World& world, const Model& model) : drive_(model.joints().size()) {
  if (kind == World::Drive::kVelocity) {
    velocity_.emplace(1e9 / static_cast<double>(Controllers::kPeriod), each_limit(model, &JointLimits::velocity));
  } else {
    torque_.emplace(world.stiffness(), world.damping(), each_limit(model, &JointLimits::effort));
  }
}

void Drives::update(std::span<const double> positions, std::span<const double> velocities, World& world) noexcept {
  if (velocity_) {
    velocity_->update(positions, world.positions(), drive_);
  } else {
    torque_->update(positions, velocities, world.positions(), world.velocities(), drive_);
  }
  world.command(drive_);
}

Simulator::Simulator(program::Context& context)
    : context_(context),
      model_(Model::load(context.options().text("robot", "panda"), context.options().text("scene", "table"))),
      drive_(drive_of(context.options())),
      world_(context.options().text("robot", "panda"), model_->scene(), {.drive = drive_, .timestep_ns = kStep}),
      drives_(drive_, world_, *model_),
      step_execution_(context.times("step_execution")),
      stepped_(context.span("/simulator", "step", kStep)),
      joints_(context.series("joints", stage_of(*model_).columns)),
      tip_(context.series("tip", {"x", "y", "z"})),
      clock_(context.publisher<messages::rosgraph_msgs::msg::Clock>("/simulator", "/world/clock")),
      clock_publisher_(context, "clock", [this](const Tick& tick) { publish_clock(tick); }) {
  context.reentrant();
  context.scene(stage_of(*model_).scene);
  const Positions& begin = model_->named_state(context.options().text("state", "home"));
  world_.reset(begin);
  const bool embedded = context.options().word("controller", {"embedded", "split"}, "embedded") == "embedded";
  if (embedded) {
    controllers_ = std::make_unique<Controllers>(context, model_);
    controllers_->reset(begin);
  } else {
    if (begin.size() > HardwareLink::kMostJoints) throw BadInput("controller: split: the arm has too many joints");
    std::copy(begin.begin(), begin.end(), command_.positions.begin());
    command_.hand = model_->hand_open();
  }
  for (const SceneObject& object : model_->scene().objects) {
    if (!object.movable()) continue;
    movable_.push_back(object.name);
    for (const std::string& link : model_->touch_links()) world_.allow(link, object.name);
  }
  for (program::Options* const each : context.options().objects("may_touch")) {
    const std::vector<std::string> pair = each->texts("pair");
    if (pair.size() != 2) each->refuse("pair", "it must be two names of links or objects");
    world_.allow(pair[0], pair[1]);
  }
  context.thread(embedded ? "control" : "physics", [this](const program::Running& running) { run(running); });
}

void Simulator::run(const program::Running& running) {
  if (!controllers_) link_ = HardwareLink::offer(link_name(context_), [&] { return running.stopped(); });
  loop_->run(running.start().at_ns, PacedLoop::Machine{}, [&] { return running.stopped(); },
             [this](Nanoseconds due_ns, Nanoseconds woken_ns) { step(due_ns, woken_ns); });
}

void Simulator::step(Nanoseconds due_ns, Nanoseconds woken_ns) noexcept {
  if (controllers_) {
    control(due_ns, woken_ns);
  } else {
    exchange();
  }
  ++steps_;
  const program::Span::Open open = stepped_.begin(due_ns);
  move_hand();
  const Nanoseconds from_ns = context_.clock().now();
  world_.step();
  step_execution_.record(context_.clock().now() - from_ns, woken_ns);
  look_for_collisions();
  if (steps_ % kStepsPerPicture == 0) {
    joints_.record(due_ns, world_.everything());
    const Eigen::Vector3d tip = world_.pose(model_->tip()).translation();
    tip_.record(due_ns, {tip.data(), 3});
  }
  clock_publisher_.offer({world_.now_ns(), due_ns});
}

void Simulator::control(Nanoseconds due_ns, Nanoseconds woken_ns) noexcept {
  const bool cycle = steps_ % kStepsPerCycle == 0;
  if (cycle) {
    controllers_->cycle({world_.now_ns(), world_.positions(), world_.velocities(), world_.efforts(), world_.hand(),
                         world_.hand_velocity()},
                        due_ns, woken_ns);
  }
  drives_.update(controllers_->command(), controllers_->command_velocities(), world_);
  if (cycle) controllers_->written();
}

void Simulator::exchange() noexcept {
  const std::size_t joints = world_.positions().size();
  sample_.time_ns = world_.now_ns();
  std::copy_n(world_.positions().begin(), joints, sample_.positions.begin());
  std::copy_n(world_.velocities().begin(), joints, sample_.velocities.begin());
  std::copy_n(world_.efforts().begin(), joints, sample_.efforts.begin());
  sample_.hand = world_.hand();
  sample_.hand_velocity = world_.hand_velocity();
  link_->write(sample_);
  link_->read(command_);  // keeps the last command if there is no new one
  drives_.update(std::span(command_.positions).first(joints), std::span(command_.velocities).first(joints), world_);
}

double Simulator::hand_asked() const noexcept { return controllers_ ? controllers_->hand_command() : command_.hand; }

void Simulator::move_hand() noexcept {
  const double asked = hand_asked();
  world_.command_hand(asked);
  if (held_) {
    if (asked > world_.hand() + kOpening) {
      world_.release(movable_[*held_]);
      held_.reset();
    }
    return;
  }
  if (asked >= model_->hand_open()) return;
  for (std::size_t each = 0; each < movable_.size(); ++each) {
    if (!world_.holds(movable_[each])) continue;
    world_.grasp(movable_[each]);
    held_ = each;
    return;
  }
}

void Simulator::look_for_collisions() noexcept {
  if (world_.diverged()) diverged_.store(true, std::memory_order_relaxed);
  if (has_collision_.load(std::memory_order_relaxed)) return;
  const std::optional<World::Touch> touch = world_.touch();
  if (!touch) return;
  collision_ = {touch->link, touch->other, world_.now_ns()};
  has_collision_.store(true, std::memory_order_release);
}

// Outside of the loop, which must not block: also reports the collision that the loop found.
void Simulator::publish_clock(const Tick& tick) {
  write_stamp(tick.time_ns, clock_.message().clock);
  clock_.publish(tick.due_ns);
  if (diverged_.load(std::memory_order_relaxed)) context_.fail("the simulation of the arm diverged");
  if (collision_told_ || !has_collision_.load(std::memory_order_acquire)) return;
  collision_told_ = true;
  context_.outcome("collision", std::string(collision_.link) + " touched " + collision_.other + " " +
                                    std::to_string(static_cast<double>(collision_.time_ns) * 1e-9) +
                                    " s after the start");
}

void Simulator::start(const program::Start& start) {
  loop_.emplace(PacedLoop::Options{.period_ns = kStep, .most_behind_ns = kMostBehind}, start.measured_from_ns);
  if (controllers_) controllers_->start(start);
}

void Simulator::end(Nanoseconds at_ns) {
  loop_->measure_until(at_ns);
  if (controllers_) controllers_->end(at_ns);
}

void Simulator::stop() {
  clock_publisher_.stop();
  if (clock_publisher_.lost() > 0) {
    context_.fail(std::to_string(clock_publisher_.lost()) + " messages of /world/clock were not sent, "
                                                            "because their thread was " +
                  "too far behind");
  }
  if (controllers_) controllers_->stop();
  const PacedLoop::Counts counts = loop_->counts();
  context_.figure("late_steps", static_cast<double>(counts.late));
  if (counts.cycles < 2) return;
  // Simulated time over wall time, from the due time of the first step to the start of the last: a delay at
  // the end counts, and the simulation is never ahead.
  context_.figure("real_time_factor", static_cast<double>(kStep) * static_cast<double>(counts.cycles - 1) /
                                          static_cast<double>(counts.last_woken_ns - counts.first_due_ns));
}

}  // namespace perflab::manipulation
