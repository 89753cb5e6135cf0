// Names on the wire, by the conventions of ROS 2.
#pragma once

#include <string>

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

}  // namespace perflab::runtime
