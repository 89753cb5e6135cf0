// perflab's own format; docs/schema/graph.schema.json is its published description.
#include <fmt/format.h>

#include <array>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <unordered_set>

#include "graph/draft.h"
#include "graph/fields.h"
#include "graph/names.h"
#include "graph/text.h"
#include "graph/units.h"
#include "message/types.h"

namespace perflab::graph {
namespace {

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

// What a process has beside its name and nodes; a graph of one process has it at the top level.
constexpr std::array<std::string_view, 4> kProcessKeys{"executors", "participants", "threads", "lock_memory"};

// Runs a function of units.h and says where its error stands.
template <typename Parse>
auto with_place(const Document& document, const Value& value, std::string_view key, Parse parse) {
  try {
    return parse();
  } catch (const UnitError& error) {
    document.fail(value.offset, fmt::format("'{}': {}", key, error.what()));
  }
}

// "infinite" is PERFLAB_DURATION_INFINITE where it is allowed.
Nanoseconds read_duration(const Document& document, const Value& value, std::string_view key,
                          Nanoseconds shortest, bool may_be_infinite = false) {
  if (value.kind == Kind::kNumber) {
    document.fail(
        value.offset,
        fmt::format("'{0}': {1} has no unit; write {1}ms if milliseconds are meant (ns, us, ms or s)", key,
                    one_line(value.text.substr(0, 20))));
  }
  const std::string& text = text_of(document, value, fmt::format("'{}'", key));
  if (may_be_infinite && text == "infinite") return PERFLAB_DURATION_INFINITE;
  const Nanoseconds duration = with_place(document, value, key, [&] { return parse_duration(text); });
  if (duration < shortest) {
    document.fail(value.offset, fmt::format("'{}': {} is too short; it must be at least {}", key, text,
                                            shortest == kShortestPeriod ? "1us" : "1ns"));
  }
  return duration;
}

// The period of a mapping that may say `period` or `frequency`.
std::optional<Nanoseconds> read_period(const Document& document, const Fields& fields) {
  const Value* period = fields.find("period");
  const Value* frequency = fields.find("frequency");
  if (period != nullptr && frequency != nullptr) {
    document.fail(frequency->offset, "'frequency' stands beside 'period'; keep one of them");
  }
  if (period != nullptr) return read_duration(document, *period, "period", kShortestPeriod);
  if (frequency == nullptr) return std::nullopt;
  return with_place(document, *frequency, "frequency", [&] {
    if (frequency->kind == Kind::kNumber) return period_of(number_of(document, *frequency, "'frequency'"));
    return period_of(parse_frequency(text_of(document, *frequency, "'frequency'")));
  });
}

// That of a timer: its own, or else that of its executor, or else that of the graph.
Phase read_phase(const Document& document, const Fields& fields, Phase otherwise) {
  const Value* phase = fields.find("phase");
  return phase == nullptr ? otherwise : word_value(document, *phase, "phase", kPhaseWords);
}

// What the timers of a process have that say nothing of it.
struct UsualPhase {
  Phase graph = Phase::kAligned;
  std::map<int, Phase> executors;  // by id

