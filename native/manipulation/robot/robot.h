// A robot arm in a scene: limits, named states, poses of links, inverse kinematics, and collisions.
//
// Units: metres, radians, seconds, kilograms, newton metres. Every pose is in the frame of the robot's base link unless
// said otherwise; a pose of ROS (geometry_msgs/Pose) becomes one by pose_of().
// Errors: BadInput for unknown names and wrong sizes, as they come from files and messages; nothing else throws.
// Threads: a Model never changes and may be shared; each thread needs its own State, which is scratch memory.
//
// Example:
//   const auto model = Model::load("panda", "table");
//   State state(model);
//   state.set(model->named_state("ready"));
//   state.pose(model->flange()).translation();                           // 0.307, 0, 0.590
//   if (const auto contact = state.contact()) say(contact->first + " touches " + contact->second);
//   InverseKinematics ik(model, model->flange());
//   SplitMix64 random(1);
//   for (const Positions& solution : ik.solutions(state, target, 8, random)) { ... }
#pragma once

#include <Eigen/Geometry>
#include <array>
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "manipulation/robot/collision.h"
#include "manipulation/robot/scene.h"

namespace perflab::manipulation {

// One number per joint of the arm, in the order of Model::joints().
using Positions = std::vector<double>;

// Columns: joints of the arm. Rows: the link's linear velocity (3), then its angular velocity (3).
using Jacobian = Eigen::Matrix<double, 6, Eigen::Dynamic>;

// A velocity, acceleration or effort v is allowed if |v| does not exceed its limit.
struct JointLimits {
  double lower;
  double upper;
  double velocity;
  double acceleration;
  double effort;
};

// A link of the robot, resolved once by Model::link().
struct Link {
  int id;
};

struct Contact {
  std::string first, second;  // links of the robot or objects of the scene
  double distance;            // negative: the depth of penetration
  Eigen::Vector3d point;
};

class Model {
 public:
  // Names of the catalog or paths (catalog.h), and the collision checker of its states. Throws BadInput with
  // the file and the error.
  [[nodiscard]] static std::shared_ptr<const Model> load(const std::string& robot, const std::string& scene,
                                                         const MakeChecker& checker = mujoco_checker);
  [[nodiscard]] static std::shared_ptr<const Model> load(const std::string& robot, Scene scene,
                                                         const MakeChecker& checker = mujoco_checker);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const Scene& scene() const noexcept;

  // The arm's joints from the base on, without the hand's joint.
  [[nodiscard]] const std::vector<std::string>& joints() const noexcept;
  [[nodiscard]] std::span<const JointLimits> limits() const noexcept;
  // A group_state of the arm in the SRDF, e.g. `ready`. Throws BadInput, which lists the known ones.
  [[nodiscard]] const Positions& named_state(std::string_view name) const;
  // The arm's group, e.g. panda_arm, as MotionPlanRequest names it.
  [[nodiscard]] const std::string& group() const noexcept;

  // The hand's group, e.g. panda_hand, "" if there is none, and its links, which may touch a held object.
  [[nodiscard]] const std::string& hand_group() const noexcept;
  [[nodiscard]] const std::vector<std::string>& touch_links() const noexcept;
  // The hand's driven joint (the others follow it), "" if there is no hand; its range is that of one finger.
  [[nodiscard]] const std::string& hand_joint() const noexcept;
  [[nodiscard]] double hand_open() const noexcept;
  [[nodiscard]] double hand_closed() const noexcept;

  // Throws BadInput if there is no link of that name.
  [[nodiscard]] Link link(std::string_view name) const;
  [[nodiscard]] Link base() const noexcept;
  [[nodiscard]] Link flange() const noexcept;  // panda_link8: the link of MoveIt's goals
  [[nodiscard]] Link tip() const noexcept;     // panda_hand_tcp: between the tips of the fingers
  [[nodiscard]] const std::string& name_of(Link link) const;
  [[nodiscard]] const std::vector<std::string>& links() const noexcept;

  // The texts of the files, for /robot_description and /robot_description_semantic.
  [[nodiscard]] const std::string& urdf() const noexcept;
  [[nodiscard]] const std::string& srdf() const noexcept;

  // The joints of the frame tree, for a publisher of tf: parent and child; State::pose() gives the transform between them.
  // Fixed joints never move.
  struct Frame {
    std::string parent, child;
    bool fixed;
  };
  [[nodiscard]] const std::vector<Frame>& frames() const noexcept;

  // MuJoCo's model, without actuators.
  [[nodiscard]] const mjModel_& mujoco() const noexcept;

