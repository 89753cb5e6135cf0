#include "graph/resolved.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>

#include "graph/check.h"
#include "graph/text.h"
#include "graph/units.h"
#include "graph/vocabulary.h"

namespace perflab::graph {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kSchema = 1;

ordered_json limit_or_null(std::int64_t value) {
  return value == PERFLAB_DURATION_INFINITE ? ordered_json(nullptr) : ordered_json(value);
}

ordered_json json_of(const perflab_qos& qos) {
  ordered_json json;
  json["history"] = word_of(kHistoryWords, qos.history);
  json["depth"] = qos.depth == PERFLAB_DEPTH_UNLIMITED ? ordered_json(nullptr) : ordered_json(qos.depth);
  json["reliability"] = word_of(kReliabilityWords, qos.reliability);
  json["durability"] = word_of(kDurabilityWords, qos.durability);
  json["deadline_ns"] = limit_or_null(qos.deadline_ns);
  json["lifespan_ns"] = limit_or_null(qos.lifespan_ns);
  json["liveliness"] = word_of(kLivelinessWords, qos.liveliness);
  json["lease_duration_ns"] = limit_or_null(qos.lease_duration_ns);
  return json;
}

ordered_json json_of(PassBy pass_by) {
  return pass_by == PassBy::kUnspecified ? ordered_json(nullptr)
                                         : ordered_json(word_of(kPassByWords, pass_by));
}

ordered_json json_of(const Publisher& publisher) {
  ordered_json json;
  json["topic"] = publisher.topic;
  json["type"] = publisher.type;
  json["size_bytes"] = publisher.size_bytes;
  json["frequency_hz"] = publisher.frequency_hz;
  json["pass_by"] = json_of(publisher.pass_by);
  json["qos"] = json_of(publisher.qos);
  return json;
}

ordered_json json_of(const Subscription& subscription) {
  ordered_json json;
  json["topic"] = subscription.topic;
  json["type"] = subscription.type;
  json["pass_by"] = json_of(subscription.pass_by);
  json["qos"] = json_of(subscription.qos);
  if (subscription.number != 1) json["number"] = subscription.number;
  return json;
}

ordered_json json_of(const Client& client) {
  ordered_json json;
  json["service"] = client.service;
  json["type"] = client.type;
  json["frequency_hz"] = client.frequency_hz;
  json["qos"] = json_of(client.qos);
  return json;
}

ordered_json json_of(const Server& server) {
  ordered_json json;
  json["service"] = server.service;
  json["type"] = server.type;
  json["qos"] = json_of(server.qos);
  json["work_ns"] = server.work_ns;
  return json;
}

ordered_json json_of(const Waitable& waitable) {
  ordered_json json;
  json["name"] = waitable.name;
  json["work_ns"] = waitable.work_ns;
  return json;
}

ordered_json json_of(const Timer& timer) {
  ordered_json json;
  json["name"] = timer.name;
  json["period_ns"] = timer.period_ns;
  json["publish"] = timer.publish;
  json["request"] = timer.request;
  if (!timer.trigger.empty()) json["trigger"] = timer.trigger;
  json["work_ns"] = timer.work_ns;
  json["overrun"] = word_of(kOverrunWords, timer.overrun);
  json["phase"] = word_of(kPhaseWords, timer.phase);
  return json;
}

ordered_json json_of(const Reaction& reaction) {
  ordered_json json;
  json["kind"] = word_of(kReactionWords, reaction.kind);
  json["on"] = reaction.on;
  json["publish"] = reaction.publish;
  json["work_ns"] = reaction.work_ns;
  json["period_ns"] =
      reaction.kind == ReactionKind::kCyclic ? ordered_json(reaction.period_ns) : ordered_json(nullptr);
  if (reaction.kind == ReactionKind::kCyclic) json["phase"] = word_of(kPhaseWords, reaction.phase);
  return json;
}

ordered_json json_of(const realtime::ThreadSettings& thread) {
  if (thread.empty()) return nullptr;
  ordered_json json;
  json["policy"] =
      thread.policy ? ordered_json(word_of(kPolicyWords, *thread.policy)) : ordered_json(nullptr);
  json["priority"] = thread.priority;
  json["cpus"] = thread.cpus;
  return json;
}

ordered_json json_of(const KeyFigure& figure) {
  ordered_json json;
  json["name"] = figure.name;
  json["kind"] = word_of(kKeyFigureWords, figure.kind);
  switch (figure.kind) {
    case KeyFigureKind::kPath:
      json["from"] = figure.from;
      json["to"] = figure.to;
      json["edges"] = ordered_json::array();
      for (const KeyFigure::Edge& edge : figure.edges) {
        json["edges"].push_back({edge.publisher, edge.topic, edge.subscription});
      }
      break;
    case KeyFigureKind::kLost:
      json["topics"] = figure.topics.empty() ? ordered_json(nullptr) : ordered_json(figure.topics);
      break;
    case KeyFigureKind::kJitter:
      json["publishers"] = ordered_json::array();
      for (const KeyFigure::Source& source : figure.publishers) {
        json["publishers"].push_back(
            {{"node", source.node}, {"topic", source.topic}, {"period_ns", source.period_ns}});
      }
      break;
  }
  return json;
}

ordered_json json_of(const Executor& executor);
ordered_json json_of(const Node& node);
ordered_json json_of(const Process& process);

template <typename Items>
ordered_json list_to_json(const Items& items) {
  ordered_json list = ordered_json::array();
  for (const auto& item : items) list.push_back(json_of(item));
  return list;
}

ordered_json json_of(const Executor& executor) {
  ordered_json json;
  json["id"] = executor.id;
  json["kind"] = word_of(kExecutorWords, executor.kind);
  json["threads"] = executor.threads == 0 ? ordered_json(nullptr) : ordered_json(executor.threads);
  json["thread"] = json_of(executor.thread);
  return json;
}

ordered_json json_of(const Node& node) {
  ordered_json json;
  json["name"] = node.name;
  json["namespace"] = node.node_namespace;
  json["executor"] = node.executor;
  json["publishers"] = list_to_json(node.publishers);
  json["subscriptions"] = list_to_json(node.subscriptions);
  json["clients"] = list_to_json(node.clients);
  json["servers"] = list_to_json(node.servers);
  if (!node.waitables.empty()) json["waitables"] = list_to_json(node.waitables);
  json["timers"] = list_to_json(node.timers);
  json["reactions"] = list_to_json(node.reactions);
  if (!node.condition.empty()) json["condition"] = node.condition;
  return json;
}

ordered_json json_of(const Process& process) {
  ordered_json json;
  json["name"] = process.name;
  json["executors"] = list_to_json(process.executors);
  json["participants"] = process.participants;
  json["threads"]["executors"] = json_of(process.threads.executors);
  json["threads"]["middleware"] = json_of(process.threads.middleware);
  json["lock_memory"] = process.lock_memory;
  json["nodes"] = list_to_json(process.nodes);
  return json;
}

// A JSON value and the path to it, for messages.
class Cursor {
 public:
  Cursor(const json& value, std::string path) : value_(value), path_(std::move(path)) {}

