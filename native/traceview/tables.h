// The tables that a trace becomes. docs/tracing.md says what each column means; times are ns on the trace's
// time line (raw monotonic: the clocks of all its parts without their offsets), references are row numbers of
// the table that they name.
//
// All columns of a table are equally long.
#pragma once

#include <array>

#include "traceview/column.h"

namespace perflab::traceview {

enum class CallbackKind : std::uint8_t { subscription, timer, service, client, waitable, span, unknown };
constexpr std::array<const char*, 7> names(CallbackKind) {
  return {"subscription", "timer", "service", "client", "waitable", "span", "unknown"};
}
// It has no owner, and says itself what it is and of which node.
constexpr bool is_its_own(CallbackKind kind) { return kind == CallbackKind::waitable || kind == CallbackKind::span; }

// Why a take has no publication.
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

// What a node declares: a timer publishes what was last taken; or what of several topics belongs together is
// published.
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

// What a thread was doing when it left its CPU.
enum class EndState : std::uint8_t { preempted, sleeping, uninterruptible, stopped, traced, ended, other };
constexpr std::array<const char*, 7> names(EndState) {
  return {"preempted", "sleeping", "uninterruptible", "stopped", "traced", "ended", "other"};
}

// What a thread calls the kernel for when it waits at an address (futex(2)).
enum class FutexOperation : std::uint8_t { wait, wait_bitset, wait_requeue_pi, lock_pi, lock_pi2, other };
constexpr std::array<const char*, 6> names(FutexOperation) {
  return {"wait", "wait_bitset", "wait_requeue_pi", "lock_pi", "lock_pi2", "other"};
}

// Objects
// ------------------------------------------------------------------------------------------------------------

struct Hosts : Table<Hosts> {
  TextColumn name;  // null where the trace does not say
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
  Int32 host, process, tid;  // process is null for threads that only the scheduler knows
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

// Publishers and subscriptions. The handle is null for one that only the rmw layer names.
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
  Int32 owner;  // row of subscriptions, timers or services, as the kind says; waitables and spans have none
  Int32 node;
  TextColumn name;    // topic, service name, the timer's period, or that of the waitable or span
  TextColumn symbol;  // demangled C++ name
  Int64 valid_from_ns, valid_to_ns;
  PERFLAB_COLUMNS(process, handle, kind, owner, node, name, symbol, valid_from_ns, valid_to_ns)
};

// Declared by a node: messages of that subscription go into what that publisher publishes. One row per pair.
struct MessageLinks : Table<MessageLinks> {
  Int32 process;
  EnumColumn<LinkKind> kind;
  Int32 subscription, publisher;
  Int64 time_ns;  // when it was declared
  PERFLAB_COLUMNS(process, kind, subscription, publisher, time_ns)
};

// Instances
// ----------------------------------------------------------------------------------------------------------

struct CallbackInstances : Table<CallbackInstances> {
  Int32 callback, thread;
  Int64 start_ns, end_ns;  // end is null where it was not seen
  UInt8 intra_process;     // 0 or 1
  Int32 take;              // row of takes that it handles
  Int32 delivery;          // row of intra_deliveries that it handles
  Int32 parent;            // the callback instance around it on the same thread
  Int64 due_ns;            // of a timer: when it was due by its schedule; null where the trace does not say
  PERFLAB_COLUMNS(callback, thread, start_ns, end_ns, intra_process, take, delivery, parent, due_ns)
  PERFLAB_ONLY_WRITTEN(callback, thread, start_ns, intra_process, take, delivery, due_ns)
  PERFLAB_ONLY_NULLS_READ(end_ns)
};

struct Publications : Table<Publications> {
  Int32 publisher, thread;
  Int32 callback_instance;                            // in which it was published, on the same thread
  Int64 rclcpp_ns, intra_ns, rcl_ns, rmw_ns, dds_ns;  // null where that layer did not see it
  Int64 source_timestamp;                             // of the middleware, ns since the epoch
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

// One message in one ring buffer of intra-process delivery.
struct IntraDeliveries : Table<IntraDeliveries> {
  Int32 subscription, publication;
  UInt64 buffer, index;
  Int64 enqueue_ns,
      dequeue_ns;  // dequeue is null where it was overwritten, cleared, or still there at the end
  UInt8 lost;      // 1: overwritten by a later message before it was taken, or cleared
  Int32 enqueue_thread, dequeue_thread, callback_instance;
  PERFLAB_COLUMNS(subscription, publication, buffer, index, enqueue_ns, dequeue_ns, lost, enqueue_thread,
                  dequeue_thread, callback_instance)
  PERFLAB_ONLY_WRITTEN(publication, buffer, index, enqueue_ns, enqueue_thread, dequeue_thread, callback_instance)
  PERFLAB_ONLY_NULLS_READ(dequeue_ns)
};

// One request and its response; known from Kilted on.
struct ServiceCalls : Table<ServiceCalls> {
  Int32 client, service;
  Int64 sequence_number;
  Int64 send_request_ns, take_request_ns, send_response_ns, take_response_ns;
  Int32 callback_instance;  // of the service
  Int32 request_in;         // the callback instance in which the client sent it
  PERFLAB_COLUMNS(client, service, sequence_number, send_request_ns, take_request_ns, send_response_ns,
                  take_response_ns, callback_instance, request_in)
};

// What an executor's thread does: ends where the next phase of that thread begins.
struct Phases : Table<Phases> {
  Int32 thread;
  EnumColumn<PhaseKind> phase;
  Int64 start_ns, end_ns;
  Int32 callback;  // of execute and dispatch, where it is known
  PERFLAB_COLUMNS(thread, phase, start_ns, end_ns, callback)
  PERFLAB_ONLY_WRITTEN(thread, phase, start_ns, end_ns, callback)
  PERFLAB_ONLY_NULLS_READ()
};

// Calls of functions of a program that was built with -finstrument-functions.
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
  TextColumn symbol, file;  // demangled; the program or library; null where it cannot be found
  PERFLAB_COLUMNS(process, address, symbol, file)
};

// Scheduler
// ----------------------------------------------------------------------------------------------------------

// Priorities here are as the kernel's own (p->prio): 0 to 98 real-time 99 to 1, 100 to 139 nice -20 to 19.
struct ThreadStates : Table<ThreadStates> {
  Int32 thread;
  EnumColumn<ThreadState> state;
  Int64 start_ns, end_ns;
  Int32 cpu;                       // on which it runs, or waits; null while blocked, stopped or traced
  Int32 priority;                  // null where not known
  EnumColumn<EndState> end_state;  // of running only
  UInt8 inferred;  // 1: the switch to it was not seen, but an event of the thread in user space
  PERFLAB_COLUMNS(thread, state, start_ns, end_ns, cpu, priority, end_state, inferred)
};

struct WakeUps : Table<WakeUps> {
  Int32 thread, by_thread;  // who woke it: what ran on the CPU of the event; null where unknown (or an
                            // interrupt in idle)
  Int64 waking_ns, wakeup_ns, switch_ns;  // switch is null where it did not run before the trace ended
  Int32 cpu, priority;
  UInt8 already_running;  // 1: it ran already, there is no latency
  PERFLAB_COLUMNS(thread, by_thread, waking_ns, wakeup_ns, switch_ns, cpu, priority, already_running)
};

struct Migrations : Table<Migrations> {
  Int32 thread;
  Int64 time_ns;
  Int32 from_cpu, to_cpu;
  PERFLAB_COLUMNS(thread, time_ns, from_cpu, to_cpu)
};

// While a thread waited for a CPU (preempted or woken), who ran there.
struct Holds : Table<Holds> {
  Int32 thread;
  EnumColumn<ThreadState> state;  // preempted or woken
  Int64 start_ns, end_ns;
  Int32 cpu, holder;  // holder: a thread; null while the CPU was idle, or where it is not known who ran
  UInt8 idle;         // 1: the CPU was seen to be idle
  PERFLAB_COLUMNS(thread, state, start_ns, end_ns, cpu, holder, idle)
};

// Calls by which threads wait at an address: for a lock, at a condition variable, for another thread to end.
struct FutexWaits : Table<FutexWaits> {
  Int32 thread;
  Int64 start_ns, end_ns;  // end is null where events were lost, and that of the trace where it still waits
  UInt64 address;
  EnumColumn<FutexOperation> operation;
  UInt8 shared;    // 1: other processes may wait there as well
  Int32 priority;  // of the thread when it began
  Int32 owner;     // the thread that held the lock when it began; null: no lock that says so
  Int32 result;    // of the call: 0, or an error as a negative number; null where it did not return
  PERFLAB_COLUMNS(thread, start_ns, end_ns, address, operation, shared, priority, owner, result)
};

}  // namespace perflab::traceview
