// Creates the endpoints and timers of a graph on a runtime.
#include "graph/live.h"

#include <functional>
#include <map>

#include "graph/check.h"
#include "graph/live_timers.h"

namespace perflab::graph {
namespace {

// The node's end on this topic.
template <typename End>
End& named(const std::vector<std::unique_ptr<End>>& ends, const std::string& node, const std::string& topic, const char* what) {
  const auto found = std::ranges::find_if(ends, [&](const auto& end) {
    return end->node().qualified_name() == node && end->end_name() == topic;
  });
  if (found == ends.end())
    throw BadInput("graph: node " + node + " of the process has no " + what + " on topic " + topic);
  return **found;
}

// A condition keeps its mean rate across short stalls of its own thread, and still ends with its trial.
constexpr Nanoseconds kMadeUpFor = 100'000'000;

// Action servers keep handling goals for this long after the last ones should have ended, so that late ones
// on a busy machine end as well.
constexpr Nanoseconds kWorkedOnFor = 10 * kNanosecondsPerSecond;

// The name of an executor's thread: its first node, and the number of further ones ("montreal+9").
std::string thread_name(const Executor& executor, const std::vector<std::string>& nodes, bool after_nodes) {
  if (!after_nodes || nodes.empty()) return "executor_" + std::to_string(executor.id);
  constexpr std::size_t kKernelKeeps = 15;
  const std::string more = nodes.size() > 1 ? "+" + std::to_string(nodes.size() - 1) : "";
  const std::string& first = nodes.front();
  return first.substr(first.rfind('/') + 1).substr(0, kKernelKeeps - more.size()) + more;
}

// The parts of a node with these indexes; the node's parts start at `first` in `all`.
template <typename Part>
std::vector<Part*> chosen(const std::vector<std::unique_ptr<Part>>& all, std::size_t first,
                          const std::vector<std::size_t>& indexes) {
  std::vector<Part*> parts;
  for (const std::size_t index : indexes) parts.push_back(all.at(first + index).get());
  return parts;
}

// Topics of messages that follow from those of a timer: relays and transforms pass their due time on.
std::set<std::string> answers_to(const Graph& graph, const Node& node, const Timer& timer) {
  std::vector<std::string> open;
  std::set<std::string> asked, found;
  for (const std::size_t index : timer.publish) open.push_back(node.publishers[index].topic);
  asked.insert(open.begin(), open.end());
  while (!open.empty()) {
    const std::string topic = open.back();
    open.pop_back();
    for_each_node(graph, [&](const Node& other, const Item& /*item*/) {
      for (const Reaction& reaction : other.reactions) {
        if (reaction.kind != ReactionKind::kRelay && reaction.kind != ReactionKind::kTransform) continue;
        const bool reacts = std::ranges::any_of(
            reaction.on, [&](std::size_t input) { return other.subscriptions[input].topic == topic; });
        if (!reacts) continue;
        for (const std::size_t output : reaction.publish) {
          const std::string& next = other.publishers[output].topic;
          if (asked.contains(next) || !found.insert(next).second) continue;
          open.push_back(next);
        }
      }
    });
  }
  return found;
}

// The node's subscriptions that receive what follows from a timer, if its loops are measured.
std::vector<std::size_t> closing_loops(const Graph& graph, const Node& node, const Timer& timer) {
  std::vector<std::size_t> back;
  if (!node.condition.empty() || !timer.regular() || timer.publish.empty()) return back;
  const std::set<std::string> answers = answers_to(graph, node, timer);
  for (std::size_t i = 0; i < node.subscriptions.size(); ++i) {
    if (answers.contains(node.subscriptions[i].topic)) back.push_back(i);
  }
  return back;
}

// For a graph with nodes of its own. Throws BadInput.
void require_loops(const Graph& graph) {
  bool own = false, loops = false;
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    own = own || node.condition.empty();
    loops = loops || std::ranges::any_of(node.timers, [&](const Timer& timer) { return !closing_loops(graph, node, timer).empty(); });
  });
  if (own && !loops)
    throw BadInput("--measure loops: the graph has no loops: no timer's messages return to its node through "
                   "relays or transforms; omit the option");
}

