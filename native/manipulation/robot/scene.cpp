#include "manipulation/robot/scene.h"

#include <algorithm>

#include "base/error.h"
#include "base/text.h"
#include "manipulation/robot/catalog.h"

namespace perflab::manipulation {

Pose pose_of(const Eigen::Vector3d& position, double x, double y, double z, double w) {
  Eigen::Quaterniond orientation(w, x, y, z);
  orientation = orientation.norm() > 0.0 ? orientation.normalized() : Eigen::Quaterniond::Identity();
  Pose pose = Pose::Identity();
  pose.linear() = orientation.toRotationMatrix();
  pose.translation() = position;
  return pose;
}

double angle_between(const Pose& first, const Pose& second) {
  return Eigen::Quaterniond(first.linear()).angularDistance(Eigen::Quaterniond(second.linear()));
}

namespace {

SceneObject object_of(const nlohmann::json& json, const std::string& file, std::size_t place) {
  Fields fields(json, file + ": object " + std::to_string(place));
  SceneObject object;
  object.name = fields.text("name");
  if (fields.has("box") == fields.has("cylinder")) {
    throw BadInput(fields.where() + ": must have either box or cylinder");
  }
  if (fields.has("box")) {
    const std::vector<double> edges = fields.numbers("box", 3);
    object.size = Eigen::Vector3d(edges[0], edges[1], edges[2]);
    if (object.size.minCoeff() <= 0.0) throw BadInput(fields.where() + ": edges must be more than 0");
  } else {
    Fields cylinder(fields.at("cylinder"), fields.where() + ": cylinder");
    object.shape = SceneObject::Shape::kCylinder;
    object.size = Eigen::Vector3d(cylinder.positive("radius"), cylinder.positive("height"), 0.0);
    cylinder.end();
  }
  const std::vector<double> at = fields.numbers("position", 3);
  std::vector<double> turned = {0.0, 0.0, 0.0, 1.0};
  if (fields.has("orientation")) turned = fields.numbers("orientation", 4);
  object.pose = pose_of(Eigen::Vector3d(at[0], at[1], at[2]), turned[0], turned[1], turned[2], turned[3]);
  if (fields.has("mass")) object.mass = fields.positive("mass");
  fields.end();
  return object;
}

}  // namespace

Scene Scene::load(const std::string& name) {
  const std::filesystem::path file = scene_file(name);
  const nlohmann::json json = read_json_file(file);
  Fields fields(json, file.string());
  Scene scene;
  scene.name = file.stem().string();
  scene.description = fields.text("description");
  const nlohmann::json& objects = fields.at("objects");
  fields.end();
  if (!objects.is_array()) throw BadInput(file.string() + ": objects must be a list");
  for (const nlohmann::json& object : objects) {
    scene.objects.push_back(object_of(object, file.string(), scene.objects.size() + 1));
    const std::string& added = scene.objects.back().name;
    const auto same = [&](const SceneObject& each) { return each.name == added; };
    if (std::count_if(scene.objects.begin(), scene.objects.end(), same) > 1) {
      throw BadInput(file.string() + ": two objects are named " + quote(added));
    }
  }
  return scene;
}

}  // namespace perflab::manipulation
