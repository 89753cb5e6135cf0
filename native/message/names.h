// Names on the wire, by the conventions of ROS 2, and perflab's short names of its own types.
#pragma once

#include <string>
#include <string_view>

namespace perflab::message {

// Topic "/amazon" -> "rt/amazon"; "perflab_msgs/msg/StampedInt64" -> "perflab_msgs::msg::dds_::StampedInt64_".
[[nodiscard]] std::string dds_topic_name(std::string_view ros_topic);
[[nodiscard]] std::string dds_type_name(std::string_view ros_type);
// Its inverse; a name of another form is returned as it is.
[[nodiscard]] std::string ros_type_name(std::string_view dds_type);

// Service "/add" -> "rq/addRequest" and "rr/addReply". The types of its messages have "_Request" and "_Response" behind.
[[nodiscard]] std::string dds_request_name(std::string_view ros_service);
[[nodiscard]] std::string dds_reply_name(std::string_view ros_service);

// What is called without its package.
inline constexpr std::string_view kOwnPackage = "perflab_msgs/";
// "stamped9_float32" for "Stamped9Float32", as rosidl names its files: an underscore before a capital letter that
// begins a word of small ones, or that follows a small letter or digit.
[[nodiscard]] std::string snake_case(std::string_view camel_case);
// The short name of perflab's own types ("stamped10b"), the full name of others.
[[nodiscard]] std::string short_name(std::string_view full_name);

}  // namespace perflab::message
