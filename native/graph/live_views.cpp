// What a live graph says of itself: whether it is matched, what it has counted, its recorders.
#include <functional>
#include <map>
#include <string_view>

#include "graph/live.h"
#include "graph/live_timers.h"

namespace perflab::graph {
namespace {

template <typename Parts, typename View>
auto views_of(const Parts& parts, View view) {
  std::vector<decltype(std::invoke(view, *parts.front()))> views;
  for (const auto& part : parts) views.push_back(std::invoke(view, *part));
  return views;
}

// "publisher", "server", ...: what somebody elsewhere is.
std::string_view who(const runtime::TypeDifference& difference) {
  switch (difference.kind) {
    case runtime::TopicKind::kTopic:
      return difference.publishes ? "publisher" : "subscription";
    case runtime::TopicKind::kRequest:
      return difference.publishes ? "client" : "server";
    case runtime::TopicKind::kReply:
      return difference.publishes ? "server" : "client";
  }
  return "endpoint";
}

std::string told(const runtime::TypeDifference& difference) {
  const bool topic = difference.kind == runtime::TopicKind::kTopic;
  const runtime::TypeName& ours = difference.ours;
  const runtime::TypeName& theirs = difference.theirs;
  std::string line = (topic ? "topic " : "service ") + difference.topic + ": ";
  const std::string of = " of a " + std::string(who(difference)) + " elsewhere";
  if (ours.ros_type == theirs.ros_type) {
    line += ours.ros_type + " is " + ours.hash + " here, and " + theirs.hash + of;
    return line + "; right would be the same definition on both sides";
  }
  const auto with_hash = [](const runtime::TypeName& type) {
    return type.ros_type + " (" + (type.hash.empty() ? "hash not told" : type.hash) + ")";
  };
  line += "type " + with_hash(ours) + " here, and " + with_hash(theirs) + of;
  return line + "; right would be one type on both sides";
}

}  // namespace

std::vector<WriterName> LiveGraph::writers() const { return views_of(publishers_, &LivePublisher::name); }

void LiveGraph::set_writers(std::span<const WriterName> writers) {
  for (const auto& subscription : subscriptions_) subscription->set_writers(writers);
}

std::vector<std::string> LiveGraph::unmatched() { return differing(false); }

std::vector<std::string> LiveGraph::strangers() { return differing(true); }

std::vector<std::string> LiveGraph::type_differences() {
  std::vector<std::string> lines;
  for (const runtime::TypeDifference& difference : runtime_.type_differences()) lines.push_back(told(difference));
  return lines;
}

std::vector<std::string> LiveGraph::differing(bool too_many_only) {
  std::vector<std::string> lines;
  const std::string where =
      settings_.domain ? "domain " + std::to_string(*settings_.domain) : "the same topics";
  const auto report = [&](const std::string& who, std::size_t matched, std::size_t expected,
                          const char* peers) {
    if (matched == expected || (too_many_only && matched < expected)) return;
    lines.push_back(who + ": " + std::to_string(matched) + " of " + std::to_string(expected) + " " + peers);
    if (matched > expected) lines.back() += ": another program uses " + where;
  };
  for (const auto& publisher : publishers_) {
    const WriterName name = publisher->name();
    report(name.node + " publisher " + name.topic, publisher->matched(), publisher->expected(), "readers");
  }
  for (const auto& subscription : subscriptions_) {
    report(subscription->name(), subscription->matched(), subscription->expected(), "writers");
  }
  for (const auto& client : clients_) report(client->name(), client->matched(), client->expected(), "servers");
  for (const auto& server : servers_)
    report(server->name(), server->matched(), server->expected(), "clients");
  for (const auto& client : action_clients_)
    report(client->name(), client->matched(), client->expected(), "servers");
  for (const auto& server : action_servers_)
    report(server->name(), server->matched(), server->expected(), "clients");
  return lines;
}

void LiveGraph::measure_from(Nanoseconds measured_from) {
  for (const auto& publisher : publishers_) publisher->recorder().measure_from(measured_from);
  for (const auto& subscription : subscriptions_) subscription->measure_from(measured_from);
  for (const auto& client : clients_) client->measure_from(measured_from);
  for (const auto& client : action_clients_) client->measure_from(measured_from);
  for (const auto& server : action_servers_) server->measure_from(measured_from);
  for (const auto& waitable : waitables_) waitable->measure_from(measured_from);
  for (const auto& timer : timers_) timer->measure_from(measured_from);
  measured_from_ = measured_from;
  const Nanoseconds until = settings_.ends_by_itself() ? measured_from + settings_.duration_ns : LiveSettings::kUntilEnded;
  shared_->sent_until.store(until, std::memory_order_release);
}

void LiveGraph::start(Nanoseconds measured_from) {
  measure_from(measured_from);
  runtime_.start(measured_from);
}

void LiveGraph::end_at(Nanoseconds at_ns) noexcept {
  shared_->sent_until.store(at_ns, std::memory_order_release);
  for (const auto& end : timer_ends_) end->until_ns.store(at_ns - measured_from_, std::memory_order_relaxed);
  ended_ = true;
}

// A timer that sleeps beyond the end wakes long after; that it did is not waited for. Nor is one that follows others, but in
// virtual time, which is over when nothing is left to happen.
bool LiveGraph::timers_done() const noexcept {
  if (runtime_.timers_done()) return true;
  const bool others = ended_ || (settings_.real_time && settings_.ends_by_itself() && !follower_ends_.empty());
  return others && std::ranges::all_of(timer_ends_, [](const auto& end) { return end->passed(); });
}

Totals LiveGraph::totals() const noexcept {
  Totals totals;
  for (const auto& publisher : publishers_) {
    if (!publisher->node().condition.empty()) continue;
    totals.sent += publisher->recorder().sent();
    totals.deliveries_expected += publisher->deliveries(&TopicEnds::Receivers::own);
  }
  for (const auto& subscription : subscriptions_) totals.completed += subscription->completed();
  for (const EdgeView& view : edges()) {
    if (!condition_between(*view.publisher_node, *view.subscription_node).empty()) continue;
    const std::uint64_t received = view.recorder->sequence().received();
    totals.received += received;
    totals.received_bytes += received * view.publisher->size_bytes;
    totals.lost += view.recorder->sequence().gap();
  }
  for (const auto& client : clients_) {
    const ServiceView view = client->view();
    if (!view.client_node->condition.empty()) continue;
    totals.sent += view.requests->sent();
    if (!view.server_node->condition.empty()) continue;
    totals.deliveries_expected += view.requests->sent();
    totals.received += view.replies->sequence().received();
    totals.completed += client->completed();
    totals.lost += view.replies->sequence().gap();
  }
  // Their services; feedback is among the edges, and each message of it goes to one client.
  std::vector<ServiceView> parts;
  for (const auto& client : action_clients_) {
    if (!client->node().condition.empty()) continue;
    client->append_services(parts);
    totals.completed += client->completed();
  }
  for (const ServiceView& view : parts) {
    totals.sent += view.requests->sent();
    totals.deliveries_expected += view.requests->sent();
    totals.received += view.replies->sequence().received();
    totals.lost += view.replies->sequence().gap();
  }
  for (const auto& server : action_servers_) {
    if (!server->node().condition.empty()) continue;
    totals.sent += server->sent();
    totals.deliveries_expected += server->sent();
  }
  return totals;
}

std::vector<ConditionTotals> LiveGraph::condition_totals() const {
  std::map<std::string, ConditionTotals> by_label;
  for (const std::string& label : shared_->index.conditions) by_label[label].condition = label;
  const auto add_sent = [](ConditionTotals& totals, const measure::PublisherRecorder& recorder,
                           std::uint64_t deliveries) {
    totals.sent += recorder.sent();
    totals.not_sent += recorder.not_sent();
    totals.deliveries_expected += deliveries;
  };
  for (const auto& publisher : publishers_) {
    const std::string& label = publisher->node().condition;
    if (!label.empty()) add_sent(by_label.at(label), publisher->recorder(), publisher->deliveries(&TopicEnds::Receivers::all));
  }
  for (const EdgeView& view : edges()) {
    const std::string& label = view.publisher_node->condition;
    if (!label.empty()) by_label.at(label).received += view.recorder->sequence().received();
  }
  for (const ServiceView& view : services()) {
    const std::string& label = view.client_node->condition;
    if (label.empty()) continue;
    add_sent(by_label.at(label), *view.requests, view.requests->sent());
    by_label.at(label).received += view.replies->sequence().received();
  }
  std::vector<ConditionTotals> list;
  for (auto& [label, totals] : by_label) list.push_back(std::move(totals));
  return list;
}

const measure::Histogram& LiveGraph::merge(const measure::Histogram& (measure::EdgeRecorder::*figure)()
                                               const noexcept) {
  shared_->merged.clear();
  for (const EdgeView& view : edges()) {
    if (condition_between(*view.publisher_node, *view.subscription_node).empty())
      shared_->merged.merge((view.recorder->*figure)());
  }
  return shared_->merged;
}

const measure::Histogram& LiveGraph::merged_latency() { return merge(&measure::EdgeRecorder::latency); }
const measure::Histogram& LiveGraph::merged_response() { return merge(&measure::EdgeRecorder::response); }

std::vector<PublisherView> LiveGraph::publishers() const {
  std::vector<PublisherView> views = views_of(publishers_, &LivePublisher::view);
  for (const auto& server : action_servers_) server->append_publishers(views);
  return views;
}

std::vector<EdgeView> LiveGraph::edges() const {
  std::vector<EdgeView> views;
  for (const auto& subscription : subscriptions_) subscription->append_views(views);
  for (const auto& client : action_clients_) client->append_edges(views);
  return views;
}

std::vector<ServiceView> LiveGraph::services() const {
  std::vector<ServiceView> views = views_of(clients_, &LiveClient::view);
  for (const auto& client : action_clients_) client->append_services(views);
  return views;
}

std::vector<WaitableView> LiveGraph::waitables() const { return views_of(waitables_, &LiveWaitable::view); }

bool LiveGraph::triggered() const noexcept {
  return std::ranges::any_of(waitables_, [](const auto& waitable) { return waitable->triggered(); });
}

std::vector<PassingView> LiveGraph::passing() const { return views_of(publishers_, &LivePublisher::passing); }

std::uint64_t LiveGraph::foreign_messages() const noexcept {
  return shared_->foreign.load(std::memory_order_relaxed);
}
std::uint64_t LiveGraph::malformed_messages() const noexcept {
  return shared_->malformed.load(std::memory_order_relaxed);
}
std::uint64_t LiveGraph::forgotten_messages() const noexcept {
  return shared_->forgotten.load(std::memory_order_relaxed);
}
std::uint64_t LiveGraph::unwanted_messages() const noexcept {
  return shared_->unwanted.load(std::memory_order_relaxed);
}

}  // namespace perflab::graph
