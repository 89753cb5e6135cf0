#include "traceview/ros.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace perflab::traceview {
std::string Ros::Emitted::text(std::size_t field) const {
  return has(field) && bound.fields[field].text ? std::string(bound.text(event, field)) : std::string();
}

std::span<const std::uint8_t> Ros::Emitted::bytes(std::size_t field) const {
  return has(field) && bound.fields[field].bytes ? bound.bytes(event, bound.fields[field]) : std::span<const std::uint8_t>();
}

std::span<const std::uint64_t> Ros::Emitted::integers(std::size_t field) const {
  if (!has(field) || !bound.fields[field].integers) return {};
  const std::uint64_t* const slot = event.slots + bound.fields[field].slot;
  return {reinterpret_cast<const std::uint64_t*>(slot[0]), static_cast<std::size_t>(slot[1])};
}

std::string Ros::Emitted::hex(std::size_t field) const {
  std::string text;
  for (const std::uint8_t byte : bytes(field)) text += fmt::format("{:02x}", byte);
  return text;
}

Ros::Ros(Directory& directory) : directory_(directory) {}

Ros::Process& Ros::process(std::int32_t host, std::int32_t pid) {
  const auto [entry, is_new] =
      process_of_.try_emplace(number_key(host, pid), static_cast<std::int32_t>(processes_.size()));
  if (is_new) {
    processes_.emplace_back().row = directory_.process(host, pid);
  }
  return processes_[at(entry->second)];
}

inline Ros::Thread& Ros::thread(std::int32_t host, std::int32_t pid, std::int32_t tid,
                                const BoundEvent& bound, const ctf::Event& event) {
  const std::uint64_t number = number_key(pid, tid);
  Recent& recent = recent_[static_cast<std::uint32_t>(tid) % recent_.size()];
  if (recent.thread != nullptr && recent.number == number && recent.host == host) return *recent.thread;
  recent = {number, host, &known_or_new_thread(host, pid, tid, bound, event)};
  return *recent.thread;
}

Ros::Thread& Ros::known_or_new_thread(std::int32_t host, std::int32_t pid, std::int32_t tid,
                                      const BoundEvent& bound, const ctf::Event& event) {
  if (at(host) >= thread_of_.size()) thread_of_.resize(at(host) + 1);
  FlatMap& threads = thread_of_[at(host)];
  const std::uint64_t number = number_key(pid, tid);
  if (const std::int32_t row = threads.find(number); row != kNone) return threads_[at(row)];
  threads.set(number, static_cast<std::int32_t>(threads_.size()));
  Process& owner = process(host, pid);
  Thread& thread = threads_.emplace_back();
  thread.row = directory_.thread_of(owner.row, tid);
  thread.process_row = owner.row;
  thread.process = &owner;
  thread.first_ns = event.time_ns;
  if (bound.name.slot >= 0) {
    const std::string_view name = bound.text(event, bound.name);
    directory_.thread_row(thread.row).name = name;
    // The first thread has the name of the program.
    Directory::Process& named = directory_.process_row(owner.row);
    if (named.name.empty() || tid == named.pid) named.name = name;
  }
  return thread;
}

void Ros::add(std::span<const ctf::Merger::Ordered> events, std::span<const Origin> origins) {
  for (const auto& one : events) {
    const Origin& origin = origins[one.trace_index];
    add_one(origin.bounds[one.event->class_index], *one.event, origin);
  }
}

[[gnu::always_inline]] inline void Ros::add_one(const BoundEvent& bound, const ctf::Event& event, const Origin& origin) {
  const std::int32_t host = origin.host;
  if (bound.pid.slot < 0 && !origin.pid) [[unlikely]] {
    ++counters.events_without_process;
    return;
  }
  const auto pid = bound.pid.slot < 0 ? *origin.pid : static_cast<std::int32_t>(bound.value(event, bound.pid));
  if (bound.tid.slot < 0) [[unlikely]] {
    ++counters.events_without_thread;
    if (bound.kind < Kind::rclcpp_publish || bound.kind == Kind::dds_create_writer) {
      add_initialisation({bound, event, process(host, pid), nullptr});
    }
    return;
  }
  const auto tid = static_cast<std::int32_t>(bound.value(event, bound.tid));
  Thread& emitter = thread(host, pid, tid, bound, event);
  emitter.last_ns = event.time_ns;
  ++emitter.events;
  if (at(host) < losses_.size() && emitter.losses != losses_[at(host)]) [[unlikely]] {
    emitter.losses = losses_[at(host)];
    emitter.publication = emitter.intra_publication = kNone;
    emitter.forget_unhandled();
    for (Open& open : emitter.stack) open.around = {};
    emitter.due.reset();
  }
  const Emitted emitted{bound, event, *emitter.process, &emitter};
  if (bound.kind < Kind::rclcpp_publish || bound.kind == Kind::dds_create_writer) {
    add_initialisation(emitted);
  } else if (bound.kind == Kind::timer_due) {
    namespace f = field::timer_due;
    const std::uint64_t due_ns = emitted.value(f::due_ns) + static_cast<std::uint64_t>(origin.shift_ns);
    emitter.due = {emitted.value(f::timer), static_cast<std::int64_t>(due_ns)};
  } else {
    add_run_time(emitted);
  }
}

