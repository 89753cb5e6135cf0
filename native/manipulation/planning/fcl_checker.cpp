#include "manipulation/planning/fcl_checker.h"

#include <fcl/fcl.h>
#include <mujoco/mujoco.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"

namespace perflab::manipulation::planning {
namespace {

using Geometry = std::shared_ptr<const fcl::CollisionGeometryd>;
// Two meshes have a contact for each pair of touching triangles; the deepest of this many is good enough.
constexpr std::size_t kMostContacts = 16;

Geometry mesh_of(const mjModel& model, int mesh) {
  std::vector<fcl::Vector3d> points;
  for (int each = 0; each < model.mesh_vertnum[mesh]; ++each) {
    const float* const at = model.mesh_vert + 3 * (model.mesh_vertadr[mesh] + each);
    points.emplace_back(at[0], at[1], at[2]);
  }
  std::vector<fcl::Triangle> triangles;
  for (int each = 0; each < model.mesh_facenum[mesh]; ++each) {
    const int* const corners = model.mesh_face + 3 * (model.mesh_faceadr[mesh] + each);
    triangles.emplace_back(corners[0], corners[1], corners[2]);
  }
  auto tree = std::make_shared<fcl::BVHModel<fcl::OBBRSSd>>();
  tree->beginModel(static_cast<int>(triangles.size()), static_cast<int>(points.size()));
  tree->addSubModel(points, triangles);
  tree->endModel();
  tree->computeLocalAABB();
  return tree;
}

template <typename Shape, typename... Sizes>
Geometry shape(Sizes... sizes) {
  auto made = std::make_shared<Shape>(sizes...);
  made->computeLocalAABB();
  return made;
}

// MuJoCo stores half lengths.
Geometry geometry_of(const mjModel& model, int geom) {
  const mjtNum* const size = model.geom_size + 3 * geom;
  switch (model.geom_type[geom]) {
    case mjGEOM_MESH: return mesh_of(model, model.geom_dataid[geom]);
    case mjGEOM_BOX: return shape<fcl::Boxd>(2.0 * size[0], 2.0 * size[1], 2.0 * size[2]);
    case mjGEOM_CYLINDER: return shape<fcl::Cylinderd>(size[0], 2.0 * size[1]);
    case mjGEOM_SPHERE: return shape<fcl::Sphered>(size[0]);
    case mjGEOM_CAPSULE: return shape<fcl::Capsuled>(size[0], 2.0 * size[1]);
    default: break;
  }
  throw Unsupported("collision checking by fcl: the shape of " +
                    std::string(mj_id2name(&model, mjOBJ_BODY, model.geom_bodyid[geom])) +
                    " is not a mesh, box, cylinder, sphere or capsule");
}

fcl::Transform3d pose_of(const mjData& at, int geom) {
  fcl::Transform3d pose = fcl::Transform3d::Identity();
  pose.linear() = Eigen::Map<const Eigen::Matrix<double, 3, 3, Eigen::RowMajor>>(at.geom_xmat + 9 * geom);
  pose.translation() = Eigen::Map<const Eigen::Vector3d>(at.geom_xpos + 3 * geom);
  return pose;
}

class FclChecker final : public CollisionChecker {
 public:
  FclChecker(const mjModel& model, std::span<const GeomPair> pairs) : model_(model), pairs_(pairs), shapes_(model.ngeom) {
    for (const auto& [first, second] : pairs) {
      for (const int geom : {first, second}) {
        if (!shapes_[geom]) shapes_[geom] = geometry_of(model, geom);
      }
    }
  }

  bool collides(mjData& at, const Counts& counts) const override {
    return std::any_of(pairs_.begin(), pairs_.end(), [&](const GeomPair& pair) {
      fcl::CollisionResultd result;
      return within_reach(model_, at, pair, 0.0) && counts(pair.first, pair.second) && touch(at, pair, {}, result);
    });
  }

  std::optional<Touching> deepest(mjData& at, const Counts& counts) const override {
    std::optional<Touching> deepest;
    const fcl::CollisionRequestd asked(kMostContacts, true);
    for (const GeomPair& pair : pairs_) {
      fcl::CollisionResultd result;
      if (!within_reach(model_, at, pair, 0.0) || !counts(pair.first, pair.second) || !touch(at, pair, asked, result)) continue;
      for (std::size_t each = 0; each < result.numContacts(); ++each) {
        const fcl::Contactd& contact = result.getContact(each);
        if (deepest && -contact.penetration_depth >= deepest->distance) continue;
        deepest = Touching{pair.first, pair.second, -contact.penetration_depth, contact.pos};
      }
    }
    return deepest;
  }

  std::optional<Touching> nearest(mjData& at, const Counts& counts, double most) const override {
    return nearest_of(model_, at, pairs_, counts, most, [&](int first, int second, double least) {
      // Pairs farther apart than this are not examined further.
      fcl::DistanceResultd result(least);
      fcl::distance(shapes_[first].get(), pose_of(at, first), shapes_[second].get(), pose_of(at, second),
                    fcl::DistanceRequestd(true), result);
      return Touching{first, second, result.min_distance, (result.nearest_points[0] + result.nearest_points[1]) / 2.0};
    });
  }

 private:
  bool touch(const mjData& at, const GeomPair& pair, const fcl::CollisionRequestd& asked, fcl::CollisionResultd& result) const {
    const auto& [first, second] = pair;
    return fcl::collide(shapes_[first].get(), pose_of(at, first), shapes_[second].get(), pose_of(at, second), asked,
                        result) > 0;
  }

  const mjModel& model_;
  const std::span<const GeomPair> pairs_;
  std::vector<Geometry> shapes_;  // by geom
};

}  // namespace

std::unique_ptr<const CollisionChecker> fcl_checker(const mjModel& model, std::span<const GeomPair> pairs) {
  return std::make_unique<FclChecker>(model, pairs);
}

}  // namespace perflab::manipulation::planning
