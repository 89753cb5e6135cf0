// The fastest motion along a path within each joint's velocity and acceleration limits, from standstill to
// standstill: MoveIt's TimeOptimalTrajectoryGeneration.
//
// The path has circular blends (path.h). The square of the speed along it, x = (ds/dt)^2, is bounded by
//    |q'(s) u + q''(s) x| <= acceleration limit,   |q'(s)|^2 x <= velocity limit^2,
//    u = d2s/dt2,   dx/ds = 2 u
// Kunz and Stilman search for the switching points of the fastest profile. Here one backward pass over a grid
// finds the highest speed at each point from which standstill at the end can still be reached, and one forward
// pass accelerates as much as that allows: the same profile, up to the grid, and no switching point can be
// missed.
//
// Sources: Kunz and Stilman, RSS 2012 (path, problem); H. Pham, Q.-C. Pham, "A New Approach to Time-Optimal
// Path Parameterization Based on Reachability Analysis", IEEE T-RO 34(3), 2018 (both passes).
//
// Example:
//   const TimeOptimal timed(Path(way_points, 0.1), velocity, acceleration);
//   const Trajectory trajectory = timed.resampled(0.1);
#pragma once

#include <vector>

#include "manipulation/planning/path.h"

namespace perflab::manipulation::planning {

// A point for a controller: rad, rad/s, rad/s^2 at a time in seconds from the start.
struct TrajectoryPoint {
  double time = 0.0;
  Joints position;
  Joints velocity;
  Joints acceleration;
};

struct Trajectory {
  std::vector<TrajectoryPoint> points;

  [[nodiscard]] double duration() const noexcept { return points.empty() ? 0.0 : points.back().time; }
  // Sum of the Euclidean distances between neighbouring points, rad.
  [[nodiscard]] double length() const;
};

// MoveIt's defaults (time_optimal_trajectory_generation.h).
inline constexpr double kPathTolerance = 0.1;        // rad
inline constexpr double kResampleInterval = 0.1;     // s
inline constexpr double kLeastAngleChange = 0.001;   // rad: a way-point closer than this in each joint is
                                                     // dropped

class TimeOptimal {
 public:
  // Limits must be positive, one per joint. Throws BadInput if they are not, or the path has no length.
  TimeOptimal(Path path, const Joints& velocity, const Joints& acceleration);

  [[nodiscard]] const Path& path() const noexcept { return path_; }
  [[nodiscard]] double duration() const noexcept { return times_.back(); }  // s
  // `time` is clamped to [0, duration()].
  [[nodiscard]] TrajectoryPoint at(double time) const;
  // One point every `interval` seconds, and the end, at standstill; times increase by at least 1 us. Throws
  // BadInput if the interval is not positive.
  [[nodiscard]] Trajectory resampled(double interval) const;

 private:
  // A grid interval: distances on its segment. The acceleration along it is constant.
  struct Interval {
    std::size_t segment = 0;
    double begin = 0.0;
    double end = 0.0;
  };

  Path path_;
  std::vector<Interval> grid_;
  std::vector<double> squares_;  // (ds/dt)^2 at the ends of intervals, one more than intervals
  std::vector<double> times_;    // s, at the same points
};

// MoveIt's computeTimeStamps(): drops way-points that hardly differ, blends, times, resamples. Scalings are
// in (0, 1]; limits as above. Throws BadInput.
[[nodiscard]] Trajectory parameterize(const std::vector<Joints>& way_points, const Joints& velocity,
                                      const Joints& acceleration, double velocity_scaling,
                                      double acceleration_scaling);

}  // namespace perflab::manipulation::planning
