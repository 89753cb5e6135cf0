#include "traceview/ros.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "traceview/links.h"

namespace perflab::traceview {
namespace {

std::uint64_t key(std::int32_t host, std::int32_t number) {
  return static_cast<std::uint64_t>(static_cast<std::uint32_t>(host)) << 32 | static_cast<std::uint32_t>(number);
}

// A field of bytes as hexadecimal digits; "" where the event lacks it.
std::string hex(const BoundEvent& bound, const ctf::Event& event, std::size_t field) {
  if (!bound.has(field) || !bound.fields[field].bytes) return {};
  const auto slot = static_cast<std::size_t>(bound.fields[field].slot);
  const auto* data = reinterpret_cast<const std::uint8_t*>(event.slots[slot]);
  std::string text;
  for (std::uint64_t i = 0; i < event.slots[slot + 1]; ++i) text += fmt::format("{:02x}", data[i]);
  return text;
}

std::string text(const BoundEvent& bound, const ctf::Event& event, std::size_t field) {
  return bound.has(field) && bound.fields[field].text ? std::string(bound.text(event, field)) : std::string();
}

std::optional<std::int32_t> row_or_null(std::int32_t row) {
  return row < 0 ? std::nullopt : std::optional<std::int32_t>(row);
}

std::optional<std::string> text_or_null(const std::string& value) {
  return value.empty() ? std::nullopt : std::optional<std::string>(value);
}

std::string period_text(std::int64_t period_ns) {
  if (period_ns % 1'000'000 == 0) return fmt::format("{} ms", period_ns / 1'000'000);
  if (period_ns % 1'000 == 0) return fmt::format("{} us", period_ns / 1'000);
  return fmt::format("{} ns", period_ns);
}

std::size_t at(std::int32_t row) { return static_cast<std::size_t>(row); }

}  // namespace

Ros::Ros(Directory& directory) : directory_(directory) {}

Ros::Process& Ros::process(std::int32_t host, std::int32_t pid) {
  const auto [entry, is_new] = process_of_.try_emplace(key(host, pid), static_cast<std::int32_t>(processes_.size()));
  if (is_new) {
    processes_.emplace_back().row = directory_.process(host, pid);
  }
  return processes_[at(entry->second)];
}

Ros::Thread& Ros::thread(std::int32_t host, std::int32_t pid, std::int32_t tid, const BoundEvent& bound,
                         const ctf::Event& event) {
  if (at(host) >= thread_of_.size()) thread_of_.resize(at(host) + 1);
  FlatMap& threads = thread_of_[at(host)];
  const std::uint64_t number = key(pid, tid);
  if (const std::int32_t row = threads.find(number); row != kNone) return threads_[at(row)];
  threads.set(number, static_cast<std::int32_t>(threads_.size()));
  Process& owner = process(host, pid);
  Thread& thread = threads_.emplace_back();
  thread.row = directory_.thread_of(owner.row, tid);
  thread.process_row = owner.row;
  thread.process = &owner;
  thread.first_ns = event.time_ns;
  if (bound.name.slot >= 0) {
    const auto slot = static_cast<std::size_t>(bound.name.slot);
    const std::string_view name = ctf::Event::text_at(event.slots[slot], event.slots[slot + 1]);
    directory_.thread_row(thread.row).name = name;
    // The name of the first thread is the program's.
    Directory::Process& named = directory_.process_row(owner.row);
    if (named.name.empty() || tid == named.pid) named.name = name;
  }
  return thread;
}

void Ros::add(const BoundEvent& bound, const ctf::Event& event, std::int32_t host, std::optional<std::int32_t> default_pid,
              std::int64_t shift_ns) {
  if (bound.pid.slot < 0 && !default_pid) {
    ++counters.events_without_process;
    return;
  }
  const auto pid = bound.pid.slot < 0 ? *default_pid : static_cast<std::int32_t>(event.slots[bound.pid.slot]);
  if (bound.tid.slot < 0) {
    ++counters.events_without_thread;
    if (bound.kind < Kind::rclcpp_publish || bound.kind == Kind::dds_create_writer) {
      add_initialisation(bound, event, process(host, pid));
    }
    return;
  }
  const auto tid = static_cast<std::int32_t>(event.slots[bound.tid.slot]);
  Thread& emitter = thread(host, pid, tid, bound, event);
  emitter.last_ns = event.time_ns;
  ++emitter.events;
  if (at(host) < losses_.size() && emitter.losses != losses_[at(host)]) {
    emitter.losses = losses_[at(host)];
    emitter.publication = emitter.intra_publication = emitter.take = emitter.delivery = emitter.service_call = kNone;
    for (Open& open : emitter.stack) open.around = {};
    emitter.due.reset();
  }
  if (bound.kind < Kind::rclcpp_publish || bound.kind == Kind::dds_create_writer) {
    add_initialisation(bound, event, *emitter.process);
  } else if (bound.kind == Kind::timer_due) {
    namespace f = field::timer_due;
    const std::uint64_t due_ns = bound.value(event, f::due_ns) + static_cast<std::uint64_t>(shift_ns);
    emitter.due = {bound.value(event, f::timer), static_cast<std::int64_t>(due_ns)};
  } else {
    add_run_time(bound, event, *emitter.process, emitter);
  }
}

void Ros::lost(std::int32_t host) {
  if (at(host) >= losses_.size()) losses_.resize(at(host) + 1);
  ++losses_[at(host)];
}

// Objects ------------------------------------------------------------------------------------------------------------

std::int32_t Ros::initialise(Objects& objects, FlatMap& map, const Process& process, std::uint64_t handle,
                             std::int64_t time_ns) {
  std::int32_t row = map.find(handle);
  if (row != kNone) {
    Object& known = objects[at(row)];
    if (!known.initialised && !known.at_run_time) {
      known.initialised = true;
      known.from_ns = time_ns;
      return row;
    }
    known.to_ns = time_ns;
  }
  row = static_cast<std::int32_t>(objects.size());
  Object& object = objects.emplace_back();
  object.process = process.row;
  object.handle = handle;
  object.initialised = true;
  object.from_ns = time_ns;
  map.set(handle, row);
  return row;
}

std::int32_t Ros::refer(Objects& objects, FlatMap& map, const Process& process, std::uint64_t handle, bool at_run_time) {
  if (const std::int32_t row = map.find(handle); row != kNone) return row;
  const auto row = static_cast<std::int32_t>(objects.size());
  Object& object = objects.emplace_back();
  object.process = process.row;
  object.handle = handle;
  object.at_run_time = at_run_time;
  map.set(handle, row);
  return row;
}

Ros::Object& Ros::callback_to_fill(Process& process, std::uint64_t handle, std::int64_t time_ns, bool owner) {
  const std::int32_t row = process.callbacks.find(handle);
  if (row != kNone) {
    Object& known = callback_objects_[at(row)];
    if (!known.at_run_time && !(owner ? known.initialised : known.has_symbol)) return known;
    known.to_ns = time_ns;
  }
  process.callbacks.set(handle, static_cast<std::int32_t>(callback_objects_.size()));
  Object& object = callback_objects_.emplace_back();
  object.process = process.row;
  object.handle = handle;
  object.from_ns = time_ns;
  return object;
}

std::int32_t Ros::owner_of(const Object& callback) const {
  return callback.rclcpp == kNone ? callback.owner : rclcpp_subscriptions_[at(callback.rclcpp)].subscription;
}

// rclcpp's object of that address, a new one where `is_known` says that the event is of another object than the last.
std::int32_t Ros::rclcpp_subscription(Process& process, std::uint64_t address, bool is_known(const RclcppSubscription&)) {
  std::int32_t row = process.rclcpp_subscriptions.find(address);
  if (row == kNone || is_known(rclcpp_subscriptions_[at(row)])) {
    row = static_cast<std::int32_t>(rclcpp_subscriptions_.size());
    rclcpp_subscriptions_.emplace_back();
    process.rclcpp_subscriptions.set(address, row);
  }
  return row;
}

void Ros::add_gid(const BoundEvent& bound, const ctf::Event& event, Process& process, Objects& objects,
                  const FlatMap& by_rmw) {
  namespace f = field::rmw_endpoint_init;
  const std::uint64_t rmw = bound.value(event, f::rmw);
  std::string gid = hex(bound, event, f::gid);
  // Clients are known to the rmw layer after the rcl layer named them; publishers and subscriptions before.
  if (const std::int32_t row = by_rmw.find(rmw); row != kNone && objects[at(row)].gid.empty()) objects[at(row)].gid = gid;
  process.rmw_gids[rmw] = std::move(gid);
}

void Ros::add_endpoint(const BoundEvent& bound, const ctf::Event& event, Process& process, Objects& objects, FlatMap& map,
                       FlatMap& by_rmw) {
  namespace f = field::rcl_endpoint_init;
  const std::int32_t row = initialise(objects, map, process, bound.value(event, f::handle), event.time_ns);
  Object& object = objects[at(row)];
  object.node = refer(node_objects_, process.nodes, process, bound.value(event, f::node), false);
  object.name = text(bound, event, f::name);
  if (bound.has(f::queue_depth)) object.number = static_cast<std::int64_t>(bound.value(event, f::queue_depth));
  if (!bound.has(f::rmw)) return;
  object.rmw_handle = bound.value(event, f::rmw);
  by_rmw.set(*object.rmw_handle, row);
  if (const auto gid = process.rmw_gids.find(*object.rmw_handle); gid != process.rmw_gids.end()) {
    object.gid = gid->second;
    // The middleware's name of a writer is the first half of a longer one of the rmw layer.
    const auto writer = process.writer_by_gid.find(std::string_view(object.gid).substr(0, 32));
    if (&objects == &publisher_objects_ && writer != process.writer_by_gid.end()) process.writers.set(writer->second, row);
  }
}

void Ros::add_owner(const BoundEvent& bound, const ctf::Event& event, Process& process, CallbackKind kind,
                    std::int32_t owner) {
  Object& callback = callback_to_fill(process, bound.value(event, field::callback_added::callback), event.time_ns, true);
  callback.initialised = true;
  callback.kind = kind;
  callback.owner = owner;
}

// rclcpp tells nothing of waitables. Those of perflab's graphs register "perflab::waitable(/node, name)".
void Ros::name_waitable(Object& callback) const {
  constexpr std::string_view kPrefix = "perflab::waitable(";
  std::string_view said = callback.symbol;
  if (callback.initialised || !said.starts_with(kPrefix) || !said.ends_with(')')) return;
  said = said.substr(kPrefix.size(), said.size() - kPrefix.size() - 1);
  const std::size_t comma = said.find(", ");
  if (comma == std::string_view::npos) return;
  callback.initialised = true;
  callback.kind = CallbackKind::waitable;
  callback.name = said.substr(comma + 2);
  for (std::size_t row = node_objects_.size(); row-- > 0 && callback.node == kNone;) {
    const Object& node = node_objects_[row];
    if (node.process == callback.process && node.name == said.substr(0, comma)) callback.node = static_cast<std::int32_t>(row);
  }
}

void Ros::add_ring_buffer(const BoundEvent& bound, const ctf::Event& event, Process& process) {
  const std::uint64_t handle = bound.value(event, 0);
  if (bound.kind == Kind::rclcpp_ipb_to_subscription) {
    process.subscription_of_ipb[handle] = bound.value(event, field::ipb_to_subscription::subscription);
    return;
  }
  if (bound.kind == Kind::rclcpp_construct_ring_buffer || process.buffers.find(handle) == kNone) {
    process.buffers.set(handle, static_cast<std::int32_t>(buffers_.size()));
    buffers_.emplace_back().handle = handle;
  }
  if (bound.kind == Kind::rclcpp_buffer_to_ipb) {
    buffers_[at(process.buffers.find(handle))].ipb = bound.value(event, field::buffer_to_ipb::ipb);
  }
}

void Ros::add_initialisation(const BoundEvent& bound, const ctf::Event& event, Process& process) {
  const auto value = [&](std::size_t field) { return bound.value(event, field); };
  switch (bound.kind) {
    case Kind::rcl_init: {
      const std::string version = text(bound, event, field::rcl_init::version);
      directory_.process_row(process.row).tracetools_version = version;
      versions_.insert(version);
      break;
    }
    case Kind::rcl_node_init: {
      namespace f = field::rcl_node_init;
      Object& node = node_objects_[at(initialise(node_objects_, process.nodes, process, value(f::node), event.time_ns))];
      const std::string name_space = text(bound, event, f::name_space);
      node.name = name_space + (name_space.ends_with('/') ? "" : "/") + text(bound, event, f::name);
      break;
    }
    case Kind::rmw_publisher_init: return add_gid(bound, event, process, publisher_objects_, process.rmw_publishers);
    case Kind::rmw_subscription_init: return add_gid(bound, event, process, subscription_objects_, process.rmw_subscriptions);
    case Kind::rmw_client_init: return add_gid(bound, event, process, client_objects_, process.rmw_clients);
    case Kind::rcl_publisher_init:
      return add_endpoint(bound, event, process, publisher_objects_, process.publishers, process.rmw_publishers);
    case Kind::rcl_subscription_init:
      return add_endpoint(bound, event, process, subscription_objects_, process.subscriptions, process.rmw_subscriptions);
    case Kind::rcl_service_init:
      return add_endpoint(bound, event, process, service_objects_, process.services, process.rmw_services);
    case Kind::rcl_client_init:
      return add_endpoint(bound, event, process, client_objects_, process.clients, process.rmw_clients);
    case Kind::rclcpp_subscription_init: {
      namespace f = field::rclcpp_subscription_init;
      const std::int32_t row = rclcpp_subscription(process, value(f::subscription),
                                                   [](const RclcppSubscription& s) { return s.subscription != kNone; });
      rclcpp_subscriptions_[at(row)].subscription =
          refer(subscription_objects_, process.subscriptions, process, value(f::handle), false);
      break;
    }
    case Kind::rclcpp_subscription_callback_added: {
      namespace f = field::callback_added;
      const std::int32_t row =
          rclcpp_subscription(process, value(f::owner), [](const RclcppSubscription& s) { return s.has_callback; });
      rclcpp_subscriptions_[at(row)].has_callback = true;
      add_owner(bound, event, process, CallbackKind::subscription, kNone);
      callback_objects_[at(process.callbacks.find(value(f::callback)))].rclcpp = row;
      break;
    }
    case Kind::rclcpp_service_callback_added:
      return add_owner(bound, event, process, CallbackKind::service,
                       refer(service_objects_, process.services, process, value(field::callback_added::owner), false));
    case Kind::rclcpp_timer_callback_added:
      return add_owner(bound, event, process, CallbackKind::timer,
                       refer(timer_objects_, process.timers, process, value(field::callback_added::owner), false));
    case Kind::rcl_timer_init: {
      namespace f = field::rcl_timer_init;
      Object& timer = timer_objects_[at(initialise(timer_objects_, process.timers, process, value(f::timer), event.time_ns))];
      timer.number = static_cast<std::int64_t>(value(f::period));
      timer.name = period_text(*timer.number);
      break;
    }
    case Kind::rclcpp_timer_link_node: {
      namespace f = field::rclcpp_timer_link_node;
      const std::int32_t timer = refer(timer_objects_, process.timers, process, value(f::timer), false);
      timer_objects_[at(timer)].node = refer(node_objects_, process.nodes, process, value(f::node), false);
      break;
    }
    case Kind::rclcpp_callback_register: {
      namespace f = field::callback_register;
      Object& callback = callback_to_fill(process, value(f::callback), event.time_ns, false);
      callback.symbol = text(bound, event, f::symbol);
      callback.has_symbol = true;
      name_waitable(callback);
      break;
    }
    case Kind::rclcpp_construct_ring_buffer:
    case Kind::rclcpp_buffer_to_ipb:
    case Kind::rclcpp_ipb_to_subscription: return add_ring_buffer(bound, event, process);
    case Kind::message_link_periodic_async:
    case Kind::message_link_partial_sync:
      return declare_links(
          links, bound, event, process.row,
          [&](std::uint64_t handle) { return refer(subscription_objects_, process.subscriptions, process, handle, true); },
          [&](std::uint64_t handle) { return refer(publisher_objects_, process.publishers, process, handle, true); });
    case Kind::dds_create_writer: {
      namespace f = field::dds_create_writer;
      std::string gid = hex(bound, event, f::gid_prefix) + hex(bound, event, f::gid_entity);
      if (!gid.empty()) process.writer_by_gid[std::move(gid)] = value(f::writer);
      break;
    }
    default: break;
  }
}

// Run time -----------------------------------------------------------------------------------------------------------

void Ros::add_run_time(const BoundEvent& bound, const ctf::Event& event, Process& process, Thread& thread) {
  const auto value = [&](std::size_t field) { return bound.value(event, field); };
  const std::int64_t now = event.time_ns;
  switch (bound.kind) {
    case Kind::callback_start: {
      namespace f = field::callback_start;
      const bool intra_process = bound.has(f::is_intra_process) && value(f::is_intra_process) != 0;
      return start_callback(process, thread, value(f::callback), intra_process, now);
    }
    case Kind::callback_end: return end_callback(thread, value(field::callback_end::callback), now);
    case Kind::rclcpp_intra_publish:
    case Kind::rclcpp_publish:
    case Kind::rcl_publish: {
      namespace f = field::publish;
      const std::int32_t publisher = bound.has(f::publisher)
          ? refer(publisher_objects_, process.publishers, process, value(f::publisher), true)
          : kNone;
      const Layer layer = bound.kind == Kind::rcl_publish ? kRcl : bound.kind == Kind::rclcpp_publish ? kRclcpp : kIntra;
      return publish(thread, layer, value(f::message), publisher, now);
    }
    case Kind::rmw_publish: {
      namespace f = field::publish;
      const std::int32_t publisher = bound.has(f::publisher) ? process.rmw_publishers.find(value(f::publisher)) : kNone;
      publish(thread, kRmw, value(f::message), publisher, now);
      if (bound.has(f::timestamp)) {
        publications.source_timestamp.set(at(thread.publication), static_cast<std::int64_t>(value(f::timestamp)));
      }
      return;
    }
    case Kind::dds_write_pre:
      thread.writer = thread.publication != kNone && value(field::dds_write::data) == thread.message
          ? value(field::dds_write::writer)
          : 0;
      return;
    case Kind::dds_write: return dds_write(bound, event, process, thread);
    case Kind::dds_bind_stamp: {
      namespace f = field::dds_bind_stamp;
      if (thread.publication == kNone || thread.message != value(f::address)) {
        ++counters.writes_of_the_middleware;
        return;
      }
      publications.dds_ns.set(at(thread.publication), now);
      publications.source_timestamp.set(at(thread.publication), static_cast<std::int64_t>(value(f::timestamp)));
      return;
    }
    case Kind::rmw_take:
    case Kind::rcl_take:
    case Kind::rclcpp_take:
    case Kind::dispatch_subscription_callback: return add_take(bound, event, process, thread);
    case Kind::executor_get_next_ready: return begin_phase(thread, PhaseKind::get_next_ready, now);
    case Kind::executor_wait_for_work: return begin_phase(thread, PhaseKind::wait_for_work, now);
    case Kind::executor_execute: return begin_phase(thread, PhaseKind::execute, now);
    case Kind::ring_buffer_enqueue: return enqueue(bound, event, process, thread);
    case Kind::ring_buffer_dequeue: return dequeue(bound, event, process, thread);
    case Kind::ring_buffer_clear: return clear(bound, event, process);
    case Kind::rmw_send_request:
    case Kind::rmw_take_request:
    case Kind::rmw_send_response:
    case Kind::rmw_take_response: return add_service_message(bound, event, process, thread);
    case Kind::function_entry:
      return functions_.entry(thread.row, thread.process_row, now, value(field::function::address));
    case Kind::function_exit:
      return functions_.exit(
          thread.row, thread.process_row, now,
          bound.has(field::function::address) ? std::optional(value(field::function::address)) : std::nullopt);
    case Kind::binary_info: {
      namespace f = field::binary;
      return functions_.binary(thread.process_row, value(f::base), value(f::size), text(bound, event, f::path),
                               !bound.has(f::is_position_independent) || value(f::is_position_independent) != 0);
    }
    case Kind::binary_build_id: {
      namespace f = field::binary_build_id;
      const auto slot = static_cast<std::size_t>(bound.fields[f::id].slot);
      if (!bound.fields[f::id].bytes) return;
      return functions_.build_id(thread.process_row, value(f::base),
                                 {reinterpret_cast<const std::uint8_t*>(event.slots[slot]), event.slots[slot + 1]});
    }
    case Kind::binary_unload: return functions_.unload(thread.process_row, value(field::binary::base));
    default: return;
  }
}

void Ros::publish(Thread& thread, Layer layer, std::uint64_t message, std::int32_t publisher, std::int64_t time_ns) {
  const bool goes_on = thread.publication != kNone && thread.message == message && thread.layer < layer;
  if (!goes_on) {
    thread.publication = new_publication(thread, message);
  } else if (const auto known = publications.publisher.at(at(thread.publication));
             known && publisher != kNone && *known != publisher) {
    // The address was used again for another publisher's message; rclcpp_publish does not say whose it was.
    const std::size_t before = at(thread.publication);
    std::optional<std::int64_t> rclcpp_ns;
    if (thread.layer == kRclcpp && publications.intra_ns.valid(before)) {
      rclcpp_ns = publications.rclcpp_ns.at(before);
      publications.rclcpp_ns.set_null(before);
    }
    thread.publication = new_publication(thread, message);
    if (rclcpp_ns) publications.rclcpp_ns.set(at(thread.publication), *rclcpp_ns);
  }
  thread.layer = layer;
  const std::size_t row = at(thread.publication);
  switch (layer) {
    case kIntra:
      publications.intra_ns.set(row, time_ns);
      thread.intra_publication = thread.publication;
      break;
    case kRclcpp: publications.rclcpp_ns.set(row, time_ns); break;
    case kRcl: publications.rcl_ns.set(row, time_ns); break;
    case kRmw: publications.rmw_ns.set(row, time_ns); break;
  }
  if (publisher != kNone && !publications.publisher.valid(row)) publications.publisher.set(row, publisher);
}

std::int32_t Ros::new_publication(Thread& thread, std::uint64_t message) {
  thread.message = message;
  thread.layer = -1;
  thread.writer = 0;
  thread.intra_publication = kNone;
  publications.publisher.push_null();
  publications.thread.push(thread.row);
  publications.callback_instance.push(thread.stack.empty() ? std::nullopt : std::optional(thread.stack.back().instance));
  publications.rclcpp_ns.push_null();
  publications.intra_ns.push_null();
  publications.rcl_ns.push_null();
  publications.rmw_ns.push_null();
  publications.dds_ns.push_null();
  publications.source_timestamp.push_null();
  publications.message.push(message);
  return static_cast<std::int32_t>(publications.message.size()) - 1;
}

void Ros::dds_write(const BoundEvent& bound, const ctf::Event& event, Process& process, Thread& thread) {
  namespace f = field::dds_write;
  const std::uint64_t writer = bound.value(event, f::writer);
  if (thread.publication == kNone || thread.writer != writer || writer == 0) {
    const std::int32_t publisher = process.writers.find(writer);
    if (publisher == kNone) {
      ++counters.writes_of_the_middleware;
      return;
    }
    // The layers above were not seen.
    thread.publication = new_publication(thread, 0);
    thread.layer = kRmw;
    publications.publisher.set(at(thread.publication), publisher);
  }
  publications.dds_ns.set(at(thread.publication), event.time_ns);
  publications.source_timestamp.set(at(thread.publication), static_cast<std::int64_t>(bound.value(event, f::timestamp)));
  thread.writer = 0;
}

void Ros::add_take(const BoundEvent& bound, const ctf::Event& event, Process& process, Thread& thread) {
  const auto value = [&](std::size_t field) { return bound.value(event, field); };
  const auto new_row = [&](std::uint64_t message) {
    takes.subscription.push_null();
    takes.thread.push(thread.row);
    takes.rmw_ns.push_null();
    takes.rcl_ns.push_null();
    takes.rclcpp_ns.push_null();
    takes.source_timestamp.push_null();
    takes.match.push(TakeMatch::no_timestamp);
    takes.publication.push_null();
    takes.callback_instance.push_null();
    thread.take = static_cast<std::int32_t>(takes.thread.size()) - 1;
    thread.taken_message = message;
    return at(thread.take);
  };
  switch (bound.kind) {
    case Kind::rmw_take: {
      namespace f = field::rmw_take;
      const std::size_t row = new_row(value(f::message));
      takes.rmw_ns.set(row, event.time_ns);
      const std::int32_t subscription = process.rmw_subscriptions.find(value(f::rmw));
      if (subscription != kNone) takes.subscription.set(row, subscription);
      if (value(f::taken) == 0) {
        takes.match.set(row, TakeMatch::not_taken);  // rcl_take may follow all the same
        return;
      }
      if (subscription == kNone) ++counters.takes_of_unknown_subscriptions;
      const auto timestamp = static_cast<std::int64_t>(value(f::timestamp));
      takes.source_timestamp.set(row, timestamp);
      if (timestamp != 0) {
        takes.match.set(row, subscription == kNone ? TakeMatch::unknown_subscription : TakeMatch::no_publication);
      }
      return;
    }
    case Kind::rcl_take:
    case Kind::rclcpp_take: {
      const std::uint64_t message = value(field::take::message);
      auto& column = bound.kind == Kind::rcl_take ? takes.rcl_ns : takes.rclcpp_ns;
      const bool goes_on = thread.take != kNone && thread.taken_message == message && !column.valid(at(thread.take)) &&
                           !takes.callback_instance.valid(at(thread.take));
      column.set(goes_on ? at(thread.take) : new_row(message), event.time_ns);
      return;
    }
    default: {
      namespace f = field::dispatch;
      const std::size_t row = new_row(value(f::message));
      takes.rclcpp_ns.set(row, event.time_ns);
      const std::int32_t callback = process.callbacks.find(value(f::callback));
      const std::int32_t subscription = callback == kNone ? kNone : owner_of(callback_objects_[at(callback)]);
      if (subscription == kNone) {
        ++counters.takes_of_unknown_subscriptions;
      } else {
        takes.subscription.set(row, subscription);
      }
      const auto timestamp = static_cast<std::int64_t>(value(f::timestamp));
      takes.source_timestamp.set(row, timestamp);
      if (timestamp != 0) {
        takes.match.set(row, subscription == kNone ? TakeMatch::unknown_subscription : TakeMatch::no_publication);
      }
      return;
    }
  }
}

void Ros::start_callback(Process& process, Thread& thread, std::uint64_t handle, bool intra_process, std::int64_t time_ns) {
  const std::int32_t callback = refer(callback_objects_, process.callbacks, process, handle, true);
  const Object& object = callback_objects_[at(callback)];
  const std::int32_t owner = owner_of(object);
  if (!thread.stack.empty() && thread.stack.back().callback == handle) forget_callback(thread, thread.stack.size() - 1);
  const auto instance = static_cast<std::int32_t>(callback_instances.start_ns.size());
  callback_instances.callback.push(callback);
  callback_instances.thread.push(thread.row);
  callback_instances.start_ns.push(time_ns);
  callback_instances.end_ns.push_null();
  callback_instances.intra_process.push(intra_process ? 1 : 0);
  callback_instances.parent.push(thread.stack.empty() ? std::nullopt : std::optional(thread.stack.back().instance));
  thread.stack.push_back({handle, instance, thread});
  Publishing& inner = thread;
  inner = {};

  // What it handles is what its thread took last, if that was for the same owner; a message is handled once.
  std::optional<std::int32_t> take, delivery;
  if (object.kind == CallbackKind::subscription && !intra_process && thread.take != kNone &&
      owner != kNone && takes.subscription.at(at(thread.take)) == owner && takes.match[at(thread.take)] != TakeMatch::not_taken) {
    take = std::exchange(thread.take, kNone);
    takes.callback_instance.set(at(*take), instance);
  }
  if (intra_process && thread.delivery != kNone) {
    const auto subscription = intra_deliveries.subscription.at(at(thread.delivery));
    if (!subscription || owner == kNone || *subscription == owner) {
      delivery = std::exchange(thread.delivery, kNone);
      intra_deliveries.callback_instance.set(at(*delivery), instance);
    }
  }
  if (object.kind == CallbackKind::service && thread.service_call != kNone &&
      owner != kNone && service_calls.service.at(at(thread.service_call)) == owner) {
    service_calls.callback_instance.set(at(std::exchange(thread.service_call, kNone)), instance);
  }
  std::optional<std::int64_t> due_ns;
  if (const auto due = std::exchange(thread.due, std::nullopt);
      due && object.kind == CallbackKind::timer && owner != kNone && timer_objects_[at(owner)].handle == due->timer) {
    due_ns = due->ns;
  }
  callback_instances.due_ns.push(due_ns);
  callback_instances.take.push(take);
  callback_instances.delivery.push(delivery);

  if (thread.executors.empty() || thread.stack.size() != thread.executors.back().depth + 1) return;
  Executor& executor = thread.executors.back();
  if (executor.kind == PhaseKind::get_next_ready) new_phase(thread, executor, PhaseKind::dispatch, time_ns);
  if (executor.kind != PhaseKind::wait_for_work && !std::exchange(executor.has_callback, true)) {
    phases.callback.set(at(executor.phase), callback);
  }
}

// The end of an open callback will not come any more.
void Ros::forget_callback(Thread& thread, std::size_t place) {
  ++counters.callback_start_without_end;
  thread.stack.erase(thread.stack.begin() + static_cast<std::ptrdiff_t>(place));
  // What looked like an executor within that callback is the one around it, whose phase ended unseen.
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
    // What was taken and not handled by now is not handled by a later callback.
    thread.take = thread.delivery = thread.service_call = kNone;
  }
  new_phase(thread, thread.executors.back(), phase, time_ns);
}