  [[nodiscard]] Phase of(int executor) const {
    const auto found = executors.find(executor);
    return found == executors.end() ? graph : found->second;
  }
};

// A publisher or client without a period has no timer.
void refuse_lone_phase(const Document& document, const Fields& fields, std::string_view what) {
  if (const Value* phase = fields.find("phase")) {
    document.fail(phase->offset,
                  fmt::format("'phase' is that of a timer, and the {} has none without 'period' or "
                              "'frequency'; remove it",
                              what));
  }
}

Nanoseconds read_work(const Document& document, const Fields& fields) {
  const Value* work = fields.find("work");
  return work == nullptr ? 0 : read_duration(document, *work, "work", 0);
}

// `writer` where the end writes messages, which can have a lifespan.
perflab_qos read_qos(const Document& document, const Value& value, bool writer) {
  const Fields fields(document, value, "qos",
                      {"history", "depth", "reliability", "durability", "deadline", "lifespan", "liveliness",
                       "lease_duration"});
  perflab_qos qos = default_qos();
  const auto word = [&](std::string_view key, const auto& words, auto& policy) {
    if (const Value* found = fields.find(key)) policy = word_value(document, *found, key, words);
  };
  const auto limit = [&](std::string_view key, std::int64_t& policy) {
    if (const Value* found = fields.find(key)) policy = read_duration(document, *found, key, 1, true);
  };
  word("history", kHistoryWords, qos.history);
  word("reliability", kReliabilityWords, qos.reliability);
  word("durability", kDurabilityWords, qos.durability);
  word("liveliness", kLivelinessWords, qos.liveliness);
  limit("deadline", qos.deadline_ns);
  limit("lease_duration", qos.lease_duration_ns);
  if (const Value* lifespan = fields.find("lifespan"); lifespan != nullptr && !writer) {
    document.fail(lifespan->offset, "'lifespan' is a policy of publishers; remove it from the subscription");
  }
  limit("lifespan", qos.lifespan_ns);
  const Value* depth = fields.find("depth");
  if (qos.history == PERFLAB_KEEP_ALL) {
    if (depth != nullptr)
      document.fail(depth->offset, "'depth' has no meaning with keep_all; remove one of them");
    qos.depth = PERFLAB_DEPTH_UNLIMITED;
  } else if (depth != nullptr) {
    qos.depth = static_cast<std::int32_t>(integer_of(document, *depth, "'depth'", 1, kMaxInt));
  }
  return qos;
}

// What publishers and subscriptions have in common.
template <typename Endpoint>
Endpoint read_endpoint(const Document& document, const Fields& fields, const Node& node, bool publisher) {
  Endpoint endpoint;
  const std::string& topic = fields.text("topic");
  const std::size_t topic_offset = fields.at("topic").offset;
  if (const std::string problem = topic_problem(topic); !problem.empty())
    document.fail(topic_offset, problem);
  endpoint.topic = qualify_topic(topic, node.node_namespace, node.name);
  if (const std::string problem = qualified_topic_problem(endpoint.topic); !problem.empty()) {
    document.fail(topic_offset, problem);
  }
  endpoint.type = fields.text("type");
  if (const std::string problem = type_problem(endpoint.type); !problem.empty()) {
    document.fail(fields.at("type").offset, problem);
  }
  if (const Value* pass_by = fields.find("pass_by")) {
    endpoint.pass_by = word_value(document, *pass_by, "pass_by", kPassByWords);
    if (endpoint.pass_by == PassBy::kLoaned) {
      const std::string problem = publisher ? loan_problem(endpoint.type) : std::string(kLoanedSubscription);
      if (!problem.empty()) document.fail(pass_by->offset, problem);
    }
  }
  if (const Value* qos = fields.find("qos")) endpoint.qos = read_qos(document, *qos, publisher);
  return endpoint;
}

std::uint32_t read_size(const Document& document, const Fields& fields, const std::string& type) {
  const message::MessageType* known = message::find_type(type);
  const Value* value = fields.find("size");
  if (value == nullptr) {
    if (known->variable) {
      document.fail(fields.value().offset,
                    fmt::format("the publisher misses the key 'size', which {} needs", type));
    }
    return known->payload_bytes;
  }
  const std::uint32_t size =
      value->kind == Kind::kNumber
          ? static_cast<std::uint32_t>(
                integer_of(document, *value, "'size'", 0, std::numeric_limits<std::uint32_t>::max()))
          : with_place(document, *value, "size",
                       [&] { return parse_size(text_of(document, *value, "'size'")); });
  if (const std::string problem = size_problem(type, size); !problem.empty())
    document.fail(value->offset, problem);
  return size;
}

void add_publisher(const Document& document, const Value& value, Phase usual, Node& node,
                   NodeOrigin& origin) {
  const Fields fields(document, value, "publisher",
                      {"topic", "type", "size", "pass_by", "qos", "period", "frequency", "phase"});
  auto publisher = read_endpoint<Publisher>(document, fields, node, true);
  publisher.size_bytes = read_size(document, fields, publisher.type);
  if (const std::optional<Nanoseconds> period = read_period(document, fields)) {
    node.timers.push_back(publishing_timer(fields.text("topic"), *period, node.publishers.size()));
    node.timers.back().phase = read_phase(document, fields, usual);
    origin.timers.push_back(document.position(value.offset));
  } else {
    refuse_lone_phase(document, fields, "publisher");
  }
  node.publishers.push_back(std::move(publisher));
  origin.publishers.push_back(document.position(value.offset));
}

void add_subscription(const Document& document, const Value& value, Node& node, NodeOrigin& origin) {
  const Fields fields(document, value, "subscription", {"topic", "type", "pass_by", "qos"});
  node.subscriptions.push_back(read_endpoint<Subscription>(document, fields, node, false));
  origin.subscriptions.push_back(document.position(value.offset));
}

// What clients and servers have in common.
template <typename End>
End read_service_end(const Document& document, const Fields& fields, const Node& node) {
  End end;
  const std::string& service = fields.text("service");
  const std::size_t service_offset = fields.at("service").offset;
  if (const std::string problem = service_problem(service); !problem.empty()) {
    document.fail(service_offset, problem);
  }
  end.service = qualify_topic(service, node.node_namespace, node.name);
  if (const std::string problem = qualified_service_problem(end.service); !problem.empty()) {
    document.fail(service_offset, problem);
  }
  end.type = fields.text("type");
  if (const std::string problem = service_type_problem(end.type); !problem.empty()) {
    document.fail(fields.at("type").offset, problem);
  }
  if (const Value* qos = fields.find("qos")) end.qos = read_qos(document, *qos, true);
  return end;
}

void add_client(const Document& document, const Value& value, Phase usual, Node& node, NodeOrigin& origin) {
  const Fields fields(document, value, "client", {"service", "type", "qos", "period", "frequency", "phase"});
  auto client = read_service_end<Client>(document, fields, node);
  if (const std::optional<Nanoseconds> period = read_period(document, fields)) {
    node.timers.push_back(requesting_timer(fields.text("service"), *period, node.clients.size()));
    node.timers.back().phase = read_phase(document, fields, usual);
    origin.timers.push_back(document.position(value.offset));
  } else {
    refuse_lone_phase(document, fields, "client");
  }
  node.clients.push_back(std::move(client));
  origin.clients.push_back(document.position(value.offset));
}

void add_server(const Document& document, const Value& value, Node& node, NodeOrigin& origin) {
  const Fields fields(document, value, "server", {"service", "type", "qos", "work"});
  auto server = read_service_end<Server>(document, fields, node);
  server.work_ns = read_work(document, fields);
  node.servers.push_back(std::move(server));
  origin.servers.push_back(document.position(value.offset));
}

// With `number` that many, named and triggered alike.
void add_waitables(const Document& document, const Value& value, Phase usual, Node& node,
                   NodeOrigin& origin) {
  const Fields fields(document, value, "waitable",
                      {"name", "number", "work", "period", "frequency", "phase"});
  Waitable waitable{.name = fields.text("name"), .work_ns = read_work(document, fields)};
  const std::optional<Nanoseconds> period = read_period(document, fields);
  if (!period) refuse_lone_phase(document, fields, "waitable");
  const Phase phase = read_phase(document, fields, usual);
  const Value* number = fields.find("number");
  const std::int64_t copies = number == nullptr ? 1
                                                : integer_of(document, *number, "'number'", 1,
                                                             static_cast<std::int64_t>(kMaxParts));
  if (node.waitables.size() + static_cast<std::size_t>(copies) > kMaxParts)
    document.fail(value.offset, fmt::format("the graph has more than {} {}", kMaxParts, kPartWords));
  const std::string name = waitable.name;
  for (std::int64_t copy = 1; copy <= copies; ++copy) {
    if (number != nullptr) waitable.name = fmt::format("{}_{}", name, copy);
    if (period) {
      node.timers.push_back(triggering_timer(waitable.name, *period, node.waitables.size()));
      node.timers.back().phase = phase;
      origin.timers.push_back(document.position(value.offset));
    }
    node.waitables.push_back(waitable);
    origin.waitables.push_back(document.position(value.offset));
  }
}

// The topics (or services, waitables: `what`) that `key` names, one or a list; none where it is absent.
std::vector<const Value*> names_at(const Document& document, const Fields& fields, std::string_view key,
                                   std::string_view what) {
  const Value* value = fields.find(key);
  if (value == nullptr) return {};
  if (value->kind == Kind::kString) return {value};
  if (value->kind != Kind::kList) {
    document.fail(value->offset, fmt::format("'{0}' must be a {1} or a list of {1}s, but here is {2}", key,
                                             what, name_of(value->kind)));
  }
  if (value->items.empty())
    document.fail(value->offset, fmt::format("'{}' names no {}; name one, or remove it", key, what));
  std::vector<const Value*> names;
  for (const Value& item : value->items) {
    text_of(document, item, fmt::format("a {} in '{}'", what, key));
    names.push_back(&item);
  }
  return names;
}

// A node's publishers or subscriptions by topic, its clients by service, or its waitables by name.
class NameIndex {
 public:
  // `name` is the member to go by, `what` the word for it ("topic"), `end` those for what a node lacks that
  // has none of that name ("publisher of it").
  template <typename Ends, typename Name>
  NameIndex(const Ends& ends, Name name, std::string_view what, std::string_view end)
      : what_(what), end_(end) {
    for (std::size_t i = 0; i < ends.size(); ++i) indexes_.emplace(ends[i].*name, i);
  }

