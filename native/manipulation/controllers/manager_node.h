// The node /controller_manager, with the parts of ros2_control's (Jazzy) that make sense for a fixed set of
// controllers: services that list controllers and hardware and switch controllers, and running statistics of
// the loop. Nothing can be loaded, configured or unloaded, so there are no services for that, nor for the
// state of the hardware.
//
// Servers:     /controller_manager/list_controllers, list_controller_types, list_hardware_components,
//              list_hardware_interfaces, switch_controller (controller_manager_msgs)
// Publishers:  /controller_manager/activity (controller_manager_msgs/ControllerManagerActivity): on a change
//              /controller_manager/statistics/names, values, full (pal_statistics_msgs): each cycle, if there
//              is a subscriber
//              /controller_manager/introspection_data/names, values, full: likewise, every interface of the
//              hardware
// Thread: manager, which publishes the latter two.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "manipulation/control/controller_set.h"
#include "manipulation/control/loop_statistics.h"
#include "manipulation/controllers/realtime_publisher.h"
#include "messages/controller_manager_msgs/msg/controller_manager_activity.h"
#include "messages/controller_manager_msgs/srv/list_controller_types.h"
#include "messages/controller_manager_msgs/srv/list_controllers.h"
#include "messages/controller_manager_msgs/srv/list_hardware_components.h"
#include "messages/controller_manager_msgs/srv/list_hardware_interfaces.h"
#include "messages/controller_manager_msgs/srv/switch_controller.h"
#include "messages/pal_statistics_msgs/msg/statistics.h"
#include "messages/pal_statistics_msgs/msg/statistics_names.h"
#include "messages/pal_statistics_msgs/msg/statistics_values.h"
#include "program/program.h"

namespace perflab::manipulation {

struct HardwareDescription {
  std::string name;
  std::string plugin;
  std::vector<std::string> command_interfaces, state_interfaces;  // "panda_joint1/position"
};

// pal_statistics' three topics of one registry: names once, values in their order, and both together.
class StatisticsTopics {
 public:
  StatisticsTopics(program::Context& context, const std::string& topic, const std::vector<std::string>& names);
  void start();
  // One thread. True if there is a subscriber; without one nothing is sent, as in pal_statistics.
  bool look();
  void publish(Nanoseconds time_ns, Nanoseconds due_ns, std::span<const double> values);

 private:
  program::Publisher<messages::pal_statistics_msgs::msg::StatisticsNames> names_;
  program::Publisher<messages::pal_statistics_msgs::msg::StatisticsValues> values_;
  program::Publisher<messages::pal_statistics_msgs::msg::Statistics> full_;
  bool values_heard_ = false, full_heard_ = false;
};

class ManagerNode {
 public:
  // `deactivated` is called for each stopped controller, in the thread of the service. `update_rate`: Hz. The
  // set must outlive this.
  ManagerNode(program::Context& context, ControllerSet& controllers, HardwareDescription hardware,
              const std::vector<std::string>& statistics, std::uint16_t update_rate,
              std::function<void(std::size_t controller)> deactivated);

  // Called by the control loop: values of the statistics, then those of the hardware's state and command
  // interfaces, each in its order. Neither waits nor allocates.
  void offer(Nanoseconds time_ns, Nanoseconds due_ns, std::span<const double> statistics, std::span<const double> states,
             std::span<const double> commands) noexcept;

  void start();
  void stop() noexcept;

 private:
  using SwitchController = messages::controller_manager_msgs::srv::SwitchController;
  using HardwareInterface = messages::controller_manager_msgs::msg::HardwareInterface;

  static constexpr std::uint32_t kBetweenLooks = 50;  // cycles between checks for subscribers

  struct Cycle {
    Nanoseconds time_ns = 0, due_ns = 0;
    std::vector<double> statistics, interfaces;
  };

  void serve(program::Context& context);
  void change(const SwitchController::Request& request, SwitchController::Response& response);
  void publish(const Cycle& cycle);
  void publish_activity();
  [[nodiscard]] bool claimed(const std::string& interface) const;
  template <typename Interfaces>
  void write_interfaces(Interfaces& commands, Interfaces& states) const;

  ControllerSet& controllers_;
  const HardwareDescription hardware_;
  const std::uint16_t update_rate_;
  const std::function<void(std::size_t)> deactivated_;
  program::Publisher<messages::controller_manager_msgs::msg::ControllerManagerActivity> activity_;
  StatisticsTopics statistics_, introspection_;
  Cycle cycle_;                // of the control loop
  std::uint32_t unheard_ = 0;  // likewise
  std::uint32_t heard_for_ = 0;
  std::atomic<bool> heard_{false};
  RealtimePublisher<Cycle> publisher_;
  std::atomic<bool> stopping_{false};
};

}  // namespace perflab::manipulation