void Ros::new_phase(Thread& thread, Executor& executor, PhaseKind phase, std::int64_t time_ns) {
  if (executor.phase != kNone) phases.end_ns.set(at(executor.phase), time_ns);
  executor.phase = static_cast<std::int32_t>(phases.start_ns.size());
  executor.kind = phase;
  executor.has_callback = false;
  phases.thread.push(thread.row);
  phases.phase.push(phase);
  phases.start_ns.push(time_ns);
  phases.end_ns.push_null();
  phases.callback.push_null();
}

// Delivery within a process ------------------------------------------------------------------------------------------

std::int32_t Ros::buffer_of(Process& process, std::uint64_t handle) {
  std::int32_t row = process.buffers.find(handle);
  if (row == kNone) {
    row = static_cast<std::int32_t>(buffers_.size());
    process.buffers.set(handle, row);
    buffers_.emplace_back().handle = handle;
  }
  Buffer& buffer = buffers_[at(row)];
  if (buffer.subscription == kNone && buffer.ipb != 0) {
    const auto subscription = process.subscription_of_ipb.find(buffer.ipb);
    if (subscription != process.subscription_of_ipb.end()) {
      const std::int32_t row = process.rclcpp_subscriptions.find(subscription->second);
      if (row != kNone) buffer.subscription = rclcpp_subscriptions_[at(row)].subscription;
    }
  }
  return row;
}

