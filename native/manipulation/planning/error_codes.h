// MoveIt's error codes: the constants of moveit_msgs/msg/MoveItErrorCodes, as its definition (catalog/messages) says them.
//
// Example:
//   code_of("NO_IK_SOLUTION");   // -31
//   label_of(-4);                // "CONTROL_FAILED"
#pragma once

#include <cstdint>
#include <string_view>

namespace perflab::manipulation::planning {

// Throws Failed where there is no such constant.
[[nodiscard]] std::int32_t code_of(std::string_view label);

// The name of the outcome for a motion that failed with that code, where move_group does not say which check it was: MoveIt
// says the code alone. `executing`: the motion had begun.
[[nodiscard]] std::string_view outcome_of(std::int32_t code, bool executing);

// "unknown" where no constant has that value.
[[nodiscard]] std::string_view label_of(std::int32_t code);

}  // namespace perflab::manipulation::planning
