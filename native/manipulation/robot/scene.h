// The surroundings of a robot: boxes and cylinders, with poses in the frame of the robot's base link. Data: catalog/scenes.
#pragma once

#include <Eigen/Geometry>
#include <filesystem>
#include <string>
#include <vector>

namespace perflab::manipulation {

using Pose = Eigen::Isometry3d;

// A pose from a position and a quaternion in ROS's order, which is normalized; empty for the zero quaternion.
[[nodiscard]] Pose pose_of(const Eigen::Vector3d& position, double x, double y, double z, double w);

// The angle between two orientations, in [0, pi] rad.
[[nodiscard]] double angle_between(const Pose& first, const Pose& second);

struct SceneObject {
  enum class Shape { kBox, kCylinder };
  std::string name;
  Shape shape = Shape::kBox;
  Eigen::Vector3d size = Eigen::Vector3d::Zero();  // m; a box's edges; a cylinder's radius, height and 0
  Pose pose = Pose::Identity();                    // of its centre; a cylinder is along z
  double mass = 0.0;                               // kg; 0: fixed. Objects with a mass move and can be
                                                   // grasped
  [[nodiscard]] bool movable() const noexcept { return mass > 0.0; }
};

struct Scene {
  std::string name;  // file name without extension
  std::string description;
  std::vector<SceneObject> objects;

  // From a name of the catalog or a path. Throws BadInput with the file and what is wrong.
  [[nodiscard]] static Scene load(const std::string& name);
};

}  // namespace perflab::manipulation
