// The message types perflab can send: names, sizes and ROS 2 names.
//
// Example:
//   const MessageType* type = find_type("stamped9_float32");
//   type->ros_type;       // "perflab_msgs/msg/Stamped9Float32"
//   type->payload_bytes;  // 36
//
// Families and sizes are those of irobot_benchmark (its irregular 5mb = 5000 KiB included).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace perflab::message {

// The largest payload of a type of variable size.
inline constexpr std::uint32_t kMaxPayloadBytes = 64u << 20;

struct MessageType {
  std::string_view name;        // snake case, as in graph files
  std::string_view ros_type;    // package/msg/Name
  std::uint32_t payload_bytes;  // without header; 0 for a type of variable size
  bool variable;                // the payload is a sequence whose length the publisher chooses
};

// All types in the order of their families.
std::span<const MessageType> all_types() noexcept;

// The type of that name, or nullptr. Accepts snake case only ("stamped_int64").
const MessageType* find_type(std::string_view name) noexcept;

// DDS names by the conventions of ROS 2: topic "/amazon" -> "rt/amazon";
// "perflab_msgs/msg/StampedInt64" -> "perflab_msgs::msg::dds_::StampedInt64_".
std::string dds_topic_name(std::string_view ros_topic);
std::string dds_type_name(std::string_view ros_type);

// Services: request and reply of a type have the layout of the message of that name. Every type of fixed size
// is one. "stamped10b" -> "perflab_msgs/srv/Stamped10b"; its two messages have "_Request" and "_Response"
// behind.
std::string service_ros_type(const MessageType& type);
// Service "/add" -> "rq/addRequest" and "rr/addReply".
std::string dds_request_name(std::string_view ros_service);
std::string dds_reply_name(std::string_view ros_service);

}  // namespace perflab::message
