// Log messages of a node on /rosout, like every ROS 2 node's. The program must be built with the message
// rcl_interfaces/msg/Log, and the graph must have the node's publisher for it.
//
// Example: (constructed with the application)
//   program::Rosout log_(context, "/move_group");
//   log_.info("Planning request received");
#pragma once

#include <mutex>
#include <string>
#include <string_view>

#include "messages/rcl_interfaces/msg/log.h"
#include "program/program.h"

namespace perflab::program {

// Thread-safe. Locks and allocates.
class Rosout {
 public:
  Rosout(Context& context, const std::string& node) : out_(context.publisher<Log>(node, "/rosout")) {
    out_.message().name = node.substr(1);
  }

  void info(std::string_view text) { say(Log::INFO, text); }
  void warn(std::string_view text) { say(Log::WARN, text); }
  void error(std::string_view text) { say(Log::ERROR, text); }

 private:
  using Log = messages::rcl_interfaces::msg::Log;

  void say(std::uint8_t level, std::string_view text) {
    const Nanoseconds now = read_clock(CLOCK_REALTIME);
    const std::scoped_lock lock(mutex_);
    Log& message = out_.message();
    message.stamp.sec = static_cast<std::int32_t>(now / kNanosecondsPerSecond);
    message.stamp.nanosec = static_cast<std::uint32_t>(now % kNanosecondsPerSecond);
    message.level = level;
    message.msg = std::string(text);
    out_.publish();
  }

  std::mutex mutex_;
  const Publisher<Log> out_;
};

}  // namespace perflab::program
