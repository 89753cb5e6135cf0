// The topology files of irobot_benchmark, read as that program reads them.
#include <fmt/format.h>

#include <cstdint>
#include <limits>

#include "graph/draft.h"
#include "graph/fields.h"
#include "graph/names.h"
#include "graph/text.h"
#include "graph/units.h"
#include "message/types.h"

namespace perflab::graph {
namespace {

enum class End { kPublisher, kSubscription, kService };

constexpr std::array kIrobotPassByWords{Word{"unique_ptr", PassBy::kUnique},
                                        Word{"shared_ptr", PassBy::kShared},
                                        Word{"loaned_msg", PassBy::kLoaned}};

const std::vector<std::string_view> kQosKeys{
    "qos_history",    "qos_depth",      "qos_reliability",
    "qos_durability", "qos_liveliness", "qos_avoid_ros_namespace_conventions",
    "qos_deadline",   "qos_lifespan",   "qos_liveliness_lease_duration"};

std::vector<std::string_view> with_qos(std::vector<std::string_view> keys) {
  keys.insert(keys.end(), kQosKeys.begin(), kQosKeys.end());
  return keys;
}

// A QoS value, `system_default` standing for what the DDS specification has as its default.
template <typename Words, typename Enumerator>
void read_policy(const Document& document, const Fields& fields, std::string_view key, const Words& words,
                 Enumerator dds_default, Enumerator& policy) {
  const Value* value = fields.find(key);
  if (value == nullptr) return;
  const std::string& text = text_of(document, *value, fmt::format("'{}'", key));
  if (text == "system_default") {
    policy = dds_default;
    return;
  }
  const auto found = value_of(words, text);
  if (!found) {
    std::vector<std::string_view> texts = texts_of(words);
    texts.push_back("system_default");
    fail_word(document, *value, key, texts);
  }
  policy = *found;
}

// irobot_benchmark knows no other value than "default", which is no limit.
void require_default(const Document& document, const Fields& fields, std::string_view key) {
  const Value* value = fields.find(key);
  if (value == nullptr) return;
  const std::string& text = text_of(document, *value, fmt::format("'{}'", key));
  if (text != "default") fail_word(document, *value, key, {"default"});
}

void require_ros_conventions(const Document& document, const Fields& fields) {
  constexpr std::string_view kKey = "qos_avoid_ros_namespace_conventions";
  const Value* value = fields.find(kKey);
  if (value == nullptr) return;
  const std::string& text = text_of(document, *value, fmt::format("'{}'", kKey));
  if (text == "true") {
    document.fail(value->offset,
                  fmt::format("`{}` is not available in this version; remove it or write \"false\"", kKey));
  }
  if (text != "false") fail_word(document, *value, kKey, {"true", "false"});
}

perflab_qos read_qos(const Document& document, const Fields& fields, End end) {
  perflab_qos qos = default_qos();
  read_policy(document, fields, "qos_history", kHistoryWords, PERFLAB_KEEP_LAST, qos.history);
  if (const Value* depth = fields.find("qos_depth")) {
    qos.depth = static_cast<std::int32_t>(
        integer_of(document, *depth, "'qos_depth'", 1, std::numeric_limits<std::int32_t>::max()));
  }
  if (qos.history == PERFLAB_KEEP_ALL) qos.depth = PERFLAB_DEPTH_UNLIMITED;
  // DDS 1.4, 2.2.3: writers are reliable by default, readers best-effort. A service has both; it is as its
  // writer.
  read_policy(document, fields, "qos_reliability", kReliabilityWords,
              end == End::kSubscription ? PERFLAB_BEST_EFFORT : PERFLAB_RELIABLE, qos.reliability);
  read_policy(document, fields, "qos_durability", kDurabilityWords, PERFLAB_VOLATILE, qos.durability);
  read_policy(document, fields, "qos_liveliness", kLivelinessWords, PERFLAB_AUTOMATIC, qos.liveliness);
  require_default(document, fields, "qos_deadline");
  require_default(document, fields, "qos_lifespan");
  require_default(document, fields, "qos_liveliness_lease_duration");
  require_ros_conventions(document, fields);
  return qos;
}

// "stamped_int64" or "irobot_interfaces_plugin::stamped_int64"; `find_problem` says whether such a type will
// do.
template <typename FindProblem>
std::string read_type(const Document& document, const Fields& fields, std::string_view key,
                      FindProblem find_problem) {
  const Value& value = fields.at(key);
  std::string_view type = text_of(document, value, fmt::format("'{}'", key));
  if (const std::size_t colons = type.find("::"); colons != std::string_view::npos) {
    const std::string_view plugin = type.substr(0, colons);
    if (plugin != "irobot_interfaces_plugin" && plugin != "perflab_msgs") {
      document.fail(value.offset,
                    fmt::format("message plugin {} is unknown; use irobot_interfaces_plugin, whose "
                                "messages perflab has",
                                quote(plugin)));
    }
    type.remove_prefix(colons + 2);
  }
  if (const std::string problem = find_problem(type); !problem.empty()) document.fail(value.offset, problem);
  return std::string(type);
}

std::string read_topic(const Document& document, const Fields& fields, const Node& node) {
  const Value& value = fields.at("topic_name");
  const std::string& topic = text_of(document, value, "'topic_name'");
  if (const std::string problem = topic_problem(topic); !problem.empty())
    document.fail(value.offset, problem);
  return qualify_topic(topic, node.node_namespace, node.name);
}

PassBy read_pass_by(const Document& document, const Fields& fields, PassBy fallback) {
  const Value* value = fields.find("msg_pass_by");
  return value == nullptr ? fallback : word_value(document, *value, "msg_pass_by", kIrobotPassByWords);
}

// In single precision and cut to whole microseconds, as irobot_benchmark computes it: 15 Hz is 66'666 us.
// `what` is what has the period: "publisher".
Nanoseconds read_period(const Document& document, const Fields& fields, std::string_view what) {
  const Value* frequency = fields.find("freq_hz");
  const Value* period = fields.find("period_ms");
  if (frequency == nullptr && period == nullptr) {
    document.fail(fields.value().offset,
                  fmt::format("the {} misses the key 'period_ms' (or 'freq_hz')", what));
  }
  double period_ms = 0.0;
  if (period != nullptr) period_ms = number_of(document, *period, "'period_ms'");
  const Value& written = frequency != nullptr ? *frequency : *period;
  if (frequency != nullptr) {
    const double hertz = number_of(document, written, "'freq_hz'");
    if (hertz <= 0.0) document.fail(written.offset, "'freq_hz' must be more than 0");
    period_ms = 1'000.0 / hertz;
  }
  constexpr double kLongestMs = static_cast<double>(kLongestDuration) / 1e6;
  if (!(period_ms >= 0.001 && period_ms <= kLongestMs)) {
    document.fail(written.offset,
                  fmt::format("the period is {} ms; it must be at least 0.001 ms and at most one day "
                              "(86400000 ms)",
                              period_ms));
  }
  const auto single = frequency != nullptr
                          ? 1000.0F / static_cast<float>(number_of(document, written, "'freq_hz'"))
                          : static_cast<float>(period_ms);
  // 0.001 ms may fall short of a microsecond in single precision.
  return std::max<Nanoseconds>(static_cast<Nanoseconds>(single * 1000.0F) * 1'000, kShortestPeriod);
}

std::uint32_t read_size(const Document& document, const Fields& fields, const std::string& type) {
  const message::MessageType* known = message::find_type(type);
  const Value* value = fields.find("msg_size");
  if (value == nullptr) {
    if (known->variable) {
      document.fail(fields.value().offset,
                    fmt::format("the publisher misses the key 'msg_size', which {} needs", type));
    }
    return known->payload_bytes;
  }
  const auto size = static_cast<std::uint32_t>(
      integer_of(document, *value, "'msg_size'", 0, std::numeric_limits<std::uint32_t>::max()));
  if (const std::string problem = size_problem(type, size); !problem.empty())
    document.fail(value->offset, problem);
  return size;
}

void add_publisher(const Document& document, const Value& value, Node& node, NodeOrigin& origin) {
  const Fields fields(
      document, value, "publisher",
      with_qos({"topic_name", "msg_type", "freq_hz", "period_ms", "msg_size", "msg_pass_by"}));
  Publisher publisher;
  publisher.topic = read_topic(document, fields, node);
  publisher.type = read_type(document, fields, "msg_type", type_problem);
  publisher.size_bytes = read_size(document, fields, publisher.type);
  const Nanoseconds period = read_period(document, fields, "publisher");
  publisher.frequency_hz = 1e9 / static_cast<double>(period);
  publisher.pass_by = read_pass_by(document, fields, PassBy::kUnique);
  if (publisher.pass_by == PassBy::kLoaned) {
    const std::string problem = loan_problem(publisher.type);
    if (!problem.empty()) document.fail(fields.at("msg_pass_by").offset, problem);
  }
  publisher.qos = read_qos(document, fields, End::kPublisher);
  node.timers.push_back(publishing_timer(fields.text("topic_name"), period, node.publishers.size()));
  node.publishers.push_back(std::move(publisher));
  origin.publishers.push_back(document.position(value.offset));
  origin.timers.push_back(document.position(value.offset));
}

void add_subscription(const Document& document, const Value& value, Node& node, NodeOrigin& origin) {
  const Fields fields(document, value, "subscriber", with_qos({"topic_name", "msg_type", "msg_pass_by"}));
  Subscription subscription;
  subscription.topic = read_topic(document, fields, node);
  subscription.type = read_type(document, fields, "msg_type", type_problem);
  subscription.pass_by = read_pass_by(document, fields, PassBy::kUnspecified);
  // irobot_benchmark warns here and takes the message as shared.
  if (subscription.pass_by == PassBy::kLoaned) subscription.pass_by = PassBy::kShared;
  subscription.qos = read_qos(document, fields, End::kSubscription);
  node.subscriptions.push_back(std::move(subscription));
  origin.subscriptions.push_back(document.position(value.offset));
}

std::string read_service(const Document& document, const Fields& fields, const Node& node) {
  const Value& value = fields.at("service_name");
  const std::string& service = text_of(document, value, "'service_name'");
  if (const std::string problem = service_problem(service); !problem.empty())
    document.fail(value.offset, problem);
  return qualify_topic(service, node.node_namespace, node.name);
}

void add_client(const Document& document, const Value& value, Node& node, NodeOrigin& origin) {
  const Fields fields(document, value, "client",
                      with_qos({"service_name", "srv_type", "freq_hz", "period_ms"}));
  Client client;
  client.service = read_service(document, fields, node);
  client.type = read_type(document, fields, "srv_type", service_type_problem);
  const Nanoseconds period = read_period(document, fields, "client");
  client.frequency_hz = 1e9 / static_cast<double>(period);
  client.qos = read_qos(document, fields, End::kService);
  node.timers.push_back(requesting_timer(fields.text("service_name"), period, node.clients.size()));
  node.clients.push_back(std::move(client));
  origin.clients.push_back(document.position(value.offset));
  origin.timers.push_back(document.position(value.offset));
}

void add_server(const Document& document, const Value& value, Node& node, NodeOrigin& origin) {
  const Fields fields(document, value, "server", with_qos({"service_name", "srv_type"}));
  Server server;
  server.service = read_service(document, fields, node);
  server.type = read_type(document, fields, "srv_type", service_type_problem);
  server.qos = read_qos(document, fields, End::kService);
  node.servers.push_back(std::move(server));
  origin.servers.push_back(document.position(value.offset));
}

Node read_node(const Document& document, const Fields& fields, std::string_view suffix, NodeOrigin& origin) {
  Node node;
  const Value& name = fields.at("node_name");
  node.name = text_of(document, name, "'node_name'") + std::string(suffix);
  if (const std::string problem = node_name_problem(node.name); !problem.empty())
    document.fail(name.offset, problem);
  if (const Value* given = fields.find("node_namespace")) {
    node.node_namespace =
        qualify_namespace(text_of(document, *given, "'node_namespace'") + std::string(suffix));
    const std::string problem = namespace_problem(node.node_namespace);
    if (!problem.empty()) document.fail(given->offset, problem);
  }
  if (const Value* executor = fields.find("executor_id")) {
    node.executor = static_cast<int>(
        integer_of(document, *executor, "'executor_id'", 0, std::numeric_limits<std::int32_t>::max()));
  }
  for (const Value& item : fields.list("publishers")) add_publisher(document, item, node, origin);
  for (const Value& item : fields.list("subscribers")) add_subscription(document, item, node, origin);
  for (const Value& item : fields.list("clients")) add_client(document, item, node, origin);
  separate_timer_names(node);
  for (const Value& item : fields.list("servers")) add_server(document, item, node, origin);
  return node;
}

}  // namespace

Draft parse_irobot(const Document& document, std::string_view default_name) {
  const Fields root(document, document.root(), "topology", {"nodes"});
  Draft draft;
  draft.name = default_name;
  Process process;
  process.name = default_name;
  ProcessOrigin origin;
  origin.label = document.label();
  NodeAdder adder(document);
  for (const Value& item : root.list("nodes")) {
    const Fields fields(document, item, "node",
                        {"node_name", "node_namespace", "executor_id", "number", "publishers", "subscribers",
                         "clients", "servers"});
    const Value* number = fields.find("number");
    const std::int64_t copies = number == nullptr ? 1
                                                  : integer_of(document, *number, "'number'", 1,
                                                               static_cast<std::int64_t>(kMaxNodes));
    adder.add(process, origin, item.offset, static_cast<std::size_t>(copies),
              [&](std::size_t copy, NodeOrigin& written) {
                return read_node(document, fields, number == nullptr ? "" : fmt::format("_{}", copy),
                                 written);
              });
  }
  process.executors = executors_in_use(process.nodes);
  // Its timers run from their creation on.
  for (Node& node : process.nodes) {
    for (Timer& timer : node.timers) timer.phase = Phase::kAsCreated;
  }
  draft.processes.push_back(std::move(process));
  draft.origins.push_back(std::move(origin));
  return draft;
}

}  // namespace perflab::graph
