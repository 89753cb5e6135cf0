// Messages: publications, takes, deliveries within a process, requests and responses.
#include <algorithm>
#include <map>

#include "traceview/ros.h"

namespace perflab::traceview {

void Ros::publish(Thread& thread, Layer layer, std::uint64_t message, std::int32_t publisher,
                  std::int64_t time_ns) {
  const bool goes_on = thread.publication != kNone && thread.message == message && thread.layer < layer;
  if (!goes_on) {
    thread.publication = new_publication(thread, message);
  } else if (const auto known = publications.publisher.at(at(thread.publication));
             known && publisher != kNone && *known != publisher) {
    // The address was reused for another publisher's message; rclcpp_publish does not record the publisher.
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
    case kRclcpp:
      publications.rclcpp_ns.set(row, time_ns);
      break;
    case kRcl:
      publications.rcl_ns.set(row, time_ns);
      break;
    case kRmw:
      publications.rmw_ns.set(row, time_ns);
      break;
  }
  if (publisher != kNone && !publications.publisher.valid(row)) publications.publisher.set(row, publisher);
}

std::int32_t Ros::new_publication(Thread& thread, std::uint64_t message) {
  thread.message = message;
  thread.layer = -1;
  thread.writer = 0;
  thread.intra_publication = kNone;
  constexpr std::nullopt_t none = std::nullopt;
  publications.push(none, thread.row, thread.innermost(), none, none, none, none, none, none, message);
  return publications.pushed() - 1;
}

void Ros::dds_write(const Emitted& e) {
  namespace f = field::dds_write;
  const std::uint64_t writer = e.value(f::writer);
  if (e.thread->publication == kNone || e.thread->writer != writer || writer == 0) {
    const std::int32_t publisher = e.process.writers.find(writer);
    if (publisher == kNone) {
      ++counters.writes_of_the_middleware;
      return;
    }
    // A write without a preceding event of rmw or the layers above.
    e.thread->publication = new_publication(*e.thread, 0);
    e.thread->layer = kRmw;
    publications.publisher.set(at(e.thread->publication), publisher);
  }
  publications.dds_ns.set(at(e.thread->publication), e.now());
  publications.source_timestamp.set(at(e.thread->publication), e.number(f::timestamp));
  e.thread->writer = 0;
}

void Ros::add_take(const Emitted& e) {
  const auto new_row = [&](std::uint64_t message) {
    constexpr std::nullopt_t none = std::nullopt;
    takes.push(none, e.thread->row, none, none, none, none, TakeMatch::no_timestamp, none, none);
    e.thread->takes.add(takes.pushed() - 1, e.thread->in_phase());
    e.thread->taken_message = message;
    return at(e.thread->takes.last());
  };
  const auto stamp = [&](std::size_t row, std::int64_t timestamp, std::int32_t subscription) {
    takes.source_timestamp.set(row, timestamp);
    if (timestamp == 0) return;
    takes.match.set(row, subscription == kNone ? TakeMatch::unknown_subscription : TakeMatch::no_publication);
  };
  switch (e.kind()) {
    case Kind::rmw_take: {
      namespace f = field::rmw_take;
      const std::size_t row = new_row(e.value(f::message));
      takes.rmw_ns.set(row, e.now());
      const std::int32_t subscription = e.process.rmw_subscriptions.find(e.value(f::rmw));
      if (subscription != kNone) takes.subscription.set(row, subscription);
      if (e.value(f::taken) == 0) {
        takes.match.set(row, TakeMatch::not_taken);  // rcl_take may still follow
        return;
      }
      if (subscription == kNone) ++counters.takes_of_unknown_subscriptions;
      stamp(row, e.number(f::timestamp), subscription);
      return;
    }
    case Kind::rcl_take:
    case Kind::rclcpp_take: {
      const std::uint64_t message = e.value(field::take::message);
      auto& column = e.kind() == Kind::rcl_take ? takes.rcl_ns : takes.rclcpp_ns;
      const std::int32_t last = e.thread->takes.last();
      const bool goes_on = last != kNone && e.thread->taken_message == message && !column.valid(at(last)) &&
                           !takes.callback_instance.valid(at(last));
      column.set(goes_on ? at(last) : new_row(message), e.now());
      return;
    }
    default: {
      namespace f = field::dispatch;
      const std::size_t row = new_row(e.value(f::message));
      takes.rclcpp_ns.set(row, e.now());
      const std::int32_t callback = e.process.callbacks.find(e.value(f::callback));
      const std::int32_t subscription = callback == kNone ? kNone : owner_of(callback_objects_[at(callback)]);
      if (subscription == kNone) {
        ++counters.takes_of_unknown_subscriptions;
      } else {
        takes.subscription.set(row, subscription);
      }
      stamp(row, e.number(f::timestamp), subscription);
      return;
    }
  }
}

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

void Ros::enqueue(const Emitted& e) {
  namespace f = field::ring_buffer;
  Buffer& buffer = buffers_[at(buffer_of(e.process, e.value(f::buffer)))];
  const std::uint64_t index = e.value(f::index);
  if (buffer.subscription == kNone) ++counters.enqueues_into_unknown_buffers;
  // If the thread is publishing to another topic, that message is not the enqueued one.
  std::optional<std::int32_t> publication = row_or_null(e.thread->intra_publication);
  if (publication && buffer.subscription != kNone && publications.publisher.valid(at(*publication))) {
    const Object& publisher = publisher_objects_[at(publications.publisher[at(*publication)])];
    const std::string& topic = subscription_objects_[at(buffer.subscription)].name;
    if (!publisher.name.empty() && !topic.empty() && publisher.name != topic) publication.reset();
  }
  const std::int32_t before = buffer.by_index.find(index);
  // The earlier message at this index was not taken, so it is lost even if the event lacks the flag "overwritten".
  if (before != kNone && !intra_deliveries.dequeue_ns.valid(at(before)))
    intra_deliveries.lost.set(at(before), 1);
  buffer.by_index.set(index, intra_deliveries.pushed());
  intra_deliveries.push(row_or_null(buffer.subscription), publication, buffer.handle, index, e.now(),
                        std::nullopt, std::uint8_t{0}, e.thread->row, std::nullopt, std::nullopt);
}

void Ros::dequeue(const Emitted& e) {
  namespace f = field::ring_buffer;
  Buffer& buffer = buffers_[at(buffer_of(e.process, e.value(f::buffer)))];
  const std::int32_t row = buffer.by_index.find(e.value(f::index));
  if (row == kNone || intra_deliveries.dequeue_ns.valid(at(row)) || intra_deliveries.lost[at(row)] != 0) {
    ++counters.dequeues_without_enqueue;
    e.thread->deliveries.forget_last();
    return;
  }
  intra_deliveries.dequeue_ns.set(at(row), e.now());
  intra_deliveries.dequeue_thread.set(at(row), e.thread->row);
  e.thread->deliveries.add(row, e.thread->in_phase());
}

void Ros::clear(const Emitted& e) {
  const std::int32_t row = e.process.buffers.find(e.value(field::ring_buffer::buffer));
  if (row == kNone) return;
  buffers_[at(row)].by_index.for_each([this](std::uint64_t, std::int32_t delivery) {
    if (!intra_deliveries.dequeue_ns.valid(at(delivery))) intra_deliveries.lost.set(at(delivery), 1);
  });
}

std::int32_t Ros::service_call(std::string_view gid, std::int64_t sequence_number) {
  auto client = calls_by_client_.find(gid);
  if (client == calls_by_client_.end()) client = calls_by_client_.emplace(std::string(gid), FlatMap()).first;
  const auto number = static_cast<std::uint64_t>(sequence_number);
  if (const std::int32_t row = client->second.find(number); row != kNone) return row;
  const auto row = static_cast<std::int32_t>(service_calls.sequence_number.size());
  client->second.set(number, row);
  constexpr std::nullopt_t none = std::nullopt;
  service_calls.push(none, none, sequence_number, none, none, none, none, none, none);
  return row;
}

void Ros::add_service_message(const Emitted& e) {
  namespace f = field::service_message;
  const std::uint64_t rmw = e.value(f::rmw);
  if (e.has(f::taken) && e.value(f::taken) == 0) return;
  const bool of_client = e.kind() == Kind::rmw_send_request || e.kind() == Kind::rmw_take_response;
  std::string gid;
  std::int32_t endpoint = kNone;
  if (of_client) {
    endpoint = e.process.rmw_clients.find(rmw);
    if (const auto known = e.process.rmw_gids.find(rmw); known != e.process.rmw_gids.end())
      gid = known->second;
  } else {
    endpoint = e.process.rmw_services.find(rmw);
    gid = e.hex(f::client_gid);
  }
  if (gid.empty()) {
    ++counters.service_messages_of_unknown_clients;
    return;
  }
  const std::int32_t row = service_call(gid, e.number(f::sequence_number));
  auto& side = of_client ? service_calls.client : service_calls.service;
  if (!of_client && side.valid(at(row)) && endpoint != side[at(row)]) {
    // If two servers with the same name answer a request, the call belongs to the first that took it.
    counters.requests_taken_by_several_servers += e.kind() == Kind::rmw_take_request ? 1 : 0;
    return;
  }
  if (endpoint != kNone) side.set(at(row), endpoint);
  switch (e.kind()) {
    case Kind::rmw_send_request:
      service_calls.send_request_ns.set(at(row), e.now());
      if (const auto instance = e.thread->innermost()) service_calls.request_in.set(at(row), *instance);
      break;
    case Kind::rmw_take_request:
      service_calls.take_request_ns.set(at(row), e.now());
      e.thread->service_calls.add(row, e.thread->in_phase());
      break;
    case Kind::rmw_send_response:
      service_calls.send_response_ns.set(at(row), e.now());
      break;
    default:
      service_calls.take_response_ns.set(at(row), e.now());
      break;
  }
}

namespace {

// Insertion sort for elements that are at most a few places out of order; falls back to std::sort if it takes too long.
template <typename T>
void sort_nearly_sorted(std::vector<T>& all) {
  std::size_t steps = 8 * all.size();
  for (std::size_t i = 1; i < all.size(); ++i) {
    const T one = all[i];
    std::size_t place = i;
    for (; place > 0 && one < all[place - 1] && steps > 0; --place, --steps) all[place] = all[place - 1];
    all[place] = one;
    if (steps == 0) return std::sort(all.begin(), all.end());
  }
}

}  // namespace

void Ros::match_takes() {
  // A source time stamp identifies a publication within its topic; two topics may have equal time stamps by chance.
  std::map<std::string, std::int32_t> topics;
  const auto topics_of = [&topics](const Objects& objects) {
    std::vector<std::int32_t> result;
    result.reserve(objects.size());
    for (const Object& object : objects) {
      result.push_back(
          object.name.empty()
              ? kNone
              : topics.try_emplace(object.name, static_cast<std::int32_t>(topics.size())).first->second);
    }
    return result;
  };
  const std::vector<std::int32_t> topic_of_publisher = topics_of(publisher_objects_);
  const std::vector<std::int32_t> topic_of_subscription = topics_of(subscription_objects_);

  // Sorted by time stamp, then topic.
  struct Sent {
    std::int64_t timestamp = 0;
    std::int32_t topic = kNone, publication = kNone;
    bool operator<(const Sent& other) const noexcept {
      return timestamp != other.timestamp ? timestamp < other.timestamp : topic < other.topic;
    }
  };
  std::vector<Sent> sent;
  sent.reserve(publications.message.size());
  for (std::size_t i = 0; i < publications.message.size(); ++i) {
    if (!publications.publisher.valid(i)) {
      ++counters.publications_without_publisher;
    } else if (const std::int32_t topic = topic_of_publisher[at(publications.publisher[i])];
               topic != kNone && publications.source_timestamp.valid(i)) {
      sent.push_back({publications.source_timestamp[i], topic, static_cast<std::int32_t>(i)});
    }
  }
  sort_nearly_sorted(sent);
  // Consecutive takes mostly have close publications, so the search starts near the previous result.
  constexpr std::ptrdiff_t kNear = 128;
  auto near = sent.begin();
  for (std::size_t i = 0; i < takes.thread.size(); ++i) {
    if (takes.match[i] != TakeMatch::no_publication) continue;
    const Sent wanted{takes.source_timestamp[i], topic_of_subscription[at(takes.subscription[i])], kNone};
    if (wanted.topic == kNone) continue;
    auto first = near - std::min(near - sent.begin(), kNear), last = near + std::min(sent.end() - near, kNear);
    if (first != sent.begin() && !(*first < wanted)) first = sent.begin();
    if (last != sent.end() && *last < wanted) last = sent.end();
    // std::lower_bound without branches, half of which would be mispredicted.
    std::ptrdiff_t left = last - first;
    while (left > 0) {
      const std::ptrdiff_t half = left / 2;
      const bool later = first[half].timestamp < wanted.timestamp;
      first += later ? half + 1 : 0;
      left = later ? left - half - 1 : half;
    }
    for (near = first; near != sent.end() && *near < wanted; ++near) continue;
    if (near == sent.end() || wanted < *near) continue;
    const bool ambiguous = near + 1 != sent.end() && !(wanted < near[1]);
    takes.match.set(i, ambiguous ? TakeMatch::ambiguous : TakeMatch::matched);
    if (!ambiguous) takes.publication.set(i, near->publication);
  }
}

}  // namespace perflab::traceview