void Ros::enqueue(const BoundEvent& bound, const ctf::Event& event, Process& process, Thread& thread) {
  namespace f = field::ring_buffer;
  Buffer& buffer = buffers_[at(buffer_of(process, bound.value(event, f::buffer)))];
  const std::uint64_t index = bound.value(event, f::index);
  if (buffer.subscription == kNone) ++counters.enqueues_into_unknown_buffers;
  // A message of another topic on this thread is not the one that is enqueued here.
  std::optional<std::int32_t> publication = row_or_null(thread.intra_publication);
  if (publication && buffer.subscription != kNone && publications.publisher.valid(at(*publication))) {
    const Object& publisher = publisher_objects_[at(publications.publisher[at(*publication)])];
    const std::string& topic = subscription_objects_[at(buffer.subscription)].name;
    if (!publisher.name.empty() && !topic.empty() && publisher.name != topic) publication.reset();
  }
  const std::int32_t before = buffer.by_index.find(index);
  // The message that lay there was not taken: it is lost, whether the event says "overwritten" or not.
  if (before != kNone && !intra_deliveries.dequeue_ns.valid(at(before))) intra_deliveries.lost.set(at(before), 1);
  buffer.by_index.set(index, static_cast<std::int32_t>(intra_deliveries.index.size()));
  intra_deliveries.subscription.push(row_or_null(buffer.subscription));
  intra_deliveries.publication.push(publication);
  intra_deliveries.buffer.push(buffer.handle);
  intra_deliveries.index.push(index);
  intra_deliveries.enqueue_ns.push(event.time_ns);
  intra_deliveries.dequeue_ns.push_null();
  intra_deliveries.lost.push(0);
  intra_deliveries.enqueue_thread.push(thread.row);
  intra_deliveries.dequeue_thread.push_null();
  intra_deliveries.callback_instance.push_null();
}

