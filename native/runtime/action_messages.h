// The messages of an action, as client and server read and write them: structs whose members are looked up
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "message/codec.h"
#include "message/object.h"
#include "runtime/action.h"
#include "runtime/runtime.h"

namespace perflab::runtime {

template <typename Value>
[[nodiscard]] Value read_at(const void* object, std::size_t offset) noexcept {
  Value value;
  std::memcpy(&value, static_cast<const std::byte*>(object) + offset, sizeof value);
  return value;
}
template <typename Value>
void write_at(void* object, std::size_t offset, const Value& value) noexcept {
  std::memcpy(static_cast<std::byte*>(object) + offset, &value, sizeof value);
}
[[nodiscard]] inline const void* within(const void* object, std::size_t offset) noexcept {
  return static_cast<const std::byte*>(object) + offset;
}
[[nodiscard]] inline void* within(void* object, std::size_t offset) noexcept {
  return static_cast<std::byte*>(object) + offset;
}

// Offsets of a builtin_interfaces/msg/Time in a struct.
struct TimePlace {
  TimePlace(const message::Type& type, std::string_view path);
  [[nodiscard]] std::int64_t read(const void* object) const noexcept;
  void write(void* object, std::int64_t stamp_ns) const noexcept;

  std::size_t seconds;
  std::size_t nanoseconds;
};

// Offsets of an action_msgs/msg/GoalInfo in a struct.
struct GoalInfoPlace {
  GoalInfoPlace(const message::Type& type, std::string_view path);
  [[nodiscard]] GoalState read(const void* object) const noexcept;
  void write(void* object, const GoalState& state) const noexcept;

  std::size_t id;
  TimePlace stamp;
};

// One message type of an action: its codec, and the struct into which encoded messages are decoded.
class ActionMessage {
 public:
  explicit ActionMessage(const message::Type& type) : codec_(type), object_(type) {}

  [[nodiscard]] const message::Type& type() const noexcept { return codec_.type(); }
  // The message as a struct, valid until the next call; null if the bytes are not such a message.
  [[nodiscard]] const void* read(const Delivery& delivery) noexcept {
    if (delivery.object != nullptr) return delivery.object;
    return codec_.decode(delivery.bytes, object_.data()) ? object_.data() : nullptr;
  }
  // Throws std::bad_alloc.
  [[nodiscard]] std::vector<std::uint8_t> encode(const void* object) const {
    std::vector<std::uint8_t> bytes(codec_.encoded_size(object));
    codec_.encode(object, bytes);
    return bytes;
  }

 private:
  message::Codec codec_;
  message::Object object_;
};

// A sequence of goals in a struct: that of GoalStatusArray or of a cancel answer.
class GoalList {
 public:
  // `info` is the path of the GoalInfo within an element, "" if the element itself is one; `status` is the
  // path of the status, or "".
  GoalList(const message::Type& type, std::string_view list, std::string_view info, std::string_view status);
  // Throws std::bad_alloc.
  void read(const void* object, std::vector<GoalState>& to) const;
  void write(void* object, std::span<const GoalState> goals) const;

 private:
  std::size_t list_;
  const message::Element& element_;
  GoalInfoPlace info_;
  std::size_t status_;
  bool has_status_;
};

// "/reach/_action/send_goal"
[[nodiscard]] std::string action_part(const ActionSettings& settings, std::string_view part);
[[nodiscard]] ServiceSettings action_service(const ActionSettings& settings, std::string_view part,
                                             const message::ServiceTypes& types);
[[nodiscard]] EndpointSettings action_topic(const ActionSettings& settings, std::string_view part, const message::Type& type,
                                            const std::string& hash, const perflab_qos& qos);

// Offsets of an action's members in its messages, for every runtime that has actions.
struct ActionPlaces {
  // Throws BadInput if a message lacks a member that ROS 2's has.
  explicit ActionPlaces(const message::ActionTypes& types);

  std::size_t goal_id, goal;                     // in the send_goal request
  std::size_t accepted;                          // in its answer, with `stamp`
  std::size_t result_goal_id;                    // in the get_result request
  std::size_t result_status, result;             // in its answer
  std::size_t cancel_returned;                   // in the cancel_goal answer, with `canceling`
  std::size_t feedback_goal_id, feedback_value;  // in the feedback message
  TimePlace stamp;
  GoalInfoPlace cancel_which;  // in the cancel_goal request
  GoalList canceling;
  GoalList states;  // in the status message
};

}  // namespace perflab::runtime
