#include "graph/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>

#include "graph/names.h"
#include "graph/text.h"
#include "graph/units.h"
#include "graph/vocabulary.h"
#include "message/format.h"

namespace perflab::graph {
namespace {

// Adds the place to the messages of broken rules.
class Reporter {
 public:
  explicit Reporter(const Locate& locate) : locate_(locate) {}

  [[nodiscard]] std::string place(const Item& item) const { return locate_(item); }
  template <typename... Args>
  [[noreturn]] void fail(const Item& item, fmt::format_string<Args...> problem, Args&&... args) const {
    throw InputError(fmt::format("{}: {}", locate_(item), fmt::format(problem, std::forward<Args>(args)...)));
  }
  // Fails unless `problem` is empty.
  void require_none(const Item& item, std::string_view problem) const {
    if (!problem.empty()) fail(item, "{}", problem);
  }

 private:
  const Locate& locate_;
};

// visit(part, item) for each of the parts of a node.
template <typename Parts, typename Visit>
void each(const Parts& parts, const Item& node, Part part, Visit visit) {
  for (std::size_t i = 0; i < parts.size(); ++i) visit(parts[i], Item{part, node.process, node.node, i});
}

template <const auto& words>
std::string value_problem(middleware::form::Words<words> /*form*/, std::string_view /*name*/, auto value) {
  return word_of(words, value).empty() ? "a QoS policy has an unknown value" : "";
}
std::string value_problem(middleware::form::Depth /*form*/, std::string_view name, std::int32_t value) {
  return value > 0 ? "" : fmt::format("{} is {}; it must be at least 1", name, value);
}
std::string value_problem(middleware::form::Most /*form*/, std::string_view name, std::int32_t value) {
  return value_problem(middleware::form::Depth{}, name, value);
}
std::string value_problem(middleware::form::Number /*form*/, std::string_view name, std::int32_t value) {
  return value >= 0 ? "" : fmt::format("{} is {}; it must be at least 0", name, value);
}
std::string value_problem(middleware::form::Limit /*form*/, std::string_view name, std::int64_t value) {
  if (value == PERFLAB_DURATION_INFINITE || (value > 0 && value <= kLongestDuration)) return {};
  return fmt::format("{} is {}; it must be more than 0 and at most one day", name, duration_text(value));
}
std::string value_problem(middleware::form::Duration /*form*/, std::string_view name, std::int64_t value) {
  if (value >= 0 && value <= kLongestDuration) return {};
  return fmt::format("{} is {}; it must be from 0 to one day", name, duration_text(value));
}
std::string value_problem(middleware::form::Flag /*form*/, std::string_view /*name*/, bool /*value*/) { return {}; }
std::string value_problem(middleware::form::Text /*form*/, std::string_view name, const perflab_text& value) {
  return text_problem(name, value.text);
}
std::string value_problem(middleware::form::Names /*form*/, std::string_view name, const perflab_text& value) {
  if (std::string_view(value.text).find_first_of("*?[") == std::string_view::npos) return text_problem(name, value.text);
  return fmt::format("{} is {}; names must be without *, ? and [", name, quote(value.text));
}

std::string qos_problem(const perflab_qos& qos) {
  std::string problem;
  middleware::each_policy([&](const auto& row) {
    if (problem.empty()) problem = value_problem(row.form, row.name, qos.*row.member);
  });
  if (!problem.empty()) return problem;
  if (qos.history == PERFLAB_KEEP_LAST && qos.depth > std::min(qos.max_samples_per_instance, qos.max_samples)) {
    return fmt::format("depth is {}, more than max_samples or max_samples_per_instance allows; make it "
                       "smaller",
                       qos.depth);
  }
  if (qos.max_samples_per_instance != PERFLAB_COUNT_UNLIMITED && qos.max_samples_per_instance > qos.max_samples) {
    return fmt::format("max_samples_per_instance is {}, more than max_samples, {}; make it smaller",
                       qos.max_samples_per_instance, qos.max_samples);
  }
  if (qos.time_based_filter_ns > qos.deadline_ns) {
    return fmt::format("time_based_filter is {}, longer than the deadline, {}; make it shorter",
                       duration_text(qos.time_based_filter_ns), duration_text(qos.deadline_ns));
  }
  return {};
}

// Checks that no policies of the other kind of endpoint are set.
void check_ends(const perflab_qos& qos, middleware::Ends others, fmt::format_string<const char* const&> problem, const Item& item,
                const Reporter& reporter) {
  middleware::each_policy([&](const auto& row) {
    if (row.ends == others && !middleware::same_value(qos.*row.member, default_qos().*row.member)) {
      reporter.fail(item, problem, row.name);
    }
  });
}

std::string period_problem(Nanoseconds period_ns) {
  if (period_ns >= kShortestPeriod && period_ns <= kLongestDuration) return {};
  return fmt::format("period is {}; it must be at least 1us and at most one day", duration_text(period_ns));
}

std::string work_problem(Nanoseconds work_ns) {
  if (work_ns >= 0 && work_ns <= kLongestDuration) return {};
  return fmt::format("work is {}; it must be at least 0 and at most one day", duration_text(work_ns));
}

void check_publisher(const Publisher& publisher, message::Formats& messages, const Item& item,
                     const Reporter& reporter) {
  reporter.require_none(item, qualified_topic_problem(publisher.topic));
  reporter.require_none(item, type_problem(messages, publisher.type));
  const message::Format& format = *messages.find(publisher.type);
  const bool sized = publisher.sized;
  if (sized) reporter.require_none(item, size_problem(messages, publisher.type, publisher.length));
  if (!sized && !format.variable) reporter.fail(item, "messages of {} have a fixed size; use that size", publisher.type);
  if (!format.variable) reporter.require_none(item, size_problem(messages, publisher.type, publisher.size_bytes));
  if (const std::size_t bytes = format.payload_bytes(publisher.length); sized && bytes != publisher.size_bytes)
    reporter.fail(item, "size_bytes is {}; messages of {} with a length of {} have {} bytes", publisher.size_bytes,
                  publisher.type, publisher.length, bytes);
  if (publisher.pass_by == PassBy::kLoaned) reporter.require_none(item, loan_problem(messages, publisher.type));
  reporter.require_none(item, instances_problem(messages, publisher.type, publisher.instances));
  reporter.require_none(item, qos_problem(publisher.qos));
  check_ends(publisher.qos, middleware::Ends::kReaders, "{} is a policy of subscriptions; remove it from the publisher", item,
             reporter);
}

void check_subscription(const Subscription& subscription, message::Formats& messages, const Item& item,
                        const Reporter& reporter) {
  reporter.require_none(item, qualified_topic_problem(subscription.topic));
  reporter.require_none(item, type_problem(messages, subscription.type));
  if (subscription.pass_by == PassBy::kLoaned) reporter.fail(item, "{}", kLoanedSubscription);
  if (!subscription.filter.empty())
    reporter.require_none(item, filter_problem(messages, subscription.type, subscription.filter));
  reporter.require_none(item, qos_problem(subscription.qos));
  check_ends(subscription.qos, middleware::Ends::kWriters, "{} is a policy of publishers; remove it from the subscription", item,
             reporter);
}

// What clients and servers have in common.
template <typename End>
void check_service_end(const End& end, message::Formats& messages, const Item& item, const Reporter& reporter) {
  reporter.require_none(item, qualified_service_problem(end.service));
  reporter.require_none(item, service_type_problem(messages, end.type));
  reporter.require_none(item, qos_problem(end.qos));
}

// Ends with the same name differ by their number. `what` is the kind of name in messages, e.g. "topic".
template <typename End>
void check_unique(const std::vector<End>& ends, std::string End::* name, std::string_view end,
                  std::string_view what, const Item& node, Part part, const Reporter& reporter) {
  std::map<std::pair<std::string_view, int>, Item> first;
  each(ends, node, part, [&](const End& one, const Item& here) {
    int number = 1;
    if constexpr (requires { one.number; }) number = one.number;
    const auto [found, added] = first.try_emplace({one.*name, number}, here);
    if (added) return;
    reporter.fail(here, "the node has a {} of {} already, at {}; a node has at most one per {}", end,
                  one.*name, reporter.place(found->second), what);
  });
}

// Tracks what drives the publishers or clients of a node; throws if a rule about that is broken.
template <typename End>
class Drivers {
 public:
  struct Words {
    Part part;
    std::string End::* name;
    std::string_view with, verb, driven,
        rule;                    // "publishes with publisher", "publishes", "published", "a publisher ..."
    std::string_view where, by;  // a driver that can name it; what sets its rate
  };