  [[noreturn]] void fail(std::string_view problem) const {
    throw InputError(fmt::format("{}: {}", path_, problem));
  }

  [[nodiscard]] bool is_null() const { return value_.is_null(); }
  [[nodiscard]] bool has(const char* key) const {
    if (!value_.is_object()) fail("must be an object");
    return value_.contains(key);
  }
  [[nodiscard]] Cursor at(const char* key) const {
    if (!has(key)) fail(fmt::format("misses the key '{}'", key));
    return {value_.at(key), fmt::format("{}.{}", path_, key)};
  }
  // Whether the key is there and not null; for what files of older versions do not have.
  [[nodiscard]] bool gives(const char* key) const { return has(key) && !value_.at(key).is_null(); }
  [[nodiscard]] bool boolean() const {
    if (!value_.is_boolean()) fail("must be true or false");
    return value_.get<bool>();
  }
  [[nodiscard]] std::string text() const {
    if (!value_.is_string()) fail("must be a string");
    return value_.get<std::string>();
  }
  [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high) const {
    if (!value_.is_number_integer()) fail("must be a whole number");
    const bool fits =
        !value_.is_number_unsigned() ||
        value_.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::int64_t value = fits ? value_.get<std::int64_t>() : 0;
    if (!fits || value < low || value > high) fail(fmt::format("must be from {} to {}", low, high));
    return value;
  }
  [[nodiscard]] double number() const {
    if (!value_.is_number()) fail("must be a number");
    return value_.get<double>();
  }
  template <typename Words>
  [[nodiscard]] auto word(const Words& words) const {
    const auto value = value_of(words, text());
    if (!value) fail(fmt::format("{} is unknown; use {}", quote(text()), list_of(texts_of(words))));
    return *value;
  }
  template <typename Visit>
  void each(Visit visit) const {
    if (!value_.is_array()) fail("must be a list");
    for (std::size_t i = 0; i < value_.size(); ++i) visit(Cursor(value_[i], fmt::format("{}[{}]", path_, i)));
  }

