// What rclcpp knows of a topic's endpoints: a line for each, "writes|reads TYPE HASH", once there are as many as asked.
//
//   ros2_endpoints_tool TOPIC COUNT
#include <chrono>
#include <iostream>
#include <memory>
#include <rclcpp/rclcpp.hpp>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

namespace {

// Since Iron endpoints have one.
template <typename Endpoint>
std::string hash_of(const Endpoint& endpoint) {
  if constexpr (requires { endpoint.topic_type_hash(); }) {
    rcutils_allocator_t allocator = rcutils_get_default_allocator();
    char* text = nullptr;
    const auto hash = endpoint.topic_type_hash();
    if (rosidl_stringify_type_hash(&hash, allocator, &text) != RCUTILS_RET_OK) return "unknown";
    const std::string found = text;
    allocator.deallocate(text, allocator.state);
    return found;
  } else {
    return "none";
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::cerr << "usage: ros2_endpoints_tool TOPIC COUNT\n";
    return 2;
  }
  const std::string topic = argv[1];
  const std::size_t wanted = std::stoul(argv[2]);
  rclcpp::init(1, argv);
  const auto node = std::make_shared<rclcpp::Node>("endpoints", rclcpp::NodeOptions().start_parameter_services(false));
  while (rclcpp::ok()) {
    std::multiset<std::string> found;
    const auto add = [&](const char* does, const auto& endpoints) {
      for (const auto& one : endpoints) found.insert(std::string(does) + " " + one.topic_type() + " " + hash_of(one));
    };
    add("writes", node->get_publishers_info_by_topic(topic));
    add("reads", node->get_subscriptions_info_by_topic(topic));
    if (found.size() >= wanted) {
      for (const std::string& line : found) std::cout << line << "\n";
      break;
    }
    rclcpp::sleep_for(std::chrono::milliseconds(20));
  }
  rclcpp::shutdown();
  return 0;
}
