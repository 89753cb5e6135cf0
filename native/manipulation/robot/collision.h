// What finds collisions for a State: a seam, as stacks look for them in different ways. MuJoCo's convex hulls are the default;
// planning/collision_checkers.h knows all by name.
//
// A checker is made for one model, never changes, and is shared by the states of that model, whatever thread they are of.
#pragma once

#include <Eigen/Core>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <utility>

struct mjModel_;
struct mjData_;

namespace perflab::manipulation {

// Two geoms of MuJoCo's model.
struct Touching {
  int first, second;
  double distance;  // m; below 0: how deep they are in each other
  Eigen::Vector3d point;
};

using GeomPair = std::pair<int, int>;

class CollisionChecker {
 public:
  // Whether it counts that these two touch.
  using Counts = std::function<bool(int first_geom, int second_geom)>;

  CollisionChecker() = default;
  CollisionChecker(const CollisionChecker&) = delete;
  CollisionChecker& operator=(const CollisionChecker&) = delete;
  virtual ~CollisionChecker() = default;

  // The geoms are where `at` has them. What else is in `at` may be overwritten.
  [[nodiscard]] virtual bool collides(mjData_& at, const Counts& counts) const = 0;
  // The deepest of those that touch, if any.
  [[nodiscard]] virtual std::optional<Touching> deepest(mjData_& at, const Counts& counts) const = 0;
  // The nearest pair, if any is nearer than `most`; a distance of 0 or below where they touch.
  [[nodiscard]] virtual std::optional<Touching> nearest(mjData_& at, const Counts& counts, double most) const = 0;
};

// `pairs`: which geoms can touch at all. Both outlive the checker.
using MakeChecker =
    std::function<std::unique_ptr<const CollisionChecker>(const mjModel_& model, std::span<const GeomPair> pairs)>;

[[nodiscard]] std::unique_ptr<const CollisionChecker> mujoco_checker(const mjModel_& model,
                                                                     std::span<const GeomPair> pairs);

// Whether the spheres around two geoms are nearer than `most`.
[[nodiscard]] bool within_reach(const mjModel_& model, const mjData_& at, const GeomPair& pair, double most) noexcept;

// The nearest of these pairs, if any is nearer than `most`: `between(first, second, least)` says how far two geoms are apart,
// and may say `least` or more of those that are farther.
template <typename Between>
[[nodiscard]] std::optional<Touching> nearest_of(const mjModel_& model, const mjData_& at, std::span<const GeomPair> pairs,
                                                 const CollisionChecker::Counts& counts, double most, Between between) {
  std::optional<Touching> nearest;
  double least = most;
  for (const GeomPair& pair : pairs) {
    if (!within_reach(model, at, pair, least) || !counts(pair.first, pair.second)) continue;
    const Touching found = between(pair.first, pair.second, least);
    if (found.distance >= least) continue;
    least = found.distance;
    nearest = found;
  }
  return nearest;
}

}  // namespace perflab::manipulation