 private:
  const json& value_;
  std::string path_;
};

constexpr std::int64_t kMaxInt = std::numeric_limits<std::int32_t>::max();

std::int64_t duration(const Cursor& value, std::int64_t shortest) {
  return value.integer(shortest, kLongestDuration);
}

std::int64_t limit(const Cursor& qos, const char* key) {
  if (!qos.has(key) || qos.at(key).is_null()) return PERFLAB_DURATION_INFINITE;
  return duration(qos.at(key), 1);
}

// A policy that is absent has the default of ROS 2.
perflab_qos read_qos(const Cursor& json) {
  perflab_qos qos = default_qos();
  if (json.has("history")) qos.history = json.at("history").word(kHistoryWords);
  if (json.has("depth")) {
    const Cursor depth = json.at("depth");
    qos.depth =
        depth.is_null() ? PERFLAB_DEPTH_UNLIMITED : static_cast<std::int32_t>(depth.integer(1, kMaxInt));
  }
  if (json.has("reliability")) qos.reliability = json.at("reliability").word(kReliabilityWords);
  if (json.has("durability")) qos.durability = json.at("durability").word(kDurabilityWords);
  if (json.has("liveliness")) qos.liveliness = json.at("liveliness").word(kLivelinessWords);
  qos.deadline_ns = limit(json, "deadline_ns");
  qos.lifespan_ns = limit(json, "lifespan_ns");
  qos.lease_duration_ns = limit(json, "lease_duration_ns");
  return qos;
}

PassBy read_pass_by(const Cursor& json) {
  return json.is_null() ? PassBy::kUnspecified : json.word(kPassByWords);
}

std::vector<std::size_t> read_indexes(const Cursor& json) {
  std::vector<std::size_t> indexes;
  json.each(
      [&](const Cursor& index) { indexes.push_back(static_cast<std::size_t>(index.integer(0, kMaxInt))); });
  return indexes;
}

Publisher read_publisher(const Cursor& json) {
  Publisher publisher;
  publisher.topic = json.at("topic").text();
  publisher.type = json.at("type").text();
  publisher.size_bytes =
      static_cast<std::uint32_t>(json.at("size_bytes").integer(0, std::numeric_limits<std::uint32_t>::max()));
  publisher.frequency_hz = json.at("frequency_hz").number();
  publisher.pass_by = read_pass_by(json.at("pass_by"));
  publisher.qos = read_qos(json.at("qos"));
  return publisher;
}

Subscription read_subscription(const Cursor& json) {
  Subscription subscription;
  subscription.topic = json.at("topic").text();
  subscription.type = json.at("type").text();
  subscription.pass_by = read_pass_by(json.at("pass_by"));
  subscription.qos = read_qos(json.at("qos"));
  if (json.has("number")) subscription.number = static_cast<int>(json.at("number").integer(1, kMaxInt));
  return subscription;
}

Client read_client(const Cursor& json) {
  Client client;
  client.service = json.at("service").text();
  client.type = json.at("type").text();
  client.frequency_hz = json.at("frequency_hz").number();
  client.qos = read_qos(json.at("qos"));
  return client;
}

Server read_server(const Cursor& json) {
  Server server;
  server.service = json.at("service").text();
  server.type = json.at("type").text();
  server.qos = read_qos(json.at("qos"));
  server.work_ns = duration(json.at("work_ns"), 0);
  return server;
}

Waitable read_waitable(const Cursor& json) {
  Waitable waitable;
  waitable.name = json.at("name").text();
  waitable.work_ns = duration(json.at("work_ns"), 0);
  return waitable;
}

// Of a timer or cyclic reaction; timers had no other phase before they had the key.
Phase read_phase(const Cursor& json) {
  return json.gives("phase") ? json.at("phase").word(kPhaseWords) : Phase::kAligned;
}

Timer read_timer(const Cursor& json) {
  Timer timer;
  timer.name = json.at("name").text();
  timer.period_ns = duration(json.at("period_ns"), kShortestPeriod);
  timer.publish = read_indexes(json.at("publish"));
  if (json.has("request")) timer.request = read_indexes(json.at("request"));
  if (json.gives("trigger")) timer.trigger = read_indexes(json.at("trigger"));
  timer.work_ns = duration(json.at("work_ns"), 0);
  timer.overrun = json.at("overrun").word(kOverrunWords);
  timer.phase = read_phase(json);
  return timer;
}

Reaction read_reaction(const Cursor& json) {
  Reaction reaction;
  reaction.kind = json.at("kind").word(kReactionWords);
  reaction.on = read_indexes(json.at("on"));
  reaction.publish = read_indexes(json.at("publish"));
  reaction.work_ns = duration(json.at("work_ns"), 0);
  const Cursor period = json.at("period_ns");
  reaction.period_ns = period.is_null() ? 0 : duration(period, kShortestPeriod);
  reaction.phase = read_phase(json);
  return reaction;
}

// A condition that is behind leaves out what it missed: making up for it would prolong the workload's run.
std::string read_condition(const Cursor& node) {
  const Cursor condition = node.at("condition");
  if (condition.text().empty()) condition.fail("must be the label of a condition, or null");
  node.at("timers").each([](const Cursor& timer) {
    const Cursor overrun = timer.at("overrun");
    if (overrun.word(kOverrunWords) != Overrun::kSkip) overrun.fail("must be skip in a node of a condition");
  });
  return condition.text();
}

Node read_node(const Cursor& json) {
  Node node;
  node.name = json.at("name").text();
  node.node_namespace = json.at("namespace").text();
  node.executor = static_cast<int>(json.at("executor").integer(0, kMaxInt));
  json.at("publishers").each([&](const Cursor& item) { node.publishers.push_back(read_publisher(item)); });
  json.at("subscriptions").each([&](const Cursor& item) {
    node.subscriptions.push_back(read_subscription(item));
  });
  if (json.has("clients")) {
    json.at("clients").each([&](const Cursor& item) { node.clients.push_back(read_client(item)); });
  }
  if (json.has("servers")) {
    json.at("servers").each([&](const Cursor& item) { node.servers.push_back(read_server(item)); });
  }
  if (json.gives("waitables")) {
    json.at("waitables").each([&](const Cursor& item) { node.waitables.push_back(read_waitable(item)); });
  }
  json.at("timers").each([&](const Cursor& item) { node.timers.push_back(read_timer(item)); });
  json.at("reactions").each([&](const Cursor& item) { node.reactions.push_back(read_reaction(item)); });
  if (json.gives("condition")) node.condition = read_condition(json);
  return node;
}

realtime::ThreadSettings read_thread(const Cursor& json) {
  realtime::ThreadSettings settings;
  const Cursor policy = json.at("policy");
  if (!policy.is_null()) settings.policy = policy.word(kPolicyWords);
  settings.priority = static_cast<int>(json.at("priority").integer(0, realtime::kHighestPriority));
  json.at("cpus").each(
      [&](const Cursor& cpu) { settings.cpus.push_back(static_cast<int>(cpu.integer(0, kHighestCpu))); });
  return settings;
}

Executor read_executor(const Cursor& json) {
  Executor executor;
  executor.id = static_cast<int>(json.at("id").integer(0, kMaxInt));
  executor.kind = json.at("kind").word(kExecutorWords);
  if (json.gives("threads")) {
    executor.threads = static_cast<int>(json.at("threads").integer(1, kMaxExecutorThreads));
  }
  if (json.gives("thread")) executor.thread = read_thread(json.at("thread"));
  return executor;
}

Threads read_threads(const Cursor& json) {
  Threads threads;
  if (json.gives("executors")) threads.executors = read_thread(json.at("executors"));
  if (json.gives("middleware")) threads.middleware = read_thread(json.at("middleware"));
  return threads;
}

Process read_process(const Cursor& json) {
  Process process;
  process.name = json.at("name").text();
  json.at("executors").each([&](const Cursor& item) { process.executors.push_back(read_executor(item)); });
  if (json.has("participants")) {
    process.participants = static_cast<int>(json.at("participants").integer(1, kMaxParticipants));
  }
  if (json.has("threads")) process.threads = read_threads(json.at("threads"));
  if (json.has("lock_memory")) process.lock_memory = json.at("lock_memory").boolean();
  json.at("nodes").each([&](const Cursor& item) { process.nodes.push_back(read_node(item)); });
  return process;
}

std::vector<std::string> read_texts(const Cursor& json) {
  std::vector<std::string> texts;
  json.each([&](const Cursor& text) { texts.push_back(text.text()); });
  return texts;
}

KeyFigure read_key_figure(const Cursor& json) {
  KeyFigure figure;
  figure.name = json.at("name").text();
  figure.kind = json.at("kind").word(kKeyFigureWords);
  switch (figure.kind) {
    case KeyFigureKind::kPath:
      figure.from = read_texts(json.at("from"));
      figure.to = json.at("to").text();
      json.at("edges").each([&](const Cursor& edge) {
        const std::vector<std::string> ends = read_texts(edge);
        if (ends.size() != 3) edge.fail("must be publisher, topic and subscription");
        figure.edges.push_back({ends[0], ends[1], ends[2]});
      });
      break;
    case KeyFigureKind::kLost:
      if (json.gives("topics")) figure.topics = read_texts(json.at("topics"));
      break;
    case KeyFigureKind::kJitter:
      json.at("publishers").each([&](const Cursor& source) {
        figure.publishers.push_back({source.at("node").text(), source.at("topic").text(),
                                     duration(source.at("period_ns"), kShortestPeriod)});
      });
      break;
  }
  return figure;
}

std::string path_of(const Item& item) {
  const std::string process = fmt::format("graph.processes[{}]", item.process);
  const std::string node = fmt::format("{}.nodes[{}]", process, item.node);
  switch (item.part) {
    case Part::kGraph:
      return "graph";
    case Part::kProcess:
      return process;
    case Part::kExecutor:
      return fmt::format("{}.executors[{}]", process, item.index);
    case Part::kNode:
      return node;
    case Part::kPublisher:
      return fmt::format("{}.publishers[{}]", node, item.index);
    case Part::kSubscription:
      return fmt::format("{}.subscriptions[{}]", node, item.index);
    case Part::kClient:
      return fmt::format("{}.clients[{}]", node, item.index);
    case Part::kServer:
      return fmt::format("{}.servers[{}]", node, item.index);
    case Part::kWaitable:
      return fmt::format("{}.waitables[{}]", node, item.index);
    case Part::kTimer:
      return fmt::format("{}.timers[{}]", node, item.index);
    case Part::kReaction:
      return fmt::format("{}.reactions[{}]", node, item.index);
  }
  return "graph";
}

}  // namespace

