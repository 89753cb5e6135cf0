// What move_group knows of the world: where the arm and the objects are, what is attached, what may touch. Scenes of the
// catalog are where it begins; moveit_msgs/msg/PlanningScene changes it, and is how it is published.
//
// Example:
//   PlanningScene scene("panda", Scene::load("table"));
//   scene.apply(diff);                       // of a topic or a request
//   const State copy = scene.snapshot();     // for a planner
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "manipulation/robot/robot.h"
#include "messages/moveit_msgs/msg/planning_scene.h"

namespace perflab::manipulation {

// Any thread.
class PlanningScene {
 public:
  // Throws BadInput as Model::load() does.
  PlanningScene(std::string robot, Scene scene, MakeChecker checker = mujoco_checker);
  // A scene of its own that begins as another one is now.
  PlanningScene(const PlanningScene& other);

  // Of the robot and all objects. It is another one once objects were added or removed.
  [[nodiscard]] std::shared_ptr<const Model> model() const;
  [[nodiscard]] State snapshot() const;
  // Raised by everything but the robot's motion.
  [[nodiscard]] std::uint64_t version() const;

  // The arm and one finger.
  void move_robot(const Positions& positions, double hand);

  // Objects that are added (ADD: boxes and cylinders), removed, moved (those with a mass), attached and detached, pairs that
  // may touch. With is_diff false of the whole, and with world objects, those that are not named are removed; with is_diff false
  // of the robot's state, what is attached is detached. A matrix of what may touch stands for all of it, in a diff as well, as in
  // MoveIt; what the robot's description excepts stays excepted. All of it or nothing; throws BadInput with what cannot be applied.
  void apply(const messages::moveit_msgs::msg::PlanningScene& message);

  // All of it, with the pairs that may touch beside those of the robot's description; or (`diff`) only the robot's state and what
  // is attached.
  void write(messages::moveit_msgs::msg::PlanningScene& message, bool diff) const;

  // A change by which a scene without these objects has them; poses are said in `frame`. MoveIt knows no weights.
  [[nodiscard]] static messages::moveit_msgs::msg::PlanningScene adding(const Scene& scene, const std::string& frame);

  // Says in a matrix whether two may touch. What it has no name for is added to it, and may touch nothing.
  static void allow(messages::moveit_msgs::msg::AllowedCollisionMatrix& matrix, const std::string& first,
                    const std::string& second, bool allowed);

  // Where the message says nothing that would change a scene (moveit::core::isEmpty).
  [[nodiscard]] static bool empty(const messages::moveit_msgs::msg::PlanningScene& message);

 private:
  // The link that an object is attached to, and those that may touch it there.
  struct Held {
    std::string link;
    std::vector<std::string> touch_links;
  };
  // What is attached, and which pairs may touch beside that and what the robot's description says.
  struct Parts {
    Scene scene;
    std::shared_ptr<const Model> model;
    std::unique_ptr<State> state;
    std::map<std::string, Held> attached;
    std::set<std::pair<std::string, std::string>> may_touch;
  };
  [[nodiscard]] Parts copy() const;
  void rebuild(Parts& parts) const;
  static void release(Parts& parts, const std::string& object);

  const std::string robot_;
  const MakeChecker checker_;
  mutable std::mutex mutex_;
  Parts parts_;
  std::uint64_t version_ = 1;
};

}  // namespace perflab::manipulation
