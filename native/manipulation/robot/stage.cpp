#include "manipulation/robot/stage.h"

#include <mujoco/mujoco.h>

#include <cmath>

#include "manipulation/robot/parts.h"

namespace perflab::manipulation {
namespace {

using nlohmann::json;

// Omits digits that no picture shows.
json lengths(const mjtNum* numbers, std::size_t count = 3) {
  json all = json::array();
  for (std::size_t i = 0; i < count; ++i) all.push_back(std::round(numbers[i] * 1e6) / 1e6);
  return all;
}

// MuJoCo's w, x, y, z as ROS's x, y, z, w.
json orientation(const mjtNum* turned) { return {turned[1], turned[2], turned[3], turned[0]}; }

json mesh(const mjModel& model, int id) {
  const auto at = static_cast<std::size_t>(id);
  const auto points = static_cast<std::size_t>(model.mesh_vertnum[at]);
  const auto faces = static_cast<std::size_t>(model.mesh_facenum[at]);
  json all = json::array();
  const float* const first = model.mesh_vert + 3 * static_cast<std::size_t>(model.mesh_vertadr[at]);
  for (std::size_t i = 0; i < 3 * points; ++i) all.push_back(std::round(static_cast<double>(first[i]) * 1e4) / 1e4);
  const int* const corners = model.mesh_face + 3 * static_cast<std::size_t>(model.mesh_faceadr[at]);
  return {{"points", std::move(all)}, {"faces", std::vector<int>(corners, corners + 3 * faces)}};
}

// Null for a shape that films do not draw.
json shape(const mjModel& model, int geom) {
  const auto at = static_cast<std::size_t>(geom);
  const mjtNum* const size = model.geom_size + 3 * at;
  json found = {{"position", lengths(model.geom_pos + 3 * at)}, {"orientation", orientation(model.geom_quat + 4 * at)}};
  switch (model.geom_type[at]) {
    case mjGEOM_MESH:
      found["mesh"] = mesh(model, model.geom_dataid[at]);
      return found;
    case mjGEOM_BOX:
      found["box"] = {2.0 * size[0], 2.0 * size[1], 2.0 * size[2]};
      return found;
    case mjGEOM_CYLINDER:
      found["cylinder"] = {{"radius", size[0]}, {"height", 2.0 * size[1]}};
      return found;
    case mjGEOM_SPHERE:
      found["sphere"] = size[0];
      return found;
    default:
      return nullptr;
  }
}

json joint(const mjModel& model, int id, std::vector<std::string>& columns) {
  const auto at = static_cast<std::size_t>(id);
  const std::string name = mj_id2name(&model, mjOBJ_JOINT, id);
  if (model.jnt_type[at] == mjJNT_FREE) {
    for (const char* const each : {"x", "y", "z", "qw", "qx", "qy", "qz"}) columns.push_back(name + "." + each);
    return {{"name", name}, {"kind", "free"}};
  }
  columns.push_back(name);
  return {{"name", name},
          {"kind", model.jnt_type[at] == mjJNT_SLIDE ? "slide" : "turn"},
          {"axis", lengths(model.jnt_axis + 3 * at)},
          {"position", lengths(model.jnt_pos + 3 * at)}};
}

}  // namespace

Stage stage_of(const Model& model) {
  const mjModel& mujoco = model.mujoco();
  Stage stage;
  json bodies = json::array();
  for (int body = 1; body < mujoco.nbody; ++body) {
    const auto at = static_cast<std::size_t>(body);
    json shapes = json::array();
    for (int each = 0; each < mujoco.body_geomnum[at]; ++each) {
      if (json found = shape(mujoco, mujoco.body_geomadr[at] + each); !found.is_null()) shapes.push_back(std::move(found));
    }
    json made = {{"name", mj_id2name(&mujoco, mjOBJ_BODY, body)},
                 {"kind", model.parts().kinds[at] == Model::Parts::Kind::kLink ? "robot" : "object"},
                 {"position", lengths(mujoco.body_pos + 3 * at)},
                 {"orientation", orientation(mujoco.body_quat + 4 * at)},
                 {"shapes", std::move(shapes)}};
    if (mujoco.body_parentid[at] > 0) made["parent"] = mj_id2name(&mujoco, mjOBJ_BODY, mujoco.body_parentid[at]);
    if (mujoco.body_jntnum[at] > 0) made["joint"] = joint(mujoco, mujoco.body_jntadr[at], stage.columns);
    bodies.push_back(std::move(made));
  }
  stage.scene = {{"bodies", std::move(bodies)}, {"tip", model.name_of(model.tip())}};
  return stage;
}

}  // namespace perflab::manipulation
