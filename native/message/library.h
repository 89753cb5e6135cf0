// All interface definitions that are known: those that perflab brings, those of a ROS 2, folders of the user's, and texts.
//
// Names are "package/msg/Name"; "package/Name" and, for perflab's own package, the name in snake case alone
// ("stamped10b", "array1k") mean the same. A definition is read when it is first asked for. What is added
// later comes before what was there, for the structs that others are made of as well; source_of() says which
// it is.
//
// Within a definition "Name" alone is a message of the same package, and "Header", where the package has none
// of that name, std_msgs/Header.
//
// Example:
//   Library library(brought);              // what perflab brings
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

// Structs within structs: one in itself is 1 deep.
inline constexpr std::size_t kMaxDepth = 64;
// Bytes of a struct whose texts and sequences are empty, each counted with kVariableBytes, without padding.
inline constexpr std::uint64_t kMaxFixedBytes = std::uint64_t{1} << 30;
inline constexpr std::uint64_t kVariableBytes = 32;

// One interface file as perflab brings it (definitions.h).
struct InterfaceText {
  std::string_view package;
  std::string_view kind;  // "msg", "srv", "action"
  std::string_view name;  // "PointCloud2"
  std::string_view text;
};

class Library {
 public:
  // `brought` outlives the library.
  explicit Library(std::span<const InterfaceText> brought = {});
  Library(Library&&) noexcept;
  Library& operator=(Library&&) noexcept;
  ~Library();

  // The interface files below a folder, wherever they are: .../package/msg/Name.msg. Links are followed.
  // Throws BadInput where there is no such folder, it cannot be read, or no interface file is in it. What
  // find() returned before is no longer valid.
  void add_folder(const std::filesystem::path& folder);
  // The interfaces that are installed below a prefix of ROS 2, as the index of ament there says; those of perflab's own
  // package stay as they are. Nothing where the prefix has none. Throws BadInput where the index cannot be read. What
  // find() returned before is no longer valid.
  void add_installed(const std::filesystem::path& prefix);
  // A definition as text, for `name` "package/msg/Name" (or srv, action); `source` is what messages call it.
  // Throws BadInput where the name is of another form. What find() returned before is no longer valid.
  void add_text(const std::string& name, std::string text, const std::string& source);

  // The full name of the interface or struct that is asked for, or nothing where it is unknown.
  // "package/Name" is the message of that name before a service or action. Throws BadInput where a short name
  // means several.
  [[nodiscard]] std::optional<std::string> full_name(std::string_view name) const;

  // The struct of that full name: of a message, of a part of a service or action
  // ("std_srvs/srv/SetBool_Request", "..._Goal", "..._SendGoal_Request", "..._GetResult_Response",
  // "..._FeedbackMessage"). All structs within it are known, named in full, none contains itself, and none is
  // above the limits. Throws BadInput with one line: where (file:line:column), what, what would be right. It
  // stays valid until something is added.
  const Definition& find(const std::string& full_name);

  // Full names of all interfaces: "package/msg/Name", "package/srv/Name", "package/action/Name"; sorted.
  [[nodiscard]] std::vector<std::string> names() const;

  // Where an interface of names() comes from: its file, or what add_text() called it. What perflab brings is
  // called "package/msg/Name.msg".
  [[nodiscard]] std::string source_of(const std::string& interface_name) const;

  // The text of an interface and of all that it is made of, by full name of the interface: what another
  // library needs to know it. Throws as find() does.
  [[nodiscard]] std::map<std::string, std::string> texts_of(const std::string& full_name);

  // RIHS01_ and 64 hexadecimal digits: the type hash of ROS 2 (REP 2016) of a message, of a part of a service
  // or action, or of a whole service or action ("std_srvs/srv/SetBool"). Throws as find() does.
  [[nodiscard]] std::string hash(const std::string& full_name);

 private:
  class State;
  std::unique_ptr<State> state_;
};

}  // namespace perflab::message
