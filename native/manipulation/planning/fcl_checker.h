// Collision checking by FCL with MoveIt's shapes: a mesh is its triangles, in a tree of oriented boxes
// (BVHModel<OBBRSS>); boxes and cylinders are primitives. The pairs to check come from MuJoCo's rules and a
// test of bounding spheres, where MoveIt has a tree of boxes over all shapes.
//
// A mesh has a surface and no inside: an object entirely inside another does not touch it, as in MoveIt.
#pragma once

#include "manipulation/robot/collision.h"

namespace perflab::manipulation::planning {

// Throws Unsupported for shapes that neither robots nor scenes use.
[[nodiscard]] std::unique_ptr<const CollisionChecker> fcl_checker(const mjModel_& model, std::span<const GeomPair> pairs);

}  // namespace perflab::manipulation::planning