void Ros::dequeue(const BoundEvent& bound, const ctf::Event& event, Process& process, Thread& thread) {
  namespace f = field::ring_buffer;
  Buffer& buffer = buffers_[at(buffer_of(process, bound.value(event, f::buffer)))];
  const std::int32_t row = buffer.by_index.find(bound.value(event, f::index));
  if (row == kNone || intra_deliveries.dequeue_ns.valid(at(row)) || intra_deliveries.lost[at(row)] != 0) {
    ++counters.dequeues_without_enqueue;
    thread.delivery = kNone;
    return;
  }
  intra_deliveries.dequeue_ns.set(at(row), event.time_ns);
  intra_deliveries.dequeue_thread.set(at(row), thread.row);
  thread.delivery = row;
}

void Ros::clear(const BoundEvent& bound, const ctf::Event& event, Process& process) {
  const std::int32_t row = process.buffers.find(bound.value(event, field::ring_buffer::buffer));
  if (row == kNone) return;
  buffers_[at(row)].by_index.for_each([this](std::uint64_t, std::int32_t delivery) {
    if (!intra_deliveries.dequeue_ns.valid(at(delivery))) intra_deliveries.lost.set(at(delivery), 1);
  });
}

// Services -----------------------------------------------------------------------------------------------------------

std::int32_t Ros::service_call(std::string_view gid, std::int64_t sequence_number) {
  auto client = calls_by_client_.find(gid);
  if (client == calls_by_client_.end()) client = calls_by_client_.emplace(std::string(gid), FlatMap()).first;
  const auto number = static_cast<std::uint64_t>(sequence_number);
  if (const std::int32_t row = client->second.find(number); row != kNone) return row;
  const auto row = static_cast<std::int32_t>(service_calls.sequence_number.size());
  client->second.set(number, row);
  service_calls.client.push_null();
  service_calls.service.push_null();
  service_calls.sequence_number.push(sequence_number);
  service_calls.send_request_ns.push_null();
  service_calls.take_request_ns.push_null();
  service_calls.send_response_ns.push_null();
  service_calls.take_response_ns.push_null();
  service_calls.callback_instance.push_null();
  return row;
}