  // Indexes of the names at `key`.
  [[nodiscard]] std::vector<std::size_t> at(const Document& document, const Fields& fields,
                                            std::string_view key, const Node& node) const {
    std::vector<std::size_t> indexes;
    std::unordered_set<std::size_t> named;
    for (const Value* value : names_at(document, fields, key, what_)) {
      if (const std::string problem = problem_of(value->text); !problem.empty())
        document.fail(value->offset, problem);
      const std::string name = what_ == "waitable"
                                   ? value->text
                                   : qualify_topic(value->text, node.node_namespace, node.name);
      const auto found = indexes_.find(name);
      if (found == indexes_.end()) fail_unknown(document, *value, key, name, node);
      if (!named.insert(found->second).second) {
        document.fail(value->offset, fmt::format("'{}' names {} twice; name it once", key, name));
      }
      indexes.push_back(found->second);
    }
    return indexes;
  }

 private:
  [[nodiscard]] std::string problem_of(const std::string& written) const {
    if (what_ == "waitable") return waitable_name_problem(written);
    return what_ == "topic" ? topic_problem(written) : service_problem(written);
  }
  [[noreturn]] void fail_unknown(const Document& document, const Value& value, std::string_view key,
                                 const std::string& wanted, const Node& node) const {
    std::vector<std::string_view> known;
    for (const auto& [name, index] : indexes_) known.push_back(name);
    const std::string_view near = closest(wanted, known);
    document.fail(value.offset,
                  fmt::format("'{}' names {}, but node {} has no {}; {}", key, wanted, node.name, end_,
                              near.empty() ? "add one" : fmt::format("did you mean {}?", near)));
  }

