// All known interface definitions: perflab's built-in ones, those of a ROS 2 installation, the user's
// folders, and texts.
//
// Names are "package/msg/Name"; "package/Name" and, for perflab's own package, just the name in snake case
// ("stamped10b", "array1k") are equivalent. A definition is read on first use. Later additions take
// precedence over earlier ones, also within other structs; source_of() reports which one is used.
//
// Within a definition, a bare "Name" is a message of the same package, and "Header", if the package has none,
// is std_msgs/Header.
//
// Example:
//   Library library(brought);              // built-in definitions
//   library.add_folder("/home/me/ws/src"); // DIR/**/package/msg/Name.msg
//   const Definition& cloud = library.find("sensor_msgs/msg/PointCloud2");
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "message/definition.h"

namespace perflab::message {

// Maximum nesting of structs: a struct within a struct has depth 1.
inline constexpr std::size_t kMaxDepth = 64;
// Maximum size of a struct with empty strings and sequences, each counted as kVariableBytes, without padding.
inline constexpr std::uint64_t kMaxFixedBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kVariableBytes = 32;

// A built-in interface file (definitions.h).
struct InterfaceText {
  std::string_view package;
  std::string_view kind;  // "msg", "srv", "action"
  std::string_view name;  // "PointCloud2"
  std::string_view text;
};

class Library {
 public:
  // `brought` must outlive the library.
  explicit Library(std::span<const InterfaceText> brought = {});
  Library(Library&&) noexcept;
  Library& operator=(Library&&) noexcept;
  ~Library();

  // Adds the interface files below a folder, at any depth: .../package/msg/Name.msg. Follows links. Throws
  // BadInput if the folder does not exist, cannot be read, or contains no interface file. Invalidates earlier
  // results of find().
  void add_folder(const std::filesystem::path& folder);
  // Adds the interfaces installed below a ROS 2 prefix, according to its ament index, except those of
  // perflab's own package. Does nothing if the prefix has none. Throws BadInput if the index cannot be read.
  // Invalidates earlier results of find().
  void add_installed(const std::filesystem::path& prefix);
  // Adds a definition as text, for `name` "package/msg/Name" (or srv, action); `source` names it in messages.
  // Throws BadInput if the name has another form. Invalidates earlier results of find().
  void add_text(const std::string& name, std::string text, const std::string& source);

  // The full name of an interface or struct; empty if unknown. "package/Name" means a message before a
  // service or action. Throws BadInput if a short name is ambiguous.
  [[nodiscard]] std::optional<std::string> full_name(std::string_view name) const;

  // The struct with this full name: a message, or a part of a service or action
  // ("std_srvs/srv/SetBool_Request", "..._Goal", "..._SendGoal_Request", "..._GetResult_Response",
  // "..._FeedbackMessage"). All nested structs are known and fully named, none contains itself, and none
  // exceeds the limits. Throws BadInput with one line: where (file:line:column), what, what would be right.
  // Valid until something is added.
  const Definition& find(const std::string& full_name);

  // Full names of all interfaces: "package/msg/Name", "package/srv/Name", "package/action/Name"; sorted.
  [[nodiscard]] std::vector<std::string> names() const;

  // The source of an interface of names(): its file, or the `source` of add_text(). Built-in ones have the
  // source "package/msg/Name.msg".
  [[nodiscard]] std::string source_of(const std::string& interface_name) const;

  // The texts of an interface and of all interfaces it uses, by full name: everything another library needs
  // to know it. Throws like find().
  [[nodiscard]] std::map<std::string, std::string> texts_of(const std::string& full_name);

  // The ROS 2 type hash (REP 2016), RIHS01_ and 64 hexadecimal digits, of a message, of a part of a service
  // or action, or of a whole service or action ("std_srvs/srv/SetBool"). Throws like find().
  [[nodiscard]] std::string hash(const std::string& full_name);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace perflab::message