// With the inline executor a write runs the callbacks of local readers before it returns, so a loop of
// reactions would recurse endlessly, or deadlock inside the middleware. Throws kBadInput naming the loop.
void refuse_inline_loops(const Process& process, const std::map<int, runtime::ExecutorKind>& kinds) {
  std::map<std::string, std::vector<std::string>> reached;  // topic -> topics published in reaction to it
  for (const Node& node : process.nodes) {
    if (kinds.at(node.executor) != runtime::ExecutorKind::kInline) continue;
    for (const Reaction& reaction : node.reactions) {
      if (reaction.kind == ReactionKind::kCyclic) continue;  // its period triggers it, not the message
      for (const std::size_t input : reaction.on) {
        for (const std::size_t output : reaction.publish) {
          reached[node.subscriptions[input].topic].push_back(node.publishers[output].topic);
        }
      }
    }
  }
  enum class State { kNew, kOpen, kClosed };
  std::map<std::string, State> states;
  const std::function<void(const std::string&)> visit = [&](const std::string& topic) {
    states[topic] = State::kOpen;
    for (const std::string& next : reached[topic]) {
      if (states[next] == State::kOpen) {
        throw BadInput("process " + process.name + ": the inline executor cannot run the loop from topic " +
                       next +
                       " back to it; use single_threaded, or move part of the loop into another process");
      }
      if (states[next] == State::kNew) visit(next);
    }
    states[topic] = State::kClosed;
  };
  std::vector<std::string> topics;
  for (const auto& [topic, outputs] : reached) topics.push_back(topic);
  for (const std::string& topic : topics) {
    if (states[topic] == State::kNew) visit(topic);
  }
}

}  // namespace

GraphIndex::GraphIndex(const Graph& graph, std::optional<std::size_t> process) {
  for_each_node(graph, [&](const Node& node, const Item& item) {
    for (const Publisher& publisher : node.publishers) {
      topics[publisher.topic].publishers.push_back({&node, &publisher, graph.processes[item.process].outside()});
      const bool says = graph.messages->find(publisher.type)->stamp == message::Stamp::kHeader;
      if (!says) scheduled.emplace(&publisher, scheduled.size());
    }
    for (const Subscription& subscription : node.subscriptions) {
      for (const Acknowledgement& one : subscription.acknowledge) acknowledging.emplace(one.node, one.topic);
      TopicEnds& ends = topics[subscription.topic];
      ++ends.subscriptions;
      if (graph.processes[item.process].outside()) {
        ends.read_outside = true;
        continue;
      }
      TopicEnds::Receivers& receivers = ends.by_filter[subscription.filter];
      ++receivers.all;
      if (node.condition.empty()) ++receivers.own;
    }
    // Of several servers all but one belong to conditions (check_services).
    const auto serves = [&](auto& ends) {
      ++ends.servers;
      if (ends.server != nullptr && !node.condition.empty()) return false;
      ends.server = &node;
      return true;
    };
    for (const Server& server : node.servers) serves(services[server.service]);
    for (const Client& client : node.clients) ++services[client.service].clients;
    for (const ActionServer& server : node.action_servers) {
      ActionEnds& ends = actions[server.action];
      if (!serves(ends)) continue;
      ends.settings = &server;
      ends.feedback = server.feedback;
    }
    for (const ActionClient& client : node.action_clients) actions[client.action].clients.push_back(&node);
    if (!node.condition.empty()) conditions.insert(node.condition);
  });
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    for (const Publisher& publisher : node.publishers) {
      for (const std::string& filter : filters_of(publisher))
        filtered.emplace(std::pair(&publisher, filter), scheduled.size() + filtered.size());
    }
  });
  for_each_node(graph, [&](const Node& node, const Item& item) {
    if (process && *process != item.process) return;
    publishers += node.publishers.size();
    clients += node.clients.size();
    action_clients += node.action_clients.size();
    for (const ActionClient& client : node.action_clients) feedback_edges += actions.at(client.action).feedback ? 1 : 0;
    for (const ActionServer& server : node.action_servers)
      feedback_publishers += actions.at(server.action).server == &node && server.feedback ? 1 : 0;
    for (const Subscription& subscription : node.subscriptions) {
      edges += topics.at(subscription.topic).publishers.size();
    }
  });
}

