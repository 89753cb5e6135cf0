#include "manipulation/robot/description.h"

#include <tinyxml2.h>

#include <algorithm>
#include <array>
#include <mutex>

#include "base/error.h"
#include "base/text.h"
#include "manipulation/robot/catalog.h"

namespace perflab::manipulation {
namespace {

using tinyxml2::XMLElement;

// Time constant of an object's contacts, s: four simulation steps. With MuJoCo's default, five times as long,
// fingers would sink millimetres into held objects.
constexpr double kContactTime = 0.004;

template <typename Each>
void for_each(const XMLElement& parent, const char* name, Each each) {
  for (const XMLElement* at = parent.FirstChildElement(name); at != nullptr; at = at->NextSiblingElement(name)) {
    each(*at);
  }
}

std::string attribute(const XMLElement& element, const char* name, const std::string& file) {
  const char* const value = element.Attribute(name);
  if (value == nullptr) {
    throw BadInput(file + ": line " + std::to_string(element.GetLineNum()) + ": " + element.Name() + " has no " + name);
  }
  return value;
}

const XMLElement& parse(tinyxml2::XMLDocument& document, const std::string& text, const std::string& file) {
  if (document.Parse(text.c_str(), text.size()) != tinyxml2::XML_SUCCESS) {
    throw BadInput(file + ": " + one_line(document.ErrorStr()));
  }
  const XMLElement* const root = document.FirstChildElement("robot");
  if (root == nullptr) throw BadInput(file + ": has no robot");
  return *root;
}

std::vector<std::string> joints_of(const XMLElement& robot, const std::string& group, const std::string& file) {
  std::vector<std::string> joints;
  bool found = false;
  for_each(robot, "group", [&](const XMLElement& each) {
    if (attribute(each, "name", file) != group) return;
    found = true;
    for_each(each, "joint", [&](const XMLElement& joint) { joints.push_back(attribute(joint, "name", file)); });
  });
  if (!found || joints.empty()) throw BadInput(file + ": no group " + quote(group) + " with joints");
  return joints;
}

// The states of a group, with joints in the group's order.
std::map<std::string, std::vector<double>> states_of(const XMLElement& robot, const std::string& group,
                                                     const std::vector<std::string>& joints,
                                                     const std::string& file) {
  std::map<std::string, std::vector<double>> states;
  for_each(robot, "group_state", [&](const XMLElement& each) {
    if (attribute(each, "group", file) != group) return;
    const std::string name = attribute(each, "name", file);
    std::map<std::string, double> values;
    for_each(each, "joint", [&](const XMLElement& joint) {
      double value = 0.0;
      if (joint.QueryDoubleAttribute("value", &value) != tinyxml2::XML_SUCCESS) {
        throw BadInput(file + ": state " + quote(name) + ": a joint's value is not a number");
      }
      values[attribute(joint, "name", file)] = value;
    });
    std::vector<double>& positions = states[name];
    for (const std::string& joint : joints) {
      const auto found = values.find(joint);
      if (found == values.end()) throw BadInput(file + ": state " + quote(name) + " lacks " + joint);
      positions.push_back(found->second);
    }
  });
  return states;
}

double velocity_limit(const XMLElement& robot, const std::string& joint, const std::string& file) {
  double limit = 0.0;
  for_each(robot, "joint", [&](const XMLElement& each) {
    const XMLElement* const limits = each.FirstChildElement("limit");
    if (attribute(each, "name", file) == joint && limits != nullptr) limits->QueryDoubleAttribute("velocity", &limit);
  });
  if (limit <= 0.0) throw BadInput(file + ": joint " + quote(joint) + " has no limit of velocity");
  return limit;
}

// By default MuJoCo writes warnings to a file in the current folder; mjData counts the relevant ones.
void quiet_warnings() {
  static std::once_flag once;
  std::call_once(once, [] { mju_user_warning = [](const char*) {}; });
}

}  // namespace

RobotDescription RobotDescription::load(const std::string& name) {
  const std::filesystem::path folder = robot_folder(name);
  const std::filesystem::path file = folder / "robot.json";
  const nlohmann::json json = read_json_file(file);
  Fields fields(json, file.string());
  RobotDescription robot;
  robot.name = fields.text("name");
  robot.urdf_file = folder / fields.text("urdf");
  const std::filesystem::path srdf_file = folder / fields.text("srdf");
  robot.armature = fields.positive("armature");
  robot.group = fields.text("arm");
  robot.hand_group = fields.text("hand", "");
  robot.base = fields.text("base");
  robot.flange = fields.text("flange");
  robot.tip = fields.text("tip");
  robot.touch_links = fields.texts("touch_links");
  Fields acceleration(fields.at("acceleration"), file.string() + ": acceleration");
  Fields impedance(fields.at("impedance"), file.string() + ": impedance");
  fields.end();

  robot.urdf = read_text_file(robot.urdf_file);
  robot.srdf = read_text_file(srdf_file);
  tinyxml2::XMLDocument srdf_document, urdf_document;
  const XMLElement* const root = &parse(srdf_document, robot.srdf, srdf_file.string());
  const XMLElement& urdf = parse(urdf_document, robot.urdf, robot.urdf_file.string());
  robot.joints = joints_of(*root, robot.group, srdf_file.string());
  robot.states = states_of(*root, robot.group, robot.joints, srdf_file.string());
  if (!robot.hand_group.empty()) {
    robot.hand_joints = joints_of(*root, robot.hand_group, srdf_file.string());
    robot.hand_states = states_of(*root, robot.hand_group, robot.hand_joints, srdf_file.string());
  }
  for_each(*root, "disable_collisions", [&](const XMLElement& pair) {
    robot.excepted.emplace_back(attribute(pair, "link1", srdf_file.string()),
                                attribute(pair, "link2", srdf_file.string()));
  });
  for (const std::string& joint : robot.joints) {
    robot.acceleration[joint] = acceleration.positive(joint);
    const std::vector<double> drive = impedance.numbers(joint, 2);
    robot.stiffness.push_back(drive[0]);
    robot.damping.push_back(drive[1]);
    robot.velocity[joint] = velocity_limit(urdf, joint, robot.urdf_file.string());
  }
  acceleration.end();
  impedance.end();
  return robot;
}

ModelPointer compile(mjSpec& spec, const std::string& what) {
  mjModel* const model = mj_compile(&spec, nullptr);
  if (model == nullptr) throw BadInput(what + ": " + one_line(mjs_getError(&spec)));
  return ModelPointer(model);
}

SpecPointer make_spec(const RobotDescription& robot, const Scene& scene) {
  quiet_warnings();
  std::array<char, 1000> error{};
  SpecPointer spec(mj_parseXML(robot.urdf_file.c_str(), nullptr, error.data(), static_cast<int>(error.size())));
  if (!spec) throw BadInput(robot.urdf_file.string() + ": " + one_line(error.data()));
  spec->compiler.fusestatic = 0;  // keeps flange and tip as separate links
  for (const auto& [first, second] : robot.excepted) {
    mjsExclude* const exclude = mjs_addExclude(spec.get());
    mjs_setString(exclude->bodyname1, first.c_str());
    mjs_setString(exclude->bodyname2, second.c_str());
  }
  for (const SceneObject& object : scene.objects) {
    if (mjs_findBody(spec.get(), object.name.c_str()) != nullptr) {
      throw BadInput("scene " + scene.name + ": object " + quote(object.name) + " has the name of a link");
    }
    mjsBody* const body = mjs_addBody(mjs_findBody(spec.get(), "world"), nullptr);
    mjs_setName(body->element, object.name.c_str());
    const Eigen::Quaterniond turned(object.pose.linear());
    for (int axis = 0; axis < 3; ++axis) body->pos[axis] = object.pose.translation()[axis];
    body->quat[0] = turned.w();
    body->quat[1] = turned.x();
    body->quat[2] = turned.y();
    body->quat[3] = turned.z();
    if (object.movable()) mjs_setName(mjs_addFreeJoint(body)->element, object.name.c_str());
    mjsGeom* const geom = mjs_addGeom(body, nullptr);
    if (object.shape == SceneObject::Shape::kBox) {
      geom->type = mjGEOM_BOX;
      for (int axis = 0; axis < 3; ++axis) geom->size[axis] = object.size[axis] / 2.0;
    } else {
      geom->type = mjGEOM_CYLINDER;
      geom->size[0] = object.size[0];
      geom->size[1] = object.size[1] / 2.0;
    }
    if (object.movable()) geom->mass = object.mass;
    geom->solref[0] = kContactTime;
  }
  return spec;
}

}  // namespace perflab::manipulation