  Drivers(const Node& node, const std::vector<End>& ends, const Item& item, const Words& words,
          const Reporter& reporter)
      : node_(node), ends_(ends), item_(item), words_(words), reporter_(reporter), drivers_(ends.size()) {}

  void add(const Item& driver, const std::vector<std::size_t>& indexes) {
    std::unordered_set<std::size_t> seen;
    for (const std::size_t index : indexes) {
      if (index >= drivers_.size()) {
        reporter_.fail(driver, "{} {} of {}", words_.with, index, drivers_.size());
      }
      const std::string& name = ends_[index].*words_.name;
      if (!seen.insert(index).second) {
        reporter_.fail(driver, "{} {} twice; name it once", words_.verb, name);
      }
      std::optional<Item>& other = drivers_[index];
      if (other && (other->part == Part::kTimer || driver.part == Part::kTimer)) {
        reporter_.fail(driver, "{} is {} at {} already; {}", name, words_.driven, reporter_.place(*other),
                       words_.rule);
      }
      other = driver;
    }
  }

  // `program`: a program of the process drives what nothing else does. A node of a condition may be silent.
  void finish(bool program) const {
    each(ends_, item_, words_.part, [&](const End& end, const Item& here) {
      const std::optional<Item>& driver = drivers_[here.index];
      if (!driver && (program || !node_.condition.empty())) {
        if (end.frequency_hz != 0.0)
          reporter_.fail(here, "frequency_hz of {} is {}; it is 0 if only a program or nothing {} it", end.*words_.name,
                         end.frequency_hz, words_.verb);
        return;
      }
      if constexpr (requires { end.sized; }) {
        if (driver && !end.sized)
          reporter_.fail(here, "{} lacks the key 'size', which messages of {} need unless the program "
                               "publishes them",
                         end.*words_.name, end.type);
      }
      if (!driver) {
        reporter_.fail(here, "nothing {} {}; give it a period, or name it in {}", words_.verb,
                       end.*words_.name, words_.where);
      }
      const bool timed = driver->part == Part::kTimer;
      const double expected = timed ? node_.timers[driver->index].frequency_hz() : 0.0;
      if (!(std::abs(end.frequency_hz - expected) <= 1e-9 * expected)) {
        reporter_.fail(here, "frequency_hz of {} is {}; according to {}, it is {}", end.*words_.name, end.frequency_hz,
                       words_.by, expected);
      }
    });
  }