RecordingNeeds recording_needs(const Graph& graph, std::optional<std::size_t> process,
                               const LiveSettings::Recording& recording) {
  const GraphIndex index(graph, process);
  RecordingNeeds needs{{index.edges + index.feedback_edges + index.clients, index.publishers}, 0};
  for (const std::string& topic : recording.topics) {
    if (index.topics.contains(topic) || index.services.contains(topic)) continue;
    throw BadInput("messages: the graph has no topic or service '" + topic + "'");
  }
  for_each_node(graph, [&](const Node& node, const Item& item) {
    if (!recording.contents || (process && *process != item.process)) return;
    for (const Publisher& publisher : node.publishers) {
      const message::Format& format = *graph.messages->find(publisher.type);
      needs.longest_bytes = std::max<std::size_t>(needs.longest_bytes, format.largest_bytes(publisher.length));
    }
  });
  return needs;
}

LiveGraph::LiveGraph(const Graph& graph, std::optional<std::size_t> process, runtime::Runtime& runtime,
                     measure::MessageEventQueue& events, const LiveSettings& settings, measure::MessageRing* ring)
    : graph_(graph),
      runtime_(runtime),
      settings_(settings),
      phases_(graph, settings.seed),
      shared_(std::make_unique<Shared>(graph, process, runtime.clock(), events, settings, ring)) {
  if (settings.measure_loops) require_loops(graph);
  shared_->memory.prefault(settings.duration_ns, events);
  for (std::size_t p = 0; p < graph.processes.size(); ++p) {
    if (!process || *process == p) build_process(p, graph.processes[p]);
  }
  link_acknowledgements();
}

LiveGraph::~LiveGraph() = default;

void LiveGraph::build_process(std::size_t index, const Process& process) {
  std::map<int, Place> places;
  std::map<int, runtime::ExecutorKind> kinds;
  for (const Executor& executor : process.executors) {
    std::vector<std::string> nodes;
    for (const Node& node : process.nodes) {
      if (node.executor == executor.id) nodes.push_back(node.qualified_name());
    }
    const runtime::ExecutorKind kind = settings_.executor.value_or(executor.kind);
    const int threads = kind == runtime::ExecutorKind::kMultiThreaded
                            ? settings_.executor_threads.value_or(executor.threads)
                            : 1;
    const Nanoseconds period_ns =
        kind == runtime::ExecutorKind::kLet ? settings_.executor_period_ns.value_or(executor.period_ns) : 0;
    const std::size_t handle = runtime_.add_executor(
        {.process = static_cast<int>(index),
         .kind = kind,
         .name = thread_name(executor, nodes, settings_.name_threads),
         .threads = threads,
         .thread = executor.thread.empty() ? process.threads.executors : executor.thread,
         .period_ns = period_ns});
    places[executor.id] = {index, handle, 0, 0, kind};
    kinds[executor.id] = kind;
    executors_.push_back({index, &executor, kind, threads, period_ns, std::move(nodes)});
  }
  refuse_inline_loops(process, kinds);
  std::size_t nodes_placed = 0;
  for (const Node& node : process.nodes) {
    Place place = places.at(node.executor);
    place.group = groups_++;
    place.participant = nodes_placed++ % static_cast<std::size_t>(process.participants);
    if (!process.program.empty()) program_nodes_.emplace_back(&node, place);
    build_node(place, node);
  }
}

void LiveGraph::link_acknowledgements() {
  for (const auto& reader : subscriptions_) {
    for (const Acknowledgement& one : reader->acknowledgements())
      reader->acknowledge(one.from, named(publishers_, one.node, one.topic, "publisher"), one.every);
  }
  for (const auto& throttle : throttles_) {
    const std::vector<Throttle::Source>& sources = throttle->settings().sources;
    for (std::size_t i = 0; i < sources.size(); ++i) {
      Acknowledged& acknowledged = throttle->source(i);
      named(subscriptions_, sources[i].node, sources[i].topic, "subscription")
          .add_listener([&acknowledged](const Received& how) { acknowledged.heard(how.due_ns, how.callback_ns); });
    }
  }
}

LiveThrottle* LiveGraph::build_throttle(const Node& node, const Timer& timer) {
  if (!timer.throttle) return nullptr;
  const Nanoseconds longest_ns = settings_.ends_by_itself() ? settings_.duration_ns : graph_.limit_ns;
  throttles_.push_back(std::make_unique<LiveThrottle>(*timer.throttle, timer.frequency_hz(),
                                                      settings_.warmup_ns + longest_ns));
  throttle_views_.push_back({&node, &timer, throttles_.back().get()});
  return throttles_.back().get();
}