void Ros::add_service_message(const BoundEvent& bound, const ctf::Event& event, Process& process, Thread& thread) {
  namespace f = field::service_message;
  const std::uint64_t rmw = bound.value(event, f::rmw);
  if (bound.has(f::taken) && bound.value(event, f::taken) == 0) return;
  const bool of_client = bound.kind == Kind::rmw_send_request || bound.kind == Kind::rmw_take_response;
  std::string gid;
  std::int32_t endpoint = kNone;
  if (of_client) {
    endpoint = process.rmw_clients.find(rmw);
    if (const auto known = process.rmw_gids.find(rmw); known != process.rmw_gids.end()) gid = known->second;
  } else {
    endpoint = process.rmw_services.find(rmw);
    gid = hex(bound, event, f::client_gid);
  }
  if (gid.empty()) {
    ++counters.service_messages_of_unknown_clients;
    return;
  }
  const std::int32_t row = service_call(gid, static_cast<std::int64_t>(bound.value(event, f::sequence_number)));
  auto& side = of_client ? service_calls.client : service_calls.service;
  if (!of_client && side.valid(at(row)) && endpoint != side[at(row)]) {
    // Two servers of one name answer each request; the first that took it is the one of the call.
    counters.requests_taken_by_several_servers += bound.kind == Kind::rmw_take_request ? 1 : 0;
    return;
  }
  if (endpoint != kNone) side.set(at(row), endpoint);
  switch (bound.kind) {
    case Kind::rmw_send_request: service_calls.send_request_ns.set(at(row), event.time_ns); break;
    case Kind::rmw_take_request:
      service_calls.take_request_ns.set(at(row), event.time_ns);
      thread.service_call = row;
      break;
    case Kind::rmw_send_response: service_calls.send_response_ns.set(at(row), event.time_ns); break;
    default: service_calls.take_response_ns.set(at(row), event.time_ns); break;
  }
}

