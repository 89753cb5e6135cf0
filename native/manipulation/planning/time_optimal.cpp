#include "manipulation/planning/time_optimal.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "base/error.h"

namespace perflab::manipulation::planning {
namespace {

// Grid: an interval is about this part of the whole path, or of an arc's angle. On a line, intervals are
// shorter towards the ends, where the speed changes most.
constexpr double kPart = 1.0 / 500.0;
constexpr double kTurn = 0.02;
constexpr double kFewestParts = 16.0;  // per segment

// Maps [0, 1] to itself, flat at both ends.
constexpr double smooth(double part) noexcept { return part * part * (3.0 - 2.0 * part); }
// Smaller components of a direction do not bound the acceleration: that would be a division by zero.
constexpr double kNoComponent = 1e-12;

// u is between `low` and `high`, both linear in x: constant + slope * x.
struct Line {
  double constant = 0.0;
  double slope = 0.0;
  [[nodiscard]] double at(double x) const noexcept { return constant + slope * x; }
};

// Bounds of speed and acceleration on one interval.
struct Bounds {
  std::vector<Line> low;
  std::vector<Line> high;
  double most = 0.0;  // of x, at the interval's start

  void clear(double limit) {
    low.clear();
    high.clear();
    most = limit;
  }
  // |a u + b x| <= limit
  void add(double a, double b, double limit) {
    if (std::abs(a) < kNoComponent) {
      if (std::abs(b) > 0.0) most = std::min(most, limit / std::abs(b));
      return;
    }
    const double inverse = 1.0 / a;
    const double slope = -b * inverse;
    const double reach = limit * std::abs(inverse);
    low.push_back({-reach, slope});
    high.push_back({reach, slope});
  }
  [[nodiscard]] const Line& highest_low(double x) const {
    return *std::max_element(low.begin(), low.end(), [x](const Line& a, const Line& b) { return a.at(x) < b.at(x); });
  }
  [[nodiscard]] const Line& lowest_high(double x) const {
    return *std::min_element(high.begin(), high.end(), [x](const Line& a, const Line& b) { return a.at(x) < b.at(x); });
  }
  // The largest x within `most` that leaves room for an acceleration. The room is concave in x and
  // non-negative at 0; so the zero of the lines that bound it at a point without room is between that point
  // and the answer.
  [[nodiscard]] double largest() const {
    double x = most;
    // Each step permanently eliminates a pair of lines.
    for (std::size_t step = 0; step < low.size() * high.size() + 1; ++step) {
      const Line& under = highest_low(x);
      const Line& over = lowest_high(x);
      if (over.at(x) - under.at(x) >= 0.0) return x;
      const double slope = over.slope - under.slope;
      if (slope >= 0.0) return 0.0;
      const double next = std::max(0.0, (under.constant - over.constant) / slope);
      if (next >= x) return x;  // limit of numerical precision
      x = next;
    }
    return x;
  }
};

double speed_limit(const Path::Point& point, const Joints& velocity) {
  double most = std::numeric_limits<double>::infinity();
  for (Eigen::Index j = 0; j < velocity.size(); ++j) {
    const double part = std::abs(point.direction[j]);
    if (part > 0.0) most = std::min(most, velocity[j] / part);
  }
  return most * most;
}

void check_limits(const Path& path, const Joints& velocity, const Joints& acceleration) {
  if (path.segments().empty()) throw BadInput("time-optimal motion: the path has no length");
  const auto right = [](const Joints& limits) { return limits.allFinite() && (limits.array() > 0.0).all(); };
  if (!right(velocity) || !right(acceleration)) {
    throw BadInput("time-optimal motion: a limit of velocity or acceleration is not positive");
  }
  if (velocity.size() != acceleration.size() || path.segments().front().first.size() != velocity.size()) {
    throw BadInput("time-optimal motion: path, velocity limits and acceleration limits have different numbers of joints");
  }
}

}  // namespace

double Trajectory::length() const {
  double sum = 0.0;
  for (std::size_t i = 1; i < points.size(); ++i) sum += (points[i].position - points[i - 1].position).norm();
  return sum;
}

TimeOptimal::TimeOptimal(Path path, const Joints& velocity, const Joints& acceleration) : path_(std::move(path)) {
  check_limits(path_, velocity, acceleration);
  const double usual = path_.length() * kPart;
  for (std::size_t i = 0; i < path_.segments().size(); ++i) {
    const Path::Segment& segment = path_.segments()[i];
    const bool line = segment.angle == 0.0;
    const double parts =
        std::max({kFewestParts, std::ceil(segment.length / usual), std::ceil(segment.angle / kTurn)});
    double begin = 0.0;
    for (double part = 1.0; part <= parts; part += 1.0) {
      const double end = segment.length * (line ? smooth(part / parts) : part / parts);
      grid_.push_back({i, begin, end});
      begin = end;
    }
  }

  // The constraints at both ends of each interval, on the interval's own segment.
  const std::size_t count = grid_.size();
  const auto joints = velocity.size();
  std::vector<Path::Point> begins(count);
  std::vector<Path::Point> ends(count);
  std::vector<double> limits(count + 1, std::numeric_limits<double>::infinity());
  for (std::size_t i = 0; i < count; ++i) {
    const Path::Segment& segment = path_.segments()[grid_[i].segment];
    Path::on(segment, grid_[i].begin, begins[i]);
    Path::on(segment, grid_[i].end, ends[i]);
    limits[i] = std::min(limits[i], speed_limit(begins[i], velocity));
    limits[i + 1] = std::min(limits[i + 1], speed_limit(ends[i], velocity));
    if (segment.stops && grid_[i].begin == 0.0) limits[i] = 0.0;
  }
  limits.front() = 0.0;
  limits.back() = 0.0;

  Bounds bounds;
  const auto bound = [&](std::size_t i) {
    const double step = grid_[i].end - grid_[i].begin;
    bounds.clear(limits[i]);
    for (Eigen::Index j = 0; j < joints; ++j) {
      bounds.add(begins[i].direction[j], begins[i].curvature[j], acceleration[j]);
      // At the interval's end the square is x + 2 step u.
      bounds.add(ends[i].direction[j] + 2.0 * step * ends[i].curvature[j], ends[i].curvature[j], acceleration[j]);
    }
    // 0 <= x + 2 step u <= the limit at the next grid point.
    bounds.low.push_back({0.0, -0.5 / step});
    bounds.high.push_back({0.5 * limits[i + 1] / step, -0.5 / step});
  };

  for (std::size_t i = count; i-- > 0;) {
    bound(i);
    limits[i] = bounds.largest();
  }
  squares_.assign(count + 1, 0.0);
  for (std::size_t i = 0; i < count; ++i) {
    const double step = grid_[i].end - grid_[i].begin;
    bound(i);
    const double u = bounds.lowest_high(squares_[i]).at(squares_[i]);
    squares_[i + 1] = std::clamp(squares_[i] + 2.0 * step * u, 0.0, limits[i + 1]);
  }

  // Between two grid points of an arc a limit can be slightly exceeded. Everything is slowed down by the
  // excess at the midpoints, about 1e-5.
  double exceeded = 1.0;
  Path::Point point;
  for (std::size_t i = 0; i < count; ++i) {
    const double step = grid_[i].end - grid_[i].begin;
    const double u = (squares_[i + 1] - squares_[i]) / (2.0 * step);
    const Path::Segment& segment = path_.segments()[grid_[i].segment];
    for (const double part : {0.0, 0.5, 1.0}) {
      if (segment.angle == 0.0 && part == 0.5) continue;
      Path::on(segment, grid_[i].begin + part * step, point);
      const double x = squares_[i] + 2.0 * part * step * u;
      for (Eigen::Index j = 0; j < joints; ++j) {
        const double v = point.direction[j] * point.direction[j] * x / (velocity[j] * velocity[j]);
        const double a = std::abs(point.direction[j] * u + point.curvature[j] * x) / acceleration[j];
        exceeded = std::max({exceeded, v, a});
      }
    }
  }
  times_.assign(count + 1, 0.0);
  for (double& square : squares_) square /= exceeded;
  for (std::size_t i = 0; i < count; ++i) {
    const double step = grid_[i].end - grid_[i].begin;
    const double speeds = std::sqrt(squares_[i]) + std::sqrt(squares_[i + 1]);
    if (!(speeds > 0.0)) throw Failed("time-optimal motion: the path cannot be followed at any speed");
    times_[i + 1] = times_[i] + 2.0 * step / speeds;
  }
}

TrajectoryPoint TimeOptimal::at(double time) const {
  time = std::clamp(time, 0.0, duration());
  const auto after = std::upper_bound(times_.begin(), times_.end(), time);
  const std::size_t i = std::min(static_cast<std::size_t>(std::max<std::ptrdiff_t>(after - times_.begin(), 1)) - 1,
                                 grid_.size() - 1);
  const Interval& place = grid_[i];
  const double step = place.end - place.begin;
  const double u = (squares_[i + 1] - squares_[i]) / (2.0 * step);
  const double elapsed = time - times_[i];
  const double speed = std::sqrt(squares_[i]);
  const double moved = std::clamp(elapsed * (speed + 0.5 * u * elapsed), 0.0, step);
  const double now = std::max(0.0, speed + u * elapsed);
  Path::Point point;
  Path::on(path_.segments()[place.segment], place.begin + moved, point);
  return {time, point.position, point.direction * now, point.direction * u + point.curvature * (now * now)};
}

Trajectory TimeOptimal::resampled(double interval) const {
  if (!(interval > 0.0)) throw BadInput("time-optimal motion: the sampling interval must be greater than 0 s");
  Trajectory trajectory;
  constexpr double kLeast = 1e-6;
  for (std::size_t i = 0; interval * static_cast<double>(i) < duration() - kLeast; ++i) {
    trajectory.points.push_back(at(interval * static_cast<double>(i)));
  }
  trajectory.points.push_back(at(duration()));
  // A controller would refuse the rounding error in the final speed.
  trajectory.points.back().velocity.setZero();
  return trajectory;
}

Trajectory parameterize(const std::vector<Joints>& way_points, const Joints& velocity, const Joints& acceleration,
                        double velocity_scaling, double acceleration_scaling) {
  for (const double scaling : {velocity_scaling, acceleration_scaling}) {
    if (!(scaling > 0.0) || scaling > 1.0) {
      throw BadInput("time-optimal motion: scaling " + std::to_string(scaling) + "; it must be in (0, 1]");
    }
  }
  std::vector<Joints> points;
  for (const Joints& point : way_points) {
    if (points.empty() || point.size() != points.back().size() ||
        (point - points.back()).cwiseAbs().maxCoeff() > kLeastAngleChange) {
      points.push_back(point);
    } else if (&point == &way_points.back()) {
      points.back() = point;
    }
  }
  if (points.size() == 1) {
    const Joints zero = Joints::Zero(points.front().size());
    return {{{0.0, points.front(), zero, zero}}};
  }
  return TimeOptimal(Path(points, kPathTolerance), velocity * velocity_scaling, acceleration * acceleration_scaling)
      .resampled(kResampleInterval);
}

}  // namespace perflab::manipulation::planning
