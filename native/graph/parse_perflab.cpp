// perflab's own format; docs/schema/graph.schema.json is its published description.
#include <fmt/format.h>

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

const std::vector<Unavailable> kLaterInProcess{{"threads", "remove it"}};
const std::vector<Unavailable> kLaterInNode{{"threads", "remove it"},
                                            {"clients", "remove it or use topics"},
                                            {"servers", "remove it or use topics"},
                                            {"services", "remove it or use topics"}};

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

Nanoseconds read_work(const Document& document, const Fields& fields) {
  const Value* work = fields.find("work");
  return work == nullptr ? 0 : read_duration(document, *work, "work", 0);
}

perflab_qos read_qos(const Document& document, const Value& value, bool publisher) {
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
  if (const Value* lifespan = fields.find("lifespan"); lifespan != nullptr && !publisher) {
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
    endpoint.pass_by = word_value(document, *pass_by, "pass_by", kPassByWords, {"loaned"});
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

// A timer is called after the topic it publishes where the file gives it no name.
std::string timer_name(std::string_view topic) {
  if (topic.starts_with("~/")) topic.remove_prefix(2);
  if (topic.starts_with('/')) topic.remove_prefix(1);
  return std::string(topic);
}

void add_publisher(const Document& document, const Value& value, Node& node, NodeOrigin& origin) {
  const Fields fields(document, value, "publisher",
                      {"topic", "type", "size", "pass_by", "qos", "period", "frequency"});
  auto publisher = read_endpoint<Publisher>(document, fields, node, true);
  publisher.size_bytes = read_size(document, fields, publisher.type);
  if (const std::optional<Nanoseconds> period = read_period(document, fields)) {
    node.timers.push_back(
        {timer_name(fields.text("topic")), *period, {node.publishers.size()}, 0, Overrun::kCatchUp});
    origin.timers.push_back(document.position(value.offset));
  }
  node.publishers.push_back(std::move(publisher));
  origin.publishers.push_back(document.position(value.offset));
}

void add_subscription(const Document& document, const Value& value, Node& node, NodeOrigin& origin) {
  const Fields fields(document, value, "subscription", {"topic", "type", "pass_by", "qos"});
  node.subscriptions.push_back(read_endpoint<Subscription>(document, fields, node, false));
  origin.subscriptions.push_back(document.position(value.offset));
}

// The topics that `key` names, one or a list; none where it is absent.
std::vector<const Value*> topics_at(const Document& document, const Fields& fields, std::string_view key) {
  const Value* value = fields.find(key);
  if (value == nullptr) return {};
  if (value->kind == Kind::kString) return {value};
  if (value->kind != Kind::kList) {
    document.fail(value->offset, fmt::format("'{}' must be a topic or a list of topics, but here is {}", key,
                                             name_of(value->kind)));
  }
  if (value->items.empty())
    document.fail(value->offset, fmt::format("'{}' names no topic; name one, or remove it", key));
  std::vector<const Value*> topics;
  for (const Value& item : value->items) {
    text_of(document, item, fmt::format("a topic in '{}'", key));
    topics.push_back(&item);
  }
  return topics;
}

// A node's publishers or subscriptions by topic.
class TopicIndex {
 public:
  template <typename Endpoints>
  TopicIndex(const Endpoints& endpoints, std::string_view what) : what_(what) {
    for (std::size_t i = 0; i < endpoints.size(); ++i) indexes_.emplace(endpoints[i].topic, i);
  }

  // Indexes of the topics that `key` names.
  [[nodiscard]] std::vector<std::size_t> at(const Document& document, const Fields& fields,
                                            std::string_view key, const Node& node) const {
    std::vector<std::size_t> indexes;
    std::unordered_set<std::size_t> named;
    for (const Value* value : topics_at(document, fields, key)) {
      const std::string problem = topic_problem(value->text);
      if (!problem.empty()) document.fail(value->offset, problem);
      const std::string topic = qualify_topic(value->text, node.node_namespace, node.name);
      const auto found = indexes_.find(topic);
      if (found == indexes_.end()) fail_unknown(document, *value, key, topic, node);
      if (!named.insert(found->second).second) {
        document.fail(value->offset, fmt::format("'{}' names {} twice; name it once", key, topic));
      }
      indexes.push_back(found->second);
    }
    return indexes;
  }

 private:
  [[noreturn]] void fail_unknown(const Document& document, const Value& value, std::string_view key,
                                 const std::string& topic, const Node& node) const {
    std::vector<std::string_view> known;
    for (const auto& [name, index] : indexes_) known.push_back(name);
    const std::string_view near = closest(topic, known);
    document.fail(value.offset,
                  fmt::format("'{}' names {}, but node {} has no {} of it; {}", key, topic, node.name, what_,
                              near.empty() ? "add one" : fmt::format("did you mean {}?", near)));
  }

  std::string_view what_;
  std::map<std::string, std::size_t> indexes_;
};

void add_timer(const Document& document, const Value& value, const TopicIndex& publishers, Node& node,
               NodeOrigin& origin) {
  const Fields fields(document, value, "timer",
                      {"name", "period", "frequency", "publish", "work", "overrun"});
  Timer timer;
  const std::optional<Nanoseconds> period = read_period(document, fields);
  if (!period) document.fail(value.offset, "the timer misses the key 'period' (or 'frequency')");
  timer.period_ns = *period;
  timer.publish = publishers.at(document, fields, "publish", node);
  timer.work_ns = read_work(document, fields);
  if (const Value* overrun = fields.find("overrun")) {
    timer.overrun = word_value(document, *overrun, "overrun", kOverrunWords);
  }
  if (fields.find("name") != nullptr) {
    timer.name = fields.text("name");
  } else if (!timer.publish.empty()) {
    timer.name = timer_name(topics_at(document, fields, "publish").front()->text);
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

void add_reaction(const Document& document, const Value& value, const TopicIndex& publishers,
                  const TopicIndex& subscriptions, Node& node, NodeOrigin& origin) {
  const Fields fields(document, value, "reaction", {"kind", "on", "publish", "work", "period"});
  Reaction reaction;
  fields.require("on");
  reaction.on = subscriptions.at(document, fields, "on", node);
  reaction.publish = publishers.at(document, fields, "publish", node);
  reaction.work_ns = read_work(document, fields);
  reaction.kind = read_reaction_kind(document, fields, reaction);
  if (const Value* period = fields.find("period")) {
    reaction.period_ns = read_duration(document, *period, "period", kShortestPeriod);
  } else if (reaction.kind == ReactionKind::kCyclic) {
    document.fail(value.offset, "the cyclic reaction misses the key 'period'");
  }
  node.reactions.push_back(std::move(reaction));
  origin.reactions.push_back(document.position(value.offset));
}

void set_frequencies(Node& node) {
  for (const Timer& timer : node.timers) {
    for (const std::size_t index : timer.publish) {
      node.publishers[index].frequency_hz = 1e9 / static_cast<double>(timer.period_ns);
    }
  }
}

Node read_node(const Document& document, const Fields& fields, std::string_view suffix, int default_executor,
               NodeOrigin& origin) {
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
  for (const Value& item : fields.list("publishers")) add_publisher(document, item, node, origin);
  for (const Value& item : fields.list("subscriptions")) add_subscription(document, item, node, origin);
  const TopicIndex publishers(node.publishers, "publisher");
  const TopicIndex subscriptions(node.subscriptions, "subscription");
  for (const Value& item : fields.list("timers")) add_timer(document, item, publishers, node, origin);
  set_frequencies(node);
  for (const Value& item : fields.list("reactions")) {
    add_reaction(document, item, publishers, subscriptions, node, origin);
  }
  return node;
}

void read_executors(const Document& document, const Fields& fields, Process& process, ProcessOrigin& origin) {
  for (const Value& item : fields.list("executors")) {
    const Fields executor(document, item, "executor", {"id", "kind"}, kLaterInProcess);
    Executor read;
    read.id = static_cast<int>(integer_of(document, executor.at("id"), "'id'", 0, kMaxInt));
    if (const Value* kind = executor.find("kind")) {
      read.kind = word_value(document, *kind, "executor kind", kExecutorWords,
                             {"events", "multi_threaded", "static_single_threaded"});
    }
    process.executors.push_back(read);
    origin.executors.push_back(document.position(item.offset));
  }
}

void read_nodes(const Document& document, const Fields& fields, NodeAdder& adder, Process& process,
                ProcessOrigin& origin) {
  const int default_executor = process.executors.empty() ? 0 : process.executors.front().id;
  fields.require("nodes");
  for (const Value& item : fields.list("nodes")) {
    const Fields node(
        document, item, "node",
        {"name", "namespace", "executor", "number", "publishers", "subscriptions", "timers", "reactions"},
        kLaterInNode);
    const Value* number = node.find("number");
    const std::int64_t copies = number == nullptr ? 1
                                                  : integer_of(document, *number, "'number'", 1,
                                                               static_cast<std::int64_t>(kMaxNodes));
    adder.add(process, origin, item.offset, static_cast<std::size_t>(copies),
              [&](std::size_t copy, NodeOrigin& written) {
                return read_node(document, node, number == nullptr ? "" : fmt::format("_{}", copy),
                                 default_executor, written);
              });
  }
  if (fields.find("executors") == nullptr) process.executors = executors_in_use(process.nodes);
}

void add_process(const Document& document, const Fields& fields, std::string name, NodeAdder& adder,
                 Draft& draft) {
  Process process;
  process.name = std::move(name);
  ProcessOrigin origin;
  origin.label = document.label();
  origin.process = document.position(fields.value().offset);
  read_executors(document, fields, process, origin);
  read_nodes(document, fields, adder, process, origin);
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
                    {"name", "processes", "nodes", "executors", "$schema"}, kLaterInProcess);
  if (const Value* schema = root.find("$schema")) text_of(document, *schema, "'$schema'");
  Draft draft;
  const Value* name = root.find("name");
  draft.name = name == nullptr ? std::string(default_name) : read_name(document, *name, "graph");
  NodeAdder adder(document);
  const Value* processes = root.find("processes");
  if (processes == nullptr) {
    if (root.find("nodes") == nullptr) {
      document.fail(document.root().offset, "the graph misses the key 'nodes' (or 'processes')");
    }
    add_process(document, root, draft.name, adder, draft);
    return draft;
  }
  for (const std::string_view key : {"nodes", "executors"}) {
    if (const Value* beside = root.find(key)) {
      document.fail(beside->offset,
                    fmt::format("'{}' stands beside 'processes'; move it into a process", key));
    }
  }
  for (const Value& item : root.list("processes")) {
    const Fields fields(document, item, "process", {"name", "executors", "nodes"}, kLaterInProcess);
    add_process(document, fields, read_name(document, fields.at("name"), "process"), adder, draft);
  }
  if (draft.processes.empty())
    document.fail(processes->offset, "'processes' is empty; the graph needs at least one");
  return draft;
}

}  // namespace perflab::graph
