#include "traceview/schema.h"

#include <algorithm>
#include <span>

#include "ctf/decoder.h"

namespace perflab::traceview {
namespace {

// Names of one event's fields in the order of schema.h's enumerations. A field whose name ends with '?' is optional; a
// null pointer marks a field that this version does not have.
struct Names {
  Kind kind;
  const char* event;
  std::array<const char*, kMaxFields> fields{};
};

struct Version {
  const char* name;
  std::span<const Names> events;
};

// Each version lists only the events that it added or changed; all others are as in the version before it.

constexpr Names kGalactic[] = {
    {Kind::rcl_init, "ros2:rcl_init", {"context_handle", "version"}},
    {Kind::rcl_node_init, "ros2:rcl_node_init", {"node_handle", "rmw_handle?", "node_name", "namespace"}},
    {Kind::rcl_publisher_init, "ros2:rcl_publisher_init",
     {"publisher_handle", "node_handle", "rmw_publisher_handle?", "topic_name", "queue_depth?"}},
    {Kind::rcl_subscription_init, "ros2:rcl_subscription_init",
     {"subscription_handle", "node_handle", "rmw_subscription_handle?", "topic_name", "queue_depth?"}},
    {Kind::rclcpp_subscription_init, "ros2:rclcpp_subscription_init", {"subscription_handle", "subscription"}},
    {Kind::rclcpp_subscription_callback_added, "ros2:rclcpp_subscription_callback_added", {"subscription", "callback"}},
    {Kind::rcl_service_init, "ros2:rcl_service_init", {"service_handle", "node_handle", "rmw_service_handle?", "service_name"}},
    {Kind::rclcpp_service_callback_added, "ros2:rclcpp_service_callback_added", {"service_handle", "callback"}},
    {Kind::rcl_client_init, "ros2:rcl_client_init", {"client_handle", "node_handle", "rmw_client_handle?", "service_name"}},
    {Kind::rcl_timer_init, "ros2:rcl_timer_init", {"timer_handle", "period"}},
    {Kind::rclcpp_timer_callback_added, "ros2:rclcpp_timer_callback_added", {"timer_handle", "callback"}},
    {Kind::rclcpp_timer_link_node, "ros2:rclcpp_timer_link_node", {"timer_handle", "node_handle"}},
    {Kind::rclcpp_callback_register, "ros2:rclcpp_callback_register", {"callback", "symbol"}},
    {Kind::rcl_lifecycle_state_machine_init, "ros2:rcl_lifecycle_state_machine_init", {"node_handle", "state_machine"}},
    {Kind::rcl_lifecycle_transition, "ros2:rcl_lifecycle_transition", {"state_machine", "start_label", "goal_label"}},
    {Kind::rclcpp_publish, "ros2:rclcpp_publish", {"message", "publisher_handle"}},
    {Kind::rclcpp_intra_publish, "ros2:rclcpp_intra_publish", {"message", "publisher_handle"}},
    {Kind::rcl_publish, "ros2:rcl_publish", {"message", "publisher_handle"}},
    {Kind::callback_start, "ros2:callback_start", {"callback", "is_intra_process?"}},
    {Kind::callback_end, "ros2:callback_end", {"callback"}},
    // CARET's fork: binds the middleware's time stamp to the message's address, and records rclcpp's dispatches.
    {Kind::dds_bind_stamp, "ros2_caret:dds_bind_addr_to_stamp", {"addr", "source_stamp"}},
    {Kind::dispatch_subscription_callback, "ros2:dispatch_subscription_callback", {"message", "callback", "source_stamp"}},
};

constexpr Names kHumble[] = {
    {Kind::rmw_publisher_init, "ros2:rmw_publisher_init", {"rmw_publisher_handle", "gid?"}},
    {Kind::rmw_subscription_init, "ros2:rmw_subscription_init", {"rmw_subscription_handle", "gid?"}},
    // The publisher is an argument of the tracepoint, but is not recorded.
    {Kind::rclcpp_publish, "ros2:rclcpp_publish", {"message"}},
    {Kind::rmw_publish, "ros2:rmw_publish", {"message"}},
    {Kind::rmw_take, "ros2:rmw_take", {"rmw_subscription_handle", "message", "source_timestamp", "taken"}},
    {Kind::rcl_take, "ros2:rcl_take", {"message"}},
    {Kind::rclcpp_take, "ros2:rclcpp_take", {"message"}},
    {Kind::executor_get_next_ready, "ros2:rclcpp_executor_get_next_ready", {}},
    {Kind::executor_wait_for_work, "ros2:rclcpp_executor_wait_for_work", {}},
    {Kind::executor_execute, "ros2:rclcpp_executor_execute", {"handle"}},
    // Forks of Humble whose middleware has its own tracepoints with the source time stamp.
    {Kind::dds_create_writer, "dds:create_writer", {"writer", "topic_name", "gid_prefix?", "gid_entity?"}},
    {Kind::dds_write_pre, "dds:write_pre", {"writer", "data"}},
    {Kind::dds_write, "dds:write", {"writer", nullptr, "timestamp"}},
    {Kind::message_link_periodic_async, "ros2:message_link_periodic_async", {"subs?", "pubs?"}},
    {Kind::message_link_partial_sync, "ros2:message_link_partial_sync", {"subs?", "pubs?"}},
};

constexpr Names kIron[] = {
    {Kind::rclcpp_construct_ring_buffer, "ros2:rclcpp_construct_ring_buffer", {"buffer", "capacity?"}},
    {Kind::rclcpp_buffer_to_ipb, "ros2:rclcpp_buffer_to_ipb", {"buffer", "ipb"}},
    {Kind::rclcpp_ipb_to_subscription, "ros2:rclcpp_ipb_to_subscription", {"ipb", "subscription"}},
    {Kind::ring_buffer_enqueue, "ros2:rclcpp_ring_buffer_enqueue", {"buffer", "index", "size?", "overwritten"}},
    {Kind::ring_buffer_dequeue, "ros2:rclcpp_ring_buffer_dequeue", {"buffer", "index", "size?"}},
    {Kind::ring_buffer_clear, "ros2:rclcpp_ring_buffer_clear", {"buffer"}},
};

constexpr Names kJazzy[] = {
    // With the source time stamp, which allows following messages between processes.
    {Kind::rmw_publish, "ros2:rmw_publish", {"message", "rmw_publisher_handle", "timestamp"}},
};

constexpr Names kKilted[] = {
    {Kind::rmw_client_init, "ros2:rmw_client_init", {"rmw_client_handle", "gid"}},
    {Kind::rmw_send_request, "ros2:rmw_send_request", {"rmw_client_handle", "request", "sequence_number"}},
    {Kind::rmw_take_request, "ros2:rmw_take_request",
     {"rmw_service_handle", "request", "sequence_number", "client_gid", "taken"}},
    {Kind::rmw_send_response, "ros2:rmw_send_response",
     {"rmw_service_handle", "response", "sequence_number", "client_gid", nullptr, "timestamp?"}},
    {Kind::rmw_take_response, "ros2:rmw_take_response",
     {"rmw_client_handle", "response", "sequence_number", nullptr, "taken", "source_timestamp?"}},
};

constexpr Names kRolling[] = {
    {Kind::message_link_periodic_async, "ros2:message_link_periodic_async", {"subs", "pubs"}},
    {Kind::message_link_partial_sync, "ros2:message_link_partial_sync", {"subs", "pubs"}},
};

constexpr std::array kVersions{
    Version{"rolling", kRolling}, Version{"kilted", kKilted}, Version{"jazzy", kJazzy},
    Version{"iron", kIron},       Version{"humble", kHumble}, Version{"galactic", kGalactic},
};

// Events of other tracers and of perflab's runtime. LTTng's fields for thread numbers contain `tid`; perf calls the same
// numbers `pid` and prefixes event names with `sched:`.
constexpr Names kLttng[] = {
    {Kind::timer_due, "perflab:timer_due", {"timer_handle", "due_ns"}},
    {Kind::function_entry, "lttng_ust_cyg_profile:func_entry", {"addr", "call_site?"}},
    {Kind::function_exit, "lttng_ust_cyg_profile:func_exit", {"addr", "call_site?"}},
    {Kind::function_entry, "lttng_ust_cyg_profile_fast:func_entry", {"addr"}},
    {Kind::function_exit, "lttng_ust_cyg_profile_fast:func_exit", {"addr?"}},
    {Kind::binary_info, "lttng_ust_statedump:bin_info", {"baddr", "memsz", "path", "is_pic?"}},
    {Kind::binary_info, "lttng_ust_lib:load", {"baddr", "memsz", "path", "is_pic?"}},
    {Kind::binary_build_id, "lttng_ust_statedump:build_id", {"baddr", "build_id"}},
    {Kind::binary_build_id, "lttng_ust_lib:build_id", {"baddr", "build_id"}},
    {Kind::binary_unload, "lttng_ust_lib:unload", {"baddr"}},
    {Kind::sched_switch, "sched_switch",
     {"prev_comm?", "prev_tid", "prev_prio?", "prev_state", "next_comm?", "next_tid", "next_prio?"}},
    {Kind::sched_waking, "sched_waking", {"comm?", "tid", "prio?", "target_cpu?"}},
    {Kind::sched_wakeup, "sched_wakeup", {"comm?", "tid", "prio?", "target_cpu?"}},
    {Kind::sched_wakeup_new, "sched_wakeup_new", {"comm?", "tid", "prio?", "target_cpu?"}},
    {Kind::sched_migrate_task, "sched_migrate_task", {"comm?", "tid", "prio?", "orig_cpu", "dest_cpu"}},
    {Kind::process_fork, "sched_process_fork",
     {"parent_tid?", "parent_pid?", "parent_comm?", "child_tid", "child_pid?", "child_comm?"}},
    {Kind::process_exec, "sched_process_exec", {"filename?", "tid?"}},
    {Kind::process_exit, "sched_process_exit", {"comm?", "tid", "prio?"}},
    {Kind::wakeup_recovered, "perflab_wakeup_recovered",
     {"comm?", "tid", "prio?", "target_cpu", "waited_ns", "held_ns"}},
    {Kind::cpu_held, "perflab_cpu_held", {"comm?", "tid", "prio?", "cpu", "until_ns", "since_ns"}},
    {Kind::futex_wait, "perflab_futex_wait", {"comm?", "tid", "prio?", "uaddr", "op", "owner"}},
    {Kind::futex_return, "perflab_futex_return", {"comm?", "tid", "prio?", "uaddr", "op", "ret"}},
    {Kind::thread_kept, "perflab_thread_kept", {"comm?", "tid"}},
};

constexpr Names kPerf[] = {
    {Kind::sched_switch, "sched:sched_switch",
     {"prev_comm?", "prev_pid", "prev_prio?", "prev_state", "next_comm?", "next_pid", "next_prio?"}},
    {Kind::sched_waking, "sched:sched_waking", {"comm?", "pid", "prio?", "target_cpu?"}},
    {Kind::sched_wakeup, "sched:sched_wakeup", {"comm?", "pid", "prio?", "target_cpu?"}},
    {Kind::sched_wakeup_new, "sched:sched_wakeup_new", {"comm?", "pid", "prio?", "target_cpu?"}},
    {Kind::sched_migrate_task, "sched:sched_migrate_task", {"comm?", "pid", "prio?", "orig_cpu", "dest_cpu"}},
    // perf records only thread numbers, so it is unknown whether a child is a thread or a process.
    {Kind::process_fork, "sched:sched_process_fork", {"parent_pid?", nullptr, "parent_comm?", "child_pid", nullptr, "child_comm?"}},
    {Kind::process_exec, "sched:sched_process_exec", {"filename?", "pid?"}},
    {Kind::process_exit, "sched:sched_process_exit", {"comm?", "pid", "prio?"}},
};

constexpr std::array kKindNames{
    "none",
    "rcl_init", "rcl_node_init", "rmw_publisher_init", "rcl_publisher_init", "rmw_subscription_init", "rcl_subscription_init",
    "rclcpp_subscription_init", "rclcpp_subscription_callback_added", "rcl_service_init", "rclcpp_service_callback_added",
    "rmw_client_init", "rcl_client_init", "rcl_timer_init", "rclcpp_timer_callback_added", "rclcpp_timer_link_node",
    "rclcpp_callback_register", "rcl_lifecycle_state_machine_init", "rclcpp_construct_ring_buffer", "rclcpp_buffer_to_ipb",
    "rclcpp_ipb_to_subscription", "message_link_periodic_async", "message_link_partial_sync",
    "rclcpp_publish", "rclcpp_intra_publish", "rcl_publish", "rmw_publish", "rmw_take", "rcl_take", "rclcpp_take",
    "rmw_send_request", "rmw_take_request", "rmw_send_response", "rmw_take_response",
    "callback_start", "callback_end", "rcl_lifecycle_transition",
    "executor_get_next_ready", "executor_wait_for_work", "executor_execute",
    "ring_buffer_enqueue", "ring_buffer_dequeue", "ring_buffer_clear", "timer_due",
    "dds_create_writer", "dds_write_pre", "dds_write", "dds_bind_stamp", "dispatch_subscription_callback",
    "function_entry", "function_exit", "binary_info", "binary_build_id", "binary_unload",
    "sched_switch", "sched_waking", "sched_wakeup", "sched_wakeup_new", "sched_migrate_task", "process_fork", "process_exec",
    "process_exit", "wakeup_recovered", "cpu_held", "futex_wait", "futex_return", "thread_kept"};
static_assert(kKindNames.size() == static_cast<std::size_t>(Kind::count));

BoundField bound(const ctf::FieldLayout* field) {
  if (field == nullptr) return {};
  switch (field->kind) {
    case ctf::FieldKind::integer:
    case ctf::FieldKind::enumeration:
      return {static_cast<std::int32_t>(field->slot), false, false};
    case ctf::FieldKind::text:
      return {static_cast<std::int32_t>(field->slot), true, false};
    case ctf::FieldKind::array:
    case ctf::FieldKind::sequence:
      return {static_cast<std::int32_t>(field->slot), field->is_text, field->bytes && !field->is_text,
              !field->is_text && !field->bytes && field->children.size() == 1 &&
                  field->children.front().kind == ctf::FieldKind::integer};
    default:
      return {};
  }
}

// Binds all fields with these names; binds none and returns false if a required field is missing.
bool bind_fields(const Names& names, const ctf::EventLayout& layout, BoundEvent& event) {
  BoundEvent result = event;
  for (std::size_t i = 0; i < kMaxFields; ++i) {
    if (names.fields[i] == nullptr) continue;
    std::string_view name = names.fields[i];
    const bool optional = name.ends_with('?');
    if (optional) name.remove_suffix(1);
    result.fields[i] = bound(layout.payload_field(name));
    if (result.fields[i].slot < 0 && !optional) return false;
  }
  result.kind = names.kind;
  event = result;
  return true;
}

bool bind_first(std::span<const Names> events, const ctf::EventLayout& layout, BoundEvent& event) {
  for (const Names& names : events) {
    if (layout.event_class->name == names.event && bind_fields(names, layout, event)) return true;
  }
  return false;
}

// A context field, which may be in the stream's or the event's context.
BoundField context(const ctf::EventLayout& layout, std::string_view name, std::string_view other) {
  const BoundField field = bound(layout.context_field(name));
  return field.slot >= 0 || other.empty() ? field : bound(layout.context_field(other));
}

}  // namespace

const char* name_of(Kind kind) noexcept {
  return kind < Kind::count ? kKindNames[static_cast<std::size_t>(kind)] : "none";
}

BoundEvent bind(const ctf::Trace& trace, const ctf::EventLayout& layout) {
  BoundEvent event;
  event.raw_states = has_raw_states(trace.metadata);
  event.pid = context(layout, "vpid", "pid");
  event.tid = context(layout, "vtid", "tid");
  event.name = context(layout, "procname", "");
  if (!event.name.text) event.name = {};
  for (const Version& version : kVersions) {
    if (bind_first(version.events, layout, event)) {
      event.version = version.name;
      return event;
    }
  }
  if (bind_first(kLttng, layout, event)) return event;
  if (bind_first(kPerf, layout, event)) {
    event.perf = true;
    event.pid = bound(layout.payload_field("perf_pid"));
    event.tid = bound(layout.payload_field("perf_tid"));
  }
  return event;
}

void read_in_place(BoundEvent& event, const ctf::Trace& trace, std::uint32_t class_index) {
  const std::uint64_t stream_class = trace.layouts[class_index].event_class->stream_class;
  const auto stream = std::ranges::find(trace.streams, stream_class, &ctf::Stream::stream_class);
  if (stream == trace.streams.end()) return;
  const ctf::Decoder& decoder = *trace.decoders[static_cast<std::size_t>(stream - trace.streams.begin())];
  if (!decoder.can_read_in_place(class_index)) return;
  BoundEvent placed = event;
  placed.in_place = true;
  const auto place = [&](BoundField& field) {
    if (field.slot < 0) return true;
    const auto found = decoder.place_of(class_index, static_cast<std::uint32_t>(field.slot));
    if (found) field.place = *found;
    return found.has_value();
  };
  if (place(placed.pid) && place(placed.tid) && place(placed.name) && std::ranges::all_of(placed.fields, place)) event = placed;
}

}  // namespace perflab::traceview
