// Names by the rules of ROS 2 (rmw_validate_full_topic_name and related functions).
//
// Functions named *_problem return "" for a valid name, otherwise what is wrong and what would be right.
//
// Example:
//   qualify_topic("amazon", "/robot", "arm");    // "/robot/amazon"
//   qualify_topic("~/amazon", "/robot", "arm");  // "/robot/arm/amazon"
#pragma once

#include <string>
#include <string_view>

namespace perflab::graph {

// A node: letters, digits and underscores, not beginning with a digit, at most 255.
std::string node_name_problem(std::string_view name);

// A fully qualified namespace: "/" or "/robot/left".
std::string namespace_problem(std::string_view name);

// A topic as written: "/absolute", "relative" or "~/private".
std::string topic_problem(std::string_view topic);

// A fully qualified topic: begins with "/", at most 247 characters (DDS allows 255 with ROS 2's prefix).
std::string qualified_topic_problem(std::string_view topic);

// Services are named like topics. At most 246 characters (DDS allows 255 with ROS 2's prefix and "Request").
std::string service_problem(std::string_view service);
std::string qualified_service_problem(std::string_view service);

// Actions likewise. At most 226 characters, because "/_action/cancel_goal" is appended.
std::string action_problem(std::string_view action);
std::string qualified_action_problem(std::string_view action);

// A graph or process; used as a file name: letters, digits, '_', '-', '+' and '.', beginning with a letter or
// digit, at most 100.
std::string file_name_problem(std::string_view name);

// Replaces every character of `text` that file_name_problem() would refuse; never empty.
std::string as_file_name(std::string_view text);

// "robot" and "/robot" are the same namespace, "" is "/".
std::string qualify_namespace(std::string_view name);

// The fully qualified name of a valid topic or service in a node.
std::string qualify_topic(std::string_view topic, std::string_view node_namespace,
                          std::string_view node_name);

}  // namespace perflab::graph
