// The interface of collision checkers for a State, because stacks use different ones. MuJoCo's convex hulls
// are the default; planning/collision_checkers.h lists all by name.
//
// A checker belongs to one model, is immutable, and is shared by all states of that model, in any thread.
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

// Two touching geoms of MuJoCo's model.
struct Touching {
  int first, second;
  double distance;  // m; negative: penetration depth
  Eigen::Vector3d point;
};

using GeomPair = std::pair<int, int>;

class CollisionChecker {
 public:
  // True if a contact of these two counts.
  using Counts = std::function<bool(int first_geom, int second_geom)>;

  CollisionChecker() = default;
  CollisionChecker(const CollisionChecker&) = delete;
  CollisionChecker& operator=(const CollisionChecker&) = delete;
  virtual ~CollisionChecker() = default;

  // Geom poses are those of `at`. Other contents of `at` may be overwritten.
  [[nodiscard]] virtual bool collides(mjData_& at, const Counts& counts) const = 0;
  // The deepest contact, if any.
  [[nodiscard]] virtual std::optional<Touching> deepest(mjData_& at, const Counts& counts) const = 0;
  // The nearest pair, if closer than `most`; a distance of 0 or below means contact.
  [[nodiscard]] virtual std::optional<Touching> nearest(mjData_& at, const Counts& counts, double most) const = 0;
};

// `pairs`: geoms that can touch at all. Both must outlive the checker.
using MakeChecker =
    std::function<std::unique_ptr<const CollisionChecker>(const mjModel_& model, std::span<const GeomPair> pairs)>;

[[nodiscard]] std::unique_ptr<const CollisionChecker> mujoco_checker(const mjModel_& model,
                                                                     std::span<const GeomPair> pairs);

// True if the bounding spheres of two geoms are closer than `most`.
[[nodiscard]] bool within_reach(const mjModel_& model, const mjData_& at, const GeomPair& pair, double most) noexcept;

// The nearest of these pairs, if closer than `most`: `between(first, second, least)` returns the distance of
// two geoms; for larger distances any value of at least `least`.
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
