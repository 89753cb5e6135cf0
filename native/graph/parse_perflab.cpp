// perflab's own format; docs/schema/graph.schema.json is its published description.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <span>
#include <unordered_set>

#include "graph/draft.h"
#include "graph/fields.h"
#include "graph/names.h"
#include "graph/programs.h"
#include "graph/text.h"
#include "graph/units.h"
#include "message/format.h"

namespace perflab::graph {
namespace {

// Keys of a process besides its name and nodes; a graph with one process has them at the top level.
constexpr std::array<std::string_view, 7> kProcessKeys{"executors",   "participants", "threads", "lock_memory",
                                                       "program", "options",      "ends"};

// "infinite" is PERFLAB_DURATION_INFINITE, if it is allowed.
Nanoseconds read_duration(const Field& field, Nanoseconds shortest, bool may_be_infinite = false) {
  if (field.kind() == Kind::kNumber) {
    field.fail("{0}: {1} has no unit; write {1}ms if milliseconds are meant (ns, us, ms or s)", field.name(),
               one_line(field.written().substr(0, 20)));
  }
  const std::string& text = field.text();
  if (may_be_infinite && text == "infinite") return PERFLAB_DURATION_INFINITE;
  const Nanoseconds duration = field.parsed([&] { return parse_duration(text); });
  if (duration < shortest) {
    field.fail("{}: {} is too short; it must be at least {}", field.name(), text,
               shortest == kShortestPeriod ? "1us" : "1ns");
  }
  return duration;
}

// The period of a mapping that may have `period` or `frequency`.
std::optional<Nanoseconds> read_period(const Fields& fields) {
  const auto period = fields.find("period");
  const auto frequency = fields.find("frequency");
  if (period && frequency) frequency->fail("'frequency' and 'period' are both given; keep one of them");
  if (period) return read_duration(*period, kShortestPeriod);
  if (!frequency) return std::nullopt;
  return frequency->parsed([&] {
    return period_of(frequency->kind() == Kind::kNumber ? frequency->number()
                                                        : parse_frequency(frequency->text()));
  });
}

// A timer's phase: its own, else its executor's, else the graph's.
Phase read_phase(const Fields& fields, Phase otherwise) {
  fields.word("phase", kPhaseWords, otherwise);
  return otherwise;
}

// Keys of things with ticks, and of things that may have a timer of their own.
constexpr std::string_view kPriority = "priority";

// A callback's priority: its own, else its node's.
int read_priority(const Fields& fields, int otherwise) {
  return static_cast<int>(fields.integer(kPriority, -kMaxInt, kMaxInt, otherwise));
}

constexpr std::array kPaceKeys{"period", "frequency", "arrivals", "burst", "phase"};
std::vector<std::string_view> with_pace(std::vector<std::string_view> keys) {
  keys.insert(keys.end(), kPaceKeys.begin(), kPaceKeys.end());
  return keys;
}

// Reads when and how often a timer ticks. False if nothing says that it ticks. `usual`: the default phase.
bool read_pace(const Fields& fields, Phase usual, Timer& timer) {
  const std::optional<Nanoseconds> period = read_period(fields);
  const auto arrivals = fields.find("arrivals");
  if (arrivals) timer.arrivals = arrivals->word("arrivals", kArrivalsWords);
  const bool unthrottled = timer.arrivals == Arrivals::kUnthrottled;
  if (unthrottled && period)
    arrivals->fail("an unthrottled timer has no period, it ticks as fast as its callback runs; remove "
                   "'period' or 'frequency'");
  if (!period && !unthrottled) return false;
  timer.period_ns = period.value_or(0);
  if (const auto burst = fields.find("burst")) {
    timer.burst = burst->integer(1, kLargestBurst);
    burst->require_none(pace_problem(timer));
  }
  if (timer.arrivals == Arrivals::kPeriodic) {
    timer.phase = read_phase(fields, usual);
  } else if (const auto phase = fields.find("phase")) {
    phase->fail("'phase' is for periodic timers, but arrivals are '{}'; remove it",
                word_of(kArrivalsWords, timer.arrivals));
  }
  return true;
}

// Default phases for timers of a process.
struct UsualPhase {
  Phase graph = Phase::kAligned;
  std::map<int, Phase> executors;  // by id

