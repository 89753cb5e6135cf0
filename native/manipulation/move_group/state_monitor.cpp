#include "manipulation/move_group/state_monitor.h"

#include <algorithm>
#include <chrono>

namespace perflab::manipulation {

StateMonitor::StateMonitor(std::shared_ptr<const Model> model, const SimClock& clock)
    : model_(std::move(model)), clock_(clock), heard_(model_->joints().size(), false) {
  state_.positions.assign(model_->joints().size(), 0.0);
}

void StateMonitor::take(const messages::sensor_msgs::msg::JointState& message, Nanoseconds published_ns) {
  if (message.name.size() != message.position.size()) return;
  const bool moving = message.velocity.size() == message.name.size();
  {
    const std::scoped_lock lock(mutex_);
    if (moving) state_.velocities.resize(model_->joints().size(), 0.0);
    for (std::size_t i = 0; i < message.name.size(); ++i) {
      const std::string_view name = message.name[i];
      if (name == model_->hand_joint()) state_.hand = message.position[i];
      const auto joint = std::find(model_->joints().begin(), model_->joints().end(), name);
      if (joint == model_->joints().end()) continue;
      const auto at = static_cast<std::size_t>(joint - model_->joints().begin());
      state_.positions[at] = message.position[i];
      if (moving) state_.velocities[at] = message.velocity[i];
      heard_[at] = true;
    }
    state_.stamp = nanoseconds_of(message.header.stamp);
    state_.published_ns = published_ns;
    complete_ = complete_ || std::find(heard_.begin(), heard_.end(), false) == heard_.end();
  }
  changed_.notify_all();
}

std::optional<ArmState> StateMonitor::current() const {
  const std::scoped_lock lock(mutex_);
  return complete_ ? std::optional(state_) : std::nullopt;
}

bool StateMonitor::wait_for(Nanoseconds stamp, Nanoseconds limit) const {
  using namespace std::chrono_literals;
  const Nanoseconds start = clock_.now();
  std::unique_lock lock(mutex_);
  while (!complete_ || state_.stamp < stamp) {
    if (stopped_) return false;
    changed_.wait_for(lock, 100ms);
    if (clock_.now() - start > limit && (!complete_ || state_.stamp < stamp)) return false;
  }
  return true;
}

void StateMonitor::stop() {
  {
    const std::scoped_lock lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
}

}  // namespace perflab::manipulation
