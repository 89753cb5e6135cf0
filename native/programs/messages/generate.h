// Generates C++ headers from interface definitions: a struct per message, with the layout of message::Type.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "message/library.h"

namespace perflab::messages {

// The headers of these interfaces ("sensor_msgs/msg/JointState", "std_srvs/srv/SetBool",
// "control_msgs/action/FollowJointTrajectory") and of all messages they use, by include path:
// "messages/sensor_msgs/msg/joint_state.h". Throws BadInput if one is unknown or its definition is wrong.
[[nodiscard]] std::map<std::string, std::string> headers_of(const std::vector<std::string>& interfaces,
                                                            message::Library& library);

// A header that includes these, "messages/all.h", with a macro PERFLAB_EACH_MESSAGE(VISIT) that expands to
// VISIT(type) for each struct.
[[nodiscard]] std::string header_of_all(const std::map<std::string, std::string>& headers);

}  // namespace perflab::messages