// The end ------------------------------------------------------------------------------------------------------------

void Ros::match_takes() {
  // One publication of a topic has one source time stamp; two topics may have the same by chance.
  std::map<std::string, std::int32_t> topics;
  const auto topics_of = [&topics](const Objects& objects) {
    std::vector<std::int32_t> result;
    result.reserve(objects.size());
    for (const Object& object : objects) {
      result.push_back(object.name.empty() ? kNone : topics.try_emplace(object.name, static_cast<std::int32_t>(topics.size())).first->second);
    }
    return result;
  };
  const std::vector<std::int32_t> topic_of_publisher = topics_of(publisher_objects_);
  const std::vector<std::int32_t> topic_of_subscription = topics_of(subscription_objects_);

  // Of the same topic and time stamp two publications are enough to know that a take is ambiguous.
  const auto key_of = [](std::int64_t timestamp, std::int32_t topic) {
    return static_cast<std::uint64_t>(timestamp) + static_cast<std::uint64_t>(topic) * 0xd1b54a32d192ed03u;
  };
  FlatMap newest;  // time stamp and topic -> publication
  std::vector<std::int32_t> older(publications.message.size(), kNone);  // another publication of that key
  newest.reserve(publications.message.size());
  const auto topic_of = [&](std::int32_t publication) {
    return publications.publisher.valid(at(publication)) ? topic_of_publisher[at(publications.publisher[at(publication)])] : kNone;
  };
  for (std::size_t i = 0; i < publications.message.size(); ++i) {
    if (!publications.publisher.valid(i)) ++counters.publications_without_publisher;
    const std::int32_t topic = topic_of(static_cast<std::int32_t>(i));
    if (!publications.source_timestamp.valid(i) || topic == kNone) continue;
    const std::uint64_t key = key_of(publications.source_timestamp[i], topic);
    older[i] = newest.find(key);
    newest.set(key, static_cast<std::int32_t>(i));
  }
  for (std::size_t i = 0; i < takes.thread.size(); ++i) {
    if (takes.match[i] != TakeMatch::no_publication) continue;
    const std::int32_t topic = topic_of_subscription[at(takes.subscription[i])];
    if (topic == kNone) continue;
    const std::int64_t timestamp = takes.source_timestamp[i];
    std::int32_t found = kNone;
    bool ambiguous = false;
    for (std::int32_t p = newest.find(key_of(timestamp, topic)); p != kNone && !ambiguous; p = older[at(p)]) {
      if (publications.source_timestamp[at(p)] != timestamp || topic_of(p) != topic) continue;
      ambiguous = found != kNone;
      found = p;
    }
    if (found == kNone) continue;
    takes.match.set(i, ambiguous ? TakeMatch::ambiguous : TakeMatch::matched);
    if (!ambiguous) takes.publication.set(i, found);
  }
}

