// A program for tests: asks /controller_manager what there is, deactivates the arm's controller, sees that it then refuses
// goals, activates it again, deactivates it while the arm moves, and ends the trial. It says what it was answered as figures.
#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <vector>

#include "messages/control_msgs/action/follow_joint_trajectory.h"
#include "messages/controller_manager_msgs/srv/list_controller_types.h"
#include "messages/controller_manager_msgs/srv/list_controllers.h"
#include "messages/controller_manager_msgs/srv/list_hardware_components.h"
#include "messages/controller_manager_msgs/srv/list_hardware_interfaces.h"
#include "messages/controller_manager_msgs/srv/switch_controller.h"
#include "messages/pal_statistics_msgs/msg/statistics.h"
#include "messages/pal_statistics_msgs/msg/statistics_names.h"
#include "messages/pal_statistics_msgs/msg/statistics_values.h"
#include "program/program.h"

namespace {

using namespace perflab;
namespace srv = messages::controller_manager_msgs::srv;
using messages::control_msgs::action::FollowJointTrajectory;
using messages::pal_statistics_msgs::msg::Statistics;
using messages::pal_statistics_msgs::msg::StatisticsNames;
using messages::pal_statistics_msgs::msg::StatisticsValues;

constexpr const char* kNode = "/manager_client";
const std::string kManager = "/controller_manager/";
const std::string kArm = "panda_arm_controller";
constexpr int kValues = 200;  // messages before anything is asked

class ManagerClient final : public program::Application {
 public:
  explicit ManagerClient(program::Context& context)
      : context_(context),
        list_(context.client<srv::ListControllers>(kNode, kManager + "list_controllers")),
        types_(context.client<srv::ListControllerTypes>(kNode, kManager + "list_controller_types")),
        components_(context.client<srv::ListHardwareComponents>(kNode, kManager + "list_hardware_components")),
        interfaces_(context.client<srv::ListHardwareInterfaces>(kNode, kManager + "list_hardware_interfaces")),
        switch_(context.client<srv::SwitchController>(kNode, kManager + "switch_controller")),
        arm_(context.action_client<FollowJointTrajectory>(kNode, "/" + kArm + "/follow_joint_trajectory")) {
    context.on_message<StatisticsNames>(kNode, kManager + "statistics/names",
                                        [this](const StatisticsNames& message, const program::Received&) {
                                          for (const auto& each : message.names) names_.push_back(each.string());
                                        });
    context.on_message<StatisticsValues>(kNode, kManager + "statistics/values",
                                         [this](const StatisticsValues& message, const program::Received&) {
                                           if (++values_ != kValues) return;
                                           say_statistics(message);
                                           list_types();
                                         });
    context.on_message<Statistics>(kNode, kManager + "introspection_data/full",
                                   [this](const Statistics& message, const program::Received&) {
                                     for (const auto& each : message.statistics) {
                                       if (each.name.view() == "state_interface.panda_joint4/position") joint_ = each.value;
                                     }
                                   });
  }

 private:
  void say_statistics(const StatisticsValues& message) {
    for (const auto& [figure, name] : {std::pair("periodicity", kArm + ".stats/periodicity/average"),
                                       std::pair("total_time", std::string("controller_manager.total_time"))}) {
      const auto found = std::find(names_.begin(), names_.end(), name);
      if (found == names_.end()) return context_.fail("there is no " + name);
      context_.figure(figure, message.values[static_cast<std::size_t>(found - names_.begin())]);
    }
    context_.figure("joint", joint_.value_or(0.0));
  }

  template <typename Service>
  void call(const program::Client<Service>& client, const typename Service::Request& request,
            std::function<void(const typename Service::Response&)> then) {
    if (!client.call(request, [then](const typename Service::Response& response, const program::Replied&) { then(response); })) {
      context_.fail("a request was not sent");
    }
  }