void LiveGraph::build_node(const Place& place, const Node& node) {
  runtime_.name_group(place.group, {node.node_namespace, node.name, place.participant, place.executor});
  const bool concurrent = runtime::concurrent_callbacks(place.kind);
  // Two callbacks may reach a publisher with more than one trigger at the same time.
  std::vector<std::size_t> triggers(node.publishers.size(), 0);
  for (const Timer& timer : node.timers) {
    for (const std::size_t index : timer.publish) ++triggers[index];
  }
  for (const Reaction& reaction : node.reactions) {
    const std::size_t inputs = reaction.kind == ReactionKind::kCyclic ? 1 : reaction.on.size();
    for (const std::size_t index : reaction.publish) triggers[index] += inputs;
  }

  const auto filters_of = [&](const message::Format& format, const std::vector<std::string>& expressions) {
    std::vector<const message::Filter*> filters;
    for (const std::string& expression : expressions) filters.push_back(&shared_->messages.filter(format, expression));
    return filters;
  };
  const auto settings_of = [&](const auto& end, PassBy pass_by, const std::vector<std::string>& filters, int priority) {
    const message::Format& format = *shared_->messages.find(end.type);
    return runtime::EndpointSettings{.process = static_cast<int>(place.process),
                                     .participant = place.participant,
                                     .group = place.group,
                                     .topic = end.topic,
                                     .ros_type = format.type->name,
                                     .type = format.type,
                                     .fixed_size = format.codec.fixed_size(),
                                     .qos = end.qos,
                                     .pass_by = pass_by,
                                     .user_data = {},
                                     .type_hash = shared_->messages.library().hash(format.type->name),
                                     .known_by_stamp = format.stamp == message::Stamp::kNone,
                                     .key = shared_->keyed && format.key ? &*format.key : nullptr,
                                     .filters = filters_of(format, filters),
                                     .priority = priority};
  };
  const std::size_t first_publisher = publishers_.size();
  std::vector<Nanoseconds> publishers_made;
  for (std::size_t i = 0; i < node.publishers.size(); ++i) {
    const Publisher& publisher = node.publishers[i];
    const PassBy pass_by = settings_.pass_by.value_or(publisher.pass_by);
    runtime::Publisher& endpoint = runtime_.create_publisher(
        settings_of(publisher, pass_by, shared_->index.filters_of(publisher), 0));
    const bool driven = triggers[i] > 0 || shared_->index.acknowledging.contains({node.qualified_name(), publisher.topic});
    publishers_.push_back(std::make_unique<LivePublisher>(*shared_, node, publisher, pass_by, endpoint, driven,
                                                          concurrent && triggers[i] > 1,
                                                          static_cast<std::uint32_t>(publishers_.size())));
    publishers_made.push_back(runtime_.clock().now());
  }

  // Handlers before endpoints: the first message may come as soon as the endpoint exists.
  const std::size_t first_subscription = subscriptions_.size();
  for (const Subscription& subscription : node.subscriptions) {
    subscriptions_.push_back(std::make_unique<LiveSubscription>(*shared_, node, subscription, settings_));
  }
  const std::size_t first_reaction = reactions_.size();
  for (const Reaction& reaction : node.reactions) {
    reactions_.push_back(std::make_unique<LiveReaction>(
        reaction, chosen(publishers_, first_publisher, reaction.publish), runtime_, concurrent));
    for (std::size_t input = 0; input < reaction.on.size(); ++input) {
      subscriptions_.at(first_subscription + reaction.on[input])->add_reaction(*reactions_.back(), input);
    }
  }
  for (std::size_t i = 0; i < node.subscriptions.size(); ++i) {
    const Subscription& subscription = node.subscriptions[i];
    LiveSubscription& handler = *subscriptions_[first_subscription + i];
    const std::vector<std::string> filters(subscription.filter.empty() ? 0 : 1, subscription.filter);
    handler.attach(runtime_.create_subscription(
        place.executor, settings_of(subscription, subscription.pass_by, filters, subscription.priority), handler));
  }
  // After the subscriptions, so that `let` has their messages of an activation first.
  for (std::size_t i = 0; i < node.reactions.size(); ++i) {
    const Reaction& reaction = node.reactions[i];
    if (reaction.kind != ReactionKind::kCyclic) continue;
    build_timer(place, node,
                {.name = node.name + "_cycle",
                 .period_ns = reaction.period_ns,
                 .skip_missed = !node.condition.empty(),
                 .priority = reaction.priority},
                reaction.phase, phases_.of(reaction, runtime_.clock().now()), *reactions_[first_reaction + i]);
  }
  const std::size_t first_client = clients_.size();
  const std::vector<Nanoseconds> clients_made = build_services(place, node);
  const std::size_t first_action_client = action_clients_.size();
  const std::vector<Nanoseconds> action_clients_made = build_actions(place, node);
  const std::size_t first_waitable = waitables_.size();
  build_waitables(place, node);
  for (const Timer& timer : node.timers) {
    // An application creates a publisher and then its timer before the next publisher.
    const bool alone = timer.publish.empty() && timer.request.empty() && timer.goal.empty();
    Nanoseconds created_ns = alone ? runtime_.clock().now() : 0;
    for (const std::size_t index : timer.publish) created_ns = std::max(created_ns, publishers_made[index]);
    for (const std::size_t index : timer.request) created_ns = std::max(created_ns, clients_made[index]);
    for (const std::size_t index : timer.goal) created_ns = std::max(created_ns, action_clients_made[index]);
    timers_.push_back(std::make_unique<LiveTimer>(timer, chosen(publishers_, first_publisher, timer.publish),
                                                  chosen(clients_, first_client, timer.request),
                                                  chosen(action_clients_, first_action_client, timer.goal),
                                                  chosen(waitables_, first_waitable, timer.trigger),
                                                  build_loops(node, timer, first_subscription),
                                                  build_throttle(node, timer), runtime_));
    build_timer(place, node,
                {.name = timer.name,
                 .period_ns = timer.period_ns,
                 .arrivals = timer.arrivals,
                 .burst = timer.burst,
                 .seed = phases_.seed_of(timer),
                 .skip_missed = timer.overrun == Overrun::kSkip,
                 .priority = timer.priority},
                timer.phase, phases_.of(timer, created_ns), *timers_.back());
    build_cancelling(place, node, timer, phases_.of(timer, created_ns), first_action_client);
  }
}

