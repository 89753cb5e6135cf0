// A robot's files: robot.json, the parts of the SRDF that perflab uses, and URDF and scene as a model for MuJoCo to compile.
// For code that simulates the robot; for poses of links see robot.h.
#pragma once

#include <mujoco/mujoco.h>

#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "manipulation/robot/scene.h"

namespace perflab::manipulation {

struct RobotDescription {
  std::string name;
  std::filesystem::path urdf_file;
  std::string urdf, srdf;  // texts of the files
  std::string group;       // group of the arm
  std::string hand_group;  // "" if there is no hand
  std::string base, flange, tip;
  std::vector<std::string> joints;                           // joints of the arm
  std::vector<std::string> hand_joints;                      // driven joints of the hand
  std::vector<std::string> touch_links;                      // links that may touch held objects
  std::map<std::string, double> velocity, acceleration;       // limits by joint, which MuJoCo does not store
  double armature = 0.0;                                     // kg m^2: reflected inertia of each joint's
                                                             // motor
  std::vector<double> stiffness, damping;                    // by joint, for torque drives
  std::map<std::string, std::vector<double>> states;         // of the arm, by name
  std::map<std::string, std::vector<double>> hand_states;    // of the hand, by name
  std::vector<std::pair<std::string, std::string>> excepted;  // pairs of links that are not checked against
                                                              // each other

  // From a name of the catalog or a path. Throws BadInput with the file and what is wrong.
  [[nodiscard]] static RobotDescription load(const std::string& name);
};

struct SpecDeleter {
  void operator()(mjSpec* spec) const noexcept { mj_deleteSpec(spec); }
};
struct ModelDeleter {
  void operator()(mjModel* model) const noexcept { mj_deleteModel(model); }
};
struct DataDeleter {
  void operator()(mjData* data) const noexcept { mj_deleteData(data); }
};
using SpecPointer = std::unique_ptr<mjSpec, SpecDeleter>;
using ModelPointer = std::unique_ptr<mjModel, ModelDeleter>;
using DataPointer = std::unique_ptr<mjData, DataDeleter>;

// The robot with its links as bodies, the pairs of the SRDF excepted, and each object as a body of its name: fixed to the
// world, or with a free joint of that name. Throws BadInput if MuJoCo rejects it.
[[nodiscard]] SpecPointer make_spec(const RobotDescription& robot, const Scene& scene);
[[nodiscard]] ModelPointer compile(mjSpec& spec, const std::string& what);

}  // namespace perflab::manipulation
