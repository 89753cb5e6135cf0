// Wire names, by the conventions of ROS 2, and perflab's short names for its own types.
#pragma once

#include <string>
#include <string_view>

namespace perflab::message {

// Topic "/amazon" -> "rt/amazon"; "perflab_msgs/msg/StampedInt64" -> "perflab_msgs::msg::dds_::StampedInt64_".
[[nodiscard]] std::string dds_topic_name(std::string_view ros_topic);
[[nodiscard]] std::string dds_type_name(std::string_view ros_type);
// The inverse; returns names of another form unchanged.
[[nodiscard]] std::string ros_type_name(std::string_view dds_type);

// Service "/add" -> "rq/addRequest" and "rr/addReply". Its message types have the suffixes "_Request" and
// "_Response".
[[nodiscard]] std::string dds_request_name(std::string_view ros_service);
[[nodiscard]] std::string dds_reply_name(std::string_view ros_service);

// Names of this package are used without the package.
inline constexpr std::string_view kOwnPackage = "perflab_msgs/";
// "stamped9_float32" for "Stamped9Float32", as in rosidl's file names: an underscore before an upper-case
// letter that is followed by a lower-case one, or that follows a lower-case letter or digit.
[[nodiscard]] std::string snake_case(std::string_view camel_case);
// The short name of perflab's own types ("stamped10b"), the full name of others.
[[nodiscard]] std::string short_name(std::string_view full_name);

}  // namespace perflab::message