measure::LoopRecorder* LiveGraph::build_loops(const Node& node, const Timer& timer,
                                              std::size_t first_subscription) {
  if (!settings_.measure_loops) return nullptr;
  const std::vector<std::size_t> back = closing_loops(graph_, node, timer);
  if (back.empty()) return nullptr;
  measure::LoopRecorder& recorder = *loops_.emplace_back(
      std::make_unique<measure::LoopRecorder>(timer.period_ns, settings_.duration_ns));
  for (const std::size_t index : back) subscriptions_[first_subscription + index]->close_loops(recorder);
  loop_views_.push_back({&node, &timer, &recorder});
  return &recorder;
}

void LiveGraph::build_timer(const Place& place, const Node& node, runtime::TimerSettings timer, Phase phase,
                            Nanoseconds offset_ns, runtime::TimerHandler& handler) {
  if (timer.arrivals == Arrivals::kPeriodic)
    timer_views_.push_back({&node, timer.name, timer.period_ns * timer.burst, phase, offset_ns});
  timer.group = place.group;
  timer.from_ns = -settings_.warmup_ns;
  timer.until_ns = settings_.duration_ns;
  timer.end = timer_ends_.emplace_back(std::make_unique<runtime::TimerEnd>()).get();
  if (settings_.ends_by_itself()) timer.end->until_ns.store(settings_.duration_ns, std::memory_order_relaxed);
  timer.made_up_for_ns = node.condition.empty() ? 0 : kMadeUpFor;
  timer.shift_ns = offset_ns == 0 ? 0 : offset_ns - timer.period_ns * timer.burst;
  runtime_.create_timer(place.executor, timer, handler);
}

void LiveGraph::build_follower(const Place& place, runtime::TimerSettings timer, Nanoseconds offset_ns, Nanoseconds after_ns,
                               runtime::TimerHandler& handler) {
  timer.group = place.group;
  timer.from_ns = -settings_.warmup_ns;
  timer.end = follower_ends_.emplace_back(std::make_unique<runtime::TimerEnd>()).get();
  timer.shift_ns = offset_ns == 0 ? 0 : offset_ns - timer.period_ns;
  timer.until_ns = settings_.duration_ns + after_ns - timer.shift_ns;
  runtime_.create_timer(place.executor, timer, handler);
}