  [[nodiscard]] Phase of(int executor) const {
    const auto found = executors.find(executor);
    return found == executors.end() ? graph : found->second;
  }
};

Nanoseconds read_work(const Fields& fields) {
  const auto work = fields.find("work");
  return work ? read_duration(*work, 0) : 0;
}

// The owner of a QoS mapping.
enum class QosOf { kPublisher, kSubscription, kService };

bool may_have(const auto& row, QosOf of) {
  using middleware::Ends;
  if (of == QosOf::kService) return row.origin == middleware::Origin::kRos2;
  return row.ends == Ends::kBoth || (row.ends == Ends::kWriters) == (of == QosOf::kPublisher);
}

perflab_text text_of(const Field& field, const std::string& text) {
  perflab_text read{};
  field.require_none(text_problem(field.name(), text));
  text.copy(read.text, sizeof read.text - 1);
  return read;
}

template <const auto& words>
void read_value(middleware::form::Words<words> /*form*/, const Field& field, std::string_view key, auto& value) {
  value = field.word(key, words);
}
void read_value(middleware::form::Limit /*form*/, const Field& field, std::string_view /*key*/, std::int64_t& value) {
  value = read_duration(field, 1, true);
}
void read_value(middleware::form::Duration /*form*/, const Field& field, std::string_view /*key*/, std::int64_t& value) {
  value = read_duration(field, 0);
}
void read_value(middleware::form::Depth /*form*/, const Field& field, std::string_view /*key*/, std::int32_t& value) {
  value = static_cast<std::int32_t>(field.integer(1, kMaxInt));
}
void read_value(middleware::form::Number /*form*/, const Field& field, std::string_view /*key*/, std::int32_t& value) {
  value = static_cast<std::int32_t>(field.integer(0, kMaxInt));
}
void read_value(middleware::form::Most /*form*/, const Field& field, std::string_view /*key*/, std::int32_t& value) {
  value = static_cast<std::int32_t>(field.integer(1, kMaxInt));
}
void read_value(middleware::form::Flag /*form*/, const Field& field, std::string_view /*key*/, bool& value) {
  value = field.boolean();
}
void read_value(middleware::form::Text /*form*/, const Field& field, std::string_view /*key*/, perflab_text& value) {
  value = text_of(field, field.text());
}
// A name, or a list of them.
void read_value(middleware::form::Names /*form*/, const Field& field, std::string_view /*key*/, perflab_text& value) {
  if (field.kind() != Kind::kList) {
    value = text_of(field, field.text());
    return;
  }
  std::string all;
  const std::vector<Field> items = field.items(field.name());
  for (const Field& item : items) {
    if (item.text().find(',') != std::string::npos) item.fail("a name of {} has a comma; it must have none", field.name());
    all += (&item == items.data() ? "" : ",") + item.text();
  }
  value = text_of(field, all);
}

perflab_qos read_qos(const Field& field, QosOf of) {
  std::vector<std::string_view> keys;
  middleware::each_policy([&](const auto& row) {
    // A policy of the other end is a known key, so that the message can say which end has it.
    if (of != QosOf::kService || may_have(row, of)) keys.emplace_back(row.name);
  });
  const Fields fields(field, "qos", keys);
  perflab_qos qos = default_qos();
  middleware::each_policy([&](const auto& row) {
    const auto found = fields.find(row.name);
    if (!found) return;
    if (!may_have(row, of)) {
      found->fail("'{}' is a policy of {}; remove it from the {}", row.name,
                  row.ends == middleware::Ends::kWriters ? "publishers" : "subscriptions",
                  of == QosOf::kPublisher ? "publisher" : "subscription");
    }
    read_value(row.form, *found, row.name, qos.*row.member);
  });
  if (qos.history == PERFLAB_KEEP_ALL) {
    if (const auto depth = fields.find("depth")) {
      depth->fail("'depth' has no effect with keep_all; remove one of them");
    }
    qos.depth = PERFLAB_DEPTH_UNLIMITED;
  }
  return qos;
}

// Checks a name as written; `what` is "topic", "service", "action" or "waitable".
std::string written_problem(std::string_view what, const std::string& written) {
  if (what == "waitable") return waitable_name_problem(written);
  return what == "topic" ? topic_problem(written) : what == "service" ? service_problem(written) : action_problem(written);
}

// The fully qualified topic, service or action of an end, from the key `key`.
std::string read_qualified(const Fields& fields, std::string_view key, const Node& node) {
  const Field name = fields.at(key);
  name.require_none(written_problem(key, name.text()));
  std::string qualified = qualify_topic(name.text(), node.node_namespace, node.name);
  name.require_none(key == "topic"     ? qualified_topic_problem(qualified)
                    : key == "service" ? qualified_service_problem(qualified)
                                       : qualified_action_problem(qualified));
  return qualified;
}

// What publishers and subscriptions have in common.
template <typename Endpoint>
Endpoint read_endpoint(const Fields& fields, const Node& node, message::Formats& messages, bool publisher) {
  Endpoint endpoint;
  endpoint.topic = read_qualified(fields, "topic", node);
  endpoint.type = read_type(fields.at("type"), messages, fields.text("type"));
  fields.word("pass_by", kPassByWords, endpoint.pass_by);
  if (endpoint.pass_by == PassBy::kLoaned) {
    fields.at("pass_by").require_none(publisher ? loan_problem(messages, endpoint.type)
                                                : std::string(kLoanedSubscription));
  }
  if (const auto qos = fields.find("qos")) endpoint.qos = read_qos(*qos, publisher ? QosOf::kPublisher : QosOf::kSubscription);
  return endpoint;
}

// What clients and servers have in common.
template <typename End>
End read_service_end(const Fields& fields, const Node& node, message::Formats& messages) {
  End end;
  end.service = read_qualified(fields, "service", node);
  end.type = read_service_type(fields.at("type"), messages, fields.text("type"));
  if (const auto qos = fields.find("qos")) end.qos = read_qos(*qos, QosOf::kService);
  return end;
}

// State while reading a node. `usual`: default phase of its timers; `priority`: default for its callbacks.
struct Reading {
  Node& node;
  NodeOrigin& origin;
  message::Formats& messages;
  Phase usual;
  int priority;
  bool program;  // a program may drive what nothing else does

