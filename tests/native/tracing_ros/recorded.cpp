#include "recorded.h"

#include <algorithm>
#include <cstdio>

namespace perflab::tracing::testing {
namespace {

struct Store {
  std::mutex mutex;
  std::vector<Event> events;
};
Store& store() {
  static Store instance;
  return instance;
}

std::string text_of(const void* handle) {
  char text[32];
  std::snprintf(text, sizeof text, "@%p", handle);
  return text;
}
std::string text_of(const char* text) { return text; }
template <typename Integer>
std::string text_of(Integer number) {
  return std::to_string(number);
}

template <typename... Fields>
void note(const char* name, Fields... fields) {
  Event event{name, {text_of(fields)...}, std::this_thread::get_id()};
  const std::lock_guard lock(store().mutex);
  store().events.push_back(std::move(event));
}

std::string gid_text(const std::uint8_t* gid) {
  std::string text;
  for (int i = 0; i < PERFLAB_ROS2_GID_BYTES; ++i) {
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned>(gid[i]));
    text += digits;
  }
  return text;
}

using Pointer = const void*;
using Text = const char*;

// One function of the struct, which records its name and arguments.
#define NOTES(name, parameters, ...) .name = [] parameters { note(#name __VA_OPT__(, ) __VA_ARGS__); }

constexpr perflab_ros2_tracepoints kTracepoints = {
    .abi = PERFLAB_ROS2_TRACEPOINTS_ABI,
    .recorded = [] { return 1; },
    NOTES(rcl_init, (Pointer context, Text version), context, version),
    NOTES(rcl_node_init, (Pointer node, Pointer rmw, Text name, Text space), node, rmw, name, space),
    .rmw_publisher_init =
        [](Pointer rmw, const std::uint8_t* gid) { note("rmw_publisher_init", rmw, gid_text(gid).c_str()); },
    NOTES(rcl_publisher_init, (Pointer publisher, Pointer node, Pointer rmw, Text topic, std::size_t depth),
          publisher, node, rmw, topic, depth),
    .rmw_subscription_init =
        [](Pointer rmw, const std::uint8_t* gid) {
          note("rmw_subscription_init", rmw, gid_text(gid).c_str());
        },
    NOTES(rcl_subscription_init,
          (Pointer subscription, Pointer node, Pointer rmw, Text topic, std::size_t depth), subscription,
          node, rmw, topic, depth),
    NOTES(rclcpp_subscription_init, (Pointer handle, Pointer subscription), handle, subscription),
    NOTES(rclcpp_subscription_callback_added, (Pointer subscription, Pointer callback), subscription,
          callback),
    NOTES(rcl_service_init, (Pointer service, Pointer node, Pointer rmw, Text name), service, node, rmw,
          name),
    NOTES(rclcpp_service_callback_added, (Pointer service, Pointer callback), service, callback),
    NOTES(rcl_client_init, (Pointer client, Pointer node, Pointer rmw, Text name), client, node, rmw, name),
    .rmw_client_init = [](Pointer rmw, const std::uint8_t* gid) { note("rmw_client_init", rmw, gid_text(gid).c_str()); },
    NOTES(rcl_timer_init, (Pointer timer, std::int64_t period), timer, period),
    NOTES(rclcpp_timer_callback_added, (Pointer timer, Pointer callback), timer, callback),
    NOTES(rclcpp_timer_link_node, (Pointer timer, Pointer node), timer, node),
    NOTES(rclcpp_callback_register, (Pointer callback, Text symbol), callback, symbol),
    NOTES(rclcpp_construct_ring_buffer, (Pointer buffer, std::uint64_t capacity), buffer, capacity),
    NOTES(rclcpp_buffer_to_ipb, (Pointer buffer, Pointer ipb), buffer, ipb),
    NOTES(rclcpp_ipb_to_subscription, (Pointer ipb, Pointer subscription), ipb, subscription),
    NOTES(rclcpp_publish, (Pointer message), message),
    NOTES(rclcpp_intra_publish, (Pointer publisher, Pointer message), publisher, message),
    NOTES(rcl_publish, (Pointer publisher, Pointer message), publisher, message),
    NOTES(rmw_publish, (Pointer rmw, Pointer message, std::int64_t stamp), rmw, message, stamp),
    NOTES(rmw_take, (Pointer rmw, Pointer message, std::int64_t stamp, int taken), rmw, message, stamp,
          taken),
    NOTES(rcl_take, (Pointer message), message),
    NOTES(rclcpp_take, (Pointer message), message),
    NOTES(rmw_send_request, (Pointer rmw, Pointer request, std::int64_t number), rmw, request, number),
    .rmw_take_request =
        [](Pointer rmw, Pointer request, const std::uint8_t* gid, std::int64_t number, int taken) {
          note("rmw_take_request", rmw, request, gid_text(gid).c_str(), number, taken);
        },
    .rmw_send_response =
        [](Pointer rmw, Pointer response, const std::uint8_t* gid, std::int64_t number, std::int64_t stamp) {
          note("rmw_send_response", rmw, response, gid_text(gid).c_str(), number, stamp);
        },
    NOTES(rmw_take_response, (Pointer rmw, Pointer response, std::int64_t number, std::int64_t stamp, int taken), rmw,
          response, number, stamp, taken),
    NOTES(callback_start, (Pointer callback, int intra), callback, intra),
    NOTES(callback_end, (Pointer callback), callback),
    NOTES(rclcpp_executor_get_next_ready, ()),
    NOTES(rclcpp_executor_wait_for_work, (std::int64_t timeout), timeout),
    NOTES(rclcpp_executor_execute, (Pointer handle), handle),
    NOTES(rclcpp_ring_buffer_enqueue,
          (Pointer buffer, std::uint64_t index, std::uint64_t size, int overwritten), buffer, index, size,
          overwritten),
    NOTES(rclcpp_ring_buffer_dequeue, (Pointer buffer, std::uint64_t index, std::uint64_t size), buffer,
          index, size),
    NOTES(timer_due, (Pointer timer, std::int64_t due), timer, due),
};

}  // namespace

std::string Event::text() const {
  std::string text = name;
  for (const std::string& field : fields) text += " " + field;
  return text;
}

const perflab_ros2_tracepoints& Recorded::tracepoints() { return kTracepoints; }

void Recorded::clear() {
  const std::lock_guard lock(store().mutex);
  store().events.clear();
}

std::vector<Event> Recorded::all() {
  const std::lock_guard lock(store().mutex);
  return store().events;
}

std::vector<Event> Recorded::here() {
  std::vector<Event> events = all();
  std::erase_if(events, [](const Event& event) { return event.thread != std::this_thread::get_id(); });
  return events;
}

std::vector<std::vector<Event>> Recorded::elsewhere() {
  std::vector<std::vector<Event>> threads;
  for (const Event& event : all()) {
    if (event.thread == std::this_thread::get_id()) continue;
    const auto at = std::ranges::find_if(
        threads, [&](const std::vector<Event>& thread) { return thread.front().thread == event.thread; });
    if (at == threads.end()) {
      threads.push_back({event});
    } else {
      at->push_back(event);
    }
  }
  return threads;
}

std::vector<std::string> names(const std::vector<Event>& events) {
  std::vector<std::string> list;
  for (const Event& event : events) list.push_back(event.name);
  return list;
}

std::vector<Event> named(const std::vector<Event>& events, const std::string& name) {
  std::vector<Event> list;
  std::ranges::copy_if(events, std::back_inserter(list),
                       [&](const Event& event) { return event.name == name; });
  return list;
}

}  // namespace perflab::tracing::testing