void Ros::keep(const std::set<std::string, std::less<>>& wanted) {
  const auto keep_of = [&wanted](std::string_view name, auto& table) {
    table.keep([&](std::string_view column) { return wanted_of(wanted, name, column); });
  };
  keep_of("callback_instances", callback_instances), keep_of("publications", publications);
  keep_of("takes", takes), keep_of("intra_deliveries", intra_deliveries), keep_of("phases", phases);
}

void Ros::lost(std::int32_t host) {
  if (at(host) >= losses_.size()) losses_.resize(at(host) + 1);
  ++losses_[at(host)];
}

[[gnu::always_inline]] inline void Ros::add_run_time(const Emitted& e) {
  switch (e.kind()) {
    case Kind::callback_start: {
      namespace f = field::callback_start;
      const bool intra_process = e.has(f::is_intra_process) && e.value(f::is_intra_process) != 0;
      return start_callback(e.process, *e.thread, e.value(f::callback), intra_process, e.now());
    }
    case Kind::callback_end:
      return end_callback(*e.thread, e.value(field::callback_end::callback), e.now());
    case Kind::rclcpp_intra_publish:
    case Kind::rclcpp_publish:
    case Kind::rcl_publish: {
      namespace f = field::publish;
      const std::int32_t publisher = e.has(f::publisher) ? refer(publisher_objects_, e.process.publishers,
                                                                 e.process, e.value(f::publisher), true)
                                                         : kNone;
      const Layer layer = e.kind() == Kind::rcl_publish      ? kRcl
                          : e.kind() == Kind::rclcpp_publish ? kRclcpp
                                                             : kIntra;
      return publish(*e.thread, layer, e.value(f::message), publisher, e.now());
    }
    case Kind::rmw_publish: {
      namespace f = field::publish;
      const std::int32_t publisher =
          e.has(f::publisher) ? e.process.rmw_publishers.find(e.value(f::publisher)) : kNone;
      publish(*e.thread, kRmw, e.value(f::message), publisher, e.now());
      if (e.has(f::timestamp)) {
        publications.source_timestamp.set(at(e.thread->publication), e.number(f::timestamp));
      }
      return;
    }
    case Kind::dds_write_pre:
      e.thread->writer =
          e.thread->publication != kNone && e.value(field::dds_write::data) == e.thread->message
              ? e.value(field::dds_write::writer)
              : 0;
      return;
    case Kind::dds_write:
      return dds_write(e);
    case Kind::dds_bind_stamp: {
      namespace f = field::dds_bind_stamp;
      if (e.thread->publication == kNone || e.thread->message != e.value(f::address)) {
        ++counters.writes_of_the_middleware;
        return;
      }
      publications.dds_ns.set(at(e.thread->publication), e.now());
      publications.source_timestamp.set(at(e.thread->publication), e.number(f::timestamp));
      return;
    }
    case Kind::rmw_take:
    case Kind::rcl_take:
    case Kind::rclcpp_take:
    case Kind::dispatch_subscription_callback:
      return add_take(e);
    case Kind::executor_get_next_ready:
      return begin_phase(*e.thread, PhaseKind::get_next_ready, e.now());
    case Kind::executor_wait_for_work:
      return begin_phase(*e.thread, PhaseKind::wait_for_work, e.now());
    case Kind::executor_execute:
      return begin_phase(*e.thread, PhaseKind::execute, e.now());
    case Kind::ring_buffer_enqueue:
      return enqueue(e);
    case Kind::ring_buffer_dequeue:
      return dequeue(e);
    case Kind::ring_buffer_clear:
      return clear(e);
    case Kind::rmw_send_request:
    case Kind::rmw_take_request:
    case Kind::rmw_send_response:
    case Kind::rmw_take_response:
      return add_service_message(e);
    case Kind::function_entry:
      return functions_.entry(e.thread->row, e.thread->process_row, e.now(),
                              e.value(field::function::address));
    case Kind::function_exit:
      return functions_.exit(
          e.thread->row, e.thread->process_row, e.now(),
          e.has(field::function::address) ? std::optional(e.value(field::function::address)) : std::nullopt);
    case Kind::binary_info: {
      namespace f = field::binary;
      return functions_.binary(
          e.thread->process_row, e.value(f::base), e.value(f::size), e.text(f::path),
          !e.has(f::is_position_independent) || e.value(f::is_position_independent) != 0);
    }
    case Kind::binary_build_id: {
      namespace f = field::binary_build_id;
      const auto id = e.bytes(f::id);
      if (!id.empty()) functions_.build_id(e.thread->process_row, e.value(f::base), id);
      return;
    }
    case Kind::binary_unload:
      return functions_.unload(e.thread->process_row, e.value(field::binary::base));
    default:
      return;
  }
}

