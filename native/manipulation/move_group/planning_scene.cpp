#include "manipulation/move_group/planning_scene.h"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "manipulation/move_group/requests.h"

namespace perflab::manipulation {
namespace {

namespace msg = messages::moveit_msgs::msg;
using messages::shape_msgs::msg::SolidPrimitive;

// Objects added by a message are only moved by messages, unless they can be attached: planning does not use
// masses.
constexpr double kSomeMass = 0.1;

Pose pose_of(const messages::geometry_msgs::msg::Pose& pose) {
  return manipulation::pose_of(Eigen::Vector3d(pose.position.x, pose.position.y, pose.position.z), pose.orientation.x,
                               pose.orientation.y, pose.orientation.z, pose.orientation.w);
}

messages::geometry_msgs::msg::Pose message_of(const Pose& pose) {
  messages::geometry_msgs::msg::Pose message;
  message.position.x = pose.translation().x();
  message.position.y = pose.translation().y();
  message.position.z = pose.translation().z();
  const Eigen::Quaterniond turn(pose.linear());
  message.orientation.x = turn.x();
  message.orientation.y = turn.y();
  message.orientation.z = turn.z();
  message.orientation.w = turn.w();
  return message;
}

SceneObject object_of(const msg::CollisionObject& message, bool movable) {
  if (message.primitives.size() != 1 || !message.meshes.empty() || !message.planes.empty()) {
    throw BadInput("the object " + quote(message.id.view()) + " is not one box or cylinder");
  }
  SceneObject object;
  object.name = message.id.string();
  object.mass = movable ? kSomeMass : 0.0;
  const SolidPrimitive& shape = message.primitives.front();
  const auto size = [&](std::size_t count) {
    if (shape.dimensions.size() != count) throw BadInput("the object " + quote(message.id.view()) + " has no size");
  };
  if (shape.type == SolidPrimitive::BOX) {
    size(3);
    object.shape = SceneObject::Shape::kBox;
    object.size = {shape.dimensions[SolidPrimitive::BOX_X], shape.dimensions[SolidPrimitive::BOX_Y],
                   shape.dimensions[SolidPrimitive::BOX_Z]};
  } else if (shape.type == SolidPrimitive::CYLINDER) {
    size(2);
    object.shape = SceneObject::Shape::kCylinder;
    object.size = {shape.dimensions[SolidPrimitive::CYLINDER_RADIUS], shape.dimensions[SolidPrimitive::CYLINDER_HEIGHT], 0.0};
  } else {
    throw BadInput("the object " + quote(message.id.view()) + " is neither a box nor a cylinder");
  }
  object.pose = pose_of(message.pose);
  if (!message.primitive_poses.empty()) object.pose = object.pose * pose_of(message.primitive_poses.front());
  return object;
}

msg::CollisionObject message_of(const SceneObject& object, const Pose& pose, const std::string& frame) {
  msg::CollisionObject message;
  message.header.frame_id = frame;
  message.id = object.name;
  message.pose = message_of(pose);
  SolidPrimitive& shape = message.primitives.emplace_back();
  if (object.shape == SceneObject::Shape::kBox) {
    shape.type = SolidPrimitive::BOX;
    shape.dimensions = {object.size.x(), object.size.y(), object.size.z()};
  } else {
    shape.type = SolidPrimitive::CYLINDER;
    shape.dimensions = {object.size.y(), object.size.x()};
  }
  message.primitive_poses.emplace_back().orientation.w = 1.0;
  message.operation = msg::CollisionObject::ADD;
  return message;
}

auto find(Scene& scene, std::string_view name) {
  return std::find_if(scene.objects.begin(), scene.objects.end(),
                      [name](const SceneObject& object) { return object.name == name; });
}

bool same(const SceneObject& one, const SceneObject& other) {
  return one.shape == other.shape && one.size.isApprox(other.size) && one.movable() == other.movable();
}

bool empty(const msg::RobotState& state) {
  return state.is_diff && state.joint_state.name.empty() && state.multi_dof_joint_state.joint_names.empty() &&
         state.attached_collision_objects.empty();
}

}  // namespace

PlanningScene::PlanningScene(std::string robot, Scene scene, MakeChecker checker)
    : robot_(std::move(robot)), checker_(std::move(checker)) {
  parts_.scene = std::move(scene);
  rebuild(parts_);
}

PlanningScene::PlanningScene(const PlanningScene& other) : robot_(other.robot_), checker_(other.checker_) {
  const std::scoped_lock lock(other.mutex_);
  parts_ = other.copy();
  version_ = other.version_;
}

PlanningScene::Parts PlanningScene::copy() const {
  return {parts_.scene, parts_.model, std::make_unique<State>(*parts_.state), parts_.attached, parts_.may_touch};
}

// A model with the objects of the scene, in the previous state.
void PlanningScene::rebuild(Parts& parts) const {
  parts.model = Model::load(robot_, parts.scene, checker_);
  auto state = std::make_unique<State>(parts.model);
  if (parts.state) {
    state->set(parts.state->positions());
    state->set_hand(parts.state->hand());
    for (const SceneObject& object : parts.scene.objects) {
      if (!object.movable()) continue;
      const auto& before = parts.state->model().scene().objects;
      const bool was = std::any_of(before.begin(), before.end(), [&](const SceneObject& each) {
        return each.name == object.name && each.movable();
      });
      if (was) state->place(object.name, parts.state->object(object.name));
    }
  }
  const auto exists = [&](const std::string& name) {
    return find(parts.scene, name) != parts.scene.objects.end() ||
           std::find(parts.model->links().begin(), parts.model->links().end(), name) != parts.model->links().end();
  };
  std::erase_if(parts.attached, [&](const auto& each) { return !exists(each.first); });
  std::erase_if(parts.may_touch, [&](const auto& each) { return !exists(each.first) || !exists(each.second); });
  for (const auto& [object, held] : parts.attached) {
    state->attach(object, parts.model->link(held.link));
    for (const std::string& link : held.touch_links) state->allow(object, link);
  }
  for (const auto& [first, second] : parts.may_touch) state->allow(first, second);
  parts.state = std::move(state);
}

std::shared_ptr<const Model> PlanningScene::model() const {
  const std::scoped_lock lock(mutex_);
  return parts_.model;
}

// The object stays where it is.
void PlanningScene::release(Parts& parts, const std::string& object) {
  parts.state->detach(object);
  const auto held = parts.attached.find(object);
  if (held == parts.attached.end()) return;
  const auto touching = [&](const std::string& link) {
    return parts.may_touch.contains({object, link}) || parts.may_touch.contains({link, object});
  };
  for (const std::string& link : held->second.touch_links) {
    if (!touching(link)) parts.state->forbid(object, link);
  }
  parts.attached.erase(held);
}

State PlanningScene::snapshot() const {
  const std::scoped_lock lock(mutex_);
  return State(*parts_.state);
}

std::uint64_t PlanningScene::version() const {
  const std::scoped_lock lock(mutex_);
  return version_;
}

void PlanningScene::move_robot(const Positions& positions, double hand) {
  const std::scoped_lock lock(mutex_);
  parts_.state->set(positions);
  parts_.state->set_hand(hand);
}

void PlanningScene::apply(const msg::PlanningScene& message) {
  const std::scoped_lock lock(mutex_);
  Parts parts = copy();

  // Sets the objects; rebuilds the model if they differ.
  bool other = false;
  std::set<std::string, std::less<>> named;
  const auto add = [&](const msg::CollisionObject& object, bool movable) {
    const SceneObject wanted = object_of(object, movable);
    const auto there = find(parts.scene, wanted.name);
    if (there == parts.scene.objects.end()) {
      parts.scene.objects.push_back(wanted);
      other = true;
    } else if (!same(*there, wanted) || !there->movable()) {
      *there = wanted;
      other = true;
    }
  };
  for (const msg::CollisionObject& object : message.world.collision_objects) {
    named.insert(object.id.string());
    if (object.operation == msg::CollisionObject::ADD) {
      add(object, false);
    } else if (object.operation == msg::CollisionObject::REMOVE) {
      const auto there = find(parts.scene, object.id.view());
      if (there == parts.scene.objects.end()) throw BadInput("the scene has no object " + quote(object.id.view()));
      parts.scene.objects.erase(there);
      other = true;
    } else if (object.operation != msg::CollisionObject::MOVE) {
      throw BadInput("the object " + quote(object.id.view()) + " has an unknown operation");
    }
  }
  for (const msg::AttachedCollisionObject& attached : message.robot_state.attached_collision_objects) {
    if (attached.object.operation == msg::CollisionObject::ADD && !attached.object.primitives.empty()) {
      add(attached.object, true);
    }
  }
  if (!message.is_diff && !message.world.collision_objects.empty()) {
    other = std::erase_if(parts.scene.objects, [&](const SceneObject& object) {
              return named.find(object.name) == named.end() && parts.attached.find(object.name) == parts.attached.end();
            }) > 0 || other;
  }
  if (other) rebuild(parts);

  for (const msg::CollisionObject& object : message.world.collision_objects) {
    if (object.operation == msg::CollisionObject::MOVE) parts.state->place(object.id.string(), pose_of(object.pose));
  }
  if (!message.robot_state.is_diff && !message.is_diff) {
    while (!parts.attached.empty()) release(parts, parts.attached.begin()->first);
  }
  for (const msg::AttachedCollisionObject& attached : message.robot_state.attached_collision_objects) {
    const std::string name = attached.object.id.string();
    if (attached.object.operation == msg::CollisionObject::REMOVE) {
      release(parts, name);
      continue;
    }
    const Link link = parts.model->link(attached.link_name.view());
    if (attached.object.primitives.empty()) {
      parts.state->attach(name, link);  // where it is held now
    } else {
      const auto& frame = attached.object.header.frame_id;
      const bool in_link = frame.view() == attached.link_name.view();
      const Pose pose = object_of(attached.object, true).pose;
      parts.state->attach(name, link, in_link ? pose : parts.state->pose(link).inverse() * pose);
    }
    Held& held = parts.attached[name];
    held = {attached.link_name.string(), {}};
    for (const auto& touch : attached.touch_links) {
      parts.state->allow(name, touch.string());
      held.touch_links.push_back(touch.string());
    }
  }
  const auto& matrix = message.allowed_collision_matrix;
  if (!matrix.entry_names.empty()) {
    for (const auto& [first, second] : parts.may_touch) parts.state->forbid(first, second);
    parts.may_touch.clear();
  }
  for (std::size_t i = 0; i < matrix.entry_names.size() && i < matrix.entry_values.size(); ++i) {
    for (std::size_t j = i + 1; j < matrix.entry_names.size() && j < matrix.entry_values[i].enabled.size(); ++j) {
      if (!matrix.entry_values[i].enabled[j]) continue;
      const auto& [first, second] = *parts.may_touch.emplace(matrix.entry_names[i].string(), matrix.entry_names[j].string()).first;
      parts.state->allow(first, second);
    }
  }
  parts_ = std::move(parts);
  ++version_;
}

void PlanningScene::write(msg::PlanningScene& message, bool diff) const {
  const std::scoped_lock lock(mutex_);
  const Model& model = *parts_.model;
  const std::string& frame = model.name_of(model.base());
  message.name = parts_.scene.name;
  message.robot_model_name = model.name();
  message.is_diff = diff;
  message.robot_state = manipulation::message_of(parts_.state->positions(), parts_.state->hand(), model);
  message.robot_state.is_diff = diff;
  message.robot_state.attached_collision_objects.clear();
  message.world.collision_objects.clear();
  for (const SceneObject& object : parts_.scene.objects) {
    const Pose pose = object.movable() ? parts_.state->object(object.name) : object.pose;
    const auto attached = parts_.attached.find(object.name);
    if (attached != parts_.attached.end()) {
      auto& to = message.robot_state.attached_collision_objects.emplace_back();
      to.link_name = attached->second.link;
      to.touch_links = attached->second.touch_links;
      to.object = message_of(object, pose, frame);
    } else if (!diff) {
      message.world.collision_objects.push_back(message_of(object, pose, frame));
    }
  }
  message.allowed_collision_matrix = {};
  if (diff) return;
  for (const auto& [first, second] : parts_.may_touch) allow(message.allowed_collision_matrix, first, second, true);
}

void PlanningScene::allow(msg::AllowedCollisionMatrix& matrix, const std::string& first, const std::string& second, bool allowed) {
  const auto row = [&](const std::string& name) {
    auto& names = matrix.entry_names;
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& each) { return each.view() == name; });
    const auto at = static_cast<std::size_t>(found - names.begin());
    if (found == names.end()) {
      names.emplace_back() = name;
      for (auto& values : matrix.entry_values) values.enabled.push_back(false);
      matrix.entry_values.emplace_back().enabled.resize(names.size());
    }
    return at;
  };
  const std::size_t one = row(first);
  const std::size_t two = row(second);
  matrix.entry_values[one].enabled[two] = allowed;
  matrix.entry_values[two].enabled[one] = allowed;
}

msg::PlanningScene PlanningScene::adding(const Scene& scene, const std::string& frame) {
  msg::PlanningScene message;
  message.is_diff = true;
  message.robot_state.is_diff = true;
  for (const SceneObject& object : scene.objects)
    message.world.collision_objects.push_back(message_of(object, object.pose, frame));
  return message;
}

bool PlanningScene::empty(const msg::PlanningScene& message) {
  return message.is_diff && message.name.empty() && message.fixed_frame_transforms.empty() &&
         message.allowed_collision_matrix.entry_names.empty() && message.link_padding.empty() &&
         message.link_scale.empty() && message.object_colors.empty() && message.world.collision_objects.empty() &&
         manipulation::empty(message.robot_state);
}

}  // namespace perflab::manipulation