  void add(Timer timer, const Fields& fields) {
    node.timers.push_back(std::move(timer));
    origin.add(Part::kTimer, fields);
  }
  // Adds the own timer of a publisher, client or waitable (`what`), if it has a period.
  void add_own_timer(const Fields& fields, std::string_view what, std::string name,
                     std::vector<std::size_t> Timer::* acts, std::size_t index) {
    Timer timer = own_timer(std::move(name), 0, acts, index);
    timer.priority = read_priority(fields, priority);
    if (read_pace(fields, usual, timer)) {
      add(std::move(timer), fields);
      return;
    }
    for (const char* const key : kPaceKeys) {
      if (const auto field = fields.find(key)) {
        field->fail(
            "'{}' is for timers, but the {} has no timer without 'period' or "
            "'frequency'; add one, or remove it",
            key, what);
      }
    }
  }
};

void add_publisher(const Field& item, Reading& into) {
  const Fields fields(item, "publisher", with_pace({"topic", "type", "size", "instances", "pass_by", "qos", kPriority}));
  auto publisher = read_endpoint<Publisher>(fields, into.node, into.messages, true);
  read_size(fields, "size", into.messages, Sizes::kNumbersOrText, into.program, publisher);
  if (const auto instances = fields.find("instances")) {
    publisher.instances =
        static_cast<std::uint32_t>(instances->integer(1, std::numeric_limits<std::uint32_t>::max()));
    instances->require_none(instances_problem(into.messages, publisher.type, publisher.instances));
  }
  const bool own_timer = fields.has("period") || fields.has("frequency") || fields.has("arrivals");
  if (const auto priority = fields.find(kPriority); priority && !own_timer) {
    priority->fail(
        "'priority' is for callbacks, but the publisher has none without 'period' or 'frequency'; move it to "
        "the timer or the subscription that publishes");
  }
  into.add_own_timer(fields, "publisher", timer_name(fields.text("topic")), &Timer::publish,
                     into.node.publishers.size());
  into.node.publishers.push_back(std::move(publisher));
  into.origin.add(Part::kPublisher, fields);
}

void add_subscription(const Field& item, Reading& into) {
  const Fields fields(item, "subscription", {"topic", "type", "filter", "pass_by", "qos", kPriority});
  auto subscription = read_endpoint<Subscription>(fields, into.node, into.messages, false);
  if (const auto filter = fields.find("filter")) {
    subscription.filter = filter->text();
    filter->require_none(filter_problem(into.messages, subscription.type, subscription.filter));
  }
  subscription.priority = read_priority(fields, into.priority);
  into.node.subscriptions.push_back(std::move(subscription));
  into.origin.add(Part::kSubscription, fields);
}

void add_client(const Field& item, Reading& into) {
  const Fields fields(item, "client", with_pace({"service", "type", "qos", kPriority}));
  auto client = read_service_end<Client>(fields, into.node, into.messages);
  client.priority = read_priority(fields, into.priority);
  into.add_own_timer(fields, "client", timer_name(fields.text("service")), &Timer::request,
                     into.node.clients.size());
  into.node.clients.push_back(std::move(client));
  into.origin.add(Part::kClient, fields);
}

void add_server(const Field& item, Reading& into) {
  const Fields fields(item, "server", {"service", "type", "qos", "work", kPriority});
  auto server = read_service_end<Server>(fields, into.node, into.messages);
  server.work_ns = read_work(fields);
  server.priority = read_priority(fields, into.priority);
  into.node.servers.push_back(std::move(server));
  into.origin.add(Part::kServer, fields);
}

void add_action_client(const Field& item, Reading& into) {
  const Fields fields(item, "action client", with_pace({"action", "type", "cancel_after", kPriority}));
  ActionClient client;
  client.action = read_qualified(fields, "action", into.node);
  client.type = read_action_type(fields.at("type"), into.messages, fields.text("type"));
  if (const auto after = fields.find("cancel_after")) client.cancel_after_ns = read_duration(*after, 1);
  client.priority = read_priority(fields, into.priority);
  into.add_own_timer(fields, "action client", timer_name(fields.text("action")), &Timer::goal,
                     into.node.action_clients.size());
  into.node.action_clients.push_back(std::move(client));
  into.origin.add(Part::kActionClient, fields);
}

void add_action_server(const Field& item, Reading& into) {
  const Fields fields(item, "action server",
                      {"action", "type", "duration", "step", "work", "feedback", "reject_every", kPriority});
  ActionServer server;
  server.action = read_qualified(fields, "action", into.node);
  server.type = read_action_type(fields.at("type"), into.messages, fields.text("type"));
  if (const auto duration = fields.find("duration")) server.duration_ns = read_duration(*duration, 0);
  if (const auto step = fields.find("step")) server.step_ns = read_duration(*step, kShortestPeriod);
  server.work_ns = read_work(fields);
  // By default, feedback is sent if its type can be measured.
  server.feedback = feedback_problem(into.messages, server.type).empty();
  if (const auto feedback = fields.find("feedback")) {
    server.feedback = feedback->boolean();
    if (server.feedback) feedback->require_none(feedback_problem(into.messages, server.type));
  }
  server.reject_every = static_cast<int>(fields.integer("reject_every", 2, kMaxInt, 0));
  server.priority = read_priority(fields, into.priority);
  into.node.action_servers.push_back(std::move(server));
  into.origin.add(Part::kActionServer, fields);
}

// With `number` that many waitables, with similar names and the same triggers.
void add_waitables(const Field& item, Reading& into) {
  const Fields fields(item, "waitable", with_pace({"name", "number", "work", kPriority}));
  const Waitable waitable{.name = fields.text("name"),
                          .work_ns = read_work(fields),
                          .priority = read_priority(fields, into.priority)};
  const auto copies = fields.integer("number", 1, static_cast<std::int64_t>(kMaxParts), 1);
  if (into.node.waitables.size() + static_cast<std::size_t>(copies) > kMaxParts) {
    fields.fail("the graph has more than {} {}", kMaxParts, kPartWords);
  }
  for (std::int64_t copy = 1; copy <= copies; ++copy) {
    const std::string name = fields.has("number") ? fmt::format("{}_{}", waitable.name, copy) : waitable.name;
    into.add_own_timer(fields, "waitable", name, &Timer::trigger, into.node.waitables.size());
    into.node.waitables.push_back({name, waitable.work_ns, waitable.priority});
    into.origin.add(Part::kWaitable, fields);
  }
}

// The topics (or services, waitables: `what`) named by `key`, one or a list; none if it is absent.
std::vector<Field> names_at(const Fields& fields, std::string_view key, std::string_view what) {
  const auto field = fields.find(key);
  if (!field) return {};
  if (field->kind() == Kind::kString) return {*field};
  if (field->kind() != Kind::kList) {
    field->fail("'{0}' must be a {1} or a list of {1}s, but it is {2}", key, what, name_of(field->kind()));
  }
  std::vector<Field> names = field->items(fmt::format("a {} in '{}'", what, key));
  if (names.empty()) field->fail("'{}' names no {}; name one, or remove it", key, what);
  for (const Field& name : names) name.require(Kind::kString);
  return names;
}

// A node's publishers or subscriptions by topic, clients by service, or waitables by name.
class NameIndex {
 public:
  // `name` is the member used as the name, `what` its kind ("topic"), `end` describes a missing end
  // ("publisher of it").
  template <typename Ends, typename Name>
  NameIndex(const Ends& ends, Name name, std::string_view what, std::string_view end)
      : what_(what), end_(end) {
    for (std::size_t i = 0; i < ends.size(); ++i) indexes_.emplace(ends[i].*name, i);
  }