void Ros::start_callback(Process& process, Thread& thread, std::uint64_t handle, bool intra_process,
                         std::int64_t time_ns) {
  const std::int32_t callback = refer(callback_objects_, process.callbacks, process, handle, true);
  const Object& object = callback_objects_[at(callback)];
  const std::int32_t owner = owner_of(object);
  if (!thread.stack.empty() && thread.stack.back().callback == handle)
    forget_callback(thread, thread.stack.size() - 1);
  const std::int32_t instance = callback_instances.pushed();
  const std::optional<std::int32_t> parent = thread.innermost();
  thread.stack.push_back({handle, instance, thread});
  Publishing& inner = thread;
  inner = {};

  // It handles the message that its thread took last for the same owner; a message is handled once.
  std::optional<std::int32_t> take, delivery;
  if (object.kind == CallbackKind::subscription && !intra_process && owner != kNone) {
    take = row_or_null(thread.takes.handle([&](std::int32_t row) {
      return takes.subscription.at(at(row)) == owner && takes.match[at(row)] != TakeMatch::not_taken;
    }));
    if (take) takes.callback_instance.set(at(*take), instance);
  }
  if (intra_process) {
    delivery = row_or_null(thread.deliveries.handle([&](std::int32_t row) {
      const auto subscription = intra_deliveries.subscription.at(at(row));
      return !subscription || owner == kNone || *subscription == owner;
    }));
    if (delivery) intra_deliveries.callback_instance.set(at(*delivery), instance);
  }
  if (object.kind == CallbackKind::service && owner != kNone) {
    const std::int32_t call = thread.service_calls.handle(
        [&](std::int32_t row) { return service_calls.service.at(at(row)) == owner; });
    if (call != kNone) service_calls.callback_instance.set(at(call), instance);
  }
  std::optional<std::int64_t> due_ns;
  if (const auto due = std::exchange(thread.due, std::nullopt);
      due && object.kind == CallbackKind::timer && owner != kNone &&
      timer_objects_[at(owner)].handle == due->timer) {
    due_ns = due->ns;
  }
  callback_instances.push(callback, thread.row, time_ns, std::nullopt,
                          intra_process ? std::uint8_t{1} : std::uint8_t{0}, take, delivery, parent, due_ns);

  if (thread.executors.empty() || thread.stack.size() != thread.executors.back().depth + 1) return;
  Executor& executor = thread.executors.back();
  // The executor runs several callbacks without an event for their phases: each gets its own phase.
  const bool another = executor.has_callback && executor.kind != PhaseKind::wait_for_work;
  if (executor.kind == PhaseKind::get_next_ready || another) new_phase(thread, executor, PhaseKind::dispatch, time_ns);
  if (executor.kind != PhaseKind::wait_for_work && !std::exchange(executor.has_callback, true)) {
    phases.callback.set(at(executor.phase), callback);
  }
}

