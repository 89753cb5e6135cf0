// MoveIt's error codes: the constants of moveit_msgs/msg/MoveItErrorCodes, taken from its definition
// (catalog/messages).
//
// Example:
//   code_of("NO_IK_SOLUTION");   // -31
//   label_of(-4);                // "CONTROL_FAILED"
#pragma once

#include <cstdint>
#include <string_view>

namespace perflab::manipulation::planning {

// Throws Failed if there is no such constant.
[[nodiscard]] std::int32_t code_of(std::string_view label);

// The outcome of a motion that failed with this code, if move_group does not report which check failed:
// MoveIt only reports the code. `executing`: the motion had begun.
[[nodiscard]] std::string_view outcome_of(std::int32_t code, bool executing);

// "unknown" if no constant has this value.
[[nodiscard]] std::string_view label_of(std::int32_t code);

}  // namespace perflab::manipulation::planning