 private:
  const Node& node_;
  const std::vector<End>& ends_;
  const Item& item_;
  const Words& words_;
  const Reporter& reporter_;
  std::vector<std::optional<Item>> drivers_;
};

constexpr Drivers<Publisher>::Words kPublisherWords{Part::kPublisher,
                                                    &Publisher::topic,
                                                    "publishes with publisher",
                                                    "publishes",
                                                    "published",
                                                    "a publisher has one timer, or else reactions",
                                                    "`publish` of a timer or reaction",
                                                    "what publishes it"};
constexpr Drivers<Client>::Words kClientWords{
    Part::kClient, &Client::service,         "requests with client", "requests",
    "requested",   "a client has one timer", "`request` of a timer", "the timer that requests it"};
constexpr Drivers<ActionClient>::Words kActionClientWords{Part::kActionClient,
                                                          &ActionClient::action,
                                                          "sends a goal with action client",
                                                          "sends a goal to",
                                                          "sent a goal",
                                                          "an action client has one timer",
                                                          "`goal` of a timer",
                                                          "the timer that sends its goals"};

void check_action_client(const ActionClient& client, message::Formats& messages, const Item& item, const Reporter& reporter) {
  reporter.require_none(item, qualified_action_problem(client.action));
  reporter.require_none(item, action_type_problem(messages, client.type));
  if (client.cancel_after_ns < 0 || client.cancel_after_ns > kLongestDuration)
    reporter.fail(item, "cancel_after is {}; it must be from 0 to one day", duration_text(client.cancel_after_ns));
}

void check_action_server(const ActionServer& server, message::Formats& messages, const Item& item, const Reporter& reporter) {
  reporter.require_none(item, qualified_action_problem(server.action));
  reporter.require_none(item, action_type_problem(messages, server.type));
  if (server.duration_ns < 0 || server.duration_ns > kLongestDuration)
    reporter.fail(item, "duration is {}; it must be from 0 to one day", duration_text(server.duration_ns));
  if (server.step_ns < kShortestPeriod || server.step_ns > kLongestDuration)
    reporter.fail(item, "step is {}; it must be at least 1us and at most one day", duration_text(server.step_ns));
  reporter.require_none(item, work_problem(server.work_ns));
  if (server.feedback) reporter.require_none(item, feedback_problem(messages, server.type));
  if (server.reject_every < 0) reporter.fail(item, "reject_every is {}; it must be at least 0", server.reject_every);
}

// Goals to cancel are identified by their due times, so the timer must be regular.
void check_cancelling(const Node& node, const Item& item, const Reporter& reporter) {
  each(node.timers, item, Part::kTimer, [&](const Timer& timer, const Item& here) {
    if (timer.regular()) return;
    for (const std::size_t index : timer.goal) {
      if (index >= node.action_clients.size() || node.action_clients[index].cancel_after_ns == 0) continue;
      reporter.fail(here, "{} cancels its goals, and the timer that sends them has no regular period; remove 'cancel_after', or "
                    "'arrivals' and 'burst'", node.action_clients[index].action);
    }
  });
}

// Which waitables each timer triggers; several timers may trigger one.
void check_triggers(const Timer& timer, const Node& node, const Item& here, const Reporter& reporter) {
  std::unordered_set<std::size_t> seen;
  for (const std::size_t index : timer.trigger) {
    if (index >= node.waitables.size()) {
      reporter.fail(here, "triggers waitable {} of {}", index, node.waitables.size());
    }
    if (!seen.insert(index).second) {
      reporter.fail(here, "triggers {} twice; name it once", quote(node.waitables[index].name));
    }
  }
}

void check_waitables(const Node& node, const Item& item, const Reporter& reporter) {
  std::unordered_set<std::string_view> names;
  each(node.waitables, item, Part::kWaitable, [&](const Waitable& waitable, const Item& here) {
    reporter.require_none(here, waitable_name_problem(waitable.name));
    if (!names.insert(waitable.name).second) {
      reporter.fail(here, "the node has a waitable {} already; give each its own name", quote(waitable.name));
    }
    reporter.require_none(here, work_problem(waitable.work_ns));
  });
}

void check_timers(const Node& node, const Item& item, Drivers<Publisher>& publishers, Drivers<Client>& clients,
                  Drivers<ActionClient>& action_clients, const Reporter& reporter) {
  std::unordered_set<std::string_view> names;
  each(node.timers, item, Part::kTimer, [&](const Timer& timer, const Item& here) {
    if (timer.name.empty() || timer.name.size() > 255) {
      reporter.fail(here, "timer name must have 1 to 255 characters");
    }
    if (!names.insert(timer.name).second) {
      reporter.fail(here, "the node has a timer {} already; give each its own name", quote(timer.name));
    }
    reporter.require_none(here, pace_problem(timer));
    reporter.require_none(here, work_problem(timer.work_ns));
    publishers.add(here, timer.publish);
    clients.add(here, timer.request);
    action_clients.add(here, timer.goal);
    check_triggers(timer, node, here, reporter);
  });
}

void check_shape(const Reaction& reaction, const Node& node, const Item& here, const Reporter& reporter) {
  const std::string_view kind = word_of(kReactionWords, reaction.kind);
  if (kind.empty()) reporter.fail(here, "the reaction has an unknown kind");
  const bool sink = reaction.kind == ReactionKind::kSink;
  const bool cyclic = reaction.kind == ReactionKind::kCyclic;
  if (reaction.on.empty()) reporter.fail(here, "a {} needs at least one topic in `on`", kind);
  if (sink && !reaction.publish.empty()) {
    reporter.fail(here, "a sink publishes nothing; remove `publish`, or make it a transform");
  }
  if (!sink && !cyclic && reaction.publish.empty()) {
    reporter.fail(here, "a {} needs `publish`; without it, make it a sink", kind);
  }
  if (reaction.kind == ReactionKind::kFusion && reaction.on.size() < 2) {
    reporter.fail(here, "a fusion waits for two topics or more; for one, make it a transform");
  }
  if (cyclic) reporter.require_none(here, period_problem(reaction.period_ns));
  if (!cyclic && reaction.period_ns != 0) {
    reporter.fail(here, "a {} has no period; remove it, or make it cyclic", kind);
  }
  if (reaction.kind != ReactionKind::kRelay) return;
  for (const std::size_t in : reaction.on) {
    for (const std::size_t out : reaction.publish) {
      const Subscription& input = node.subscriptions[in];
      const Publisher& output = node.publishers[out];
      if (input.type == output.type) continue;
      reporter.fail(here,
                    "a relay forwards messages as they are, but {} is {} and {} is {}; use a "
                    "transform, or one type",
                    input.topic, input.type, output.topic, output.type);
    }
  }
}

void check_reactions(const Node& node, const Item& item, Drivers<Publisher>& publishers,
                     const Reporter& reporter) {
  std::vector<bool> taken(node.subscriptions.size());
  each(node.reactions, item, Part::kReaction, [&](const Reaction& reaction, const Item& here) {
    for (const std::size_t index : reaction.on) {
      if (index >= taken.size()) {
        reporter.fail(here, "reacts on subscription {} of {}", index, taken.size());
      }
      if (taken[index]) {
        reporter.fail(here, "{} has a reaction already; a subscription has at most one",
                      node.subscriptions[index].topic);
      }
      taken[index] = true;
    }
    publishers.add(here, reaction.publish);
    check_shape(reaction, node, here, reporter);
    reporter.require_none(here, work_problem(reaction.work_ns));
  });
}

void check_program(const Process& process, const Item& here, const Reporter& reporter) {
  if (!process.program.empty()) reporter.require_none(here, program_problem(process.program));
  for (const auto& [name, settings] : process.threads.program) {
    if (process.program.empty())
      reporter.fail(here, "thread {} would belong to a program, but process {} has none; right would be {} "
                          "or {}", name,
                    process.name, kExecutorThreads, kMiddlewareThreads);
    reporter.require_none(here, thread_name_problem(name));
    reporter.require_none(here, thread_problem(settings));
  }
  if (process.ends && (process.program.empty() || process.outside()))
    reporter.fail(here, "process {} is to end the measured part, but has no program that could do it", process.name);
}

// The process that ends the measured part and its time limit require each other.
void check_end(const Graph& graph, const Reporter& reporter) {
  const auto ender = std::ranges::find_if(graph.processes, &Process::ends);
  const bool ends = ender != graph.processes.end();
  if (ends && graph.limit_ns <= 0)
    reporter.fail({Part::kProcess, static_cast<std::size_t>(ender - graph.processes.begin()), 0, 0},
                  "process {} ends the measured part, but the graph has no 'limit' after which the trial "
                  "fails; add one, like limit: 60s",
                  ender->name);
  if (!ends && graph.limit_ns != 0)
    reporter.fail({}, "'limit' is for graphs one of whose processes ends the measured part; add 'ends: true' to it, or remove "
                      "'limit'");
  if (graph.limit_ns > kLongestDuration) reporter.fail({}, "limit is {}; it must be at most one day", duration_text(graph.limit_ns));
}

void check_process(const Process& process, std::size_t index, const Reporter& reporter) {
  const Item here{Part::kProcess, index, 0, 0};
  reporter.require_none(here, file_name_problem(process.name));
  check_program(process, here, reporter);
  if (process.nodes.empty()) {
    reporter.fail(here, "process {} has no nodes; give it at least one", process.name);
  }
  if (process.participants < 1 || process.participants > kMaxParticipants) {
    reporter.fail(here, "participants is {}; it must be from 1 to {}", process.participants,
                  kMaxParticipants);
  }
  reporter.require_none(here, thread_problem(process.threads.executors));
  reporter.require_none(here, thread_problem(process.threads.middleware));
  std::unordered_set<int> ids;
  each(process.executors, here, Part::kExecutor, [&](const Executor& executor, const Item& item) {
    if (executor.id < 0) reporter.fail(item, "executor id {} is negative", executor.id);
    if (!ids.insert(executor.id).second) {
      reporter.fail(item, "executor id {} is used twice in process {}", executor.id, process.name);
    }
    if (word_of(kExecutorWords, executor.kind).empty())
      reporter.fail(item, "the executor has an unknown kind");
    reporter.require_none(item, threads_problem(executor.kind, executor.threads));
    reporter.require_none(item, executor_period_problem(executor.kind, executor.period_ns));
    reporter.require_none(item, thread_problem(executor.thread));
  });
  for (std::size_t n = 0; n < process.nodes.size(); ++n) {
    const Node& node = process.nodes[n];
    if (!ids.contains(node.executor)) {
      reporter.fail({Part::kNode, index, n, 0}, "executor {} is not an executor of process {}", node.executor,
                    process.name);
    }
  }
}

void check_bounds(const Graph& graph, const Reporter& reporter) {
  std::size_t nodes = 0;
  std::size_t parts = 0;
  for_each_node(graph, [&](const Node& node, const Item& here) {
    nodes += 1;
    parts += count_parts(node);
    if (nodes > kMaxNodes) reporter.fail(here, "the graph has more than {} nodes", kMaxNodes);
    if (parts > kMaxParts) {
      reporter.fail(here, "the graph has more than {} {}", kMaxParts, kPartWords);
    }
  });
}

// The ends of a topic or service; `offering` are the publishers or servers, in graph order.
template <typename Offering, typename Taking>
struct Ends {
  std::vector<std::pair<const Offering*, Item>> offering;
  std::vector<std::pair<const Taking*, Item>> taking;
};
using Topic = Ends<Publisher, Subscription>;
using Service = Ends<Server, Client>;
using Action = Ends<ActionServer, ActionClient>;

std::map<std::string, Topic> topics_of(const Graph& graph) {
  std::map<std::string, Topic> topics;
  for_each_node(graph, [&](const Node& node, const Item& item) {
    each(node.publishers, item, Part::kPublisher, [&](const Publisher& publisher, const Item& here) {
      topics[publisher.topic].offering.emplace_back(&publisher, here);
    });
    each(node.subscriptions, item, Part::kSubscription,
         [&](const Subscription& subscription, const Item& here) {
           topics[subscription.topic].taking.emplace_back(&subscription, here);
         });
  });
  return topics;
}

std::map<std::string, Service> services_of(const Graph& graph) {
  std::map<std::string, Service> services;
  for_each_node(graph, [&](const Node& node, const Item& item) {
    each(node.servers, item, Part::kServer, [&](const Server& server, const Item& here) {
      services[server.service].offering.emplace_back(&server, here);
    });
    each(node.clients, item, Part::kClient, [&](const Client& client, const Item& here) {
      services[client.service].taking.emplace_back(&client, here);
    });
  });
  return services;
}

std::map<std::string, Action> actions_of(const Graph& graph) {
  std::map<std::string, Action> actions;
  for_each_node(graph, [&](const Node& node, const Item& item) {
    each(node.action_servers, item, Part::kActionServer, [&](const ActionServer& server, const Item& here) {
      actions[server.action].offering.emplace_back(&server, here);
    });
    each(node.action_clients, item, Part::kActionClient, [&](const ActionClient& client, const Item& here) {
      actions[client.action].taking.emplace_back(&client, here);
    });
  });
  return actions;
}

// `what` names it in messages: "topic".
template <typename Offering, typename Taking>
void check_type(std::string_view what, const std::string& name, const Ends<Offering, Taking>& ends,
                const Reporter& reporter) {
  const std::string* type = nullptr;
  Item first;
  const auto compare = [&](const std::string& other, const Item& item) {
    if (type == nullptr) {
      type = &other;
      first = item;
    } else if (*type != other) {
      reporter.fail(item, "{0} {1} has type {2} here but {3} at {4}; one {0} has one type", what, name, other,
                    *type, reporter.place(first));
    }
  };
  for (const auto& [end, item] : ends.offering) compare(end->type, item);
  for (const auto& [end, item] : ends.taking) compare(end->type, item);
}

// `problem_of` compares the QoS of both; `taking` and `offering` are their names in messages: "subscription",
// "publisher".
template <typename Offering, typename Taking>
void check_compatibility(const std::string& name, const Ends<Offering, Taking>& ends,
                         std::string (*problem_of)(const perflab_qos&, const perflab_qos&),
                         std::string_view taking, std::string_view offering, const Reporter& reporter) {
  for (const auto& [taker, item] : ends.taking) {
    for (const auto& [offerer, other] : ends.offering) {
      const std::string problem = problem_of(offerer->qos, taker->qos);
      if (problem.empty()) continue;
      reporter.fail(item, "the {} of {} cannot match the {} at {}: {}", taking, name, offering,
                    reporter.place(other), problem);
    }
  }
}

// A relay's output has the size of its input.
void check_relay_sizes(const Reaction& reaction, const Node& node, const Item& here,
                       const std::map<std::string, Topic>& topics, const Reporter& reporter) {
  // All outputs must have one size and all inputs the same, so comparing with the first suffices.
  const Publisher& first = node.publishers[reaction.publish.front()];
  for (const std::size_t out : reaction.publish) {
    const Publisher& output = node.publishers[out];
    if (output.size_bytes == first.size_bytes) continue;
    reporter.fail({Part::kPublisher, here.process, here.node, out},
                  "a relay publishes {} with {} bytes and {} with {} bytes; a relay forwards "
                  "messages as they are",
                  output.topic, output.size_bytes, first.topic, first.size_bytes);
  }
  for (const std::size_t in : reaction.on) {
    const std::string& topic = node.subscriptions[in].topic;
    for (const auto& [source, item] : topics.at(topic).offering) {
      if (source->size_bytes == first.size_bytes) continue;
      reporter.fail({Part::kPublisher, here.process, here.node, reaction.publish.front()},
                    "a relay publishes {} with {} bytes, but {} has {} bytes at {}; a relay forwards "
                    "messages as they are",
                    first.topic, first.size_bytes, topic, source->size_bytes, reporter.place(item));
    }
  }
}

void check_topics(const Graph& graph, const Reporter& reporter) {
  const std::map<std::string, Topic> topics = topics_of(graph);
  std::size_t edges = 0;
  for (const auto& [topic, ends] : topics) {
    edges += ends.offering.size() * ends.taking.size();
    if (edges > kMaxEdges) {
      reporter.fail(ends.offering.front().second,
                    "the graph has more than {} edges (pairs of publisher and subscription of a topic)",
                    kMaxEdges);
    }
  }
  for (const auto& [topic, ends] : topics) check_type("topic", topic, ends, reporter);
  for (const auto& [topic, ends] : topics) {
    check_compatibility(topic, ends, compatibility_problem, "subscription", "publisher", reporter);
  }
  for_each_node(graph, [&](const Node& node, const Item& item) {
    for (const Reaction& reaction : node.reactions) {
      if (reaction.kind == ReactionKind::kRelay) check_relay_sizes(reaction, node, item, topics, reporter);
    }
  });
}

// An unanswered request would never complete, so a client needs a server. A server may have no clients; only
// a condition may add a second server. `what`: "service" or "action".
template <typename Ends>
void require_server(const Graph& graph, std::string_view what, const std::string& name, const Ends& ends,
                    const std::map<std::string, Ends>& all, const Reporter& reporter) {
  std::vector<Item> own;
  for (const auto& [server, item] : ends.offering) {
    if (graph.processes[item.process].nodes[item.node].condition.empty()) own.push_back(item);
  }
  if (own.size() > 1) {
    reporter.fail(own[1], "{0} {1} has a server already, at {2}; {3} {0} has one", what, name, reporter.place(own[0]),
                  what == "action" ? "an" : "a");
  }
  if (!ends.offering.empty()) return;
  std::vector<std::string_view> served;
  for (const auto& [other, others] : all) {
    if (!others.offering.empty()) served.push_back(other);
  }
  const std::string_view near = closest(name, served);
  reporter.fail(ends.taking.front().second, "the graph has no {}server of {}; {}", what == "action" ? "action " : "", name,
                near.empty() ? "add one" : fmt::format("did you mean {}?", near));
}

void check_services(const Graph& graph, const Reporter& reporter) {
  const std::map<std::string, Service> services = services_of(graph);
  for (const auto& [service, ends] : services) {
    require_server(graph, "service", service, ends, services, reporter);
    check_type("service", service, ends, reporter);
    check_compatibility(service, ends, service_compatibility_problem, "client", "server", reporter);
  }
}

void check_actions(const Graph& graph, const Reporter& reporter) {
  const std::map<std::string, Action> actions = actions_of(graph);
  for (const auto& [action, ends] : actions) {
    require_server(graph, "action", action, ends, actions, reporter);
    check_type("action", action, ends, reporter);
  }
}

// A keyed graph has at least one topic with a key; otherwise `keyed` would have no effect.
void check_keys(const Graph& graph, const Reporter& reporter) {
  if (!graph.keyed) return;
  bool found = false;
  for_each_node(graph, [&](const Node& node, const Item&) {
    const auto has_key = [&](const auto& end) { return graph.messages->find(end.type)->key.has_value(); };
    found = found || std::ranges::any_of(node.publishers, has_key) || std::ranges::any_of(node.subscriptions, has_key);
  });
  if (!found) {
    reporter.fail({Part::kGraph, 0, 0, 0},
                  "the graph is keyed, but no type of its topics declares a key; remove 'keyed', or use a "
                  "type with @key, like keyed_array1k");
  }
}

void check_names_unique(const Graph& graph, const Reporter& reporter) {
  std::unordered_map<std::string, std::size_t> processes;
  std::unordered_map<std::string, Item> nodes;
  for (std::size_t p = 0; p < graph.processes.size(); ++p) {
    const Process& process = graph.processes[p];
    const auto [found, added] = processes.emplace(process.name, p);
    if (!added) {
      reporter.fail({Part::kProcess, p, 0, 0}, "process {} is also at {}; give each its own name",
                    process.name, reporter.place({Part::kProcess, found->second, 0, 0}));
    }
    for (std::size_t n = 0; n < process.nodes.size(); ++n) {
      const Item item{Part::kNode, p, n, 0};
      const auto [other, new_node] = nodes.emplace(process.nodes[n].qualified_name(), item);
      if (!new_node) {
        reporter.fail(item, "node {} is also at {}; give each its own name or namespace", other->first,
                      reporter.place(other->second));
      }
    }
  }
}

}  // namespace

std::size_t count_parts(const Node& node) {
  std::size_t parts = node.publishers.size() + node.subscriptions.size() + node.clients.size() +
                      node.servers.size() + node.action_clients.size() + node.action_servers.size() +
                      node.waitables.size() + node.timers.size() + node.reactions.size();
  for (const Timer& timer : node.timers)
    parts += timer.publish.size() + timer.request.size() + timer.trigger.size() + timer.goal.size();
  for (const Reaction& reaction : node.reactions) parts += reaction.on.size() + reaction.publish.size();
  return parts;
}

std::string waitable_name_problem(std::string_view name) {
  return name.empty() || name.size() > 255 ? "waitable name must have 1 to 255 characters" : "";
}

namespace {

// `kind` is the middle part of a full name, "msg" or "srv", which may be omitted.
std::string unknown(std::string_view what, std::string_view type, std::string_view kind,
                    const std::vector<std::string>& names) {
  std::string full(type);
  if (std::ranges::count(full, '/') == 1) full.insert(full.find('/') + 1, fmt::format("{}/", kind));
  const std::string_view near = closest(full, {names.begin(), names.end()});
  if (near.empty()) return fmt::format("{} {} is unknown; `perflab list messages` shows them", what, quote(type));
  return fmt::format("{} {} is unknown; did you mean {}?", what, quote(type), near);
}

}  // namespace

std::string type_problem(message::Formats& messages, std::string_view type) {
  const message::Format* const format = messages.find(type);
  if (format == nullptr && messages.find_request(type) != nullptr)
    return fmt::format("type {} is a service; use a message, like stamped1kb", type);
  return format == nullptr ? unknown("type", type, "msg", messages.names()) : std::string();
}

std::string service_type_problem(message::Formats& messages, std::string_view type) {
  const message::Format* const request = messages.find_request(type);
  if (request == nullptr && messages.find(type) != nullptr)
    return fmt::format("type {} is not a service; use one, like stamped1kb", type);
  return request == nullptr ? unknown("service type", type, "srv", messages.names("srv")) : std::string();
}

std::string action_type_problem(message::Formats& messages, std::string_view type) {
  if (messages.find_action(type) != nullptr) return {};
  return unknown("action type", type, "action", messages.names("action"));
}

std::string feedback_problem(message::Formats& messages, const std::string& type) {
  const message::Format& format = messages.format_of_part(*messages.find_action(type)->feedback);
  if (format.stamp == message::Stamp::kHeader) return {};
  return fmt::format("feedback of {} has no perflab_msgs/Header, by which it is measured; remove 'feedback', or use another type, "
                     "like stamped", type);
}

std::string filter_problem(message::Formats& messages, std::string_view type, const std::string& filter) {
  const message::Format& format = *messages.find(type);
  try {
    if (!format.stamps_last(messages.filter(format, filter))) return {};
  } catch (const BadInput& error) {
    return error.what();
  }
  return fmt::format("filter: {} depends on the instant of publication, which is stamped after the filter is "
                     "evaluated; filter by another field",
                     quote(filter));
}

std::string instances_problem(message::Formats& messages, std::string_view type, std::uint32_t instances) {
  const message::Format* const known = messages.find(type);
  if (known == nullptr) return type_problem(messages, type);
  if (instances == 1) return {};
  if (instances == 0) return "instances is 0; it must be at least 1";
  if (!known->key || !known->key->number()) {
    return fmt::format("{} has no integer key to distinguish instances; use another type, like "
                       "keyed_array1k, or remove 'instances'",
                       type);
  }
  const std::uint64_t most = known->key->number()->count();
  if (instances <= most) return {};
  return fmt::format("instances is {}; the key of {} can distinguish {}", instances, type, most);
}

std::string loan_problem(message::Formats& messages, std::string_view type) {
  const message::Format* known = messages.find(type);
  if (known == nullptr) return type_problem(messages, type);
  if (known->type->plain) return {};
  return fmt::format("{} cannot be loaned, because its size varies; use shared or unique, or another type",
                     type);
}

std::string thread_name_problem(std::string_view name) {
  constexpr std::size_t kKernelKeeps = 15;
  const bool fits = !name.empty() && name.size() <= kKernelKeeps && std::ranges::all_of(name, [](char c) {
    return is_digit(c) || c == '_' || (c >= 'a' && c <= 'z');
  });
  if (!fits || is_digit(name.front()) || name.front() == '_')
    return fmt::format("thread name {} is invalid; use 1 to {} of a-z, 0-9 and '_', beginning with a letter", quote(name),
                       kKernelKeeps);
  return {};
}

std::string program_problem(std::string_view program) {
  if (program.empty()) return "program is empty; name one, like perflab-simulator or ./build/my_node";
  if (program.size() > 4096 || one_line(program) != program)
    return "program is not a path of one printable line";
  return {};
}

std::string thread_problem(const realtime::ThreadSettings& settings) {
  const int priority = settings.priority;
  if (!settings.policy) {
    if (priority != 0) return fmt::format("priority {} has no policy; add policy FIFO or RR", priority);
  } else {
    const std::string_view policy = word_of(kPolicyWords, *settings.policy);
    if (policy.empty()) return "the scheduling policy has an unknown value";
    const bool deadline = *settings.policy == realtime::Policy::kDeadline;
    if (!deadline && (settings.runtime_ns != 0 || settings.deadline_ns != 0 || settings.period_ns != 0))
      return fmt::format("policy {} has no runtime, deadline and period; remove them, or use DEADLINE", policy);
    if (deadline) {
      if (priority != 0) return "policy DEADLINE has no priority; remove it";
      if (!settings.cpus.empty()) return "policy DEADLINE cannot be pinned to CPUs; remove cpus";
      const bool ordered = settings.runtime_ns >= 1024 && settings.runtime_ns <= settings.deadline_ns &&
                           settings.deadline_ns <= settings.period_ns;
      if (!ordered) return "policy DEADLINE needs 1024 ns <= runtime <= deadline <= period";
    } else if (*settings.policy == realtime::Policy::kOther) {
      if (priority != 0) return "policy OTHER has no priority; remove it, or use FIFO or RR";
    } else if (priority < realtime::kLowestPriority || priority > realtime::kHighestPriority) {
      return fmt::format("policy {} needs a priority from {} to {}", policy, realtime::kLowestPriority,
                         realtime::kHighestPriority);
    }
  }
  try {
    if (ordered_cpus(settings.cpus) != settings.cpus) return "cpus are not in ascending order; sort them";
  } catch (const UnitError& error) {
    return error.what();
  }
  return {};
}

std::string threads_problem(ExecutorKind kind, int threads) {
  if (threads == 0) return {};
  if (kind != ExecutorKind::kMultiThreaded) {
    return fmt::format("threads is for multi_threaded executors, but this one is {}; remove it",
                       word_of(kExecutorWords, kind));
  }
  if (threads > 0 && threads <= kMaxExecutorThreads) return {};
  return fmt::format("threads is {}; it must be from 1 to {}", threads, kMaxExecutorThreads);
}

std::string executor_period_problem(ExecutorKind kind, Nanoseconds period_ns) {
  if (period_ns == 0) return {};
  if (kind != ExecutorKind::kLet) {
    return fmt::format("period is for let executors, but this one is {}; remove it", word_of(kExecutorWords, kind));
  }
  if (period_ns >= kShortestPeriod && period_ns <= kLongestDuration) return {};
  return fmt::format("period is {} ns; it must be from {} to {} ns", period_ns, kShortestPeriod, kLongestDuration);
}

std::string text_problem(std::string_view name, std::string_view text) {
  if (text.size() >= sizeof(perflab_text::text)) {
    return fmt::format("{} has {} bytes; it must be at most {}", name, text.size(), sizeof(perflab_text::text) - 1);
  }
  if (one_line(text) != text) return fmt::format("{} is {}; it must be one printable line", name, quote(text));
  return {};
}

std::string pace_problem(const Timer& timer) {
  if (timer.arrivals == Arrivals::kUnthrottled) {
    if (timer.period_ns != 0) return "an unthrottled timer has no period";
    return timer.burst == 1 ? "" : "an unthrottled timer has no bursts; remove 'burst'";
  }
  if (std::string problem = period_problem(timer.period_ns); !problem.empty()) return problem;
  if (timer.burst < 1 || timer.burst > kLargestBurst)
    return fmt::format("burst is {}; it must be from 1 to {}", timer.burst, kLargestBurst);
  if (timer.burst <= kLongestDuration / timer.period_ns) return {};
  return fmt::format("bursts of {} are more than one day apart; make them smaller or more frequent", timer.burst);
}

std::string size_problem(message::Formats& messages, std::string_view type, std::uint32_t size) {
  const message::Format* known = messages.find(type);
  if (known == nullptr) return type_problem(messages, type);
  if (!known->variable) {
    const std::size_t bytes = known->payload_bytes(0);
    if (size != bytes)
      return fmt::format("size {} does not fit type {}, which always has {} bytes; remove it", size, type, bytes);
    if (bytes > message::kMaxPayloadBytes)
      return fmt::format("messages of {} have {} bytes, which is too large; at most {} bytes (64MiB)", type, bytes,
                         message::kMaxPayloadBytes);
    return {};
  }
  if (size == 0) return fmt::format("size is 0; {} needs at least 1 {}", type, known->unit());
  if (known->longest > 0 && size > known->longest)
    return fmt::format("size {} is too large for {}; at most {} {}s", size, type, known->longest, known->unit());
  if (known->largest_bytes(size) > message::kMaxPayloadBytes) {
    return fmt::format("size {} is too large; at most {} bytes (64MiB)", size, message::kMaxPayloadBytes);
  }
  return {};
}

void check_node(const Process& process, const Node& node, message::Formats& messages, const Item& item,
                const Locate& locate) {
  const Reporter reporter(locate);
  const bool program = !process.program.empty();

  reporter.require_none(item, node_name_problem(node.name));
  reporter.require_none(item, namespace_problem(node.node_namespace));
  each(node.publishers, item, Part::kPublisher,
       [&](const Publisher& publisher, const Item& here) { check_publisher(publisher, messages, here, reporter); });
  each(node.subscriptions, item, Part::kSubscription,
       [&](const Subscription& subscription, const Item& here) {
         check_subscription(subscription, messages, here, reporter);
       });
  each(node.clients, item, Part::kClient,
       [&](const Client& client, const Item& here) { check_service_end(client, messages, here, reporter); });
  each(node.servers, item, Part::kServer, [&](const Server& server, const Item& here) {
    check_service_end(server, messages, here, reporter);
    reporter.require_none(here, work_problem(server.work_ns));
  });
  each(node.action_clients, item, Part::kActionClient,
       [&](const ActionClient& client, const Item& here) { check_action_client(client, messages, here, reporter); });
  each(node.action_servers, item, Part::kActionServer,
       [&](const ActionServer& server, const Item& here) { check_action_server(server, messages, here, reporter); });
  check_cancelling(node, item, reporter);
  check_unique(node.publishers, &Publisher::topic, "publisher", "topic", item, Part::kPublisher, reporter);
  check_unique(node.subscriptions, &Subscription::topic, "subscription", "topic", item, Part::kSubscription,
               reporter);
  check_unique(node.clients, &Client::service, "client", "service", item, Part::kClient, reporter);
  check_unique(node.servers, &Server::service, "server", "service", item, Part::kServer, reporter);
  check_unique(node.action_clients, &ActionClient::action, "action client", "action", item, Part::kActionClient, reporter);
  check_unique(node.action_servers, &ActionServer::action, "action server", "action", item, Part::kActionServer, reporter);
  check_waitables(node, item, reporter);
  Drivers<Publisher> publishers(node, node.publishers, item, kPublisherWords, reporter);
  Drivers<Client> clients(node, node.clients, item, kClientWords, reporter);
  Drivers<ActionClient> action_clients(node, node.action_clients, item, kActionClientWords, reporter);
  check_timers(node, item, publishers, clients, action_clients, reporter);
  check_reactions(node, item, publishers, reporter);
  publishers.finish(program);
  clients.finish(program);
  action_clients.finish(program);
}

void check(const Graph& graph, const Locate& locate) {
  const Reporter reporter(locate);
  reporter.require_none({}, file_name_problem(graph.name));
  if (graph.processes.empty()) reporter.fail({}, "the graph has no processes; give it at least one");
  check_bounds(graph, reporter);
  for (std::size_t p = 0; p < graph.processes.size(); ++p) {
    check_process(graph.processes[p], p, reporter);
    for (std::size_t n = 0; n < graph.processes[p].nodes.size(); ++n) {
      check_node(graph.processes[p], graph.processes[p].nodes[n], *graph.messages, {Part::kNode, p, n, 0}, locate);
    }
  }
  check_end(graph, reporter);
  check_names_unique(graph, reporter);
  check_topics(graph, reporter);
  check_keys(graph, reporter);
  check_services(graph, reporter);
  check_actions(graph, reporter);
  check_circulation(graph, locate);
}

}  // namespace perflab::graph
