#include "manipulation/physics/world.h"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "manipulation/robot/description.h"

namespace perflab::manipulation {
namespace {

// Velocity error (rad/s) at which a drive gives its full torque; it makes the drive respond within about a
// time step.
constexpr double kFullTorqueAt = 0.1;
// The fingers weigh a few grams: without the reflected inertia of their drive (kg) no time step would be
// short enough.
constexpr double kFingerInertia = 0.1;
constexpr double kFingerStiffness = 1000.0;  // N/m

// Up to this distance from where it was grasped, an object may touch what it stood on, m.
constexpr double kLifted = 0.01;

const char* const kWeld = " grasp";  // appended to the object's name

void check(const char* error, const std::string& joint) {
  if (error != nullptr && *error != '\0') throw BadInput("drive of " + joint + ": " + one_line(error));
}

mjsJoint& joint_of(mjSpec& spec, const std::string& name) {
  mjsElement* const element = mjs_findElement(&spec, mjOBJ_JOINT, name.c_str());
  if (element == nullptr) throw BadInput("the robot has no joint " + quote(name));
  return *mjs_asJoint(element);
}

mjsActuator& add_actuator(mjSpec& spec, const std::string& joint) {
  mjsActuator* const actuator = mjs_addActuator(&spec, nullptr);
  mjs_setName(actuator->element, joint.c_str());
  actuator->trntype = mjTRN_JOINT;
  mjs_setString(actuator->target, joint.c_str());
  return *actuator;
}

void add_drives(mjSpec& spec, const RobotDescription& robot, World::Drive drive) {
  for (const std::string& name : robot.joints) {
    mjsActuator& actuator = add_actuator(spec, name);
    joint_of(spec, name).armature = robot.armature;
    const double most = joint_of(spec, name).actfrcrange[1];
    if (most <= 0.0) throw BadInput("joint " + name + " has no limit of effort");
    check(drive == World::Drive::kVelocity ? mjs_setToVelocity(&actuator, most / kFullTorqueAt)
                                           : mjs_setToMotor(&actuator),
          name);
  }
  for (const std::string& name : robot.hand_joints) {
    joint_of(spec, name).armature = kFingerInertia;
    std::array<double, 1> damping_ratio{1.0};
    check(mjs_setToPosition(&add_actuator(spec, name), kFingerStiffness, nullptr, damping_ratio.data(), nullptr, 0.0),
          name);
  }
}

ModelPointer make_model(const RobotDescription& robot, const Scene& scene, const World::Options& options) {
  const SpecPointer spec = make_spec(robot, scene);
  spec->option.timestep = static_cast<double>(options.timestep_ns) * 1e-9;
  spec->option.integrator = mjINT_IMPLICITFAST;
  add_drives(*spec, robot, options.drive);
  if (options.gravity_compensation) {
    // Gravity is compensated by the drives, as far as their torque suffices.
    for (mjsElement* each = mjs_firstElement(spec.get(), mjOBJ_BODY); each != nullptr;
         each = mjs_nextElement(spec.get(), each)) {
      const bool is_object = std::any_of(scene.objects.begin(), scene.objects.end(), [&](const SceneObject& object) {
        return object.name == mjs_getString(mjs_getName(each));
      });
      if (!is_object) mjs_asBody(each)->gravcomp = 1.0;
    }
    for (const std::string& joint : robot.joints) joint_of(*spec, joint).actgravcomp = 1;
  }
  for (const SceneObject& object : scene.objects) {
    if (!object.movable()) continue;
    mjsEquality* const weld = mjs_addEquality(spec.get(), nullptr);
    mjs_setName(weld->element, (object.name + kWeld).c_str());
    weld->type = mjEQ_WELD;
    weld->objtype = mjOBJ_BODY;
    weld->active = 0;
    mjs_setString(weld->name1, robot.tip.c_str());
    mjs_setString(weld->name2, object.name.c_str());
    weld->data[10] = 1.0;  // torques count like forces
  }
  return compile(*spec, "robot " + robot.name + " with scene " + scene.name);
}

}  // namespace

struct World::Parts {
  RobotDescription robot;
  ModelPointer model;
  DataPointer data;
  std::vector<int> position_of, velocity_of, actuator_of;
  std::vector<int> hand_position_of, hand_velocity_of, hand_actuator_of;
  std::vector<double> hand_open;
  std::vector<char> is_object, is_grasped, is_touch_link;  // by body
  std::vector<Eigen::Vector3d> grasped_at;                 // by body
  std::vector<char> stood_on;  // by body of the held object, and of what it touched when it was grasped
  std::vector<int> welds;  // by body; -1: it cannot be grasped
  int tip = 0;
  std::vector<std::pair<int, int>> allowed;

