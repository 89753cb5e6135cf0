// Collisions by FCL, with MoveIt's shapes: a mesh is its triangles, in a tree of oriented boxes (BVHModel<OBBRSS>), a box or
// cylinder is one. Which pairs are looked at is MuJoCo's rule and a test of bounding spheres, where MoveIt has a tree of
// boxes over all shapes.
//
// A mesh has a surface and no inside: what is wholly within another touches nothing, as in MoveIt.
#pragma once

#include "manipulation/robot/collision.h"

namespace perflab::manipulation::planning {

// Throws Unsupported for a shape that neither robots nor scenes have.
[[nodiscard]] std::unique_ptr<const CollisionChecker> fcl_checker(const mjModel_& model, std::span<const GeomPair> pairs);

}  // namespace perflab::manipulation::planning
