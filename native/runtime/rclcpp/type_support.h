// What ROS 2 knows of a type: the C type support of its package, loaded when it is first asked for.
//
// perflab's structs and those of ROS 2 have to be the same. Both are made of interface files, which may be of different
// versions, so each type is compared member by member before a message of it is sent.
#pragma once

#include <rosidl_runtime_c/action_type_support_struct.h>
#include <rosidl_runtime_c/message_type_support_struct.h>
#include <rosidl_runtime_c/service_type_support_struct.h>

#include <string>

#include "message/action.h"
#include "message/type.h"

namespace perflab::runtime::ros {

// Of a message, a request or a response, by name ("sensor_msgs/msg/Image"); `type` is perflab's. Throws Error (kUnsupported) where the ROS 2 of this shell has no such
// package, no such type in it, another definition of it, or no type support for that RMW; it says which.
const rosidl_message_type_support_t& message_support(const std::string& name, const message::Type& type,
                                                     const std::string& rmw);

// Of a service, by name ("std_srvs/srv/SetBool"), and with it both of its messages. Throws as the other one.
const rosidl_service_type_support_t& service_support(const std::string& service, const message::Type& request,
                                                     const message::Type& response, const std::string& rmw);

// Of an action, and with it all of its messages. Throws as the others.
const rosidl_action_type_support_t& action_support(const message::ActionTypes& types, const std::string& rmw);

}  // namespace perflab::runtime::ros
