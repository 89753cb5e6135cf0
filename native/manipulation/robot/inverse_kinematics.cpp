#include <algorithm>
#include <cmath>

#include "manipulation/robot/robot.h"

namespace perflab::manipulation {
namespace {

// The error from `at` to `target`: a translation (m), and a rotation vector (rad), both in the base's frame.
Eigen::Matrix<double, 6, 1> error_between(const Pose& at, const Pose& target) {
  Eigen::Matrix<double, 6, 1> error;
  error.head<3>() = target.translation() - at.translation();
  const Eigen::AngleAxisd turn(Eigen::Matrix3d(target.linear() * at.linear().transpose()));
  error.tail<3>() = turn.angle() * turn.axis();
  return error;
}

}  // namespace

InverseKinematics::InverseKinematics(std::shared_ptr<const Model> model, Link link)
    : InverseKinematics(std::move(model), link, Options{}) {}

InverseKinematics::InverseKinematics(std::shared_ptr<const Model> model, Link link, const Options& options)
    : model_(std::move(model)), link_(link), options_(options) {}

std::optional<Positions> InverseKinematics::solve(State& state, const Pose& target, std::span<const double> seed) const {
  const std::span<const JointLimits> limits = model_->limits();
  Positions positions(seed.begin(), seed.end());
  for (int iteration = 0; iteration < options_.iterations; ++iteration) {
    state.set(positions);
    const Eigen::Matrix<double, 6, 1> error = error_between(state.pose(link_), target);
    if (error.head<3>().norm() <= options_.position_tolerance &&
        error.tail<3>().norm() <= options_.orientation_tolerance) {
      return positions;
    }
    // The damping vanishes with the error, so that the final steps are Newton's: at 1e-3 m it is 1e-6 of the
    // square of the smallest singular value.
    const Jacobian jacobian = state.jacobian(link_);
    const double damping = 1e-3 * std::min(error.squaredNorm(), 1.0) + 1e-12;
    Eigen::Matrix<double, 6, 6> normal = jacobian * jacobian.transpose();
    normal.diagonal().array() += damping;
    const Eigen::VectorXd step = jacobian.transpose() * normal.ldlt().solve(error);
    // The Jacobian is not a good approximation for steps beyond half a radian.
    const double scale = std::min(1.0, 0.5 / std::max(step.lpNorm<Eigen::Infinity>(), 1e-12));
    for (std::size_t each = 0; each < positions.size(); ++each) {
      positions[each] = std::clamp(positions[each] + scale * step[static_cast<Eigen::Index>(each)],
                                   limits[each].lower, limits[each].upper);
    }
  }
  return std::nullopt;
}

std::vector<Positions> InverseKinematics::solutions(State& state, const Pose& target, std::size_t most,
                                                    SplitMix64& random, std::size_t tries) const {
  constexpr double kSame = 0.1;  // rad
  std::vector<Positions> found;
  if (tries == 0) tries = 10 * most;
  for (std::size_t each = 0; each < tries && found.size() < most; ++each) {
    const std::optional<Positions> solution = solve(state, target, random_positions(*model_, random));
    if (!solution) continue;
    const bool known = std::any_of(found.begin(), found.end(), [&](const Positions& other) {
      return std::equal(other.begin(), other.end(), solution->begin(),
                        [](double a, double b) { return std::abs(a - b) <= kSame; });
    });
    if (!known) found.push_back(*solution);
  }
  return found;
}

}  // namespace perflab::manipulation
