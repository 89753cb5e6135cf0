// A path through joint space by its length: straight between way-points, with a circular arc in place of each corner, so
// that its direction never jumps and the arm need not stop there.
//
// Source: T. Kunz, M. Stilman, "Time-Optimal Trajectory Generation for Path Following with Bounded Acceleration and
// Velocity", RSS 2012, section IV.
//
// Example:
//   const Path path(way_points, 0.1);
//   Path::Point point;
//   path.at(0.5 * path.length(), point);   // position, direction, curvature
#pragma once

#include <Eigen/Core>
#include <cstddef>
#include <vector>

namespace perflab::manipulation::planning {

// Radians, one entry a joint.
using Joints = Eigen::VectorXd;

class Path {
 public:
  // Derivatives are by the length of the path: `direction` has length 1, `curvature` is 0 on a line and 1/radius on an arc.
  struct Point {
    Joints position;
    Joints direction;
    Joints curvature;
  };

  // A line or an arc; both ends are included.
  struct Segment {
    double begin = 0.0;
    double length = 0.0;
    double angle = 0.0;  // an arc's, in radians; 0 of a line
    // The path turns on the spot where this segment begins: there it can only stand still.
    bool stops = false;
    // Line: first + direction * s. Arc: first is the centre, x and y the unit vectors from it, radius * (x cos + y sin).
    Joints first;
    Joints x;
    Joints y;
    double radius = 0.0;
  };

  // `tolerance`: how far an arc may be from its way-point. Way-points that equal the one before are left out. Throws
  // BadInput where there is no way-point, their sizes differ, one is not finite, or the tolerance is not above 0.
  Path(const std::vector<Joints>& way_points, double tolerance);

  [[nodiscard]] double length() const noexcept { return length_; }
  // Where there is one way-point only, there is none.
  [[nodiscard]] const std::vector<Segment>& segments() const noexcept { return segments_; }

  // `s` is cut to [0, length()]. Needs a segment.
  void at(double s, Point& point) const;
  // On one segment, at a distance from its beginning: at a joint of two segments the curvature depends on the side.
  static void on(const Segment& segment, double distance, Point& point);

 private:
  std::vector<Segment> segments_;
  double length_ = 0.0;
};

}  // namespace perflab::manipulation::planning
