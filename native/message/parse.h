// Parses the text of a .msg, .srv or .action file by the grammar of ROS 2 Jazzy (rosidl_adapter), line by
// line.
//
// Extensions to ROS 2: `@key` in the comment after a field or directly above it makes the field a key;
// `pkg/msg/Name` means `pkg/Name`. Files that ROS 2 accepts but that cannot work (a string that exceeds its
// bound in bytes) are refused.
//
// Example:
//   const auto structs = parse_interface({"std_srvs", InterfaceKind::kService, "SetBool"}, text, path);
//   // std_srvs/srv/SetBool_Request, SetBool_Response, SetBool_Event, SetBool
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "message/definition.h"

namespace perflab::message {

// Maximum size of an interface file; the largest of ROS 2's common interfaces has 6350 bytes.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;
// Maximum length of names of types, fields and constants, which become file names.
inline constexpr std::size_t kMaxNameBytes = 255;
// Maximum number of elements of an array or bounded sequence, and maximum string bound: lengths are uint32 on
// the wire.
inline constexpr std::uint64_t kMaxCount = 0xffffffff;

enum class InterfaceKind : std::uint8_t { kMessage, kService, kAction };

// "msg", "srv", "action": a file's folder and extension.
[[nodiscard]] std::string_view to_text(InterfaceKind kind) noexcept;
[[nodiscard]] std::optional<InterfaceKind> interface_kind_of(std::string_view text) noexcept;

struct InterfaceName {
  std::string package;
  InterfaceKind kind = InterfaceKind::kMessage;
  std::string name;

  [[nodiscard]] std::string full() const;  // "std_srvs/srv/SetBool"
};

// The parts of "package/kind/Name"; empty if the text has another form. Does not check the spelling of the
// parts.
[[nodiscard]] std::optional<InterfaceName> split_name(std::string_view full_name);

// Throws BadInput with one line, "FILE:LINE:COLUMN: <what>".
[[noreturn]] void refuse(const Place& place, std::string_view what);

// The structs that the text defines, and those that ROS 2 derives from them:
//   msg     Name
//   srv     Name_Request, Name_Response, Name_Event
//   action  Name_Goal, Name_Result, Name_Feedback, Name_FeedbackMessage, and the structs of the services
//           Name_SendGoal and Name_GetResult
// and last of all what is no message but has a hash: each service and the action as a struct of its parts.
// Structs without fields have `uint8 structure_needs_at_least_one_member`. A struct within that stands by its
// name alone ("Point") keeps it, because what it means depends on which interfaces are known. `source` is
// what messages call the text. Throws BadInput.
[[nodiscard]] std::vector<Definition> parse_interface(const InterfaceName& name, std::string_view text,
                                                      const std::string& source);

// True for the struct of parse_interface() that stands for a whole service or action: "std_srvs/srv/SetBool".
[[nodiscard]] bool is_aggregate(std::string_view struct_name);

// The interface that a struct belongs to: "std_srvs/srv/SetBool" for "std_srvs/srv/SetBool_Request"; empty if
// the name is not that of a struct of parse_interface().
[[nodiscard]] std::optional<InterfaceName> interface_of(std::string_view struct_name);

}  // namespace perflab::message
