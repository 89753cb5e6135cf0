// All interface definitions that are known: those that perflab brings, folders of the user's, and texts.
//
// Names are "package/msg/Name"; "package/Name" and, for perflab's own package, the name in snake case alone
// ("stamped10b", "array1k") mean the same. A definition is read when it is first asked for.
//
// Example:
//   Library library;                       // what perflab brings
//   library.add_folder("/home/me/ws/src"); // DIR/**/package/msg/Name.msg
//   const Definition& cloud = library.find("sensor_msgs/msg/PointCloud2");
#pragma once

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
  ~Library();

  // The interface files below a folder, wherever they are: .../package/msg/Name.msg. Later folders come before
  // earlier ones and before what perflab brings. Throws BadInput where there is no such folder, or no interface
  // file in it.
  void add_folder(const std::filesystem::path& folder);
  // A definition as text, for `name` "package/msg/Name"; `source` is what messages call it.
  void add_text(const std::string& name, std::string text, const std::string& source);

  // The full name of what is asked for, or nothing where it is unknown. Throws BadInput where a short name means
  // several.
  [[nodiscard]] std::optional<std::string> full_name(std::string_view name) const;

  // The struct of that full name: of a message, of a part of a service or action ("std_srvs/srv/SetBool_Request",
  // "..._Goal", "..._SendGoal_Request", "..._GetResult_Response", "..._FeedbackMessage"). All structs within it
  // are known and none contains itself. Throws BadInput with one line: what, where (file:line:column), what would
  // be right.
  const Definition& find(const std::string& full_name);

  // Full names of all interfaces: "package/msg/Name", "package/srv/Name", "package/action/Name"; sorted.
  [[nodiscard]] std::vector<std::string> names() const;

  // The text of an interface and of all that it is made of, by full name of the interface: what another library
  // needs to know it.
  [[nodiscard]] std::map<std::string, std::string> texts_of(const std::string& full_name);

  // RIHS01_ and 64 hexadecimal digits: the type hash of ROS 2 (REP 2016) of a message, of a part of a service or
  // action, or of a whole service ("std_srvs/srv/SetBool").
  std::string hash(const std::string& full_name);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perflab::message