nlohmann::ordered_json graph_to_json(const Graph& graph) {
  ordered_json json;
  json["schema"] = kSchema;
  json["name"] = graph.name;
  json["processes"] = list_to_json(graph.processes);
  if (!graph.key_figures.empty()) json["key_figures"] = list_to_json(graph.key_figures);
  return json;
}

Graph graph_from_json(const nlohmann::json& value) {
  const Cursor root(value, "graph");
  const Cursor schema = root.at("schema");
  if (schema.integer(0, kMaxInt) != kSchema) schema.fail(fmt::format("must be {} for this version", kSchema));
  Graph graph;
  graph.name = root.at("name").text();
  root.at("processes").each([&](const Cursor& process) { graph.processes.push_back(read_process(process)); });
  if (root.gives("key_figures")) {
    root.at("key_figures").each([&](const Cursor& figure) {
      graph.key_figures.push_back(read_key_figure(figure));
    });
  }
  check(graph, path_of);
  return graph;
}

ordered_json thread_settings_to_json(const realtime::ThreadSettings& settings) { return json_of(settings); }

realtime::ThreadSettings thread_settings_from_json(const nlohmann::json& value, std::string_view path) {
  const Cursor json(value, std::string(path));
  if (json.is_null()) return {};
  realtime::ThreadSettings settings = read_thread(json);
  if (const std::string problem = thread_problem(settings); !problem.empty()) json.fail(problem);
  return settings;
}

Graph read_resolved(std::string_view text) {
  try {
    return graph_from_json(json::parse(text));
  } catch (const json::exception& error) {
    throw InputError(fmt::format("graph: is not valid JSON: {}", error.what()));
  }
}

}  // namespace perflab::graph
