#include "runtime/rclcpp/type_support.h"

#include <dlfcn.h>
#include <rcutils/error_handling.h>
#include <rosidl_typesupport_introspection_c/field_types.h>
#include <rosidl_typesupport_introspection_c/identifier.h>
#include <rosidl_typesupport_introspection_c/message_introspection.h>

#include <algorithm>
#include <initializer_list>
#include <string_view>

#include "base/error.h"

namespace perflab::runtime::ros {
namespace {

using Members = rosidl_typesupport_introspection_c__MessageMembers;
using TheirMember = rosidl_typesupport_introspection_c__MessageMember;

// The parts of "sensor_msgs/msg/Image".
struct Name {
  explicit Name(const std::string& full)
      : package(full.substr(0, full.find('/'))),
        kind(full.substr(package.size() + 1, full.rfind('/') - package.size() - 1)),
        name(full.substr(full.rfind('/') + 1)) {}

  std::string package;
  std::string kind;
  std::string name;
};

// Libraries are never unloaded: their symbols are used until the process ends.
void* load(const std::string& library) {
  void* const loaded = dlopen(library.c_str(), RTLD_LAZY | RTLD_GLOBAL);
  if (loaded == nullptr) static_cast<void>(dlerror());  // our own message replaces it
  return loaded;
}

[[noreturn]] void no_package(const Name& of, const std::string& library) {
  throw Error(Error::Kind::kUnsupported,
              "rclcpp: the sourced ROS 2 has no package " + of.package + ", of which " + of.name + " is (" + library +
                  " was not found); right would be to build " + of.package +
                  " with its rosidl generators and to source that workspace");
}

// An RMW looks for its type support by library name only, and finds it if it is already loaded: those of
// perflab_msgs are on no search path and are found through the RUNPATH of this library. Introspection is
// needed to compare types; rmw_cyclonedds writes messages with it, rmw_fastrtps_cpp with its own.
void load_for(const std::string& package, const std::string& rmw) {
  struct Kind {
    std::string_view library;
    std::initializer_list<std::string_view> of;  // none: all
  };
  static const Kind kKinds[] = {
      {"__rosidl_typesupport_introspection_c", {}},
      {"__rosidl_typesupport_fastrtps_c", {"rmw_fastrtps_cpp"}},
  };
  for (const Kind& kind : kKinds) {
    if (kind.of.size() > 0 && std::ranges::find(kind.of, rmw) == kind.of.end()) continue;
    const std::string library = "lib" + package + std::string(kind.library) + ".so";
    if (load(library) == nullptr)
      throw Error(Error::Kind::kUnsupported, "rclcpp: " + package + " has no " + library + ", which " + rmw +
                                                 " needs; right would be to build " + package + " again where " + rmw +
                                                 " is sourced");
  }
}

// The function of that name in the package's library. Throws Error.
template <typename Handle>
const Handle& handle_of(const Name& of, std::string_view what) {
  const std::string library = "lib" + of.package + "__rosidl_typesupport_c.so";
  void* const loaded = load(library);
  if (loaded == nullptr) no_package(of, library);
  const std::string symbol = "rosidl_typesupport_c__get_" + std::string(what) + "_type_support_handle__" + of.package +
                             "__" + of.kind + "__" + of.name;
  using Get = const Handle* (*)();
  const auto get = reinterpret_cast<Get>(dlsym(loaded, symbol.c_str()));
  const Handle* const handle = get == nullptr ? nullptr : get();
  if (handle == nullptr)
    throw Error(Error::Kind::kUnsupported,
                "rclcpp: " + of.package + " of the sourced ROS 2 has no " + of.kind + "/" + of.name +
                    "; right would be the version of " + of.package + " that has it");
  return *handle;
}

std::uint8_t kind_of(const message::Element& element) noexcept {
  using message::Primitive;
  if (element.type != nullptr) return rosidl_typesupport_introspection_c__ROS_TYPE_MESSAGE;
  switch (element.primitive) {
    case Primitive::kBool:
      return rosidl_typesupport_introspection_c__ROS_TYPE_BOOLEAN;
    case Primitive::kByte:
      return rosidl_typesupport_introspection_c__ROS_TYPE_OCTET;
    case Primitive::kChar:  // rosidl_adapter maps it to uint8
    case Primitive::kUint8:
      return rosidl_typesupport_introspection_c__ROS_TYPE_UINT8;
    case Primitive::kInt8:
      return rosidl_typesupport_introspection_c__ROS_TYPE_INT8;
    case Primitive::kInt16:
      return rosidl_typesupport_introspection_c__ROS_TYPE_INT16;
    case Primitive::kUint16:
      return rosidl_typesupport_introspection_c__ROS_TYPE_UINT16;
    case Primitive::kInt32:
      return rosidl_typesupport_introspection_c__ROS_TYPE_INT32;
    case Primitive::kUint32:
      return rosidl_typesupport_introspection_c__ROS_TYPE_UINT32;
    case Primitive::kInt64:
      return rosidl_typesupport_introspection_c__ROS_TYPE_INT64;
    case Primitive::kUint64:
      return rosidl_typesupport_introspection_c__ROS_TYPE_UINT64;
    case Primitive::kFloat32:
      return rosidl_typesupport_introspection_c__ROS_TYPE_FLOAT;
    case Primitive::kFloat64:
      return rosidl_typesupport_introspection_c__ROS_TYPE_DOUBLE;
    case Primitive::kString:
      return rosidl_typesupport_introspection_c__ROS_TYPE_STRING;
    case Primitive::kWstring:
      return rosidl_typesupport_introspection_c__ROS_TYPE_WSTRING;
  }
  return 0;
}

const Members* members_of(const rosidl_message_type_support_t* support) {
  const rosidl_message_type_support_t* const found =
      get_message_typesupport_handle(support, rosidl_typesupport_introspection_c__identifier);
  if (found == nullptr) rcutils_reset_error();
  return found == nullptr ? nullptr : static_cast<const Members*>(found->data);
}

// The first member that differs, with its enclosing structs; empty if there is none.
std::string difference(const message::Type& ours, const Members& theirs);

std::string difference(const message::Member& ours, const TheirMember& theirs) {
  const bool bounded = ours.plurality == message::Plurality::kBounded;
  const bool same = ours.name == theirs.name_ && ours.offset == theirs.offset_ &&
                    kind_of(ours.element) == theirs.type_id_ &&
                    ours.element.text_bound == theirs.string_upper_bound_ &&
                    (ours.plurality != message::Plurality::kOne) == theirs.is_array_ &&
                    (!theirs.is_array_ || ours.count == theirs.array_size_) && bounded == theirs.is_upper_bound_;
  if (!same) return ours.name;
  if (ours.element.type == nullptr) return {};
  const Members* const nested = members_of(theirs.members_);
  const std::string within = nested == nullptr ? "?" : difference(*ours.element.type, *nested);
  return within.empty() ? within : ours.name + "." + within;
}

std::string difference(const message::Type& ours, const Members& theirs) {
  for (std::size_t i = 0; i < std::min<std::size_t>(ours.members.size(), theirs.member_count_); ++i) {
    if (std::string found = difference(ours.members[i], theirs.members_[i]); !found.empty()) return found;
  }
  if (ours.members.size() > theirs.member_count_) return ours.members[theirs.member_count_].name;
  if (ours.members.size() < theirs.member_count_) return theirs.members_[ours.members.size()].name_;
  return ours.size == theirs.size_of_ ? "" : "its size";
}

void compare(const message::Type& type, const rosidl_message_type_support_t& support) {
  const Members* const theirs = members_of(&support);
  const std::string found = theirs == nullptr ? "?" : difference(type, *theirs);
  if (found.empty()) return;
  const std::string package = Name(type.name).package;
  throw Error(Error::Kind::kUnsupported,
              "rclcpp: " + type.name + " of the sourced ROS 2 differs from that of this graph: '" + found +
                  "' differs; right would be --message-path with the interface files of that " + package);
}

}  // namespace

const rosidl_message_type_support_t& message_support(const std::string& name, const message::Type& type,
                                                     const std::string& rmw) {
  const Name parts(name);
  const auto& handle = handle_of<rosidl_message_type_support_t>(parts, "message");
  load_for(parts.package, rmw);
  compare(type, handle);
  return handle;
}

const rosidl_service_type_support_t& service_support(const std::string& service, const message::Type& request,
                                                     const message::Type& response, const std::string& rmw) {
  message_support(service + "_Request", request, rmw);
  message_support(service + "_Response", response, rmw);
  return handle_of<rosidl_service_type_support_t>(Name(service), "service");
}

const rosidl_action_type_support_t& action_support(const message::ActionTypes& types, const std::string& rmw) {
  for (const message::ServiceTypes* const service : {&types.send_goal, &types.get_result, &types.cancel})
    static_cast<void>(service_support(service->name, *service->request, *service->response, rmw));
  for (const message::Type* const type : {types.feedback_message, types.status})
    static_cast<void>(message_support(type->name, *type, rmw));
  return handle_of<rosidl_action_type_support_t>(Name(types.name), "action");
}

}  // namespace perflab::runtime::ros
