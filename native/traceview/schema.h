// Names of events and fields in every version of tracetools and in every tracer. No other file contains such names.
//
// schema.cpp has one table per version of tracetools: event name, kind, and field names in the order of the enumerations
// below. An event class of a trace is bound to the newest version whose required fields it all has.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>

#include "ctf/event.h"
#include "ctf/trace.h"
#include "traceview/scheduler.h"

namespace perflab::traceview {

enum class Kind : std::uint8_t {
  none,
  // Initialisation of ROS objects
  rcl_init, rcl_node_init, rmw_publisher_init, rcl_publisher_init, rmw_subscription_init, rcl_subscription_init,
  rclcpp_subscription_init, rclcpp_subscription_callback_added, rcl_service_init, rclcpp_service_callback_added,
  rmw_client_init, rcl_client_init, rcl_timer_init, rclcpp_timer_callback_added, rclcpp_timer_link_node,
  rclcpp_callback_register, rcl_lifecycle_state_machine_init, rclcpp_construct_ring_buffer, rclcpp_buffer_to_ipb,
  rclcpp_ipb_to_subscription, message_link_periodic_async, message_link_partial_sync,
  // Run time
  rclcpp_publish, rclcpp_intra_publish, rcl_publish, rmw_publish, rmw_take, rcl_take, rclcpp_take,
  rmw_send_request, rmw_take_request, rmw_send_response, rmw_take_response,
  callback_start, callback_end, rcl_lifecycle_transition,
  executor_get_next_ready, executor_wait_for_work, executor_execute,
  ring_buffer_enqueue, ring_buffer_dequeue, ring_buffer_clear,
  // perflab
  timer_due,
  // Forks that recorded source timestamps before tracetools did
  dds_create_writer, dds_write_pre, dds_write, dds_bind_stamp, dispatch_subscription_callback,
  // Functions of programs built with -finstrument-functions, and addresses of their binaries
  function_entry, function_exit, binary_info, binary_build_id, binary_unload,
  // Scheduler; scheduler_event() converts them
  sched_switch, sched_waking, sched_wakeup, sched_wakeup_new, sched_migrate_task, process_fork, process_exec, process_exit,
  wakeup_recovered, cpu_held, futex_wait, futex_return, thread_kept,  // perflab
  count
};

// The name of the enumerator.
[[nodiscard]] const char* name_of(Kind kind) noexcept;

// Whether events of this kind belong to the scheduler model; all others except `none` are user-space events.
[[nodiscard]] constexpr bool is_scheduler(Kind kind) noexcept { return kind >= Kind::sched_switch && kind < Kind::count; }
// Events that contribute to tables of user space; events of life cycles are recognised, but have no table.
[[nodiscard]] constexpr bool is_user_space(Kind kind) noexcept {
  return kind != Kind::none && kind < Kind::sched_switch && kind != Kind::rcl_lifecycle_state_machine_init &&
         kind != Kind::rcl_lifecycle_transition;
}

inline constexpr std::size_t kMaxFields = 7;

// Indices into BoundEvent::fields. The fields of a kind depend on the version; check with has().
namespace field {
namespace rcl_init { enum : std::size_t { context, version }; }
namespace rcl_node_init { enum : std::size_t { node, rmw_node, name, name_space }; }
namespace rmw_endpoint_init { enum : std::size_t { rmw, gid }; }  // of publishers, subscriptions, clients
namespace rcl_endpoint_init { enum : std::size_t { handle, node, rmw, name, queue_depth }; }  // publishers, subscriptions, services, clients
namespace rclcpp_subscription_init { enum : std::size_t { handle, subscription }; }
namespace callback_added { enum : std::size_t { owner, callback }; }  // subscriptions, services, timers
namespace rcl_timer_init { enum : std::size_t { timer, period }; }
namespace rclcpp_timer_link_node { enum : std::size_t { timer, node }; }
namespace callback_register { enum : std::size_t { callback, symbol }; }
namespace construct_ring_buffer { enum : std::size_t { buffer, capacity }; }
namespace buffer_to_ipb { enum : std::size_t { buffer, ipb }; }
namespace ipb_to_subscription { enum : std::size_t { ipb, subscription }; }
namespace message_link { enum : std::size_t { subscriptions, publishers }; }  // lists of handles
namespace publish { enum : std::size_t { message, publisher, timestamp }; }  // all layers, each with its own handle
namespace rmw_take { enum : std::size_t { rmw, message, timestamp, taken }; }
namespace take { enum : std::size_t { message }; }
namespace service_message { enum : std::size_t { rmw, message, sequence_number, client_gid, taken, timestamp }; }
namespace callback_start { enum : std::size_t { callback, is_intra_process }; }
namespace callback_end { enum : std::size_t { callback }; }
namespace executor_execute { enum : std::size_t { handle }; }
namespace ring_buffer { enum : std::size_t { buffer, index, size, overwritten }; }
namespace timer_due { enum : std::size_t { timer, due_ns }; }
namespace dds_create_writer { enum : std::size_t { writer, topic, gid_prefix, gid_entity }; }
namespace dds_write { enum : std::size_t { writer, data, timestamp }; }  // write_pre: data; write: timestamp
namespace dds_bind_stamp { enum : std::size_t { address, timestamp }; }
namespace dispatch { enum : std::size_t { message, callback, timestamp }; }
namespace function { enum : std::size_t { address, call_site }; }
namespace binary_build_id { enum : std::size_t { base, id }; }
namespace binary { enum : std::size_t { base, size, path, is_position_independent }; }
}  // namespace field

struct BoundField {
  std::int32_t slot = -1;  // -1: this event class has no such field
  bool text = false;
  bool bytes = false;
  bool integers = false;  // an array or sequence of integers, one slot each
  ctf::FieldPlace place{};  // for events read in place
};

struct BoundEvent {
  Kind kind = Kind::none;
  const char* version = "";              // of tracetools; "" for events of other tracers
  BoundField pid, tid, name;             // of the emitting thread, from the contexts vpid, vtid, procname
  std::array<BoundField, kMaxFields> fields{};
  bool in_place = false;                 // events are read in place (ctf::StreamReader)
  bool perf = false;                     // perf's naming and priorities (scheduler events)
  bool raw_states = false;               // prev_state as encoded before Linux 4.14 (scheduler events)

