#include "message/types.h"

#include <algorithm>
#include <array>

namespace perflab::message {
namespace {

constexpr std::array kTypes{
    MessageType{"stamped10b", "perflab_msgs/msg/Stamped10b", 10, false},
    MessageType{"stamped100b", "perflab_msgs/msg/Stamped100b", 100, false},
    MessageType{"stamped250b", "perflab_msgs/msg/Stamped250b", 250, false},
    MessageType{"stamped1kb", "perflab_msgs/msg/Stamped1kb", 1024, false},
    MessageType{"stamped10kb", "perflab_msgs/msg/Stamped10kb", 10240, false},
    MessageType{"stamped50kb", "perflab_msgs/msg/Stamped50kb", 51200, false},
    MessageType{"stamped100kb", "perflab_msgs/msg/Stamped100kb", 102400, false},
    MessageType{"stamped250kb", "perflab_msgs/msg/Stamped250kb", 256000, false},
    MessageType{"stamped500kb", "perflab_msgs/msg/Stamped500kb", 512000, false},
    MessageType{"stamped600kb", "perflab_msgs/msg/Stamped600kb", 614400, false},
    MessageType{"stamped1mb", "perflab_msgs/msg/Stamped1mb", 1048576, false},
    MessageType{"stamped4mb", "perflab_msgs/msg/Stamped4mb", 4194304, false},
    MessageType{"stamped5mb", "perflab_msgs/msg/Stamped5mb", 5120000, false},
    MessageType{"stamped8mb", "perflab_msgs/msg/Stamped8mb", 8388608, false},
    MessageType{"stamped3_float32", "perflab_msgs/msg/Stamped3Float32", 12, false},
    MessageType{"stamped4_float32", "perflab_msgs/msg/Stamped4Float32", 16, false},
    MessageType{"stamped9_float32", "perflab_msgs/msg/Stamped9Float32", 36, false},
    MessageType{"stamped12_float32", "perflab_msgs/msg/Stamped12Float32", 48, false},
    MessageType{"stamped4_int32", "perflab_msgs/msg/Stamped4Int32", 16, false},
    MessageType{"stamped_int64", "perflab_msgs/msg/StampedInt64", 8, false},
    MessageType{"stamped_vector", "perflab_msgs/msg/StampedVector", 0, true},
};

}  // namespace

std::span<const MessageType> all_types() noexcept { return kTypes; }

const MessageType* find_type(std::string_view name) noexcept {
  const auto found = std::ranges::find(kTypes, name, &MessageType::name);
  return found == kTypes.end() ? nullptr : &*found;
}

namespace {

std::string prefixed(std::string_view prefix, std::string_view ros_name) {
  std::string name(prefix);
  if (!ros_name.starts_with('/')) name += '/';
  return name.append(ros_name);
}

}  // namespace

std::string dds_topic_name(std::string_view ros_topic) { return prefixed("rt", ros_topic); }

std::string dds_request_name(std::string_view ros_service) { return prefixed("rq", ros_service) + "Request"; }

std::string dds_reply_name(std::string_view ros_service) { return prefixed("rr", ros_service) + "Reply"; }

std::string service_ros_type(const MessageType& type) {
  return "perflab_msgs/srv" + std::string(type.ros_type.substr(type.ros_type.rfind('/')));
}

std::string dds_type_name(std::string_view ros_type) {
  std::string name;
  std::size_t begin = 0;
  for (std::size_t slash = ros_type.find('/'); slash != std::string_view::npos;
       slash = ros_type.find('/', begin)) {
    name.append(ros_type.substr(begin, slash - begin)).append("::");
    begin = slash + 1;
  }
  return name.append("dds_::").append(ros_type.substr(begin)).append("_");
}

}  // namespace perflab::message
