#include "manipulation/robot/robot.h"

#include <mujoco/mujoco.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/text.h"
#include "manipulation/robot/parts.h"

namespace perflab::manipulation {
namespace {

using Parts = Model::Parts;

std::string list_of_names(const std::vector<std::string>& names) {
  return list_of(std::vector<std::string_view>(names.begin(), names.end()));
}

int joint_of(const mjModel& model, const std::string& name, const RobotDescription& robot) {
  const int joint = mj_name2id(&model, mjOBJ_JOINT, name.c_str());
  if (joint < 0) throw BadInput(robot.urdf_file.string() + ": there is no joint " + quote(name));
  return joint;
}

Link link_of(const Parts& parts, std::string_view name) {
  const auto found = std::find(parts.links.begin() + 1, parts.links.end(), name);
  if (found == parts.links.end()) {
    throw BadInput("the robot " + parts.robot.name + " has no link " + quote(std::string(name)) + "; it has " +
                   list_of_names({parts.links.begin() + 1, parts.links.end()}));
  }
  return Link{static_cast<int>(found - parts.links.begin())};
}

void read_joints(Parts& parts) {
  const mjModel& model = *parts.model;
  for (const std::string& name : parts.robot.joints) {
    const int joint = joint_of(model, name, parts.robot);
    const auto at = static_cast<std::size_t>(joint);
    if (!model.jnt_limited[at] || model.jnt_type[at] != mjJNT_HINGE) {
      throw BadInput(parts.robot.urdf_file.string() + ": joint " + name + " must be revolute and have limits");
    }
    parts.position_of.push_back(model.jnt_qposadr[at]);
    parts.velocity_of.push_back(model.jnt_dofadr[at]);
    parts.limits.push_back({model.jnt_range[2 * at], model.jnt_range[2 * at + 1], parts.robot.velocity.at(name),
                            parts.robot.acceleration.at(name), model.jnt_actfrcrange[2 * at + 1]});
  }
}

// The driven joint and those that follow it (URDF's mimic).
void read_hand(Parts& parts) {
  if (parts.robot.hand_joints.empty()) return;
  const mjModel& model = *parts.model;
  if (parts.robot.hand_joints.size() != 1) {
    throw BadInput(parts.robot.name + ": the hand must have one joint that is driven");
  }
  const int driven = joint_of(model, parts.robot.hand_joints.front(), parts.robot);
  const auto at = static_cast<std::size_t>(driven);
  parts.closed = model.jnt_range[2 * at];
  parts.open = model.jnt_range[2 * at + 1];
  parts.fingers.push_back({model.jnt_qposadr[at], 0.0, 1.0});
  for (int each = 0; each < model.neq; ++each) {
    const auto eq = static_cast<std::size_t>(each);
    if (model.eq_type[eq] != mjEQ_JOINT || model.eq_obj2id[eq] != driven) continue;
    const mjtNum* const data = model.eq_data + eq * mjNEQDATA;
    parts.fingers.push_back({model.jnt_qposadr[model.eq_obj1id[eq]], data[0], data[1]});
  }
}

void read_bodies(Parts& parts, int links) {
  const mjModel& model = *parts.model;
  for (int body = 0; body < model.nbody; ++body) {
    const auto at = static_cast<std::size_t>(body);
    const std::string name = body == 0 ? "" : mj_id2name(&model, mjOBJ_BODY, body);
    const bool movable = body >= links && model.body_jntnum[at] > 0;
    parts.kinds.push_back(body < links ? Parts::Kind::kLink : movable ? Parts::Kind::kMovable : Parts::Kind::kFixed);
    parts.free_joint.push_back(movable ? model.jnt_qposadr[model.body_jntadr[at]] : -1);
    const auto& touch = parts.robot.touch_links;
    parts.touches.push_back(std::find(touch.begin(), touch.end(), name) != touch.end());
    if (body >= links) continue;
    parts.links.push_back(name);
    if (model.body_parentid[at] != 0) {
      parts.frames.push_back({parts.links[static_cast<std::size_t>(model.body_parentid[at])], name,
                              model.body_jntnum[at] == 0});
    }
  }
}

// The pairs checked by MuJoCo's rules: not two geoms of one rigid part, not a part and its parent, no
// excepted pair.
void read_pairs(Parts& parts) {
  const mjModel& model = *parts.model;
  const auto excepted = [&](int first, int second) {
    for (int each = 0; each < model.nexclude; ++each) {
      if (model.exclude_signature[each] == ((first < second ? first : second) << 16) + std::max(first, second)) {
        return true;
      }
    }
    return false;
  };
  for (int first = 0; first < model.ngeom; ++first) {
    for (int second = first + 1; second < model.ngeom; ++second) {
      const int bodies[2] = {model.geom_bodyid[first], model.geom_bodyid[second]};
      const int parts_of[2] = {model.body_weldid[bodies[0]], model.body_weldid[bodies[1]]};
      if (parts_of[0] == parts_of[1] || excepted(bodies[0], bodies[1])) continue;
      const int parents[2] = {model.body_weldid[model.body_parentid[parts_of[0]]],
                              model.body_weldid[model.body_parentid[parts_of[1]]]};
      if (parts_of[0] != 0 && parts_of[1] != 0 && (parents[0] == parts_of[1] || parents[1] == parts_of[0])) continue;
      parts.pairs.emplace_back(first, second);
    }
  }
}

Pose pose_from(const mjtNum* position, const mjtNum* orientation) {
  return pose_of(Eigen::Vector3d(position[0], position[1], position[2]), orientation[1], orientation[2],
                 orientation[3], orientation[0]);
}

}  // namespace

Model::Model(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
Model::~Model() = default;

std::shared_ptr<const Model> Model::load(const std::string& robot, const std::string& scene,
                                         const MakeChecker& checker) {
  return load(robot, Scene::load(scene), checker);
}

std::shared_ptr<const Model> Model::load(const std::string& robot, Scene scene, const MakeChecker& checker) {
  auto parts = std::make_unique<Parts>();
  parts->robot = RobotDescription::load(robot);
  parts->scene = std::move(scene);
  const std::string what = "robot " + parts->robot.name + " with scene " + parts->scene.name;
  const SpecPointer spec = make_spec(parts->robot, parts->scene);
  parts->model = compile(*spec, what);
  read_joints(*parts);
  read_hand(*parts);
  read_bodies(*parts, static_cast<int>(parts->model->nbody) - static_cast<int>(parts->scene.objects.size()));
  read_pairs(*parts);
  parts->base = link_of(*parts, parts->robot.base);
  parts->flange = link_of(*parts, parts->robot.flange);
  parts->tip = link_of(*parts, parts->robot.tip);
  for (const std::string& each : parts->robot.touch_links) static_cast<void>(link_of(*parts, each));
  parts->checker = checker(*parts->model, parts->pairs);
  return std::shared_ptr<const Model>(new Model(std::move(parts)));
}

const std::string& Model::name() const noexcept { return parts_->robot.name; }
const Scene& Model::scene() const noexcept { return parts_->scene; }
const std::vector<std::string>& Model::joints() const noexcept { return parts_->robot.joints; }
std::span<const JointLimits> Model::limits() const noexcept { return parts_->limits; }
const std::string& Model::group() const noexcept { return parts_->robot.group; }
const std::string& Model::hand_group() const noexcept { return parts_->robot.hand_group; }
const std::vector<std::string>& Model::touch_links() const noexcept { return parts_->robot.touch_links; }
double Model::hand_open() const noexcept { return parts_->open; }
double Model::hand_closed() const noexcept { return parts_->closed; }
Link Model::base() const noexcept { return parts_->base; }
Link Model::flange() const noexcept { return parts_->flange; }
Link Model::tip() const noexcept { return parts_->tip; }
const std::string& Model::urdf() const noexcept { return parts_->robot.urdf; }
const std::string& Model::srdf() const noexcept { return parts_->robot.srdf; }
const std::vector<Model::Frame>& Model::frames() const noexcept { return parts_->frames; }
const mjModel_& Model::mujoco() const noexcept { return *parts_->model; }
Link Model::link(std::string_view name) const { return link_of(*parts_, name); }
const std::vector<std::string>& Model::links() const noexcept { return parts_->links; }

const std::string& Model::name_of(Link link) const { return parts_->links.at(static_cast<std::size_t>(link.id)); }

const std::string& Model::hand_joint() const noexcept {
  static const std::string none;
  return parts_->robot.hand_joints.empty() ? none : parts_->robot.hand_joints.front();
}

const Positions& Model::named_state(std::string_view name) const {
  const auto found = parts_->robot.states.find(std::string(name));
  if (found != parts_->robot.states.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [each, positions] : parts_->robot.states) known.push_back(each);
  throw BadInput("the robot " + parts_->robot.name + " has no state " + quote(std::string(name)) + "; it has " +
                 list_of_names(known));
}

State::State(std::shared_ptr<const Model> model) : model_(std::move(model)), data_(mj_makeData(&model_->mujoco())) {
  if (data_ == nullptr) throw Failed("no memory for a state of the robot");
  const Parts& parts = model_->parts();
  const auto ready = parts.robot.states.find("ready");
  if (ready != parts.robot.states.end()) {
    positions_ = ready->second;
  } else {
    for (const JointLimits& each : parts.limits) positions_.push_back((each.lower + each.upper) / 2.0);
  }
  hand_ = parts.open;
}

State::State(const State& other)
    : model_(other.model_),
      data_(mj_copyData(nullptr, &other.model_->mujoco(), other.data_)),
      positions_(other.positions_),
      hand_(other.hand_),
      attached_(other.attached_),
      allowed_(other.allowed_) {
  if (data_ == nullptr) throw Failed("no memory for a state of the robot");
}

State::State(State&& other) noexcept
    : model_(std::move(other.model_)),
      data_(std::exchange(other.data_, nullptr)),
      positions_(std::move(other.positions_)),
      hand_(other.hand_),
      attached_(std::move(other.attached_)),
      allowed_(std::move(other.allowed_)) {}

State& State::operator=(State&& other) noexcept {
  std::swap(model_, other.model_);
  std::swap(data_, other.data_);
  positions_.swap(other.positions_);
  std::swap(hand_, other.hand_);
  attached_.swap(other.attached_);
  allowed_.swap(other.allowed_);
  current_ = false;
  return *this;
}

State::~State() { mj_deleteData(data_); }

void State::set(std::span<const double> positions) {
  if (positions.size() != positions_.size()) {
    throw BadInput("the arm has " + std::to_string(positions_.size()) + " joints, not " +
                   std::to_string(positions.size()));
  }
  std::copy(positions.begin(), positions.end(), positions_.begin());
  current_ = false;
}

void State::set_hand(double opening) {
  hand_ = opening;
  current_ = false;
}

void State::update() {
  if (current_) return;
  const Parts& parts = model_->parts();
  for (std::size_t each = 0; each < positions_.size(); ++each) data_->qpos[parts.position_of[each]] = positions_[each];
  for (const Parts::Finger& finger : parts.fingers) {
    data_->qpos[finger.position] = finger.offset + finger.factor * hand_;
  }
  mj_kinematics(parts.model.get(), data_);
  current_ = true;
  if (attached_.empty()) return;
  for (const Attached& each : attached_) {
    const Pose at = pose(each.link) * each.grasp;
    const Eigen::Quaterniond turned(at.linear());
    mjtNum* const joint = data_->qpos + parts.free_joint[static_cast<std::size_t>(each.object)];
    for (int axis = 0; axis < 3; ++axis) joint[axis] = at.translation()[axis];
    joint[3] = turned.w();
    joint[4] = turned.x();
    joint[5] = turned.y();
    joint[6] = turned.z();
  }
  mj_kinematics(parts.model.get(), data_);
}

Pose State::pose(Link link) {
  update();
  return pose_from(data_->xpos + 3 * link.id, data_->xquat + 4 * link.id);
}

Jacobian State::jacobian(Link link) {
  update();
  const Parts& parts = model_->parts();
  mj_comPos(parts.model.get(), data_);
  Eigen::Matrix<double, 6, Eigen::Dynamic, Eigen::RowMajor> all(6, parts.model->nv);
  mj_jac(parts.model.get(), data_, all.data(), all.data() + 3 * parts.model->nv, data_->xpos + 3 * link.id, link.id);
  Jacobian arm(6, static_cast<Eigen::Index>(positions_.size()));
  for (std::size_t each = 0; each < positions_.size(); ++each) {
    arm.col(static_cast<Eigen::Index>(each)) = all.col(parts.velocity_of[each]);
  }
  return arm;
}

bool State::counts(int first_geom, int second_geom) const noexcept {
  const Parts& parts = model_->parts();
  int first = parts.model->geom_bodyid[first_geom], second = parts.model->geom_bodyid[second_geom];
  if (first > second) std::swap(first, second);  // links come before objects
  if (std::find(allowed_.begin(), allowed_.end(), std::pair(first, second)) != allowed_.end()) return false;
  const Parts::Kind kind = parts.kinds[static_cast<std::size_t>(second)];
  if (kind == Parts::Kind::kLink) return true;
  const auto held = [&](int body) {
    return std::any_of(attached_.begin(), attached_.end(), [&](const Attached& each) { return each.object == body; });
  };
  if (parts.kinds[static_cast<std::size_t>(first)] == Parts::Kind::kLink) {
    return !(held(second) && parts.touches[static_cast<std::size_t>(first)]);
  }
  return held(first) != held(second);
}

CollisionChecker::Counts State::counting() const {
  return [this](int first_geom, int second_geom) { return counts(first_geom, second_geom); };
}

std::optional<Contact> State::named(const std::optional<Touching>& touching) const {
  if (!touching) return std::nullopt;
  const mjModel& model = model_->mujoco();
  const auto name = [&](int geom) { return std::string(mj_id2name(&model, mjOBJ_BODY, model.geom_bodyid[geom])); };
  return Contact{name(touching->first), name(touching->second), touching->distance, touching->point};
}

bool State::collides() {
  update();
  return model_->parts().checker->collides(*data_, counting());
}

std::optional<Contact> State::contact() {
  update();
  return named(model_->parts().checker->deepest(*data_, counting()));
}

std::optional<Contact> State::nearest(double most) {
  update();
  return named(model_->parts().checker->nearest(*data_, counting(), most));
}

int State::body(const std::string& name) const {
  const int found = mj_name2id(&model_->mujoco(), mjOBJ_BODY, name.c_str());
  if (found <= 0) throw BadInput("there is no link and no object " + quote(name));
  return found;
}

int State::movable(const std::string& object) const {
  const int found = body(object);
  if (model_->parts().free_joint[static_cast<std::size_t>(found)] < 0) {
    throw BadInput(quote(object) + " is not a movable object: it has no mass in its scene");
  }
  return found;
}

void State::pair(const std::string& first, const std::string& second, bool allowed) {
  std::pair<int, int> bodies(body(first), body(second));
  if (bodies.first > bodies.second) std::swap(bodies.first, bodies.second);
  std::erase(allowed_, bodies);
  if (allowed) allowed_.push_back(bodies);
}

void State::allow(const std::string& first, const std::string& second) { pair(first, second, true); }
void State::forbid(const std::string& first, const std::string& second) { pair(first, second, false); }

void State::place(const std::string& object, const Pose& pose) {
  const int found = movable(object);
  std::erase_if(attached_, [&](const Attached& each) { return each.object == found; });
  const Eigen::Quaterniond turned(pose.linear());
  mjtNum* const joint = data_->qpos + model_->parts().free_joint[static_cast<std::size_t>(found)];
  for (int axis = 0; axis < 3; ++axis) joint[axis] = pose.translation()[axis];
  joint[3] = turned.w();
  joint[4] = turned.x();
  joint[5] = turned.y();
  joint[6] = turned.z();
  current_ = false;
}

Pose State::object(const std::string& object) {
  const int found = body(object);
  update();
  return pose_from(data_->xpos + 3 * found, data_->xquat + 4 * found);
}

void State::attach(const std::string& object, Link link) {
  attach(object, link, pose(link).inverse() * this->object(object));
}

void State::attach(const std::string& object, Link link, const Pose& grasp) {
  const int found = movable(object);
  std::erase_if(attached_, [&](const Attached& each) { return each.object == found; });
  attached_.push_back({found, link, grasp});
  current_ = false;
}

void State::detach(const std::string& object) {
  const int found = movable(object);
  update();
  std::erase_if(attached_, [&](const Attached& each) { return each.object == found; });
}

std::vector<std::string> State::attached() const {
  std::vector<std::string> names;
  for (const Attached& each : attached_) names.emplace_back(mj_id2name(&model_->mujoco(), mjOBJ_BODY, each.object));
  return names;
}

Positions random_positions(const Model& model, SplitMix64& random) {
  Positions positions;
  for (const JointLimits& each : model.limits()) {
    positions.push_back(each.lower + (each.upper - each.lower) * random.uniform());
  }
  return positions;
}

bool within_limits(const Model& model, std::span<const double> positions, double margin) {
  const std::span<const JointLimits> limits = model.limits();
  if (positions.size() != limits.size()) return false;
  for (std::size_t each = 0; each < limits.size(); ++each) {
    if (!(positions[each] >= limits[each].lower - margin && positions[each] <= limits[each].upper + margin)) return false;
  }
  return true;
}

}  // namespace perflab::manipulation
