// Type supports of ROS 2: the C type support of a type's package, loaded on first use.
//
// perflab's structs and those of ROS 2 must be identical. Both are generated from interface files, whose
// versions may differ, so each type is compared member by member before a message of it is sent.
#pragma once

#include <rosidl_runtime_c/action_type_support_struct.h>
#include <rosidl_runtime_c/message_type_support_struct.h>
#include <rosidl_runtime_c/service_type_support_struct.h>

#include <string>

#include "message/action.h"
#include "message/type.h"

namespace perflab::runtime::ros {

// The type support of a message, request or response by name ("sensor_msgs/msg/Image"); `type` is perflab's.
// Throws Error (kUnsupported), with the reason, if the sourced ROS 2 lacks the package, the type, or the type
// support for this RMW, or has another definition.
const rosidl_message_type_support_t& message_support(const std::string& name, const message::Type& type,
                                                     const std::string& rmw);

// The type support of a service by name ("std_srvs/srv/SetBool") and of its messages. Throws like
// message_support().
const rosidl_service_type_support_t& service_support(const std::string& service, const message::Type& request,
                                                     const message::Type& response, const std::string& rmw);

// The type support of an action and of its messages. Throws like message_support().
const rosidl_action_type_support_t& action_support(const message::ActionTypes& types, const std::string& rmw);

}  // namespace perflab::runtime::ros