  std::string_view what_;
  std::string_view end_;
  std::map<std::string, std::size_t> indexes_;
};

// What a timer may act on, of its node.
struct TimerEnds {
  NameIndex publishers;
  NameIndex clients;
  NameIndex waitables;
};

void add_timer(const Document& document, const Value& value, const TimerEnds& ends, Phase usual, Node& node,
               NodeOrigin& origin) {
  const Fields fields(
      document, value, "timer",
      {"name", "period", "frequency", "publish", "request", "trigger", "work", "overrun", "phase"});
  Timer timer;
  const std::optional<Nanoseconds> period = read_period(document, fields);
  if (!period) document.fail(value.offset, "the timer misses the key 'period' (or 'frequency')");
  timer.period_ns = *period;
  timer.publish = ends.publishers.at(document, fields, "publish", node);
  timer.request = ends.clients.at(document, fields, "request", node);
  timer.trigger = ends.waitables.at(document, fields, "trigger", node);
  timer.work_ns = read_work(document, fields);
  // Of a generated graph a timer may only tick, to show what that costs; a file that says so forgot
  // something.
  if (timer.publish.empty() && timer.request.empty() && timer.trigger.empty() && timer.work_ns == 0) {
    document.fail(value.offset, "the timer does nothing; give it `publish`, `request`, `trigger` or `work`");
  }
  if (const Value* overrun = fields.find("overrun")) {
    timer.overrun = word_value(document, *overrun, "overrun", kOverrunWords);
  }
  timer.phase = read_phase(document, fields, usual);
  if (fields.find("name") != nullptr) {
    timer.name = fields.text("name");
  } else if (!timer.publish.empty()) {
    timer.name = timer_name(names_at(document, fields, "publish", "topic").front()->text);
  } else if (!timer.request.empty()) {
    timer.name = timer_name(names_at(document, fields, "request", "service").front()->text);
  } else if (!timer.trigger.empty()) {
    timer.name = names_at(document, fields, "trigger", "waitable").front()->text;
  } else {
    timer.name = fmt::format("timer_{}", node.timers.size() + 1);
  }
  node.timers.push_back(std::move(timer));
  origin.timers.push_back(document.position(value.offset));
}

ReactionKind read_reaction_kind(const Document& document, const Fields& fields, const Reaction& reaction) {
  if (const Value* kind = fields.find("kind")) return word_value(document, *kind, "kind", kReactionWords);
  if (fields.find("period") != nullptr) return ReactionKind::kCyclic;
  if (reaction.publish.empty()) return ReactionKind::kSink;
  if (reaction.on.size() == 1) return ReactionKind::kTransform;
  document.fail(
      fields.value().offset,
      "the reaction has several topics in 'on' and no 'kind'; say transform (each message) or fusion (all "
      "together)");
}

// `work` of the whole file: that of reactions which do not say theirs, by their kinds.
void check_works(const Document& document, const Value& value) {
  const Fields works(document, value, "work", texts_of(kReactionWords));
  for (const std::string_view kind : texts_of(kReactionWords)) {
    if (const Value* work = works.find(kind)) read_duration(document, *work, kind, 0);
  }
}

Nanoseconds usual_work(const Document& document, ReactionKind kind) {
  const Value* works = document.root().find("work");
  const std::string_view word = word_of(kReactionWords, kind);
  const Value* work = works == nullptr ? nullptr : works->find(word);
  return work == nullptr ? 0 : read_duration(document, *work, word, 0);
}

void add_reaction(const Document& document, const Value& value, const NameIndex& publishers,
                  const NameIndex& subscriptions, Phase usual, Node& node, NodeOrigin& origin) {
  const Fields fields(document, value, "reaction", {"kind", "on", "publish", "work", "period", "phase"});
  Reaction reaction;
  fields.require("on");
  reaction.on = subscriptions.at(document, fields, "on", node);
  reaction.publish = publishers.at(document, fields, "publish", node);
  reaction.kind = read_reaction_kind(document, fields, reaction);
  reaction.work_ns =
      fields.find("work") != nullptr ? read_work(document, fields) : usual_work(document, reaction.kind);
  if (const Value* period = fields.find("period")) {
    reaction.period_ns = read_duration(document, *period, "period", kShortestPeriod);
  } else if (reaction.kind == ReactionKind::kCyclic) {
    document.fail(value.offset, "the cyclic reaction misses the key 'period'");
  }
  if (reaction.kind == ReactionKind::kCyclic) {
    reaction.phase = read_phase(document, fields, usual);
  } else if (const Value* phase = fields.find("phase")) {
    document.fail(phase->offset, "'phase' is that of a timer, and only a cyclic reaction has one; remove it");
  }
  node.reactions.push_back(std::move(reaction));
  origin.reactions.push_back(document.position(value.offset));
}

void set_frequencies(Node& node) {
  for (const Timer& timer : node.timers) {
    const double frequency_hz = 1e9 / static_cast<double>(timer.period_ns);
    for (const std::size_t index : timer.publish) node.publishers[index].frequency_hz = frequency_hz;
    for (const std::size_t index : timer.request) node.clients[index].frequency_hz = frequency_hz;
  }
}

Node read_node(const Document& document, const Fields& fields, std::string_view suffix, int default_executor,
               const UsualPhase& phases, NodeOrigin& origin) {
  Node node;
  node.name = fields.text("name") + std::string(suffix);
  if (const std::string problem = node_name_problem(node.name); !problem.empty()) {
    document.fail(fields.at("name").offset, problem);
  }
  if (const Value* given = fields.find("namespace")) {
    node.node_namespace = qualify_namespace(text_of(document, *given, "'namespace'"));
    const std::string problem = namespace_problem(node.node_namespace);
    if (!problem.empty()) document.fail(given->offset, problem);
  }
  const Value* executor = fields.find("executor");
  node.executor = executor == nullptr
                      ? default_executor
                      : static_cast<int>(integer_of(document, *executor, "'executor'", 0, kMaxInt));
  const Phase usual = phases.of(node.executor);
  for (const Value& item : fields.list("publishers")) add_publisher(document, item, usual, node, origin);
  for (const Value& item : fields.list("subscriptions")) add_subscription(document, item, node, origin);
  for (const Value& item : fields.list("clients")) add_client(document, item, usual, node, origin);
  for (const Value& item : fields.list("waitables")) add_waitables(document, item, usual, node, origin);
  separate_timer_names(node);
  for (const Value& item : fields.list("servers")) add_server(document, item, node, origin);
  const TimerEnds ends{{node.publishers, &Publisher::topic, "topic", "publisher of it"},
                       {node.clients, &Client::service, "service", "client of it"},
                       {node.waitables, &Waitable::name, "waitable", "waitable of that name"}};
  const NameIndex subscriptions(node.subscriptions, &Subscription::topic, "topic", "subscription of it");
  for (const Value& item : fields.list("timers")) add_timer(document, item, ends, usual, node, origin);
  set_frequencies(node);
  for (const Value& item : fields.list("reactions")) {
    add_reaction(document, item, ends.publishers, subscriptions, usual, node, origin);
  }
  return node;
}

// A list of numbers, one number, or a text like "0-2,5".
std::vector<int> read_cpus(const Document& document, const Value& value) {
  const auto number = [&](const Value& cpu) {
    return static_cast<int>(integer_of(document, cpu, "a CPU in 'cpus'", 0, kHighestCpu));
  };
  if (value.kind == Kind::kNumber) return {number(value)};
  if (value.kind == Kind::kString) {
    return with_place(document, value, "cpus", [&] { return parse_cpus(value.text); });
  }
  if (value.kind != Kind::kList) {
    document.fail(
        value.offset,
        fmt::format("'cpus' must be a list of numbers, a number, or a text like 0-2,5, but here is {}",
                    name_of(value.kind)));
  }
  if (value.items.empty()) document.fail(value.offset, "'cpus' names no CPU; name one, or remove it");
  std::vector<int> cpus;
  for (const Value& item : value.items) cpus.push_back(number(item));
  return with_place(document, value, "cpus", [&] { return ordered_cpus(std::move(cpus)); });
}

// `key` is where the settings stand: "middleware".
realtime::ThreadSettings read_thread(const Document& document, const Value& value, std::string_view key) {
  const Fields fields(document, value, "thread setting", {"policy", "priority", "cpus"});
  realtime::ThreadSettings settings;
  const Value* policy = fields.find("policy");
  if (policy != nullptr) settings.policy = word_value(document, *policy, "policy", kPolicyWords);
  const Value* priority = fields.find("priority");
  if (priority != nullptr) {
    settings.priority =
        static_cast<int>(integer_of(document, *priority, "'priority'", 0, realtime::kHighestPriority));
  }
  if (const Value* cpus = fields.find("cpus")) settings.cpus = read_cpus(document, *cpus);
  if (const std::string problem = thread_problem(settings); !problem.empty()) {
    document.fail((priority != nullptr ? priority : policy)->offset, problem);
  }
  if (settings.empty()) {
    document.fail(value.offset,
                  fmt::format("'{}' has neither 'policy' nor 'cpus'; add one, or remove it", key));
  }
  return settings;
}

Threads read_threads(const Document& document, const Value& value) {
  const Fields fields(document, value, "thread setting", {"executors", "middleware"});
  Threads threads;
  const Value* executors = fields.find("executors");
  const Value* middleware = fields.find("middleware");
  if (executors != nullptr) threads.executors = read_thread(document, *executors, "executors");
  if (middleware != nullptr) threads.middleware = read_thread(document, *middleware, "middleware");
  if (executors == nullptr && middleware == nullptr) {
    document.fail(value.offset, "'threads' has neither 'executors' nor 'middleware'; add one, or remove it");
  }
  return threads;
}

void read_executors(const Document& document, const Fields& fields, Process& process, UsualPhase& phases,
                    ProcessOrigin& origin) {
  for (const Value& item : fields.list("executors")) {
    const Fields executor(document, item, "executor", {"id", "kind", "threads", "thread", "phase"});
    Executor read;
    read.id = static_cast<int>(integer_of(document, executor.at("id"), "'id'", 0, kMaxInt));
    if (const Value* kind = executor.find("kind")) {
      read.kind = word_value(document, *kind, "executor kind", kExecutorWords);
    }
    if (const Value* threads = executor.find("threads")) {
      read.threads = static_cast<int>(integer_of(document, *threads, "'threads'", 1, kMaxExecutorThreads));
      const std::string problem = threads_problem(read.kind, read.threads);
      if (!problem.empty()) document.fail(threads->offset, problem);
    }
    if (const Value* thread = executor.find("thread")) read.thread = read_thread(document, *thread, "thread");
    if (executor.find("phase") != nullptr) {
      phases.executors[read.id] = read_phase(document, executor, phases.graph);
    }
    process.executors.push_back(std::move(read));
    origin.executors.push_back(document.position(item.offset));
  }
}

void read_nodes(const Document& document, const Fields& fields, NodeAdder& adder, const UsualPhase& phases,
                Process& process, ProcessOrigin& origin) {
  const int default_executor = process.executors.empty() ? 0 : process.executors.front().id;
  fields.require("nodes");
  for (const Value& item : fields.list("nodes")) {
    const Fields node(document, item, "node",
                      {"name", "namespace", "executor", "number", "publishers", "subscriptions", "clients",
                       "servers", "waitables", "timers", "reactions"});
    const Value* number = node.find("number");
    const std::int64_t copies = number == nullptr ? 1
                                                  : integer_of(document, *number, "'number'", 1,
                                                               static_cast<std::int64_t>(kMaxNodes));
    adder.add(process, origin, item.offset, static_cast<std::size_t>(copies),
              [&](std::size_t copy, NodeOrigin& written) {
                return read_node(document, node, number == nullptr ? "" : fmt::format("_{}", copy),
                                 default_executor, phases, written);
              });
  }
  if (fields.find("executors") == nullptr) process.executors = executors_in_use(process.nodes);
}

void add_process(const Document& document, const Fields& fields, std::string name, NodeAdder& adder,
                 UsualPhase phases, Draft& draft) {
  Process process;
  process.name = std::move(name);
  ProcessOrigin origin;
  origin.label = document.label();
  origin.process = document.position(fields.value().offset);
  read_executors(document, fields, process, phases, origin);
  if (const Value* participants = fields.find("participants")) {
    process.participants =
        static_cast<int>(integer_of(document, *participants, "'participants'", 1, kMaxParticipants));
  }
  if (const Value* threads = fields.find("threads")) process.threads = read_threads(document, *threads);
  if (const Value* lock = fields.find("lock_memory")) {
    process.lock_memory = boolean_of(document, *lock, "'lock_memory'");
  }
  read_nodes(document, fields, adder, phases, process, origin);
  draft.processes.push_back(std::move(process));
  draft.origins.push_back(std::move(origin));
}

std::string read_name(const Document& document, const Value& name, std::string_view what) {
  const std::string& text = text_of(document, name, "'name'");
  if (const std::string problem = file_name_problem(text); !problem.empty()) {
    document.fail(name.offset, fmt::format("{} {}", what, problem));
  }
  return text;
}

}  // namespace

Draft parse_perflab(const Document& document, std::string_view default_name) {
  const Fields root(document, document.root(), "graph",
                    {"name", "processes", "nodes", "executors", "participants", "threads", "lock_memory",
                     "key_figures", "work", "phase", "$schema"});
  if (const Value* schema = root.find("$schema")) text_of(document, *schema, "'$schema'");
  Draft draft;
  const Value* name = root.find("name");
  draft.name = name == nullptr ? std::string(default_name) : read_name(document, *name, "graph");
  if (const Value* work = root.find("work")) check_works(document, *work);
  if (const Value* figures = root.find("key_figures")) {
    draft.key_figures = read_key_figures(document, *figures);
  }
  const UsualPhase phases{read_phase(document, root, Phase::kAligned), {}};
  NodeAdder adder(document);
  const Value* processes = root.find("processes");
  if (processes == nullptr) {
    if (root.find("nodes") == nullptr) {
      document.fail(document.root().offset, "the graph misses the key 'nodes' (or 'processes')");
    }
    add_process(document, root, draft.name, adder, phases, draft);
    return draft;
  }
  const auto refuse_beside = [&](std::string_view key) {
    if (const Value* beside = root.find(key)) {
      document.fail(beside->offset,
                    fmt::format("'{}' stands beside 'processes'; move it into a process", key));
    }
  };
  refuse_beside("nodes");
  for (const std::string_view key : kProcessKeys) refuse_beside(key);
  for (const Value& item : root.list("processes")) {
    const Fields fields(document, item, "process",
                        {"name", "executors", "participants", "threads", "lock_memory", "nodes"});
    add_process(document, fields, read_name(document, fields.at("name"), "process"), adder, phases, draft);
  }
  if (draft.processes.empty())
    document.fail(processes->offset, "'processes' is empty; the graph needs at least one");
  return draft;
}

}  // namespace perflab::graph
