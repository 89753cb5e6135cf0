#include "manipulation/planning/path.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace perflab::manipulation::planning {
namespace {

// Way-points closer than this count as one: rounding of positions sent as text, far below any encoder.
constexpr double kSamePoint = 1e-9;
// A smaller turn counts as straight; within this of half a turn, the path reverses.
constexpr double kStraight = 1e-6;
constexpr double kReversal = 1e-3;

void check(const std::vector<Joints>& points, double tolerance) {
  if (points.empty()) throw BadInput("path: no way-point; it needs at least one");
  if (!(tolerance > 0.0) || !std::isfinite(tolerance)) {
    throw BadInput("path: tolerance " + std::to_string(tolerance) + " rad; it must be greater than 0");
  }
  for (std::size_t i = 0; i < points.size(); ++i) {
    if (points[i].size() != points.front().size() || points[i].size() == 0) {
      throw BadInput("path: way-point " + std::to_string(i) + " has " + std::to_string(points[i].size()) +
                     " joints; the first has " + std::to_string(points.front().size()));
    }
    if (!points[i].allFinite()) throw BadInput("path: way-point " + std::to_string(i) + " is not finite");
  }
}

// The arc that rounds a corner: the length that it cuts from the lines before and after the corner, and its angle.
struct Corner {
  double cut = 0.0;
  double angle = 0.0;
  bool stops = false;
};

Corner corner_of(const Joints& before, const Joints& at, const Joints& after, double tolerance) {
  const Joints in = (at - before).normalized();
  const Joints out = (after - at).normalized();
  // More precise than acos near 0 and pi.
  const double angle = 2.0 * std::atan2((in - out).norm(), (in + out).norm());
  if (angle < kStraight) return {};
  if (angle > M_PI - kReversal) return {0.0, angle, true};
  const double room = 0.5 * std::min((at - before).norm(), (after - at).norm());
  // The middle of the arc is `tolerance` away from the way-point, unless there is too little room.
  return {std::min(room, tolerance * std::sin(0.5 * angle) / (1.0 - std::cos(0.5 * angle))), angle, false};
}

}  // namespace

Path::Path(const std::vector<Joints>& way_points, double tolerance) {
  check(way_points, tolerance);
  std::vector<Joints> points;
  for (const Joints& point : way_points) {
    if (points.empty() || (point - points.back()).norm() > kSamePoint) points.push_back(point);
  }
  const auto add = [this](Segment segment) {
    if (segment.length <= kSamePoint) return;  // e.g. between two arcs that take the whole line
    segment.begin = length_;
    length_ += segment.length;
    segments_.push_back(std::move(segment));
  };
  const auto add_line = [&](const Joints& from, const Joints& to, bool stops) {
    Segment line;
    line.length = (to - from).norm();
    line.stops = stops;
    line.first = from;
    if (line.length > 0.0) line.x = (to - from) / line.length;
    add(std::move(line));
  };
  if (points.size() < 2) return;
  Joints from = points.front();
  bool stops = false;
  for (std::size_t i = 1; i + 1 < points.size(); ++i) {
    const Corner corner = corner_of(points[i - 1], points[i], points[i + 1], tolerance);
    const Joints in = (points[i] - points[i - 1]).normalized();
    const Joints out = (points[i + 1] - points[i]).normalized();
    const Joints first = points[i] - corner.cut * in;
    add_line(from, first, stops);
    stops = corner.stops;
    from = points[i];
    if (corner.cut <= 0.0) continue;
    Segment arc;
    arc.angle = corner.angle;
    arc.radius = corner.cut / std::tan(0.5 * corner.angle);
    arc.length = arc.radius * corner.angle;
    // The centre is on the bisector of the corner. `x` points from it to the start of the arc.
    const Joints to_centre = (out - in).normalized();
    const Joints centre = points[i] + to_centre * (arc.radius / std::cos(0.5 * corner.angle));
    arc.first = centre;
    arc.x = (first - centre).normalized();
    arc.y = in;
    add(std::move(arc));
    from = points[i] + corner.cut * out;
  }
  add_line(from, points.back(), stops);
}

void Path::on(const Segment& segment, double distance, Point& point) {
  if (segment.angle == 0.0) {
    point.position = segment.first + segment.x * distance;
    point.direction = segment.x;
    point.curvature = Joints::Zero(segment.x.size());
    return;
  }
  const double angle = distance / segment.radius;
  const double c = std::cos(angle);
  const double s = std::sin(angle);
  point.position = segment.first + segment.radius * (segment.x * c + segment.y * s);
  point.direction = segment.y * c - segment.x * s;
  point.curvature = -(segment.x * c + segment.y * s) / segment.radius;
}

void Path::at(double s, Point& point) const {
  s = std::clamp(s, 0.0, length_);
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), s,
                                      [](double value, const Segment& segment) { return value < segment.begin; });
  const Segment& segment = after == segments_.begin() ? segments_.front() : *(after - 1);
  on(segment, std::min(s - segment.begin, segment.length), point);
}

}  // namespace perflab::manipulation::planning
