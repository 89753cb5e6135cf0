// Writes interface definitions as C++ headers: a struct for each message, laid out as message::Type says.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "message/library.h"

namespace perflab::messages {

// The headers of these interfaces ("sensor_msgs/msg/JointState", "std_srvs/srv/SetBool",
// "control_msgs/action/FollowJointTrajectory") and of all messages that they are made of, by the path under which others
// include them: "messages/sensor_msgs/msg/joint_state.h". Throws BadInput where one is unknown or its definition is wrong.
[[nodiscard]] std::map<std::string, std::string> headers_of(const std::vector<std::string>& interfaces,
                                                            message::Library& library);

// One more that includes these, "messages/all.h", with a macro PERFLAB_EACH_MESSAGE(VISIT) that is VISIT(type) for each struct:
// for who looks at all of them.
[[nodiscard]] std::string header_of_all(const std::map<std::string, std::string>& headers);

}  // namespace perflab::messages
