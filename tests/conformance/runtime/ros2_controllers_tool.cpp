// What brings controllers of a ros2_control_node up: the robot's description for it, and what `spawner` does for each of them.
// Runs until it is interrupted, so that the description stays.
//
//   ros2_controllers_tool URDF CONTROLLER...
#include <chrono>
#include <controller_manager_msgs/srv/configure_controller.hpp>
#include <controller_manager_msgs/srv/load_controller.hpp>
#include <controller_manager_msgs/srv/switch_controller.hpp>
#include <fstream>
#include <iostream>
#include <iterator>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <std_msgs/msg/string.hpp>
#include <string>
#include <vector>

namespace {

using namespace std::chrono_literals;
using controller_manager_msgs::srv::ConfigureController;
using controller_manager_msgs::srv::LoadController;
using controller_manager_msgs::srv::SwitchController;

// Whether it could be done. Waits for the server, and for its answer.
template <typename Service>
bool call(const rclcpp::Node::SharedPtr& node, const std::string& name, const typename Service::Request& request) {
  const auto client = node->create_client<Service>("/controller_manager/" + name);
  while (!client->wait_for_service(100ms)) {
    if (!rclcpp::ok()) return false;
  }
  auto answer = client->async_send_request(std::make_shared<typename Service::Request>(request));
  if (rclcpp::spin_until_future_complete(node, answer) != rclcpp::FutureReturnCode::SUCCESS) return false;
  if (answer.get()->ok) return true;
  std::cerr << "controller_manager refused " << name << "\n";
  return false;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::cerr << "usage: ros2_controllers_tool URDF CONTROLLER...\n";
    return 2;
  }
  const std::vector<std::string> controllers(argv + 2, argv + argc);
  rclcpp::init(1, argv);
  const auto node = std::make_shared<rclcpp::Node>("bring_up");
  std_msgs::msg::String description;
  std::ifstream file(argv[1]);
  description.data.assign(std::istreambuf_iterator<char>(file), {});
  const auto publisher = node->create_publisher<std_msgs::msg::String>("/robot_description", rclcpp::QoS(1).transient_local());
  publisher->publish(description);
  SwitchController::Request all;
  all.strictness = SwitchController::Request::STRICT;
  for (const std::string& name : controllers) {
    LoadController::Request load;
    load.name = name;
    ConfigureController::Request configure;
    configure.name = name;
    if (!call<LoadController>(node, "load_controller", load)) return 1;
    if (!call<ConfigureController>(node, "configure_controller", configure)) return 1;
    all.activate_controllers.push_back(name);
  }
  if (!call<SwitchController>(node, "switch_controller", all)) return 1;
  std::cout << "controllers are active" << std::endl;
  rclcpp::spin(node);
  rclcpp::shutdown();
  return 0;
}
