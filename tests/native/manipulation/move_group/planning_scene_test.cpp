// A scene that messages change.
#include "manipulation/move_group/planning_scene.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "support.h"

namespace perflab::manipulation {
namespace {

using messages::moveit_msgs::msg::CollisionObject;
using messages::shape_msgs::msg::SolidPrimitive;
using Message = messages::moveit_msgs::msg::PlanningScene;

Message diff() {
  Message message;
  message.is_diff = true;
  message.robot_state.is_diff = true;
  return message;
}

CollisionObject box(const std::string& name, double x, double y, double z) {
  CollisionObject object;
  object.id = name;
  object.operation = CollisionObject::ADD;
  object.pose.position.x = x;
  object.pose.position.y = y;
  object.pose.position.z = z;
  object.pose.orientation.w = 1.0;
  auto& shape = object.primitives.emplace_back();
  shape.type = SolidPrimitive::BOX;
  shape.dimensions = {0.2, 0.2, 0.2};
  return object;
}

TEST(PlanningScene, ObjectsAreAddedAndRemoved) {
  PlanningScene scene("panda", Scene::load("empty"));
  const auto model = scene.model();
  scene.move_robot(model->named_state("ready"), 0.04);
  EXPECT_FALSE(scene.snapshot().collides());
  Message message = diff();
  State state = scene.snapshot();
  const Eigen::Vector3d flange = state.pose(model->flange()).translation();
  message.world.collision_objects.push_back(box("crate", flange.x(), flange.y(), flange.z()));
  const auto before = scene.version();
  scene.apply(message);
  EXPECT_GT(scene.version(), before);
  EXPECT_EQ(scene.snapshot().positions(), model->named_state("ready"));
  EXPECT_TRUE(scene.snapshot().collides());
  message.world.collision_objects[0].operation = CollisionObject::REMOVE;
  scene.apply(message);
  EXPECT_FALSE(scene.snapshot().collides());
  EXPECT_THROW(scene.apply(message), BadInput);
}

TEST(PlanningScene, AnObjectIsAttachedMovesWithTheArmAndIsLeftWhereItIs) {
  PlanningScene scene("panda", Scene::load("pick_and_place"));
  const auto model = scene.model();
  scene.move_robot(model->named_state("ready"), 0.04);
  Message message = diff();
  auto& attached = message.robot_state.attached_collision_objects.emplace_back();
  attached.link_name = model->name_of(model->tip());
  attached.object.id = "workpiece";
  attached.object.operation = CollisionObject::ADD;
  scene.apply(message);
  const Pose before = scene.snapshot().object("workpiece");
  Positions turned = model->named_state("ready");
  turned[0] += 0.5;
  scene.move_robot(turned, 0.04);
  const Pose after = scene.snapshot().object("workpiece");
  EXPECT_GT((after.translation() - before.translation()).norm(), 0.1);
  message.robot_state.attached_collision_objects[0].object.operation = CollisionObject::REMOVE;
  scene.apply(message);
  scene.move_robot(model->named_state("ready"), 0.04);
  EXPECT_TRUE(scene.snapshot().object("workpiece").isApprox(after));
  message.robot_state.attached_collision_objects[0].object.id = "no_such_thing";
  EXPECT_THROW(scene.apply(message), BadInput);
}

bool allowed(const Message& message, std::string_view first, std::string_view second) {
  const auto& matrix = message.allowed_collision_matrix;
  for (std::size_t i = 0; i < matrix.entry_names.size(); ++i) {
    for (std::size_t j = 0; j < matrix.entry_names.size(); ++j) {
      const bool named = matrix.entry_names[i].view() == first && matrix.entry_names[j].view() == second;
      if (named) return matrix.entry_values[i].enabled[j];
    }
  }
  return false;
}

Message whole(const PlanningScene& scene) {
  Message message;
  scene.write(message, false);
  return message;
}

TEST(PlanningScene, AMatrixTakesThePlaceOfTheOneBefore) {
  PlanningScene scene("panda", Scene::load("pick_and_place"));
  Message message = diff();
  PlanningScene::allow(message.allowed_collision_matrix, "workpiece", "table", true);
  scene.apply(message);
  EXPECT_TRUE(allowed(whole(scene), "table", "workpiece"));

  // As a client adds to it that knows what may touch already.
  message.allowed_collision_matrix = whole(scene).allowed_collision_matrix;
  PlanningScene::allow(message.allowed_collision_matrix, "workpiece", "bin_left", true);
  scene.apply(message);
  EXPECT_TRUE(allowed(whole(scene), "workpiece", "table"));
  EXPECT_TRUE(allowed(whole(scene), "workpiece", "bin_left"));
  EXPECT_FALSE(allowed(whole(scene), "table", "bin_left"));

  Message other = diff();
  PlanningScene::allow(other.allowed_collision_matrix, "workpiece", "bin_right", true);
  scene.apply(other);
  EXPECT_TRUE(allowed(whole(scene), "workpiece", "bin_right"));
  EXPECT_FALSE(allowed(whole(scene), "workpiece", "table"));

  // A scene that says nothing of it leaves it as it is.
  scene.apply(diff());
  EXPECT_TRUE(allowed(whole(scene), "workpiece", "bin_right"));
}

TEST(PlanningScene, WhatHoldsAnObjectMayTouchItUntilItIsLeft) {
  PlanningScene scene("panda", Scene::load("empty"));
  const auto model = scene.model();
  scene.move_robot(model->named_state("ready"), 0.04);
  State state = scene.snapshot();
  const Eigen::Vector3d elbow = state.pose(model->link("panda_link3")).translation();
  Message message = diff();
  auto& attached = message.robot_state.attached_collision_objects.emplace_back();
  attached.link_name = model->name_of(model->flange());
  attached.object = box("crate", elbow.x(), elbow.y(), elbow.z());
  scene.apply(message);
  EXPECT_TRUE(scene.snapshot().collides());
  for (const std::string& link : model->links()) {
    if (!link.empty()) attached.touch_links.emplace_back() = link;
  }
  scene.apply(message);
  EXPECT_FALSE(scene.snapshot().collides());
  EXPECT_EQ(whole(scene).robot_state.attached_collision_objects[0].touch_links, attached.touch_links);
  Message left = diff();
  auto& detached = left.robot_state.attached_collision_objects.emplace_back();
  detached.object.id = "crate";
  detached.object.operation = CollisionObject::REMOVE;
  scene.apply(left);
  EXPECT_TRUE(scene.snapshot().collides());
}

TEST(PlanningScene, WhatIsWrongInAMessageChangesNothing) {
  PlanningScene scene("panda", Scene::load("empty"));
  Message message = diff();
  message.world.collision_objects.push_back(box("crate", 0.5, 0.5, 0.5));
  CollisionObject sphere = box("ball", 0.5, -0.5, 0.5);
  sphere.primitives[0].type = SolidPrimitive::SPHERE;
  message.world.collision_objects.push_back(sphere);
  const auto version = scene.version();
  EXPECT_THROW(scene.apply(message), BadInput);
  EXPECT_EQ(scene.version(), version);
  EXPECT_TRUE(scene.model()->scene().objects.empty());
}

TEST(PlanningScene, IsWrittenAsAMessageThatMakesTheSameScene) {
  PlanningScene scene("panda", Scene::load("table"));
  Message message;
  scene.write(message, false);
  EXPECT_EQ(message.world.collision_objects.size(), scene.model()->scene().objects.size());
  PlanningScene other("panda", Scene::load("empty"));
  message.is_diff = true;
  message.robot_state.is_diff = true;
  other.apply(message);
  Message again;
  other.write(again, false);
  EXPECT_EQ(again.world.collision_objects, message.world.collision_objects);
  Message difference;
  scene.write(difference, true);
  EXPECT_TRUE(difference.world.collision_objects.empty());
  EXPECT_FALSE(PlanningScene::empty(difference));
  EXPECT_TRUE(PlanningScene::empty(diff()));
  EXPECT_FALSE(PlanningScene::empty(Message{}));
}

TEST(PlanningScene, ACopyIsASceneOfItsOwn) {
  const PlanningScene scene("panda", Scene::load("empty"));
  PlanningScene copy(scene);
  Message message = diff();
  message.world.collision_objects.push_back(box("crate", 0.5, 0.5, 0.5));
  copy.apply(message);
  EXPECT_EQ(copy.model()->scene().objects.size(), 1U);
  EXPECT_TRUE(scene.model()->scene().objects.empty());
}

}  // namespace
}  // namespace perflab::manipulation
