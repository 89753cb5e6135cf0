// The data of a Model.
#pragma once

#include <utility>
#include <vector>

#include "manipulation/robot/description.h"
#include "manipulation/robot/robot.h"

namespace perflab::manipulation {

struct Model::Parts {
  RobotDescription robot;
  Scene scene;
  ModelPointer model;
  std::vector<std::string> links;  // by body; the world is ""
  std::vector<JointLimits> limits;
  std::vector<int> position_of, velocity_of;  // each joint's index in qpos and qvel
  struct Finger {
    int position;  // its index in qpos
    double offset, factor;  // of a joint that follows the driven one
  };
  std::vector<Finger> fingers;
  double open = 0.0, closed = 0.0;
  enum class Kind { kLink, kFixed, kMovable };
  std::vector<Kind> kinds;             // by body
  std::vector<bool> touches;           // by body: may touch held objects
  std::vector<int> free_joint;         // by body: its index in qpos, or -1
  std::vector<GeomPair> pairs;         // pairs checked by MuJoCo
  std::unique_ptr<const CollisionChecker> checker;
  std::vector<Frame> frames;
  Link base{}, flange{}, tip{};
};

}  // namespace perflab::manipulation