// Removes an open callback whose end is missing.
void Ros::forget_callback(Thread& thread, std::size_t place) {
  ++counters.callback_start_without_end;
  thread.stack.erase(thread.stack.begin() + static_cast<std::ptrdiff_t>(place));
  // The callback's end was lost, so the phases within it belong to the outer executor.
  for (std::size_t i = thread.executors.size(); i-- > 1;) {
    Executor& inner = thread.executors[i];
    if (inner.depth <= place) continue;
    --inner.depth;
    if (thread.executors[i - 1].depth == inner.depth) {
      thread.executors.erase(thread.executors.begin() + static_cast<std::ptrdiff_t>(i) - 1);
    }
  }
}

void Ros::end_callback(Thread& thread, std::uint64_t handle, std::int64_t time_ns) {
  const auto found = std::find_if(thread.stack.rbegin(), thread.stack.rend(),
                                  [handle](const Open& open) { return open.callback == handle; });
  if (found == thread.stack.rend()) {
    ++counters.callback_end_without_start;
    return;
  }
  callback_instances.end_ns.set(at(found->instance), time_ns);
  counters.callback_start_without_end += static_cast<std::uint64_t>(found - thread.stack.rbegin());
  static_cast<Publishing&>(thread) = found->around;
  thread.stack.erase(std::prev(found.base()), thread.stack.end());
  // An executor that the callback spun ends with it.
  while (thread.executors.size() > 1 && thread.executors.back().depth > thread.stack.size()) {
    phases.end_ns.set(at(thread.executors.back().phase), time_ns);
    thread.executors.pop_back();
  }
}

void Ros::begin_phase(Thread& thread, PhaseKind phase, std::int64_t time_ns) {
  if (thread.executors.empty() || thread.stack.size() > thread.executors.back().depth) {
    for (const Open& open : thread.stack) interrupted_ns_.try_emplace(open.instance, time_ns);
    thread.executors.push_back({thread.stack.size(), kNone, phase, false});
  }
  if (phase != PhaseKind::execute) {
    // A message taken before this phase is not handled by callbacks that start after it.
    thread.forget_unhandled();
  }
  new_phase(thread, thread.executors.back(), phase, time_ns);
}

void Ros::new_phase(Thread& thread, Executor& executor, PhaseKind phase, std::int64_t time_ns) {
  if (executor.phase != kNone) phases.end_ns.set(at(executor.phase), time_ns);
  executor.phase = phases.pushed();
  executor.kind = phase;
  executor.has_callback = false;
  phases.push(thread.row, phase, time_ns, std::nullopt, std::nullopt);
}

// A callback without a recorded end may have ended long before the next events of its thread.
void Ros::leave_callbacks_that_do_not_end() {
  CallbackInstances& instances = callback_instances;
  for (std::size_t i = 0; i < instances.start_ns.size(); ++i) {
    std::optional<std::int32_t> parent = instances.parent.at(i);
    while (parent && !instances.end_ns.valid(at(*parent))) parent = instances.parent.at(at(*parent));
    if (parent) {
      instances.parent.set(i, *parent);
    } else {
      instances.parent.set_null(i);
    }
  }
  const auto first_ns = [this](std::size_t row) {
    const Publications& p = publications;
    for (const Int64* instants : {&p.intra_ns, &p.rclcpp_ns, &p.rcl_ns, &p.rmw_ns}) {
      if (instants->valid(row)) return (*instants)[row];
    }
    return p.dds_ns[row];
  };
  for (std::size_t i = 0; i < publications.message.size(); ++i) {
    const auto instance = publications.callback_instance.at(i);
    if (!instance || instances.end_ns.valid(at(*instance))) continue;
    const auto interrupted = interrupted_ns_.find(*instance);
    if (interrupted != interrupted_ns_.end() && first_ns(i) >= interrupted->second)
      publications.callback_instance.set_null(i);
  }
}

void Ros::finish() {
  for (const Thread& thread : threads_) {
    counters.callback_start_without_end += thread.stack.size();
    Directory::Thread& row = directory_.thread_row(thread.row);
    row.events = thread.events;
    row.first_ns = thread.first_ns;
    row.last_ns = thread.last_ns;
    Directory::Process& process = directory_.process_row(thread.process_row);
    process.events += thread.events;
    process.first_ns = std::min(process.first_ns.value_or(thread.first_ns), thread.first_ns);
    process.last_ns = std::max(process.last_ns.value_or(thread.last_ns), thread.last_ns);
  }
  callback_instances.settle(), publications.settle(), takes.settle(), intra_deliveries.settle(), phases.settle();
  match_takes();
  leave_callbacks_that_do_not_end();
  write_objects();
  functions_.finish();
}

}  // namespace perflab::traceview