  // Indexes of the names listed at `key`.
  [[nodiscard]] std::vector<std::size_t> at(const Fields& fields, std::string_view key,
                                            const Node& node) const {
    std::vector<std::size_t> indexes;
    std::unordered_set<std::size_t> named;
    for (const Field& field : names_at(fields, key, what_)) {
      field.require_none(problem_of(field.text()));
      const std::string name =
          what_ == "waitable" ? field.text() : qualify_topic(field.text(), node.node_namespace, node.name);
      const auto found = indexes_.find(name);
      if (found == indexes_.end()) fail_unknown(field, key, name, node);
      if (!named.insert(found->second).second) {
        field.fail("'{}' names {} twice; name it once", key, name);
      }
      indexes.push_back(found->second);
    }
    return indexes;
  }

  [[nodiscard]] std::string_view what() const { return what_; }

 private:
  [[nodiscard]] std::string problem_of(const std::string& written) const { return written_problem(what_, written); }
  [[noreturn]] void fail_unknown(const Field& field, std::string_view key, const std::string& wanted,
                                 const Node& node) const {
    std::vector<std::string_view> known;
    for (const auto& [name, index] : indexes_) known.push_back(name);
    const std::string_view near = closest(wanted, known);
    field.fail("'{}' names {}, but node {} has no {}; {}", key, wanted, node.name, end_,
               near.empty() ? "add one" : fmt::format("did you mean {}?", near));
  }