  struct Parts;  // of the implementation
  [[nodiscard]] const Parts& parts() const noexcept { return *parts_; }

 private:
  explicit Model(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Positions of the arm and all objects, and what follows from them. A copy has the same positions, attached objects and
// allowed pairs. One thread at a time.
class State {
 public:
  // Starts in the named state `ready` if there is one, otherwise in the middle of each joint's range; hand
  // open; objects as in the scene.
  explicit State(std::shared_ptr<const Model> model);
  State(const State& other);
  State(State&& other) noexcept;
  State& operator=(State&& other) noexcept;
  ~State();

  [[nodiscard]] const Model& model() const noexcept { return *model_; }

  // Positions outside the limits are not clamped. Throws BadInput for a wrong number of positions.
  void set(std::span<const double> positions);
  [[nodiscard]] const Positions& positions() const noexcept { return positions_; }
  // The position of one finger.
  void set_hand(double opening);
  [[nodiscard]] double hand() const noexcept { return hand_; }

  [[nodiscard]] Pose pose(Link link);
  [[nodiscard]] Jacobian jacobian(Link link);

  // Whether the robot or an attached object is in collision: with a link that the SRDF does not except, or with an object.
  // Contacts between fixed objects never count, nor those of an attached object with the links that hold it.
  [[nodiscard]] bool collides();
  // The deepest collision, if any.
  [[nodiscard]] std::optional<Contact> contact();
  // The closest pair that may not touch, if it is closer than `most`. Much slower than contact().
  [[nodiscard]] std::optional<Contact> nearest(double most);

  // Allows a pair (links or objects) to touch from now on, e.g. a box and the table on which it stands.
  void allow(const std::string& first, const std::string& second);
  void forbid(const std::string& first, const std::string& second);

  // Objects with a mass can be moved and attached. Throws BadInput for others.
  void place(const std::string& object, const Pose& pose);
  [[nodiscard]] Pose object(const std::string& object);
  // The object moves with `link` from now on, at its current pose or at `grasp` in the link's frame. An
  // attached object can be attached again.
  void attach(const std::string& object, Link link);
  void attach(const std::string& object, Link link, const Pose& grasp);
  // The object stays where it is.
  void detach(const std::string& object);
  [[nodiscard]] std::vector<std::string> attached() const;

 private:
  struct Attached {
    int object;
    Link link;
    Pose grasp;
  };
  void update();
  [[nodiscard]] CollisionChecker::Counts counting() const;
  [[nodiscard]] std::optional<Contact> named(const std::optional<Touching>& touching) const;
  [[nodiscard]] bool counts(int first_geom, int second_geom) const noexcept;
  int movable(const std::string& object) const;
  int body(const std::string& name) const;
  void pair(const std::string& first, const std::string& second, bool allowed);

  std::shared_ptr<const Model> model_;
  mjData_* data_;
  Positions positions_;
  double hand_ = 0.0;
  std::vector<Attached> attached_;
  std::vector<std::pair<int, int>> allowed_;  // bodies, the smaller first
  bool current_ = false;                      // poses correspond to the positions
};

// Inverse kinematics by damped least squares (Buss and Kim 2005, with a damping that depends on the error),
// within the limits. Stateless except for its options.
class InverseKinematics {
 public:
  struct Options {
    double position_tolerance = 1e-6;     // m
    double orientation_tolerance = 1e-5;  // rad
    int iterations = 60;
  };

  InverseKinematics(std::shared_ptr<const Model> model, Link link);
  InverseKinematics(std::shared_ptr<const Model> model, Link link, const Options& options);

  // Starts from `seed`; empty if it does not converge within the limits. Leaves the state at the last
  // iteration.
  [[nodiscard]] std::optional<Positions> solve(State& state, const Pose& target, std::span<const double> seed) const;
  // Up to `most` solutions that differ by more than 0.1 rad in some joint, from `tries` random seeds (0: 10 * most). Does not
  // check collisions. The same random numbers give the same solutions.
  [[nodiscard]] std::vector<Positions> solutions(State& state, const Pose& target, std::size_t most, SplitMix64& random,
                                                 std::size_t tries = 0) const;

 private:
  std::shared_ptr<const Model> model_;
  Link link_;
  Options options_;
};

// Random positions, uniform within the limits.
[[nodiscard]] Positions random_positions(const Model& model, SplitMix64& random);

// Whether all positions are within the limits, widened by `margin`.
[[nodiscard]] bool within_limits(const Model& model, std::span<const double> positions, double margin = 0.0);

}  // namespace perflab::manipulation
