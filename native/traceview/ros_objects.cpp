// ROS objects: events that initialise them, and references by other events.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "traceview/ros.h"

namespace perflab::traceview {
namespace {

std::string period_text(std::int64_t period_ns) {
  if (period_ns % 1'000'000 == 0) return fmt::format("{} ms", period_ns / 1'000'000);
  if (period_ns % 1'000 == 0) return fmt::format("{} us", period_ns / 1'000);
  return fmt::format("{} ns", period_ns);
}

}  // namespace

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

std::int32_t Ros::refer(Objects& objects, FlatMap& map, const Process& process, std::uint64_t handle,
                        bool at_run_time) {
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

// rclcpp's object at the address; a new one if `is_known` shows that the last object there already had such an event.
std::int32_t Ros::rclcpp_subscription(Process& process, std::uint64_t address,
                                      bool is_known(const RclcppSubscription&)) {
  std::int32_t row = process.rclcpp_subscriptions.find(address);
  if (row == kNone || is_known(rclcpp_subscriptions_[at(row)])) {
    row = static_cast<std::int32_t>(rclcpp_subscriptions_.size());
    rclcpp_subscriptions_.emplace_back();
    process.rclcpp_subscriptions.set(address, row);
  }
  return row;
}

void Ros::add_gid(const Emitted& e, Objects& objects, const FlatMap& by_rmw) {
  namespace f = field::rmw_endpoint_init;
  const std::uint64_t rmw = e.value(f::rmw);
  std::string gid = e.hex(f::gid);
  // A client's rcl event precedes its rmw event; for publishers and subscriptions the rmw event comes first.
  if (const std::int32_t row = by_rmw.find(rmw); row != kNone && objects[at(row)].gid.empty())
    objects[at(row)].gid = gid;
  e.process.rmw_gids[rmw] = std::move(gid);
}

void Ros::add_endpoint(const Emitted& e, Objects& objects, FlatMap& map, FlatMap& by_rmw) {
  namespace f = field::rcl_endpoint_init;
  const std::int32_t row = initialise(objects, map, e.process, e.value(f::handle), e.now());
  Object& object = objects[at(row)];
  object.node = refer(node_objects_, e.process.nodes, e.process, e.value(f::node), false);
  object.name = e.text(f::name);
  if (e.has(f::queue_depth)) object.number = e.number(f::queue_depth);
  if (!e.has(f::rmw)) return;
  object.rmw_handle = e.value(f::rmw);
  by_rmw.set(*object.rmw_handle, row);
  if (const auto gid = e.process.rmw_gids.find(*object.rmw_handle); gid != e.process.rmw_gids.end()) {
    object.gid = gid->second;
    // The middleware's gid of a writer is the first half of the rmw layer's gid.
    const auto writer = e.process.writer_by_gid.find(std::string_view(object.gid).substr(0, 32));
    if (&objects == &publisher_objects_ && writer != e.process.writer_by_gid.end())
      e.process.writers.set(writer->second, row);
  }
}

void Ros::add_owner(const Emitted& e, CallbackKind kind, std::int32_t owner) {
  Object& callback = callback_to_fill(e.process, e.value(field::callback_added::callback), e.now(), true);
  callback.initialised = true;
  callback.kind = kind;
  callback.owner = owner;
}

// rclcpp has no events for waitables or other threads. perflab's graphs and programs register theirs as
// "perflab::waitable(/node, name)" and "perflab::span(/node, name)".
void Ros::name_by_symbol(Object& callback) const {
  using Prefix = std::pair<std::string_view, CallbackKind>;
  constexpr std::array<Prefix, 2> kPrefixes{
      {{"perflab::waitable(", CallbackKind::waitable}, {"perflab::span(", CallbackKind::span}}};
  std::string_view said = callback.symbol;
  const auto prefix = std::ranges::find_if(kPrefixes, [&](const Prefix& each) { return said.starts_with(each.first); });
  if (callback.initialised || prefix == kPrefixes.end() || !said.ends_with(')')) return;
  said = said.substr(prefix->first.size(), said.size() - prefix->first.size() - 1);
  const std::size_t comma = said.find(", ");
  if (comma == std::string_view::npos) return;
  callback.initialised = true;
  callback.kind = prefix->second;
  callback.name = said.substr(comma + 2);
  for (std::size_t row = node_objects_.size(); row-- > 0 && callback.node == kNone;) {
    const Object& node = node_objects_[row];
    if (node.process == callback.process && node.name == said.substr(0, comma))
      callback.node = static_cast<std::int32_t>(row);
  }
}

void Ros::add_ring_buffer(const Emitted& e) {
  const std::uint64_t handle = e.value(0);
  if (e.kind() == Kind::rclcpp_ipb_to_subscription) {
    e.process.subscription_of_ipb[handle] = e.value(field::ipb_to_subscription::subscription);
    return;
  }
  if (e.kind() == Kind::rclcpp_construct_ring_buffer || e.process.buffers.find(handle) == kNone) {
    e.process.buffers.set(handle, static_cast<std::int32_t>(buffers_.size()));
    buffers_.emplace_back().handle = handle;
  }
  if (e.kind() == Kind::rclcpp_buffer_to_ipb) {
    buffers_[at(e.process.buffers.find(handle))].ipb = e.value(field::buffer_to_ipb::ipb);
  }
}

// Links these subscriptions' messages to messages that these publishers publish outside of the callbacks.
void Ros::add_links(const Emitted& e) {
  namespace f = field::message_link;
  const LinkKind kind =
      e.kind() == Kind::message_link_partial_sync ? LinkKind::partial_sync : LinkKind::periodic_async;
  for (const std::uint64_t subscription : e.integers(f::subscriptions)) {
    for (const std::uint64_t publisher : e.integers(f::publishers)) {
      links.push(e.process.row, kind,
                 refer(subscription_objects_, e.process.subscriptions, e.process, subscription, true),
                 refer(publisher_objects_, e.process.publishers, e.process, publisher, true), e.now());
    }
  }
}

void Ros::add_initialisation(const Emitted& e) {
  switch (e.kind()) {
    case Kind::rcl_init: {
      const std::string version = e.text(field::rcl_init::version);
      directory_.process_row(e.process.row).tracetools_version = version;
      versions_.insert(version);
      break;
    }
    case Kind::rcl_node_init: {
      namespace f = field::rcl_node_init;
      Object& node =
          node_objects_[at(initialise(node_objects_, e.process.nodes, e.process, e.value(f::node), e.now()))];
      const std::string name_space = e.text(f::name_space);
      node.name = name_space + (name_space.ends_with('/') ? "" : "/") + e.text(f::name);
      break;
    }
    case Kind::rmw_publisher_init:
      return add_gid(e, publisher_objects_, e.process.rmw_publishers);
    case Kind::rmw_subscription_init:
      return add_gid(e, subscription_objects_, e.process.rmw_subscriptions);
    case Kind::rmw_client_init:
      return add_gid(e, client_objects_, e.process.rmw_clients);
    case Kind::rcl_publisher_init:
      return add_endpoint(e, publisher_objects_, e.process.publishers, e.process.rmw_publishers);
    case Kind::rcl_subscription_init:
      return add_endpoint(e, subscription_objects_, e.process.subscriptions, e.process.rmw_subscriptions);
    case Kind::rcl_service_init:
      return add_endpoint(e, service_objects_, e.process.services, e.process.rmw_services);
    case Kind::rcl_client_init:
      return add_endpoint(e, client_objects_, e.process.clients, e.process.rmw_clients);
    case Kind::rclcpp_subscription_init: {
      namespace f = field::rclcpp_subscription_init;
      const std::int32_t row =
          rclcpp_subscription(e.process, e.value(f::subscription),
                              [](const RclcppSubscription& s) { return s.subscription != kNone; });
      rclcpp_subscriptions_[at(row)].subscription =
          refer(subscription_objects_, e.process.subscriptions, e.process, e.value(f::handle), false);
      break;
    }
    case Kind::rclcpp_subscription_callback_added: {
      namespace f = field::callback_added;
      const std::int32_t row = rclcpp_subscription(
          e.process, e.value(f::owner), [](const RclcppSubscription& s) { return s.has_callback; });
      rclcpp_subscriptions_[at(row)].has_callback = true;
      add_owner(e, CallbackKind::subscription, kNone);
      callback_objects_[at(e.process.callbacks.find(e.value(f::callback)))].rclcpp = row;
      break;
    }
    case Kind::rclcpp_service_callback_added:
      return add_owner(e, CallbackKind::service,
                       refer(service_objects_, e.process.services, e.process,
                             e.value(field::callback_added::owner), false));
    case Kind::rclcpp_timer_callback_added:
      return add_owner(
          e, CallbackKind::timer,
          refer(timer_objects_, e.process.timers, e.process, e.value(field::callback_added::owner), false));
    case Kind::rcl_timer_init: {
      namespace f = field::rcl_timer_init;
      Object& timer = timer_objects_[at(
          initialise(timer_objects_, e.process.timers, e.process, e.value(f::timer), e.now()))];
      timer.number = e.number(f::period);
      timer.name = period_text(*timer.number);
      break;
    }
    case Kind::rclcpp_timer_link_node: {
      namespace f = field::rclcpp_timer_link_node;
      const std::int32_t timer = refer(timer_objects_, e.process.timers, e.process, e.value(f::timer), false);
      timer_objects_[at(timer)].node =
          refer(node_objects_, e.process.nodes, e.process, e.value(f::node), false);
      break;
    }
    case Kind::rclcpp_callback_register: {
      namespace f = field::callback_register;
      Object& callback = callback_to_fill(e.process, e.value(f::callback), e.now(), false);
      callback.symbol = e.text(f::symbol);
      callback.has_symbol = true;
      name_by_symbol(callback);
      break;
    }
    case Kind::rclcpp_construct_ring_buffer:
    case Kind::rclcpp_buffer_to_ipb:
    case Kind::rclcpp_ipb_to_subscription:
      return add_ring_buffer(e);
    case Kind::message_link_periodic_async:
    case Kind::message_link_partial_sync:
      return add_links(e);
    case Kind::dds_create_writer: {
      namespace f = field::dds_create_writer;
      std::string gid = e.hex(f::gid_prefix) + e.hex(f::gid_entity);
      if (!gid.empty()) e.process.writer_by_gid[std::move(gid)] = e.value(f::writer);
      break;
    }
    default:
      break;
  }
}

void Ros::write_objects() {
  for (const Object& o : node_objects_)
    nodes.push(o.process, o.handle, text_or_null(o.name), o.from_ns, o.to_ns);
  const auto endpoints = [](const Objects& objects, Endpoints& table) {
    for (const Object& o : objects) {
      table.push(o.process, row_or_null(o.node), o.handle, o.rmw_handle, text_or_null(o.name),
                 text_or_null(o.gid), o.number, o.from_ns, o.to_ns);
    }
  };
  endpoints(publisher_objects_, publishers);
  endpoints(subscription_objects_, subscriptions);
  const auto service_endpoints = [](const Objects& objects, ServiceEndpoints& table) {
    for (const Object& o : objects) {
      table.push(o.process, row_or_null(o.node), o.handle, o.rmw_handle, text_or_null(o.name),
                 text_or_null(o.gid), o.from_ns, o.to_ns);
    }
  };
  service_endpoints(service_objects_, services);
  service_endpoints(client_objects_, clients);
  for (const Object& o : timer_objects_) {
    timers.push(o.process, row_or_null(o.node), o.handle, o.number, o.from_ns, o.to_ns);
  }
  for (const Object& o : callback_objects_) {
    const Object* owner = nullptr;
    const std::int32_t owner_row = owner_of(o);
    if (owner_row != kNone) {
      const Objects& owners = o.kind == CallbackKind::subscription ? subscription_objects_
                              : o.kind == CallbackKind::timer      ? timer_objects_
                                                                   : service_objects_;
      owner = &owners[at(owner_row)];
    }
    const Object& named = owner == nullptr ? o : *owner;  // the symbol of a waitable or span contains its
                                                          // node
    callbacks.push(o.process, o.handle, o.kind, row_or_null(owner_row), row_or_null(named.node),
                   text_or_null(named.name), text_or_null(o.symbol), o.from_ns, o.to_ns);
  }
}

}  // namespace perflab::traceview
