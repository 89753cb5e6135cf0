// Wire names of endpoints and what they announce about their types, by the conventions of ROS 2.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "message/names.h"
#include "runtime/runtime.h"

namespace perflab::runtime {

[[nodiscard]] inline std::string wire_name(const EndpointSettings& settings) {
  switch (settings.kind) {
    case TopicKind::kRequest:
      return message::dds_request_name(settings.topic);
    case TopicKind::kReply:
      return message::dds_reply_name(settings.topic);
    case TopicKind::kTopic:
      break;
  }
  return message::dds_topic_name(settings.topic);
}

// Key under which the RMWs of ROS 2 announce a type hash in USER_DATA
// (rmw_dds_common::encode_type_hash_for_user_data_qos).
inline constexpr std::string_view kTypeHashKey = "typehash=";

// The content of USER_DATA: that of the settings, and the type hash.
[[nodiscard]] inline std::string user_data_of(const EndpointSettings& settings) {
  if (settings.type_hash.empty()) return settings.user_data;
  return settings.user_data + std::string(kTypeHashKey) + settings.type_hash + ";";
}

// The type hash in USER_DATA ("key=value;key=value;"); empty if there is none.
[[nodiscard]] inline std::string type_hash_in(std::string_view user_data) {
  while (!user_data.empty()) {
    const std::string_view one = user_data.substr(0, user_data.find(';'));
    if (one.starts_with(kTypeHashKey)) return std::string(one.substr(kTypeHashKey.size()));
    user_data.remove_prefix(std::min(one.size() + 1, user_data.size()));
  }
  return {};
}

}  // namespace perflab::runtime
