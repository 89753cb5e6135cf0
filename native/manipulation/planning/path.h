// A path in joint space, parameterized by its length: straight between way-points, with a circular arc at
// each corner, so that its direction is continuous and the arm need not stop there.
//
// Source: T. Kunz, M. Stilman, "Time-Optimal Trajectory Generation for Path Following with Bounded
// Acceleration and Velocity", RSS 2012, section IV.
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

// Radians, one entry per joint.
using Joints = Eigen::VectorXd;

class Path {
 public:
  // Derivatives by path length: `direction` has length 1, `curvature` is 0 on a line and 1/radius on an arc.
  struct Point {
    Joints position;
    Joints direction;
    Joints curvature;
  };

  // A line or an arc; both ends are included.
  struct Segment {
    double begin = 0.0;
    double length = 0.0;
    double angle = 0.0;  // for an arc, in radians; 0 for a line
    // The path reverses at the start of this segment, so the motion must stop there.
    bool stops = false;
    // Line: first + direction * s. Arc: first is the centre, x and y the unit vectors from it, radius * (x cos + y sin).
    Joints first;
    Joints x;
    Joints y;
    double radius = 0.0;
  };

  // `tolerance`: maximum distance of an arc from its way-point. Way-points equal to their predecessor are
  // dropped. Throws BadInput if there is no way-point, their sizes differ, one is not finite, or the
  // tolerance is not positive.
  Path(const std::vector<Joints>& way_points, double tolerance);

  [[nodiscard]] double length() const noexcept { return length_; }
  // Empty if there is only one way-point.
  [[nodiscard]] const std::vector<Segment>& segments() const noexcept { return segments_; }

  // `s` is clamped to [0, length()]. Requires a segment.
  void at(double s, Point& point) const;
  // A point on one segment, at a distance from its start: where two segments meet the curvature depends on
  // the side.
  static void on(const Segment& segment, double distance, Point& point);

 private:
  std::vector<Segment> segments_;
  double length_ = 0.0;
};

}  // namespace perflab::manipulation::planning
