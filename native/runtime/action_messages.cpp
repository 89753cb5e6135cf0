#include "runtime/action_messages.h"

#include <new>

namespace perflab::runtime {
namespace {

const message::Member& member_of(const message::Type& type, std::string_view name) {
  const message::Member* const member = type.member(name);
  if (member == nullptr) {
    throw BadInput(type.name + " has no member '" + std::string(name) +
                   "', which every action needs; right would be the definition of ROS 2");
  }
  return *member;
}

std::string joined(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : std::string(path) + "." + std::string(name);
}

// The offset of a nested member, e.g. "goal_info.stamp.sec". Throws BadInput if the type does not have it,
// e.g. in an unusual action_msgs.
std::size_t offset_of(const message::Type& type, std::string_view path) {
  if (path.empty()) return 0;
  const std::size_t dot = path.find('.');
  const message::Member& member = member_of(type, path.substr(0, dot));
  if (dot == std::string_view::npos) return member.offset;
  if (member.element.type == nullptr) throw BadInput(type.name + ": '" + member.name + "' is not a struct");
  return member.offset + offset_of(*member.element.type, path.substr(dot + 1));
}

}  // namespace

TimePlace::TimePlace(const message::Type& type, std::string_view path)
    : seconds(offset_of(type, joined(path, "sec"))), nanoseconds(offset_of(type, joined(path, "nanosec"))) {}

std::int64_t TimePlace::read(const void* object) const noexcept {
  return read_at<std::int32_t>(object, seconds) * kNanosecondsPerSecond + read_at<std::uint32_t>(object, nanoseconds);
}

void TimePlace::write(void* object, std::int64_t stamp_ns) const noexcept {
  write_at(object, seconds, static_cast<std::int32_t>(stamp_ns / kNanosecondsPerSecond));
  write_at(object, nanoseconds, static_cast<std::uint32_t>(stamp_ns % kNanosecondsPerSecond));
}

GoalInfoPlace::GoalInfoPlace(const message::Type& type, std::string_view path)
    : id(offset_of(type, joined(path, "goal_id.uuid"))), stamp(type, joined(path, "stamp")) {}

GoalState GoalInfoPlace::read(const void* object) const noexcept {
  return {read_at<GoalId>(object, id), stamp.read(object), GoalStatus::kUnknown};
}

void GoalInfoPlace::write(void* object, const GoalState& state) const noexcept {
  write_at(object, id, state.id);
  stamp.write(object, state.stamp_ns);
}

GoalList::GoalList(const message::Type& type, std::string_view list, std::string_view info, std::string_view status)
    : list_(offset_of(type, list)),
      element_(member_of(type, list).element),
      info_(*element_.type, info),
      status_(offset_of(*element_.type, status)),
      has_status_(!status.empty()) {}

void GoalList::read(const void* object, std::vector<GoalState>& to) const {
  to.clear();
  const auto list = read_at<message::Sequence>(object, list_);
  for (std::size_t i = 0; i < list.size; ++i) {
    const void* const element = within(static_cast<const void*>(list.data), i * element_.stride());
    GoalState state = info_.read(element);
    state.status = has_status_ ? static_cast<GoalStatus>(read_at<std::int8_t>(element, status_)) : GoalStatus::kCanceling;
    to.push_back(state);
  }
}

void GoalList::write(void* object, std::span<const GoalState> goals) const {
  auto& list = *static_cast<message::Sequence*>(within(object, list_));
  if (!message::resize(list, goals.size(), element_)) throw std::bad_alloc();
  for (std::size_t i = 0; i < goals.size(); ++i) {
    void* const element = within(list.data, i * element_.stride());
    info_.write(element, goals[i]);
    if (has_status_) write_at(element, status_, static_cast<std::int8_t>(goals[i].status));
  }
}

std::string action_part(const ActionSettings& settings, std::string_view part) {
  return settings.action + "/_action/" + std::string(part);
}

ServiceSettings action_service(const ActionSettings& settings, std::string_view part, const message::ServiceTypes& types) {
  return {.process = settings.process,
          .participant = settings.participant,
          .group = settings.group,
          .service = action_part(settings, part),
          .ros_type = types.name,
          .request = types.request,
          .response = types.response,
          .qos = settings.qos.services,
          .request_hash = types.request_hash,
          .response_hash = types.response_hash,
          .priority = settings.priority};
}

EndpointSettings action_topic(const ActionSettings& settings, std::string_view part, const message::Type& type,
                              const std::string& hash, const perflab_qos& qos) {
  EndpointSettings made;
  made.process = settings.process;
  made.participant = settings.participant;
  made.group = settings.group;
  made.topic = action_part(settings, part);
  made.ros_type = type.name;
  made.type = &type;
  made.qos = qos;
  made.type_hash = hash;
  made.priority = settings.priority;
  made.of_action = true;
  return made;
}

ActionPlaces::ActionPlaces(const message::ActionTypes& types)
    : goal_id(offset_of(*types.send_goal.request, "goal_id.uuid")),
      goal(offset_of(*types.send_goal.request, "goal")),
      accepted(offset_of(*types.send_goal.response, "accepted")),
      result_goal_id(offset_of(*types.get_result.request, "goal_id.uuid")),
      result_status(offset_of(*types.get_result.response, "status")),
      result(offset_of(*types.get_result.response, "result")),
      cancel_returned(offset_of(*types.cancel.response, "return_code")),
      feedback_goal_id(offset_of(*types.feedback_message, "goal_id.uuid")),
      feedback_value(offset_of(*types.feedback_message, "feedback")),
      stamp(*types.send_goal.response, "stamp"),
      cancel_which(*types.cancel.request, "goal_info"),
      canceling(*types.cancel.response, "goals_canceling", "", ""),
      states(*types.status, "status_list", "goal_info", "status") {}

}  // namespace perflab::runtime
