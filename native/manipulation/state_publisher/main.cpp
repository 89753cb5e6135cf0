// perflab-state-publisher takes robot_state_publisher's place in the stack. From /joint_states it publishes
// the poses of the links on /tf, at most every 1/20 s of the robot's time; fixed links once on /tf_static;
// the URDF once on /robot_description.
//
// Options: robot (a name of the catalog or a path), publish_frequency (Hz).
#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "manipulation/controllers/messages.h"
#include "manipulation/robot/robot.h"
#include "messages/geometry_msgs/msg/transform_stamped.h"
#include "messages/sensor_msgs/msg/joint_state.h"
#include "messages/std_msgs/msg/string.h"
#include "messages/tf2_msgs/msg/tf_message.h"
#include "program/program.h"

namespace {

using namespace perflab;
using namespace perflab::manipulation;
using messages::geometry_msgs::msg::TransformStamped;
using messages::sensor_msgs::msg::JointState;
using messages::std_msgs::msg::String;
using messages::tf2_msgs::msg::TFMessage;

constexpr const char* kNode = "/robot_state_publisher";

class StatePublisher final : public program::Application {
 public:
  explicit StatePublisher(program::Context& context)
      : model_(Model::load(context.options().text("robot", "panda"), Scene{})),
        state_(model_),
        positions_(state_.positions()),
        period_ns_(static_cast<Nanoseconds>(1e9 / context.options().number("publish_frequency", 20.0, 0.1, 1000.0))),
        tf_(context.publisher<TFMessage>(kNode, "/tf")),
        tf_static_(context.publisher<TFMessage>(kNode, "/tf_static")),
        description_(context.publisher<String>(kNode, "/robot_description")) {
    context.reentrant();
    for (const Model::Frame& frame : model_->frames()) {
      auto& transforms = (frame.fixed ? tf_static_ : tf_).message().transforms;
      transforms.resize(transforms.size() + 1);
      TransformStamped& transform = transforms.back();
      transform.header.frame_id = frame.parent;
      transform.child_frame_id = frame.child;
    }
    context.on_message<JointState>(kNode, "/joint_states", [this](const JointState& joints, const program::Received& how) {
      take(joints, how.due_ns);
    });
  }

  void start(const program::Start&) override {
    write(tf_static_.message(), 0);
    tf_static_.publish();
    description_.message().data = model_->urdf();
    description_.publish();
  }

 private:
  void take(const JointState& joints, Nanoseconds due_ns) {
    const Nanoseconds time_ns = read_stamp(joints.header.stamp);
    if (last_ns_ && time_ns >= *last_ns_ && time_ns - *last_ns_ < period_ns_) return;
    last_ns_ = time_ns;
    const std::size_t known = std::min(joints.name.size(), joints.position.size());
    for (std::size_t each = 0; each < known; ++each) {
      if (joints.name[each].view() == model_->hand_joint()) state_.set_hand(joints.position[each]);
      for (std::size_t joint = 0; joint < positions_.size(); ++joint) {
        if (joints.name[each].view() == model_->joints()[joint]) positions_[joint] = joints.position[each];
      }
    }
    state_.set(positions_);
    write(tf_.message(), time_ns);
    tf_.publish(due_ns);
  }

  void write(TFMessage& message, Nanoseconds time_ns) {
    for (TransformStamped& transform : message.transforms) {
      const Pose at = state_.pose(model_->link(transform.header.frame_id.view())).inverse() *
                      state_.pose(model_->link(transform.child_frame_id.view()));
      const Eigen::Quaterniond turned(at.linear());
      write_stamp(time_ns, transform.header.stamp);
      transform.transform.translation.x = at.translation().x();
      transform.transform.translation.y = at.translation().y();
      transform.transform.translation.z = at.translation().z();
      transform.transform.rotation.x = turned.x();
      transform.transform.rotation.y = turned.y();
      transform.transform.rotation.z = turned.z();
      transform.transform.rotation.w = turned.w();
    }
  }

  const std::shared_ptr<const Model> model_;
  State state_;
  Positions positions_;
  const Nanoseconds period_ns_;
  std::optional<Nanoseconds> last_ns_;
  const program::Publisher<TFMessage> tf_, tf_static_;
  const program::Publisher<String> description_;
};

}  // namespace

int main(int argc, char** argv) {
  return perflab::program::run("perflab-state-publisher", argc, argv, [](perflab::program::Context& context) {
    return std::make_unique<StatePublisher>(context);
  });
}
