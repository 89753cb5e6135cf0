#include "manipulation/control/trajectory.h"

#include <algorithm>
#include <cmath>

#include "base/text.h"

namespace perflab::manipulation {
namespace {

// The smallest final speed that counts as motion (joint_trajectory_controller: the float's epsilon).
constexpr double kStandstill = 1.1920929e-07;

bool all_finite(const std::vector<double>& values) {
  return std::all_of(values.begin(), values.end(), [](double each) { return std::isfinite(each); });
}

std::optional<std::string> wrong_in(const TrajectoryPoint& point, std::size_t joints) {
  const auto wrong_size = [&](const std::vector<double>& values, bool may_be_empty) {
    return values.size() != joints && !(may_be_empty && values.empty());
  };
  if (wrong_size(point.positions, false)) {
    return "has " + std::to_string(point.positions.size()) + " positions for " + std::to_string(joints) + " joints";
  }
  if (wrong_size(point.velocities, true)) {
    return "has " + std::to_string(point.velocities.size()) + " velocities for " + std::to_string(joints) + " joints";
  }
  if (wrong_size(point.accelerations, true)) {
    return "has " + std::to_string(point.accelerations.size()) + " accelerations for " + std::to_string(joints) +
           " joints";
  }
  if (!all_finite(point.positions) || !all_finite(point.velocities) || !all_finite(point.accelerations)) {
    return "has a value that is not a number";
  }
  return std::nullopt;
}

}  // namespace

const char* to_text(TrajectoryError error) noexcept {
  switch (error) {
    case TrajectoryError::kSuccessful: return "SUCCESSFUL";
    case TrajectoryError::kInvalidGoal: return "INVALID_GOAL";
    case TrajectoryError::kInvalidJoints: return "INVALID_JOINTS";
    case TrajectoryError::kOldHeaderTimestamp: return "OLD_HEADER_TIMESTAMP";
    case TrajectoryError::kPathToleranceViolated: return "PATH_TOLERANCE_VIOLATED";
    case TrajectoryError::kGoalToleranceViolated: return "GOAL_TOLERANCE_VIOLATED";
  }
  return "unknown";
}

std::optional<Refusal> check(const Trajectory& trajectory, std::span<const std::string> joints) {
  if (trajectory.joints.size() != joints.size()) {
    return Refusal{TrajectoryError::kInvalidJoints, "has " + std::to_string(trajectory.joints.size()) +
                                                        " joints instead of " + std::to_string(joints.size())};
  }
  for (const std::string& joint : joints) {
    if (std::count(trajectory.joints.begin(), trajectory.joints.end(), joint) != 1) {
      return Refusal{TrajectoryError::kInvalidJoints, "does not have joint " + joint + " once"};
    }
  }
  const auto refuse = [](const std::string& text) { return Refusal{TrajectoryError::kInvalidGoal, text}; };
  if (trajectory.points.empty()) return refuse("has no points");
  Nanoseconds before = -1;
  for (std::size_t each = 0; each < trajectory.points.size(); ++each) {
    const TrajectoryPoint& point = trajectory.points[each];
    const std::string where = "point " + std::to_string(each) + " ";
    if (const auto wrong = wrong_in(point, joints.size())) return refuse(where + *wrong);
    if (point.time_ns <= before) return refuse(where + (each == 0 ? "is before the start" : "is not after the one before it"));
    before = point.time_ns;
  }
  const std::vector<double>& last = trajectory.points.back().velocities;
  if (std::any_of(last.begin(), last.end(), [](double each) { return std::abs(each) > kStandstill; })) {
    return refuse("ends while a joint moves");
  }
  return std::nullopt;
}

Trajectory sorted(const Trajectory& trajectory, std::span<const std::string> joints) {
  std::vector<std::size_t> places;
  for (const std::string& joint : joints) {
    const auto found = std::find(trajectory.joints.begin(), trajectory.joints.end(), joint);
    places.push_back(static_cast<std::size_t>(found - trajectory.joints.begin()));
  }
  const auto in_order = [&](const std::vector<double>& values) {
    std::vector<double> ordered;
    if (values.empty()) return ordered;
    for (const std::size_t place : places) ordered.push_back(values[place]);
    return ordered;
  };
  Trajectory result{{joints.begin(), joints.end()}, {}};
  for (const TrajectoryPoint& point : trajectory.points) {
    result.points.push_back(
        {point.time_ns, in_order(point.positions), in_order(point.velocities), in_order(point.accelerations)});
  }
  return result;
}

Spline::Spline(const Trajectory& trajectory) : joints_(trajectory.joints.size()) {
  const auto append = [&](std::vector<double>& to, const std::vector<double>& values) {
    to.insert(to.end(), values.begin(), values.end());
    to.resize(to.size() + (joints_ - values.size()), 0.0);
  };
  for (const TrajectoryPoint& point : trajectory.points) {
    times_.push_back(point.time_ns);
    append(positions_, point.positions);
    append(velocities_, point.velocities);
    append(accelerations_, point.accelerations);
    orders_.push_back(point.velocities.empty() ? 1 : point.accelerations.empty() ? 2 : 3);
  }
}

bool Spline::sample(Nanoseconds time_ns, const JointState& start, JointState& desired) const noexcept {
  const auto next = static_cast<std::size_t>(std::upper_bound(times_.begin(), times_.end(), time_ns) - times_.begin());
  if (next == times_.size()) {
    for (std::size_t joint = 0; joint < joints_; ++joint) {
      desired.positions[joint] = row(positions_, next - 1)[joint];
      desired.velocities[joint] = row(velocities_, next - 1)[joint];
      desired.accelerations[joint] = row(accelerations_, next - 1)[joint];
    }
    return false;
  }
  const bool first = next == 0;  // from where the joints are
  const Nanoseconds from_ns = first ? 0 : times_[next - 1];
  const int order = first ? orders_[next] : std::min(orders_[next - 1], orders_[next]);
  const double length = static_cast<double>(times_[next] - from_ns) * 1e-9;
  const double t = static_cast<double>(time_ns - from_ns) * 1e-9;
  const double T2 = length * length, T3 = T2 * length;
  for (std::size_t joint = 0; joint < joints_; ++joint) {
    const double p0 = first ? start.positions[joint] : row(positions_, next - 1)[joint];
    const double v0 = first ? start.velocities[joint] : row(velocities_, next - 1)[joint];
    const double a0 = first ? start.accelerations[joint] : row(accelerations_, next - 1)[joint];
    const double p1 = row(positions_, next)[joint];
    const double v1 = row(velocities_, next)[joint];
    const double a1 = row(accelerations_, next)[joint];
    double c[6] = {p0, 0.0, 0.0, 0.0, 0.0, 0.0};
    if (order == 1) {
      c[1] = (p1 - p0) / length;
    } else if (order == 2) {
      c[1] = v0;
      c[2] = (3.0 * (p1 - p0) - (2.0 * v0 + v1) * length) / T2;
      c[3] = (-2.0 * (p1 - p0) + (v0 + v1) * length) / T3;
    } else {
      c[1] = v0;
      c[2] = 0.5 * a0;
      c[3] = (20.0 * (p1 - p0) - (8.0 * v1 + 12.0 * v0) * length + (a1 - 3.0 * a0) * T2) / (2.0 * T3);
      c[4] = (-30.0 * (p1 - p0) + (14.0 * v1 + 16.0 * v0) * length + (3.0 * a0 - 2.0 * a1) * T2) / (2.0 * T3 * length);
      c[5] = (12.0 * (p1 - p0) - 6.0 * (v1 + v0) * length + (a1 - a0) * T2) / (2.0 * T3 * T2);
    }
    desired.positions[joint] = c[0] + t * (c[1] + t * (c[2] + t * (c[3] + t * (c[4] + t * c[5]))));
    desired.velocities[joint] = c[1] + t * (2.0 * c[2] + t * (3.0 * c[3] + t * (4.0 * c[4] + t * 5.0 * c[5])));
    desired.accelerations[joint] = 2.0 * c[2] + t * (6.0 * c[3] + t * (12.0 * c[4] + t * 20.0 * c[5]));
  }
  return true;
}

}  // namespace perflab::manipulation
