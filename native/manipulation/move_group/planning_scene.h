// move_group's world: positions of arm and objects, attached objects, pairs that may touch. It starts as a
// scene of the catalog; moveit_msgs/msg/PlanningScene changes and publishes it.
//
// Example:
//   PlanningScene scene("panda", Scene::load("table"));
//   scene.apply(diff);                       // from a topic or a request
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

// Thread-safe.
class PlanningScene {
 public:
  // Throws BadInput like Model::load().
  PlanningScene(std::string robot, Scene scene, MakeChecker checker = mujoco_checker);
  // A separate scene that starts as a copy.
  PlanningScene(const PlanningScene& other);

  // The model of the robot and all objects; replaced when objects are added or removed.
  [[nodiscard]] std::shared_ptr<const Model> model() const;
  [[nodiscard]] State snapshot() const;
  // Increases with every change except the robot's motion.
  [[nodiscard]] std::uint64_t version() const;

  // Sets the positions of the arm and of one finger.
  void move_robot(const Positions& positions, double hand);

  // Applies a message: adds objects (ADD: boxes and cylinders), removes, moves (those with a mass), attaches
  // and detaches them, and sets pairs that may touch. With is_diff false for the scene, and world objects
  // given, objects not named are removed; with is_diff false for the robot's state, attached objects are
  // detached. A matrix of pairs that may touch replaces the whole matrix, even in a diff, as in MoveIt; the exceptions of
  // the robot's description remain. All or nothing; throws BadInput with what cannot be applied.
  void apply(const messages::moveit_msgs::msg::PlanningScene& message);

  // Writes everything, with the pairs that may touch in addition to the robot's description, or (`diff`) only the robot's
  // state and attached objects.
  void write(messages::moveit_msgs::msg::PlanningScene& message, bool diff) const;

  // The change that adds these objects to a scene without them; poses are in `frame`. MoveIt does not use
  // masses.
  [[nodiscard]] static messages::moveit_msgs::msg::PlanningScene adding(const Scene& scene, const std::string& frame);

  // Sets in a matrix whether two names may touch. A name that is missing is added, and may touch nothing else.
  static void allow(messages::moveit_msgs::msg::AllowedCollisionMatrix& matrix, const std::string& first,
                    const std::string& second, bool allowed);

  // True if the message changes nothing (moveit::core::isEmpty).
  [[nodiscard]] static bool empty(const messages::moveit_msgs::msg::PlanningScene& message);

 private:
  // The link that an object is attached to, and the links that may touch it there.
  struct Held {
    std::string link;
    std::vector<std::string> touch_links;
  };
  // Attached objects, and pairs that may touch in addition to these and to the robot's description.
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
