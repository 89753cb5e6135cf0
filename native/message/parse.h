// Reads the text of a .msg, .srv or .action file: the grammar of ROS 2 Jazzy (rosidl_adapter), line by line.
//
// Beyond ROS 2: `@key` in the comment behind a field or directly above it makes the field a key;
// `pkg/msg/Name` means `pkg/Name`. A file that ROS 2 accepts and that cannot work (a text above its bound in
// bytes) is refused.
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

// Bytes of an interface file: the largest of the common interfaces of ROS 2 has 6350.
inline constexpr std::size_t kMaxTextBytes = std::size_t{1} << 20;
// Names of types, fields and constants: file names have no more.
inline constexpr std::size_t kMaxNameBytes = 255;
// Elements of an array or bounded sequence, and bounds of texts: lengths are uint32 on the wire.
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

// The parts of "package/kind/Name"; nothing where it is not of that form. Says nothing of the parts'
// spelling.
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

// Whether a struct of parse_interface() is a service or action as a whole: "std_srvs/srv/SetBool".
[[nodiscard]] bool is_aggregate(std::string_view struct_name);

// The interface that a struct belongs to: "std_srvs/srv/SetBool" for "std_srvs/srv/SetBool_Request"; nothing
// where the name is not that of a struct of parse_interface().
[[nodiscard]] std::optional<InterfaceName> interface_of(std::string_view struct_name);

}  // namespace perflab::message