  void list_types() {
    call<srv::ListControllerTypes>(types_, {}, [this](const auto& response) {
      context_.figure("types", static_cast<double>(response.types.size()));
      call<srv::ListHardwareComponents>(components_, {}, [this](const auto& found) {
        context_.figure("components", static_cast<double>(found.component.size()));
        count_claimed("claimed", [this] { deactivate(); });
      });
    });
  }

  void count_claimed(const char* figure, std::function<void()> then) {
    call<srv::ListHardwareInterfaces>(interfaces_, {}, [this, figure, then](const auto& response) {
      const auto claimed = std::count_if(response.command_interfaces.begin(), response.command_interfaces.end(),
                                         [](const auto& each) { return each.is_claimed; });
      context_.figure(figure, static_cast<double>(claimed));
      then();
    });
  }

  void change(const char* figure, bool activate, std::function<void()> then) {
    srv::SwitchController::Request request;
    (activate ? request.activate_controllers : request.deactivate_controllers) = {kArm};
    request.strictness = srv::SwitchController::Request::STRICT;
    call<srv::SwitchController>(switch_, request, [this, figure, then](const auto& response) {
      context_.figure(figure, response.ok ? 1.0 : 0.0);
      then();
    });
  }

  void count_active(const char* figure, std::function<void()> then) {
    call<srv::ListControllers>(list_, {}, [this, figure, then](const auto& response) {
      const auto active = std::count_if(response.controller.begin(), response.controller.end(),
                                        [](const auto& each) { return each.state.view() == "active"; });
      context_.figure(figure, static_cast<double>(active));
      then();
    });
  }

  void deactivate() {
    count_active("active", [this] {
      change("off", false, [this] {
        change("off_again", false, [this] {
          count_claimed("claimed_off", [this] { count_active("active_off", [this] { be_refused(); }); });
        });
      });
    });
  }

  void be_refused() {
    FollowJointTrajectory::Goal goal;
    program::GoalHandlers<FollowJointTrajectory> handlers;
    handlers.on_response = [this](bool accepted, std::int64_t) {
      context_.figure("accepted", accepted ? 1.0 : 0.0);
      change("on", true, [this] { count_active("active_on", [this] { be_stopped(); }); });
    };
    if (!arm_.send(goal, std::move(handlers))) context_.fail("the goal was not sent");
  }

  void be_stopped() {
    FollowJointTrajectory::Goal goal;
    for (int joint = 1; joint <= 7; ++joint) goal.trajectory.joint_names.push_back("panda_joint" + std::to_string(joint));
    goal.trajectory.points.resize(1);
    goal.trajectory.points[0].positions = std::vector<double>{0.4, -0.5, 0.2, -2.0, 0.1, 1.8, 0.6};
    goal.trajectory.points[0].time_from_start.sec = 2;
    program::GoalHandlers<FollowJointTrajectory> handlers;
    handlers.on_response = [this](bool accepted, std::int64_t) {
      if (!accepted) return context_.fail("an active controller refused a goal");
      change("off_moving", false, [] {});
    };
    handlers.on_result = [this](program::GoalStatus status, const FollowJointTrajectory::Result&) {
      context_.figure("status", static_cast<double>(status));
      context_.end();
    };
    if (!arm_.send(goal, std::move(handlers))) context_.fail("the goal was not sent");
  }

  program::Context& context_;
  program::Client<srv::ListControllers> list_;
  program::Client<srv::ListControllerTypes> types_;
  program::Client<srv::ListHardwareComponents> components_;
  program::Client<srv::ListHardwareInterfaces> interfaces_;
  program::Client<srv::SwitchController> switch_;
  program::ActionClient<FollowJointTrajectory> arm_;
  std::vector<std::string> names_;
  int values_ = 0;
  std::optional<double> joint_;
};

}  // namespace

int main(int argc, char** argv) {
  return perflab::program::run("perflab-manager-client", argc, argv, [](perflab::program::Context& context) {
    return std::make_unique<ManagerClient>(context);
  });
}
