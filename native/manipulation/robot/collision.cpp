#include "manipulation/robot/collision.h"

#include <mujoco/mujoco.h>

#include <array>

namespace perflab::manipulation {
namespace {

class MujocoChecker final : public CollisionChecker {
 public:
  MujocoChecker(const mjModel& model, std::span<const GeomPair> pairs) : model_(model), pairs_(pairs) {}

  bool collides(mjData& at, const Counts& counts) const override {
    mj_collision(&model_, &at);
    for (int each = 0; each < at.ncon; ++each) {
      const mjContact& contact = at.contact[each];
      if (contact.dist < 0.0 && counts(contact.geom[0], contact.geom[1])) return true;
    }
    return false;
  }

  std::optional<Touching> deepest(mjData& at, const Counts& counts) const override {
    mj_collision(&model_, &at);
    const mjContact* deepest = nullptr;
    for (int each = 0; each < at.ncon; ++each) {
      const mjContact& contact = at.contact[each];
      if (contact.dist >= 0.0 || !counts(contact.geom[0], contact.geom[1])) continue;
      if (deepest == nullptr || contact.dist < deepest->dist) deepest = &contact;
    }
    if (deepest == nullptr) return std::nullopt;
    return Touching{deepest->geom[0], deepest->geom[1], deepest->dist,
                    Eigen::Vector3d(deepest->pos[0], deepest->pos[1], deepest->pos[2])};
  }

  std::optional<Touching> nearest(mjData& at, const Counts& counts, double most) const override {
    return nearest_of(model_, at, pairs_, counts, most, [&](int first, int second, double least) {
      std::array<mjtNum, 6> ends{};
      const double distance = mj_geomDistance(&model_, &at, first, second, least, ends.data());
      return Touching{first, second, distance,
                      Eigen::Vector3d((ends[0] + ends[3]) / 2.0, (ends[1] + ends[4]) / 2.0, (ends[2] + ends[5]) / 2.0)};
    });
  }

 private:
  const mjModel& model_;
  const std::span<const GeomPair> pairs_;
};

}  // namespace

std::unique_ptr<const CollisionChecker> mujoco_checker(const mjModel& model, std::span<const GeomPair> pairs) {
  return std::make_unique<MujocoChecker>(model, pairs);
}

bool within_reach(const mjModel& model, const mjData& at, const GeomPair& pair, double most) noexcept {
  const auto& [first, second] = pair;
  const Eigen::Map<const Eigen::Vector3d> one(at.geom_xpos + 3 * first);
  const Eigen::Map<const Eigen::Vector3d> other(at.geom_xpos + 3 * second);
  return (one - other).norm() - model.geom_rbound[first] - model.geom_rbound[second] < most;
}

}  // namespace perflab::manipulation
