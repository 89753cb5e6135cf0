// The fastest motion along a path that keeps each joint's limits of velocity and acceleration, from standstill to
// standstill: MoveIt's TimeOptimalTrajectoryGeneration.
//
// The path has circular blends (path.h). The square of the speed along it, x = (ds/dt)^2, is bounded by
//     |q'(s) u + q''(s) x| <= acceleration limit,   |q'(s)|^2 x <= velocity limit^2,   u = d2s/dt2,   dx/ds = 2 u
// Kunz and Stilman search the switching points of the fastest profile. Here one pass backward over a grid finds the highest
// speed at each place from which standstill at the end can still be reached, and one pass forward accelerates as much
// as that allows: the same profile, up to the grid, and no switching point that could be missed.
//
// Sources: Kunz and Stilman, RSS 2012 (path, problem); H. Pham, Q.-C. Pham, "A New Approach to Time-Optimal Path
// Parameterization Based on Reachability Analysis", IEEE T-RO 34(3), 2018 (both passes).
//
// Example:
//   const TimeOptimal timed(Path(way_points, 0.1), velocity, acceleration);
//   const Trajectory trajectory = timed.resampled(0.1);
#pragma once

#include <vector>

#include "manipulation/planning/path.h"

namespace perflab::manipulation::planning {

// What a controller is sent: rad, rad/s, rad/s^2 at a time in seconds from the start.
struct TrajectoryPoint {
  double time = 0.0;
  Joints position;
  Joints velocity;
  Joints acceleration;
};

struct Trajectory {
  std::vector<TrajectoryPoint> points;

  [[nodiscard]] double duration() const noexcept { return points.empty() ? 0.0 : points.back().time; }
  // Sum over the points of the Euclidean distance between neighbours, rad.
  [[nodiscard]] double length() const;
};

// MoveIt's defaults (time_optimal_trajectory_generation.h).
inline constexpr double kPathTolerance = 0.1;        // rad
inline constexpr double kResampleInterval = 0.1;     // s
inline constexpr double kLeastAngleChange = 0.001;   // rad: a way-point closer in each joint is left out

class TimeOptimal {
 public:
  // Limits are above 0, one a joint. Throws BadInput where they are not, or the path has no length.
  TimeOptimal(Path path, const Joints& velocity, const Joints& acceleration);

  [[nodiscard]] const Path& path() const noexcept { return path_; }
  [[nodiscard]] double duration() const noexcept { return times_.back(); }  // s
  // `time` is cut to [0, duration()].
  [[nodiscard]] TrajectoryPoint at(double time) const;
  // One point each `interval` seconds, and the end, where it stands still; times increase by 1 us at least. Throws BadInput
  // where the interval is not above 0.
  [[nodiscard]] Trajectory resampled(double interval) const;

 private:
  // An interval of the grid: distances on its segment. The acceleration along it is constant.
  struct Interval {
    std::size_t segment = 0;
    double begin = 0.0;
    double end = 0.0;
  };

  Path path_;
  std::vector<Interval> grid_;
  std::vector<double> squares_;  // (ds/dt)^2 at the ends of intervals: one more than there are intervals
  std::vector<double> times_;    // s, at the same places
};

// MoveIt's computeTimeStamps(): leaves out way-points that hardly differ, blends, times, resamples. Scalings are within
// (0, 1]; limits as above. Throws BadInput.
[[nodiscard]] Trajectory parameterize(const std::vector<Joints>& way_points, const Joints& velocity,
                                      const Joints& acceleration, double velocity_scaling,
                                      double acceleration_scaling);

}  // namespace perflab::manipulation::planning
