// A robot arm in a scene: its limits, its named states, where its links are, how to reach a pose, and what collides.
//
// Units: metres, radians, seconds, kilograms, newton metres. Every pose is in the frame of the robot's base link unless
// said otherwise; a pose of ROS (geometry_msgs/Pose) becomes one by pose_of().
// Errors: BadInput for names and sizes that do not fit, as from files and messages; nothing else throws.
// Threads: a Model never changes and is shared; each thread has a State of its own, which is its scratch memory.
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

// Each way: a velocity, acceleration or effort v is allowed where |v| is not more.
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
  double distance;            // below 0: how deep they are in each other
  Eigen::Vector3d point;
};

class Model {
 public:
  // Names of the catalog or paths (catalog.h), and what its states look for collisions with. Throws BadInput with the file and
  // what is wrong.
  [[nodiscard]] static std::shared_ptr<const Model> load(const std::string& robot, const std::string& scene,
                                                         const MakeChecker& checker = mujoco_checker);
  [[nodiscard]] static std::shared_ptr<const Model> load(const std::string& robot, Scene scene,
                                                         const MakeChecker& checker = mujoco_checker);
  ~Model();
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  [[nodiscard]] const std::string& name() const noexcept;
  [[nodiscard]] const Scene& scene() const noexcept;

  // The arm's joints, from the base; the hand's joint is not among them.
  [[nodiscard]] const std::vector<std::string>& joints() const noexcept;
  [[nodiscard]] std::span<const JointLimits> limits() const noexcept;
  // The SRDF's group_state of the arm, e.g. `ready`. Throws BadInput that names those known.
  [[nodiscard]] const Positions& named_state(std::string_view name) const;
  // The arm's group, e.g. panda_arm, as MotionPlanRequest names it.
  [[nodiscard]] const std::string& group() const noexcept;

  // The hand's group, e.g. panda_hand, "" where there is none, and its links, which may touch what it holds.
  [[nodiscard]] const std::string& hand_group() const noexcept;
  [[nodiscard]] const std::vector<std::string>& touch_links() const noexcept;
  // The hand's joint that is driven (the others follow it), "" where there is no hand; its range is that of one finger.
  [[nodiscard]] const std::string& hand_joint() const noexcept;
  [[nodiscard]] double hand_open() const noexcept;
  [[nodiscard]] double hand_closed() const noexcept;

  // Throws BadInput where there is none of that name.
  [[nodiscard]] Link link(std::string_view name) const;
  [[nodiscard]] Link base() const noexcept;
  [[nodiscard]] Link flange() const noexcept;  // panda_link8: what MoveIt's goals are for
  [[nodiscard]] Link tip() const noexcept;     // panda_hand_tcp: between the tips of the fingers
  [[nodiscard]] const std::string& name_of(Link link) const;
  [[nodiscard]] const std::vector<std::string>& links() const noexcept;

  // The texts of the files, for /robot_description and /robot_description_semantic.
  [[nodiscard]] const std::string& urdf() const noexcept;
  [[nodiscard]] const std::string& srdf() const noexcept;

  // The joints of a tree of frames, as a publisher of tf wants it: parent, child, and the child's frame in the parent's
  // by State::pose(). Fixed joints never move.
  struct Frame {
    std::string parent, child;
    bool fixed;
  };
  [[nodiscard]] const std::vector<Frame>& frames() const noexcept;

  // As MuJoCo has it; no actuators.
  [[nodiscard]] const mjModel_& mujoco() const noexcept;

  struct Parts;  // of the implementation
  [[nodiscard]] const Parts& parts() const noexcept { return *parts_; }

 private:
  explicit Model(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

// Where the arm and all things are, and questions about it. A copy has the same positions, attached objects and allowed
// pairs. One thread at a time.
class State {
 public:
  // At the named state `ready` where there is one, else in the middle of each joint; hand open; objects where the scene has them.
  explicit State(std::shared_ptr<const Model> model);
  State(const State& other);
  State(State&& other) noexcept;
  State& operator=(State&& other) noexcept;
  ~State();

  [[nodiscard]] const Model& model() const noexcept { return *model_; }

  // Positions beyond limits are taken as they are. Throws BadInput where the number does not fit.
  void set(std::span<const double> positions);
  [[nodiscard]] const Positions& positions() const noexcept { return positions_; }
  // Of one finger.
  void set_hand(double opening);
  [[nodiscard]] double hand() const noexcept { return hand_; }

  [[nodiscard]] Pose pose(Link link);
  [[nodiscard]] Jacobian jacobian(Link link);

  // Whether anything of the robot, or an attached object, touches what it may not: a link that the SRDF does not except, or
  // an object. Fixed objects among each other never count, nor does an object that is attached with the links that hold it.
  [[nodiscard]] bool collides();
  // The deepest of these, if any.
  [[nodiscard]] std::optional<Contact> contact();
  // The nearest pair of those that may not touch, if any is nearer than `most`. Slower than contact() by far.
  [[nodiscard]] std::optional<Contact> nearest(double most);

  // A pair (links or objects) that may touch from now on, e.g. the box and the table it stands on.
  void allow(const std::string& first, const std::string& second);
  void forbid(const std::string& first, const std::string& second);

  // Objects with a mass can be moved and attached. Throws BadInput for others.
  void place(const std::string& object, const Pose& pose);
  [[nodiscard]] Pose object(const std::string& object);
  // The object goes with `link` as it is now, or at `grasp` in the link's frame. One that is attached already is attached anew.
  void attach(const std::string& object, Link link);
  void attach(const std::string& object, Link link, const Pose& grasp);
  // It stays where it is.
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
  bool current_ = false;                      // poses are those of the positions
};

// Poses to joint positions by damped least squares (Buss and Kim 2005: selectively by the error), within the limits. Has no
// memory of its own beside options.
class InverseKinematics {
 public:
  struct Options {
    double position_tolerance = 1e-6;     // m
    double orientation_tolerance = 1e-5;  // rad
    int iterations = 60;
  };

  InverseKinematics(std::shared_ptr<const Model> model, Link link);
  InverseKinematics(std::shared_ptr<const Model> model, Link link, const Options& options);

  // From `seed`; nothing where it does not converge within the limits. The state is left at the last try.
  [[nodiscard]] std::optional<Positions> solve(State& state, const Pose& target, std::span<const double> seed) const;
  // Up to `most` solutions that differ by more than 0.1 rad in a joint, from random seeds, `tries` of them (0: 10 * most).
  // Collisions are not looked at. The same random numbers give the same solutions.
  [[nodiscard]] std::vector<Positions> solutions(State& state, const Pose& target, std::size_t most, SplitMix64& random,
                                                 std::size_t tries = 0) const;

 private:
  std::shared_ptr<const Model> model_;
  Link link_;
  Options options_;
};

// Uniform within the limits of position.
[[nodiscard]] Positions random_positions(const Model& model, SplitMix64& random);

// Whether all are within the limits of position, give or take `margin`.
[[nodiscard]] bool within_limits(const Model& model, std::span<const double> positions, double margin = 0.0);

}  // namespace perflab::manipulation