  std::string_view what_;
  std::string_view end_;
  std::map<std::string, std::size_t> indexes_;
};

// What a timer can act on: the key, and the list of indexes.
struct TimerEnd {
  const char* key;
  std::vector<std::size_t> Timer::* acts;
  NameIndex names;
};

// A timer without a name in the file is named after the first topic it publishes, else the first service it
// requests, else the first waitable it triggers.
std::string read_timer_name(const Fields& fields, const std::vector<TimerEnd>& ends, const Node& node) {
  if (fields.has("name")) return fields.text("name");
  for (const TimerEnd& end : ends) {
    if (!fields.has(end.key)) continue;
    const std::string first = names_at(fields, end.key, end.names.what()).front().text();
    return end.names.what() == "waitable" ? first : timer_name(first);
  }
  return fmt::format("timer_{}", node.timers.size() + 1);
}

void add_timer(const Field& item, const std::vector<TimerEnd>& ends, Reading& into) {
  const Fields fields(item, "timer",
                      with_pace({"name", "publish", "request", "goal", "trigger", "work", "overrun", kPriority}));
  Timer timer;
  if (!read_pace(fields, into.usual, timer)) fields.fail("the timer lacks the key 'period' (or 'frequency')");
  for (const TimerEnd& end : ends) timer.*end.acts = end.names.at(fields, end.key, into.node);
  timer.work_ns = read_work(fields);
  // In a generated graph a timer may only tick, to show what that costs; in a file it is a mistake.
  if (timer.publish.empty() && timer.request.empty() && timer.goal.empty() && timer.trigger.empty() && timer.work_ns == 0) {
    fields.fail("the timer does nothing; give it `publish`, `request`, `goal`, `trigger` or `work`");
  }
  fields.word("overrun", kOverrunWords, timer.overrun);
  timer.priority = read_priority(fields, into.priority);
  timer.name = read_timer_name(fields, ends, into.node);
  into.add(std::move(timer), fields);
}

ReactionKind read_reaction_kind(const Fields& fields, const Reaction& reaction) {
  if (const auto kind = fields.find("kind")) return kind->word("kind", kReactionWords);
  if (fields.has("period")) return ReactionKind::kCyclic;
  if (reaction.publish.empty()) return ReactionKind::kSink;
  if (reaction.on.size() == 1) return ReactionKind::kTransform;
  fields.fail(
      "the reaction has several topics in 'on' and no 'kind'; use transform (each message) or fusion (all "
      "together)");
}

// `work` of the whole file: the default work of reactions, by kind.
void check_works(const Field& field) {
  const Fields works(field, "work", texts_of(kReactionWords));
  for (const std::string_view kind : texts_of(kReactionWords)) {
    if (const auto work = works.find(kind)) read_duration(*work, 0);
  }
}

Nanoseconds usual_work(const Document& document, ReactionKind kind) {
  const Value* works = document.root().find("work");
  const std::string_view word = word_of(kReactionWords, kind);
  const Value* work = works == nullptr ? nullptr : works->find(word);
  return work == nullptr ? 0 : read_duration({document, *work, fmt::format("'{}'", word)}, 0);
}

void add_reaction(const Field& item, const NameIndex& publishers, const NameIndex& subscriptions,
                  Reading& into) {
  const Fields fields(item, "reaction", {"kind", "on", "publish", "work", "period", "phase", kPriority});
  Reaction reaction;
  fields.require_key("on");
  reaction.on = subscriptions.at(fields, "on", into.node);
  reaction.publish = publishers.at(fields, "publish", into.node);
  reaction.kind = read_reaction_kind(fields, reaction);
  reaction.work_ns = fields.has("work") ? read_work(fields) : usual_work(fields.document(), reaction.kind);
  const bool is_cyclic = reaction.kind == ReactionKind::kCyclic;
  if (const auto period = fields.find("period")) {
    reaction.period_ns = read_duration(*period, kShortestPeriod);
  } else if (is_cyclic) {
    fields.fail("the cyclic reaction lacks the key 'period'");
  }
  if (is_cyclic) {
    reaction.phase = read_phase(fields, into.usual);
    reaction.priority = read_priority(fields, into.priority);
  } else if (const auto phase = fields.find("phase")) {
    phase->fail("'phase' is for timers, and only a cyclic reaction has one; remove it");
  } else if (const auto priority = fields.find(kPriority)) {
    priority->fail("the reaction runs in the callbacks of its subscriptions; move 'priority' to them");
  }
  into.node.reactions.push_back(std::move(reaction));
  into.origin.add(Part::kReaction, fields);
}

void set_frequencies(Node& node) {
  for (const Timer& timer : node.timers) {
    for (const std::size_t index : timer.publish) node.publishers[index].frequency_hz = timer.frequency_hz();
    for (const std::size_t index : timer.request) node.clients[index].frequency_hz = timer.frequency_hz();
    for (const std::size_t index : timer.goal) node.action_clients[index].frequency_hz = timer.frequency_hz();
  }
}

Node read_node(const Fields& fields, const std::string& suffix, const Process& process,
               const UsualPhase& phases, message::Formats& messages, NodeOrigin& origin) {
  Node node;
  node.name = fields.text("name") + suffix;
  fields.at("name").require_none(node_name_problem(node.name));
  if (const auto given = fields.find("namespace")) {
    node.node_namespace = qualify_namespace(given->text());
    given->require_none(namespace_problem(node.node_namespace));
  }
  const int default_executor = process.executors.empty() ? 0 : process.executors.front().id;
  node.executor = static_cast<int>(fields.integer("executor", 0, kMaxInt, default_executor));
  Reading into{node, origin, messages, phases.of(node.executor), read_priority(fields, 0), !process.program.empty()};
  for (const Field& item : fields.list("publishers")) add_publisher(item, into);
  for (const Field& item : fields.list("subscriptions")) add_subscription(item, into);
  for (const Field& item : fields.list("clients")) add_client(item, into);
  for (const Field& item : fields.list("action_clients")) add_action_client(item, into);
  for (const Field& item : fields.list("waitables")) add_waitables(item, into);
  separate_timer_names(node);
  for (const Field& item : fields.list("servers")) add_server(item, into);
  for (const Field& item : fields.list("action_servers")) add_action_server(item, into);
  const NameIndex publishers(node.publishers, &Publisher::topic, "topic", "publisher of it");
  const NameIndex subscriptions(node.subscriptions, &Subscription::topic, "topic", "subscription of it");
  const std::vector<TimerEnd> ends{
      {"publish", &Timer::publish, publishers},
      {"request", &Timer::request, {node.clients, &Client::service, "service", "client of it"}},
      {"goal", &Timer::goal, {node.action_clients, &ActionClient::action, "action", "action client of it"}},
      {"trigger", &Timer::trigger, {node.waitables, &Waitable::name, "waitable", "waitable of that name"}}};
  for (const Field& item : fields.list("timers")) add_timer(item, ends, into);
  set_frequencies(node);
  for (const Field& item : fields.list("reactions")) add_reaction(item, publishers, subscriptions, into);
  return node;
}

// A list of numbers, one number, or a text like "0-2,5".
std::vector<int> read_cpus(const Field& field) {
  constexpr const char* kName = "a CPU in 'cpus'";
  if (field.kind() == Kind::kString) return field.parsed([&] { return parse_cpus(field.written()); });
  std::vector<Field> items{Field(field.document(), field.value(), kName)};
  if (field.kind() == Kind::kList) {
    items = field.items(kName);
  } else if (field.kind() != Kind::kNumber) {
    field.fail("'cpus' must be a list of numbers, a number, or a text like 0-2,5, but it is {}",
               name_of(field.kind()));
  }
  if (items.empty()) field.fail("'cpus' names no CPU; name one, or remove it");
  std::vector<int> cpus;
  for (const Field& item : items) cpus.push_back(static_cast<int>(item.integer(0, kHighestCpu)));
  return field.parsed([&] { return ordered_cpus(std::move(cpus)); });
}

// Settings of threads.
realtime::ThreadSettings read_settings(const Field& field, bool may_be_empty) {
  realtime::ThreadSettings settings;
  const Fields fields(field, "thread setting", {"policy", "priority", "cpus", "runtime", "deadline", "period"});
  if (const auto policy = fields.find("policy")) settings.policy = policy->word("policy", kPolicyWords);
  settings.priority = static_cast<int>(fields.integer("priority", 0, realtime::kHighestPriority, 0));
  if (const auto cpus = fields.find("cpus")) settings.cpus = read_cpus(*cpus);
  for (const auto& [name, member] : {std::pair{"runtime", &realtime::ThreadSettings::runtime_ns},
                                     std::pair{"deadline", &realtime::ThreadSettings::deadline_ns},
                                     std::pair{"period", &realtime::ThreadSettings::period_ns}}) {
    if (const auto time = fields.find(name)) settings.*member = read_duration(*time, 0);
  }
  if (const std::string problem = thread_problem(settings); !problem.empty()) {
    fields.at(fields.has("priority") ? "priority" : "policy").fail("{}", problem);
  }
  if (settings.empty() && !may_be_empty) {
    fields.fail("{} has neither 'policy' nor 'cpus'; add one, or remove it", field.name());
  }
  return settings;
}

// Reads a ThreadSettings at a key; empty if the key is absent.
realtime::ThreadSettings read_thread(const Fields& around, std::string_view key) {
  const auto field = around.find(key);
  return field ? read_settings(*field, false) : realtime::ThreadSettings{};
}

// Thread names of a program, besides the two that every process has.
Threads read_threads(const Field& field, bool program) {
  std::vector<std::string_view> known{kExecutorThreads, kMiddlewareThreads};
  field.require(Kind::kMapping);
  for (const Key& key : field.value().keys) {
    if (program && std::ranges::find(known, key.text) == known.end()) known.emplace_back(key.text);
  }
  const Fields fields(field, "thread setting", known);
  if (field.value().keys.empty()) {
    fields.fail("'threads' has neither 'executors' nor 'middleware'; add one, or remove it");
  }
  Threads threads{read_thread(fields, kExecutorThreads), read_thread(fields, kMiddlewareThreads), {}};
  if (threads.middleware.policy == realtime::Policy::kDeadline)
    fields.at(kMiddlewareThreads).fail("DEADLINE is not inherited, but the middleware's threads inherit "
                                       "their policy; use FIFO or RR");
  for (const std::string_view name : std::span(known).subspan(2)) {
    const Field own = fields.at(name);
    own.require_none(thread_name_problem(name));
    threads.program[std::string(name)] = own.kind() == Kind::kNull ? realtime::ThreadSettings{} : read_settings(own, true);
  }
  return threads;
}

void read_executors(const Fields& fields, Process& process, UsualPhase& phases, ProcessOrigin& origin) {
  for (const Field& item : fields.list("executors")) {
    const Fields executor(item, "executor", {"id", "kind", "threads", "period", "thread", "phase"});
    Executor read;
    read.id = static_cast<int>(executor.at("id").integer(0, kMaxInt));
    if (const auto kind = executor.find("kind")) read.kind = kind->word("executor kind", kExecutorWords);
    if (const auto threads = executor.find("threads")) {
      read.threads = static_cast<int>(threads->integer(1, kMaxExecutorThreads));
      threads->require_none(threads_problem(read.kind, read.threads));
    }
    if (const auto period = executor.find("period")) {
      read.period_ns = read_duration(*period, kShortestPeriod);
      period->require_none(executor_period_problem(read.kind, read.period_ns));
    }
    read.thread = read_thread(executor, "thread");
    if (executor.has("phase")) phases.executors[read.id] = read_phase(executor, phases.graph);
    process.executors.push_back(std::move(read));
    origin.executors.push_back(item.position());
  }
}

void read_nodes(const Fields& fields, NodeAdder& adder, const UsualPhase& phases, Process& process,
                ProcessOrigin& origin) {
  fields.require_key("nodes");
  for (const Field& item : fields.list("nodes")) {
    const Fields node(item, "node",
                      {"name", "namespace", "executor", kPriority, "number", "publishers", "subscriptions", "clients",
                       "servers", "action_clients", "action_servers", "waitables", "timers", "reactions"});
    adder.add(process, origin, node, [&](const std::string& suffix, NodeOrigin& written) {
      return read_node(node, suffix, process, phases, adder.messages(), written);
    });
  }
  if (!fields.has("executors")) process.executors = executors_in_use(process.nodes);
}

void add_process(const Fields& fields, std::string name, NodeAdder& adder, UsualPhase phases, Draft& draft) {
  Process process;
  process.name = std::move(name);
  ProcessOrigin origin;
  origin.label = fields.document().label();
  origin.process = fields.position();
  read_program(fields, process);
  read_executors(fields, process, phases, origin);
  process.participants = static_cast<int>(fields.integer("participants", 1, kMaxParticipants, 1));
  if (const auto threads = fields.find("threads")) process.threads = read_threads(*threads, !process.program.empty());
  if (const auto lock = fields.find("lock_memory")) process.lock_memory = lock->boolean();
  read_nodes(fields, adder, phases, process, origin);
  draft.processes.push_back(std::move(process));
  draft.origins.push_back(std::move(origin));
}

std::string read_name(const Field& name, std::string_view what) {
  if (const std::string problem = file_name_problem(name.text()); !problem.empty()) {
    name.fail("{} {}", what, problem);
  }
  return name.text();
}

}  // namespace

Draft parse_perflab(const Document& document, std::string_view default_name, message::Formats& messages) {
  const Fields root(document, document.root(), "graph",
                    {"name", "processes", "nodes", "executors", "participants", "threads", "lock_memory",
                     "key_figures", "work", "phase", "serialization", "keyed", "program", "options", "ends", "limit",
                     "figures", "outcomes",                     "$schema"});
  if (const auto schema = root.find("$schema")) schema->require(Kind::kString);
  Draft draft;
  const auto name = root.find("name");
  draft.name = name ? read_name(*name, "graph") : std::string(default_name);
  if (const auto serialization = root.find("serialization"))
    draft.serialization = serialization->word("serialization", kSerializationWords);
  if (const auto keyed = root.find("keyed")) draft.keyed = keyed->boolean();
  if (const auto limit = root.find("limit")) draft.limit_ns = read_duration(*limit, kShortestPeriod);
  if (const auto figures = root.find("figures")) draft.own_figures = read_own_figures(*figures);
  if (const auto outcomes = root.find("outcomes")) draft.own_outcomes = read_own_outcomes(*outcomes);
  if (const auto work = root.find("work")) check_works(*work);
  if (const auto figures = root.find("key_figures")) draft.key_figures = read_key_figures(*figures);
  const UsualPhase phases{read_phase(root, Phase::kAligned), {}};
  NodeAdder adder(messages);
  const auto processes = root.find("processes");
  if (!processes) {
    if (!root.has("nodes")) root.fail("the graph lacks the key 'nodes' (or 'processes')");
    add_process(root, draft.name, adder, phases, draft);
    return draft;
  }
  const auto refuse_beside = [&](std::string_view key) {
    if (const auto beside = root.find(key)) {
      beside->fail("'{}' is given outside of 'processes'; move it into a process", key);
    }
  };
  refuse_beside("nodes");
  for (const std::string_view key : kProcessKeys) refuse_beside(key);
  for (const Field& item : root.list("processes")) {
    const Fields fields(item, "process",
                        {"name", "executors", "participants", "threads", "lock_memory", "program", "options", "ends",
                         "nodes"});
    add_process(fields, read_name(fields.at("name"), "process"), adder, phases, draft);
  }
  if (draft.processes.empty()) processes->fail("'processes' is empty; the graph needs at least one");
  return draft;
}

}  // namespace perflab::graph
