// The tables of a trace; docs/tracing.md defines each column. Times are ns on the trace's time line (CLOCK_MONOTONIC:
// the clocks of all its parts, without their offsets). References are row numbers of the named table.
//
// All columns of a table have the same length.
#pragma once

#include <array>

#include "traceview/column.h"

namespace perflab::traceview {

enum class CallbackKind : std::uint8_t { subscription, timer, service, client, waitable, span, unknown };
constexpr std::array<const char*, 7> names(CallbackKind) {
  return {"subscription", "timer", "service", "client", "waitable", "span", "unknown"};
}
// Kinds without an owner, which have a name and a node of their own.
constexpr bool is_its_own(CallbackKind kind) { return kind == CallbackKind::waitable || kind == CallbackKind::span; }

// Whether a take was matched to its publication, or why not.
enum class TakeMatch : std::uint8_t {
  matched,
  not_taken,
  no_timestamp,
  unknown_subscription,
  no_publication,
  ambiguous
};
constexpr std::array<const char*, 6> names(TakeMatch) {
  return {"matched", "not_taken", "no_timestamp", "unknown_subscription", "no_publication", "ambiguous"};
}

// Links that a node declares: a timer publishes the message taken last (periodic_async), or messages of several topics
// are combined into one publication (partial_sync).
enum class LinkKind : std::uint8_t { periodic_async, partial_sync };
constexpr std::array<const char*, 2> names(LinkKind) { return {"periodic_async", "partial_sync"}; }

enum class PhaseKind : std::uint8_t { get_next_ready, wait_for_work, execute, dispatch };
constexpr std::array<const char*, 4> names(PhaseKind) {
  return {"get_next_ready", "wait_for_work", "execute", "dispatch"};
}

enum class ThreadState : std::uint8_t { running, preempted, blocked, woken, stopped, traced };
constexpr std::array<const char*, 6> names(ThreadState) {
  return {"running", "preempted", "blocked", "woken", "stopped", "traced"};
}

// State of a thread when it left its CPU.
enum class EndState : std::uint8_t { preempted, sleeping, uninterruptible, stopped, traced, ended, other };
constexpr std::array<const char*, 7> names(EndState) {
  return {"preempted", "sleeping", "uninterruptible", "stopped", "traced", "ended", "other"};
}

// Operation of a futex(2) call that waits at an address.
enum class FutexOperation : std::uint8_t { wait, wait_bitset, wait_requeue_pi, lock_pi, lock_pi2, other };
constexpr std::array<const char*, 6> names(FutexOperation) {
  return {"wait", "wait_bitset", "wait_requeue_pi", "lock_pi", "lock_pi2", "other"};
}

// Objects
// ------------------------------------------------------------------------------------------------------------

struct Hosts : Table<Hosts> {
  TextColumn name;  // null if the trace has none
  PERFLAB_COLUMNS(name)
};

struct Processes : Table<Processes> {
  Int32 host, pid;
  TextColumn name, tracetools_version;
  Int64 first_ns, last_ns;  // of its events
  UInt64 events;            // of user space
  PERFLAB_COLUMNS(host, pid, name, tracetools_version, first_ns, last_ns, events)
};

struct Threads : Table<Threads> {
  Int32 host, process, tid;  // process: null for threads with scheduler events only
  TextColumn name;
  Int64 first_ns, last_ns;
  UInt64 events;  // of user space
  PERFLAB_COLUMNS(host, process, tid, name, first_ns, last_ns, events)
};

// Handles are valid from their initialisation until the same handle of the same process is initialised again.
struct Nodes : Table<Nodes> {
  Int32 process;
  UInt64 handle;
  TextColumn name;  // with its namespace: /a/b
  Int64 valid_from_ns, valid_to_ns;
  PERFLAB_COLUMNS(process, handle, name, valid_from_ns, valid_to_ns)
};

// Publishers and subscriptions. The handle is null if only rmw events name the object.
struct Endpoints : Table<Endpoints> {
  Int32 process, node;
  UInt64 handle, rmw_handle;
  TextColumn topic, gid;
  Int64 queue_depth, valid_from_ns, valid_to_ns;
  PERFLAB_COLUMNS(process, node, handle, rmw_handle, topic, gid, queue_depth, valid_from_ns, valid_to_ns)
};

// Services and clients.
struct ServiceEndpoints : Table<ServiceEndpoints> {
  Int32 process, node;
  UInt64 handle, rmw_handle;
  TextColumn name, gid;
  Int64 valid_from_ns, valid_to_ns;
  PERFLAB_COLUMNS(process, node, handle, rmw_handle, name, gid, valid_from_ns, valid_to_ns)
};

struct Timers : Table<Timers> {
  Int32 process, node;
  UInt64 handle;
  Int64 period_ns, valid_from_ns, valid_to_ns;
  PERFLAB_COLUMNS(process, node, handle, period_ns, valid_from_ns, valid_to_ns)
};

struct Callbacks : Table<Callbacks> {
  Int32 process;
  UInt64 handle;
  EnumColumn<CallbackKind> kind;
  Int32 owner;  // row of subscriptions, timers or services, depending on `kind`; waitables and spans have none
  Int32 node;
  TextColumn name;    // topic, service name, the timer's period, or the name of the waitable or span
  TextColumn symbol;  // demangled C++ name
  Int64 valid_from_ns, valid_to_ns;
  PERFLAB_COLUMNS(process, handle, kind, owner, node, name, symbol, valid_from_ns, valid_to_ns)
};

// Declared by a node: messages of the subscription are inputs of the publisher's messages. One row per pair.
struct MessageLinks : Table<MessageLinks> {
  Int32 process;
  EnumColumn<LinkKind> kind;
  Int32 subscription, publisher;
  Int64 time_ns;  // of the declaration
  PERFLAB_COLUMNS(process, kind, subscription, publisher, time_ns)
};

// Instances
// ----------------------------------------------------------------------------------------------------------

struct CallbackInstances : Table<CallbackInstances> {
  Int32 callback, thread;
  Int64 start_ns, end_ns;  // end: null if it was not recorded
  UInt8 intra_process;     // 0 or 1
  Int32 take;              // row of takes that it handles
  Int32 delivery;          // row of intra_deliveries that it handles
  Int32 parent;            // enclosing callback instance on the same thread
  Int64 due_ns;            // due time of a timer by its schedule; null if it was not recorded
  PERFLAB_COLUMNS(callback, thread, start_ns, end_ns, intra_process, take, delivery, parent, due_ns)
  PERFLAB_ONLY_WRITTEN(callback, thread, start_ns, intra_process, take, delivery, due_ns)
  PERFLAB_ONLY_NULLS_READ(end_ns)
};

struct Publications : Table<Publications> {
  Int32 publisher, thread;
  Int32 callback_instance;                            // the instance that published it, on the same thread
  Int64 rclcpp_ns, intra_ns, rcl_ns, rmw_ns, dds_ns;  // null if the layer did not record it
  Int64 source_timestamp;                             // by the middleware, ns since the epoch
  UInt64 message;
  PERFLAB_COLUMNS(publisher, thread, callback_instance, rclcpp_ns, intra_ns, rcl_ns, rmw_ns, dds_ns,
                  source_timestamp, message)
  PERFLAB_ONLY_WRITTEN(thread, message)
  PERFLAB_ONLY_NULLS_READ()
};

struct Takes : Table<Takes> {
  Int32 subscription, thread;
  Int64 rmw_ns, rcl_ns, rclcpp_ns;
  Int64 source_timestamp;
  EnumColumn<TakeMatch> match;
  Int32 publication, callback_instance;
  PERFLAB_COLUMNS(subscription, thread, rmw_ns, rcl_ns, rclcpp_ns, source_timestamp, match, publication,
                  callback_instance)
  PERFLAB_ONLY_WRITTEN(thread, rmw_ns, publication)
  PERFLAB_ONLY_NULLS_READ(rcl_ns, rclcpp_ns, callback_instance)
};

// A message in a ring buffer of intra-process delivery; one row per buffer.
struct IntraDeliveries : Table<IntraDeliveries> {
  Int32 subscription, publication;
  UInt64 buffer, index;
  Int64 enqueue_ns,
      dequeue_ns;  // dequeue: null if overwritten, cleared, or still in the buffer at the end
  UInt8 lost;      // 1: cleared, or overwritten by a later message before it was taken
  Int32 enqueue_thread, dequeue_thread, callback_instance;
  PERFLAB_COLUMNS(subscription, publication, buffer, index, enqueue_ns, dequeue_ns, lost, enqueue_thread,
                  dequeue_thread, callback_instance)
  PERFLAB_ONLY_WRITTEN(publication, buffer, index, enqueue_ns, enqueue_thread, dequeue_thread, callback_instance)
  PERFLAB_ONLY_NULLS_READ(dequeue_ns)
};

// A request and its response; recorded since Kilted.
struct ServiceCalls : Table<ServiceCalls> {
  Int32 client, service;
  Int64 sequence_number;
  Int64 send_request_ns, take_request_ns, send_response_ns, take_response_ns;
  Int32 callback_instance;  // of the service
  Int32 request_in;         // the callback instance that sent the request
  PERFLAB_COLUMNS(client, service, sequence_number, send_request_ns, take_request_ns, send_response_ns,
                  take_response_ns, callback_instance, request_in)
};

// Phases of an executor's threads; a phase ends when the next phase of its thread begins.
struct Phases : Table<Phases> {
  Int32 thread;
  EnumColumn<PhaseKind> phase;
  Int64 start_ns, end_ns;
  Int32 callback;  // of execute and dispatch, if known
  PERFLAB_COLUMNS(thread, phase, start_ns, end_ns, callback)
  PERFLAB_ONLY_WRITTEN(thread, phase, start_ns, end_ns, callback)
  PERFLAB_ONLY_NULLS_READ()
};

// Function calls of programs built with -finstrument-functions.
struct FunctionCalls : Table<FunctionCalls> {
  Int32 thread;
  Int32 function;  // row of functions
  Int64 start_ns, end_ns;
  Int32 parent;  // row of this table
  PERFLAB_COLUMNS(thread, function, start_ns, end_ns, parent)
};

struct Functions : Table<Functions> {
  Int32 process;
  UInt64 address;
  TextColumn symbol, file;  // demangled name; program or library; null if not found
  PERFLAB_COLUMNS(process, address, symbol, file)
};

// Scheduler
// ----------------------------------------------------------------------------------------------------------

// Priorities are on the kernel's scale (p->prio): 0 to 98 are real-time priorities 99 to 1, 100 to 139 are nice values
// -20 to 19.
struct ThreadStates : Table<ThreadStates> {
  Int32 thread;
  EnumColumn<ThreadState> state;
  Int64 start_ns, end_ns;
  Int32 cpu;                       // on which it runs or waits; null while blocked, stopped or traced
  Int32 priority;                  // null if unknown
  EnumColumn<EndState> end_state;  // only of running
  UInt8 inferred;  // 1: the switch to the thread is missing; begins at a user-space event of the thread
  PERFLAB_COLUMNS(thread, state, start_ns, end_ns, cpu, priority, end_state, inferred)
};

struct WakeUps : Table<WakeUps> {
  Int32 thread, by_thread;  // by_thread: the thread that ran on the event's CPU; null if unknown, or for an
                            // interrupt in idle
  Int64 waking_ns, wakeup_ns, switch_ns;  // switch: null if it did not run before the end of the trace
  Int32 cpu, priority;
  UInt8 already_running;  // 1: the thread was running, so there is no latency
  PERFLAB_COLUMNS(thread, by_thread, waking_ns, wakeup_ns, switch_ns, cpu, priority, already_running)
};

struct Migrations : Table<Migrations> {
  Int32 thread;
  Int64 time_ns;
  Int32 from_cpu, to_cpu;
  PERFLAB_COLUMNS(thread, time_ns, from_cpu, to_cpu)
};

// Threads that ran on a CPU while another thread waited for it (preempted or woken).
struct Holds : Table<Holds> {
  Int32 thread;
  EnumColumn<ThreadState> state;  // preempted or woken
  Int64 start_ns, end_ns;
  Int32 cpu, holder;  // holder: the thread that ran; null if the CPU was idle or the thread is unknown
  UInt8 idle;         // 1: the CPU was idle
  PERFLAB_COLUMNS(thread, state, start_ns, end_ns, cpu, holder, idle)
};

// futex(2) calls by which threads wait at an address: for a lock, a condition variable or the end of another thread.
struct FutexWaits : Table<FutexWaits> {
  Int32 thread;
  Int64 start_ns, end_ns;  // end: null if events were lost; the end of the trace if the thread still waits
  UInt64 address;
  EnumColumn<FutexOperation> operation;
  UInt8 shared;    // 1: other processes may wait there, too
  Int32 priority;  // of the thread at the start
  Int32 owner;     // the thread that held the lock at the start; null if no lock with an owner field
  Int32 result;    // of the call: 0, or a negative error number; null if it did not return
  PERFLAB_COLUMNS(thread, start_ns, end_ns, address, operation, shared, priority, owner, result)
};

}  // namespace perflab::traceview