// A callback whose end was not seen may have ended long before what followed on its thread.
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
    if (interrupted != interrupted_ns_.end() && first_ns(i) >= interrupted->second) publications.callback_instance.set_null(i);
  }
}

void Ros::write_objects() {
  for (const Object& o : node_objects_) {
    nodes.process.push(o.process), nodes.handle.push(o.handle), nodes.name.push(text_or_null(o.name));
    nodes.valid_from_ns.push(o.from_ns), nodes.valid_to_ns.push(o.to_ns);
  }
  const auto endpoints = [](const Objects& objects, Endpoints& table) {
    for (const Object& o : objects) {
      table.process.push(o.process), table.node.push(row_or_null(o.node)), table.handle.push(o.handle);
      table.rmw_handle.push(o.rmw_handle), table.topic.push(text_or_null(o.name)), table.gid.push(text_or_null(o.gid));
      table.queue_depth.push(o.number), table.valid_from_ns.push(o.from_ns), table.valid_to_ns.push(o.to_ns);
    }
  };
  endpoints(publisher_objects_, publishers);
  endpoints(subscription_objects_, subscriptions);
  const auto service_endpoints = [](const Objects& objects, ServiceEndpoints& table) {
    for (const Object& o : objects) {
      table.process.push(o.process), table.node.push(row_or_null(o.node)), table.handle.push(o.handle);
      table.rmw_handle.push(o.rmw_handle), table.name.push(text_or_null(o.name)), table.gid.push(text_or_null(o.gid));
      table.valid_from_ns.push(o.from_ns), table.valid_to_ns.push(o.to_ns);
    }
  };
  service_endpoints(service_objects_, services);
  service_endpoints(client_objects_, clients);
  for (const Object& o : timer_objects_) {
    timers.process.push(o.process), timers.node.push(row_or_null(o.node)), timers.handle.push(o.handle);
    timers.period_ns.push(o.number), timers.valid_from_ns.push(o.from_ns), timers.valid_to_ns.push(o.to_ns);
  }
  for (const Object& o : callback_objects_) {
    const Object* owner = nullptr;
    const std::int32_t owner_row = owner_of(o);
    if (owner_row != kNone) {
      const Objects& owners = o.kind == CallbackKind::subscription ? subscription_objects_
          : o.kind == CallbackKind::timer                          ? timer_objects_
                                                                   : service_objects_;
      owner = &owners[at(owner_row)];
    }
    callbacks.process.push(o.process), callbacks.handle.push(o.handle), callbacks.kind.push(o.kind);
    const Object& named = owner == nullptr ? o : *owner;  // a waitable says itself whose it is
    callbacks.owner.push(row_or_null(owner_row)), callbacks.node.push(row_or_null(named.node));
    callbacks.name.push(text_or_null(named.name)), callbacks.symbol.push(text_or_null(o.symbol));
    callbacks.valid_from_ns.push(o.from_ns), callbacks.valid_to_ns.push(o.to_ns);
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
  match_takes();
  leave_callbacks_that_do_not_end();
  write_objects();
  functions_.finish();
}

}  // namespace perflab::traceview