  [[nodiscard]] int body(const std::string& name) const {
    const int found = mj_name2id(model.get(), mjOBJ_BODY, name.c_str());
    if (found <= 0) throw BadInput("there is no link and no object " + quote(name));
    return found;
  }
  [[nodiscard]] Eigen::Vector3d position(int body) const noexcept { return Eigen::Map<const Eigen::Vector3d>(data->xpos + 3 * body); }
  [[nodiscard]] std::size_t pair(int held, int other) const noexcept {
    return static_cast<std::size_t>(held) * is_object.size() + static_cast<std::size_t>(other);
  }
  // True if a held object still touches what it was taken from.
  [[nodiscard]] bool stands(int held, int other) const noexcept {
    return stood_on[pair(held, other)] != 0 && (position(held) - grasped_at[static_cast<std::size_t>(held)]).norm() < kLifted;
  }
  [[nodiscard]] int weld(const std::string& object) const {
    const int found = welds[static_cast<std::size_t>(body(object))];
    if (found < 0) throw BadInput(quote(object) + " cannot be grasped: it has no mass in its scene");
    return found;
  }
};

World::World(const std::string& robot, const Scene& scene, const Options& options)
    : parts_(std::make_unique<Parts>()), timestep_ns_(options.timestep_ns) {
  Parts& parts = *parts_;
  parts.robot = RobotDescription::load(robot);
  parts.model = make_model(parts.robot, scene, options);
  parts.data.reset(mj_makeData(parts.model.get()));
  if (!parts.data) throw Failed("no memory for the simulation");
  const mjModel& model = *parts.model;
  for (const std::string& name : parts.robot.joints) {
    const int joint = mj_name2id(&model, mjOBJ_JOINT, name.c_str());
    parts.position_of.push_back(model.jnt_qposadr[joint]);
    parts.velocity_of.push_back(model.jnt_dofadr[joint]);
    parts.actuator_of.push_back(mj_name2id(&model, mjOBJ_ACTUATOR, name.c_str()));
  }
  for (const std::string& name : parts.robot.hand_joints) {
    const int joint = mj_name2id(&model, mjOBJ_JOINT, name.c_str());
    parts.hand_position_of.push_back(model.jnt_qposadr[joint]);
    parts.hand_velocity_of.push_back(model.jnt_dofadr[joint]);
    parts.hand_actuator_of.push_back(mj_name2id(&model, mjOBJ_ACTUATOR, name.c_str()));
    parts.hand_open.push_back(model.jnt_range[2 * joint + 1]);
  }
  const auto bodies = static_cast<std::size_t>(model.nbody);
  for (auto* each : {&parts.is_object, &parts.is_grasped, &parts.is_touch_link}) each->resize(bodies);
  parts.welds.assign(bodies, -1);
  parts.grasped_at.assign(bodies, Eigen::Vector3d::Zero());
  parts.stood_on.assign(bodies * bodies, 0);
  parts.tip = parts.body(parts.robot.tip);
  for (const SceneObject& object : scene.objects) {
    const auto body = static_cast<std::size_t>(parts.body(object.name));
    parts.is_object[body] = 1;
    parts.welds[body] = mj_name2id(&model, mjOBJ_EQUALITY, (object.name + kWeld).c_str());
  }
  for (const std::string& link : parts.robot.touch_links) {
    parts.is_touch_link[static_cast<std::size_t>(parts.body(link))] = 1;
  }
  for (auto* each : {&positions_, &velocities_, &efforts_}) each->resize(parts.position_of.size());
}

World::~World() = default;

const std::vector<std::string>& World::joints() const noexcept { return parts_->robot.joints; }

const std::vector<double>& World::stiffness() const noexcept { return parts_->robot.stiffness; }
const std::vector<double>& World::damping() const noexcept { return parts_->robot.damping; }

void World::reset(std::span<const double> positions) {
  Parts& parts = *parts_;
  if (positions.size() != positions_.size()) {
    throw BadInput("the arm has " + std::to_string(positions_.size()) + " joints, not " +
                   std::to_string(positions.size()));
  }
  mjData& data = *parts.data;
  mj_resetData(parts.model.get(), &data);
  for (std::size_t joint = 0; joint < positions.size(); ++joint) data.qpos[parts.position_of[joint]] = positions[joint];
  for (std::size_t joint = 0; joint < parts.hand_open.size(); ++joint) {
    data.qpos[parts.hand_position_of[joint]] = parts.hand_open[joint];
    data.ctrl[parts.hand_actuator_of[joint]] = parts.hand_open[joint];
  }
  // Joints that follow another one take its position.
  const mjModel& model = *parts.model;
  for (int each = 0; each < model.neq; ++each) {
    if (model.eq_type[each] != mjEQ_JOINT || model.eq_obj2id[each] < 0) continue;
    const mjtNum* const factors = model.eq_data + each * mjNEQDATA;
    data.qpos[model.jnt_qposadr[model.eq_obj1id[each]]] =
        factors[0] + factors[1] * data.qpos[model.jnt_qposadr[model.eq_obj2id[each]]];
  }
  std::fill(parts.is_grasped.begin(), parts.is_grasped.end(), 0);
  now_ns_ = 0;
  mj_forward(parts.model.get(), &data);
  read();
}

void World::command(std::span<const double> drive) noexcept {
  for (std::size_t joint = 0; joint < parts_->actuator_of.size(); ++joint) {
    parts_->data->ctrl[parts_->actuator_of[joint]] = drive[joint];
  }
}

void World::command_hand(double opening) noexcept {
  for (const int actuator : parts_->hand_actuator_of) parts_->data->ctrl[actuator] = opening;
}

void World::step() noexcept {
  mj_step(parts_->model.get(), parts_->data.get());
  now_ns_ += timestep_ns_;
  read();
}

void World::read() noexcept {
  const mjData& data = *parts_->data;
  for (std::size_t joint = 0; joint < positions_.size(); ++joint) {
    positions_[joint] = data.qpos[parts_->position_of[joint]];
    velocities_[joint] = data.qvel[parts_->velocity_of[joint]];
    efforts_[joint] = data.qfrc_actuator[parts_->velocity_of[joint]];
  }
}

double World::hand() const noexcept {
  return parts_->hand_position_of.empty() ? 0.0 : parts_->data->qpos[parts_->hand_position_of.front()];
}
double World::hand_velocity() const noexcept {
  return parts_->hand_velocity_of.empty() ? 0.0 : parts_->data->qvel[parts_->hand_velocity_of.front()];
}

Pose World::pose(Link link) const {
  const mjtNum* const at = parts_->data->xpos + 3 * link.id;
  const mjtNum* const turned = parts_->data->xquat + 4 * link.id;
  return pose_of({at[0], at[1], at[2]}, turned[1], turned[2], turned[3], turned[0]);
}

std::span<const double> World::everything() const noexcept {
  return {parts_->data->qpos, static_cast<std::size_t>(parts_->model->nq)};
}

Pose World::object(const std::string& name) const { return pose(Link{parts_->body(name)}); }

bool World::holds(const std::string& object) const noexcept {
  const Parts& parts = *parts_;
  const mjData& data = *parts.data;
  const int body = mj_name2id(parts.model.get(), mjOBJ_BODY, object.c_str());
  int first = -1;
  for (int each = 0; each < data.ncon; ++each) {
    int link = parts.model->geom_bodyid[data.contact[each].geom[0]], other = parts.model->geom_bodyid[data.contact[each].geom[1]];
    if (link == body) std::swap(link, other);
    if (other != body || !parts.is_touch_link[static_cast<std::size_t>(link)]) continue;
    if (first >= 0 && first != link) return true;
    first = link;
  }
  return false;
}

std::optional<World::Touch> World::touch() const noexcept {
  const Parts& parts = *parts_;
  const mjData& data = *parts.data;
  std::optional<Touch> deepest;
  for (int each = 0; each < data.ncon; ++each) {
    const mjContact& contact = data.contact[each];
    if (contact.dist >= 0.0) continue;
    int link = parts.model->geom_bodyid[contact.geom[0]], other = parts.model->geom_bodyid[contact.geom[1]];
    const auto is_object = [&](int body) { return parts.is_object[static_cast<std::size_t>(body)] != 0; };
    const auto is_grasped = [&](int body) { return parts.is_grasped[static_cast<std::size_t>(body)] != 0; };
    if (is_object(link)) std::swap(link, other);
    if (is_object(link)) {  // two objects
      if (!is_grasped(link)) std::swap(link, other);
      if (!is_grasped(link) || parts.stands(link, other)) continue;
    } else if (is_grasped(other) && parts.is_touch_link[static_cast<std::size_t>(link)]) {
      continue;
    }
    const std::pair<int, int> bodies = std::minmax(link, other);
    if (std::find(parts.allowed.begin(), parts.allowed.end(), bodies) != parts.allowed.end()) continue;
    if (deepest && deepest->depth >= -contact.dist) continue;
    deepest = Touch{mj_id2name(parts.model.get(), mjOBJ_BODY, link), mj_id2name(parts.model.get(), mjOBJ_BODY, other),
                    -contact.dist};
  }
  return deepest;
}

void World::allow(const std::string& first, const std::string& second) {
  const int bodies[2] = {parts_->body(first), parts_->body(second)};
  parts_->allowed.emplace_back(std::min(bodies[0], bodies[1]), std::max(bodies[0], bodies[1]));
}

void World::grasp(const std::string& object) {
  Parts& parts = *parts_;
  const int weld = parts.weld(object);
  const Pose relative = pose(Link{parts.tip}).inverse() * this->object(object);
  const Eigen::Quaterniond turned(relative.linear());
  mjtNum* const data = parts.model->eq_data + weld * mjNEQDATA;
  for (int axis = 0; axis < 3; ++axis) data[axis] = 0.0;
  for (int axis = 0; axis < 3; ++axis) data[3 + axis] = relative.translation()[axis];
  data[6] = turned.w();
  data[7] = turned.x();
  data[8] = turned.y();
  data[9] = turned.z();
  parts.data->eq_active[weld] = 1;
  const int body = parts.body(object);
  parts.is_grasped[static_cast<std::size_t>(body)] = 1;
  parts.grasped_at[static_cast<std::size_t>(body)] = parts.position(body);
  std::fill_n(parts.stood_on.begin() + static_cast<std::ptrdiff_t>(parts.pair(body, 0)), parts.is_object.size(), 0);
  for (int each = 0; each < parts.data->ncon; ++each) {
    const int* const geoms = parts.data->contact[each].geom;
    const int first = parts.model->geom_bodyid[geoms[0]], second = parts.model->geom_bodyid[geoms[1]];
    if (first == body) parts.stood_on[parts.pair(body, second)] = 1;
    if (second == body) parts.stood_on[parts.pair(body, first)] = 1;
  }
}

void World::release(const std::string& object) {
  parts_->data->eq_active[parts_->weld(object)] = 0;
  parts_->is_grasped[static_cast<std::size_t>(parts_->body(object))] = 0;
}

World::Energy World::energy() {
  mj_energyPos(parts_->model.get(), parts_->data.get());
  mj_energyVel(parts_->model.get(), parts_->data.get());
  return {parts_->data->energy[0], parts_->data->energy[1]};
}

std::vector<double> World::snapshot() const {
  const auto size = static_cast<std::size_t>(mj_stateSize(parts_->model.get(), mjSTATE_INTEGRATION));
  std::vector<double> state(size);
  mj_getState(parts_->model.get(), parts_->data.get(), state.data(), mjSTATE_INTEGRATION);
  return state;
}

bool World::diverged() const noexcept {
  const mjData& data = *parts_->data;
  return data.warning[mjWARN_BADQPOS].number + data.warning[mjWARN_BADQVEL].number +
             data.warning[mjWARN_BADQACC].number + data.warning[mjWARN_BADCTRL].number >
         0;
}

}  // namespace perflab::manipulation