std::vector<Nanoseconds> LiveGraph::build_actions(const Place& place, const Node& node) {
  const auto settings = [&](const std::string& action, const std::string& type, int priority) {
    return runtime::ActionSettings{.process = static_cast<int>(place.process),
                                   .participant = place.participant,
                                   .group = place.group,
                                   .action = action,
                                   .types = shared_->messages.find_action(type),
                                   .priority = priority};
  };
  const bool program = std::ranges::any_of(program_nodes_, [&](const auto& entry) { return entry.first == &node; });
  for (const ActionServer& server : node.action_servers) {
    action_servers_.push_back(std::make_unique<LiveActionServer>(*shared_, node, server, runtime_));
    LiveActionServer& handler = *action_servers_.back();
    handler.attach(runtime_.create_action_server(
        place.executor, settings(server.action, server.type, server.priority), handler));
    if (program) continue;
    build_follower(place, {.name = node.name + "_step", .period_ns = server.step_ns, .priority = server.priority}, 0,
                   server.duration_ns + kWorkedOnFor, handler);
  }
  std::vector<bool> driven(node.action_clients.size(), false);
  for (const Timer& timer : node.timers) {
    for (const std::size_t index : timer.goal) driven.at(index) = true;
  }
  std::vector<Nanoseconds> made;
  for (std::size_t i = 0; i < node.action_clients.size(); ++i) {
    const ActionClient& client = node.action_clients[i];
    if (shared_->index.actions.at(client.action).server == nullptr)
      throw BadInput("graph: action " + client.action + " has no server");
    action_clients_.push_back(std::make_unique<LiveActionClient>(*shared_, node, client, settings_, driven[i]));
    action_clients_.back()->attach(runtime_.create_action_client(
        place.executor, settings(client.action, client.type, client.priority), *action_clients_.back()));
    made.push_back(runtime_.clock().now());
  }
  return made;
}

void LiveGraph::build_cancelling(const Place& place, const Node& node, const Timer& timer, Nanoseconds offset_ns,
                                 std::size_t first_action_client) {
  for (const std::size_t index : timer.goal) {
    const ActionClient& client = node.action_clients[index];
    if (client.cancel_after_ns == 0) continue;
    build_follower(place, {.name = timer.name + "_cancel", .period_ns = timer.period_ns, .priority = client.priority},
                   (offset_ns + client.cancel_after_ns) % timer.period_ns, client.cancel_after_ns,
                   *action_clients_.at(first_action_client + index));
  }
}

std::vector<Nanoseconds> LiveGraph::build_services(const Place& place, const Node& node) {
  const auto settings = [&](const std::string& service, const std::string& type, const perflab_qos& qos,
                            int priority) {
    message::Formats& messages = shared_->messages;
    return runtime::ServiceSettings{static_cast<int>(place.process),
                                    place.participant,
                                    place.group,
                                    service,
                                    messages.full_service_name(type).value(),
                                    messages.find_request(type)->type,
                                    messages.find_response(type)->type,
                                    qos,
                                    messages.library().hash(messages.find_request(type)->type->name),
                                    messages.library().hash(messages.find_response(type)->type->name),
                                    priority};
  };
  for (const Server& server : node.servers) {
    servers_.push_back(std::make_unique<LiveServer>(*shared_, node, server, runtime_));
    servers_.back()->attach(runtime_.create_server(
        place.executor, settings(server.service, server.type, server.qos, server.priority), *servers_.back()));
  }
  std::vector<std::size_t> triggers(node.clients.size(), 0);
  for (const Timer& timer : node.timers) {
    for (const std::size_t index : timer.request) ++triggers.at(index);
  }
  std::vector<Nanoseconds> made;
  for (std::size_t i = 0; i < node.clients.size(); ++i) {
    const Client& client = node.clients[i];
    if (shared_->index.services.at(client.service).server == nullptr)
      throw BadInput("graph: service " + client.service + " has no server");
    clients_.push_back(std::make_unique<LiveClient>(
        *shared_, node, client, settings_, triggers[i] > 0, runtime::concurrent_callbacks(place.kind) && triggers[i] > 1));
    clients_.back()->attach(runtime_.create_client(
        place.executor, settings(client.service, client.type, client.qos, client.priority), *clients_.back()));
    made.push_back(runtime_.clock().now());
  }
  return made;
}

void LiveGraph::build_waitables(const Place& place, const Node& node) {
  for (const Waitable& waitable : node.waitables) {
    waitables_.push_back(std::make_unique<LiveWaitable>(node, waitable, runtime_));
    waitables_.back()->attach(runtime_.create_waitable(
        place.executor, {.name = waitable.name, .group = place.group, .priority = waitable.priority}, *waitables_.back()));
  }
}

}  // namespace perflab::graph