  [[nodiscard]] bool has(std::size_t field) const noexcept { return fields[field].slot >= 0; }
  // The following require has().
  [[nodiscard]] std::uint64_t value(const ctf::Event& event, const BoundField& field) const noexcept {
    return in_place ? field.place.integer(event.body) : event.slots[field.slot];
  }
  [[nodiscard]] std::uint64_t value(const ctf::Event& event, std::size_t field) const noexcept {
    return value(event, fields[field]);
  }
  [[nodiscard]] std::span<const std::uint8_t> bytes(const ctf::Event& event, const BoundField& field) const noexcept {
    if (in_place) return field.place.bytes(event.body);
    const std::uint64_t* const slot = event.slots + field.slot;
    return {reinterpret_cast<const std::uint8_t*>(slot[0]), static_cast<std::size_t>(slot[1])};
  }
  [[nodiscard]] std::string_view text(const ctf::Event& event, const BoundField& field) const noexcept {
    const auto found = bytes(event, field);
    return ctf::Event::text_at(reinterpret_cast<std::uint64_t>(found.data()), found.size());
  }
  [[nodiscard]] std::string_view text(const ctf::Event& event, std::size_t field) const noexcept {
    return text(event, fields[field]);
  }
};

// Binds an event class, for decoded events.
[[nodiscard]] BoundEvent bind(const ctf::Trace& trace, const ctf::EventLayout& layout);
// Switches the binding to reading in place if the class allows it. The class is Trace::layouts[class_index].
void read_in_place(BoundEvent& event, const ctf::Trace& trace, std::uint32_t class_index);

// Whether the traced kernel is older than 4.14, which changed the bits of prev_state. False if the version is unknown.
[[nodiscard]] bool has_raw_states(const ctf::Metadata& metadata);

// Converts a scheduler event to the tracer-independent form. Returns nullopt if a required field is missing.
[[nodiscard]] std::optional<SchedulerEvent> scheduler_event(const BoundEvent& bound, const ctf::Event& event,
                                                            std::int32_t host, std::optional<std::uint32_t> stream_cpu);

}  // namespace perflab::traceview
