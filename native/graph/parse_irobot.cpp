// Reads topology files of irobot_benchmark in the same way as that program.
#include <fmt/format.h>

#include <array>
#include <cstdint>

#include "graph/draft.h"
#include "graph/fields.h"
#include "graph/names.h"
#include "graph/text.h"
#include "graph/units.h"
#include "message/format.h"

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

// A QoS value; `system_default` stands for the default of the DDS specification.
template <typename Words, typename Enumerator>
void read_policy(const Fields& fields, std::string_view key, const Words& words, Enumerator dds_default,
                 Enumerator& policy) {
  const auto field = fields.find(key);
  if (!field) return;
  if (field->text() == "system_default") {
    policy = dds_default;
    return;
  }
  const auto found = value_of(words, field->text());
  if (!found) {
    std::vector<std::string_view> texts = texts_of(words);
    texts.push_back("system_default");
    field->fail_word(key, texts);
  }
  policy = *found;
}

// irobot_benchmark accepts no other value than "default", which means no limit.
void require_default(const Fields& fields, std::string_view key) {
  const auto field = fields.find(key);
  if (field && field->text() != "default") field->fail_word(key, {"default"});
}

void require_ros_conventions(const Fields& fields) {
  constexpr std::string_view kKey = "qos_avoid_ros_namespace_conventions";
  const auto field = fields.find(kKey);
  if (!field) return;
  if (field->text() == "true") {
    field->fail("`{}` is not available in this version; remove it or write \"false\"", kKey);
  }
  if (field->text() != "false") field->fail_word(kKey, {"true", "false"});
}

perflab_qos read_qos(const Fields& fields, End end) {
  perflab_qos qos = default_qos();
  read_policy(fields, "qos_history", kHistoryWords, PERFLAB_KEEP_LAST, qos.history);
  qos.depth = static_cast<std::int32_t>(fields.integer("qos_depth", 1, kMaxInt, qos.depth));
  if (qos.history == PERFLAB_KEEP_ALL) qos.depth = PERFLAB_DEPTH_UNLIMITED;
  // DDS 1.4, 2.2.3: writers are reliable by default, readers best-effort. A service uses one value for both:
  // its writer's.
  read_policy(fields, "qos_reliability", kReliabilityWords,
              end == End::kSubscription ? PERFLAB_BEST_EFFORT : PERFLAB_RELIABLE, qos.reliability);
  constexpr std::array kDurabilities{kDurabilityWords[0], kDurabilityWords[1]};  // irobot_benchmark has no
                                                                                 // others
  read_policy(fields, "qos_durability", kDurabilities, PERFLAB_VOLATILE, qos.durability);
  read_policy(fields, "qos_liveliness", kLivelinessWords, PERFLAB_AUTOMATIC, qos.liveliness);
  require_default(fields, "qos_deadline");
  require_default(fields, "qos_lifespan");
  require_default(fields, "qos_liveliness_lease_duration");
  require_ros_conventions(fields);
  return qos;
}

// "stamped_int64" or "irobot_interfaces_plugin::stamped_int64", read by read_type() or read_service_type().
template <typename Read>
std::string read_plugin_type(const Field& field, message::Formats& messages, const Read& read) {
  std::string_view type = field.text();
  if (const std::size_t colons = type.find("::"); colons != std::string_view::npos) {
    const std::string_view plugin = type.substr(0, colons);
    if (plugin != "irobot_interfaces_plugin" && plugin != "perflab_msgs") {
      field.fail(
          "message plugin {} is unknown; use irobot_interfaces_plugin, whose "
          "messages perflab has",
          quote(plugin));
    }
    type.remove_prefix(colons + 2);
  }
  return read(field, messages, type);
}

// `key` names the topic or service; `find_problem` checks the name.
template <typename FindProblem>
std::string read_qualified(const Fields& fields, std::string_view key, FindProblem find_problem,
                           const Node& node) {
  const Field name = fields.at(key);
  name.require_none(find_problem(name.text()));
  return qualify_topic(name.text(), node.node_namespace, node.name);
}

// In single precision and truncated to whole microseconds, like irobot_benchmark: 15 Hz is 66'666 us. `what`
// is the part with the period: "publisher".
Nanoseconds read_period(const Fields& fields, std::string_view what) {
  const auto frequency = fields.find("freq_hz");
  const auto period = fields.find("period_ms");
  if (!frequency && !period) {
    fields.fail("the {} lacks the key 'period_ms' (or 'freq_hz')", what);
  }
  double period_ms = 0.0;
  if (period) period_ms = period->number();
  const Field& written = frequency ? *frequency : *period;
  if (frequency) {
    if (frequency->number() <= 0.0) frequency->fail("'freq_hz' must be more than 0");
    period_ms = 1'000.0 / frequency->number();
  }
  constexpr double kLongestMs = static_cast<double>(kLongestDuration) / 1e6;
  if (!(period_ms >= 0.001 && period_ms <= kLongestMs)) {
    written.fail(
        "the period is {} ms; it must be at least 0.001 ms and at most one day "
        "(86400000 ms)",
        period_ms);
  }
  const auto single =
      frequency ? 1000.0F / static_cast<float>(frequency->number()) : static_cast<float>(period_ms);
  // 0.001 ms may fall short of a microsecond in single precision.
  return std::max<Nanoseconds>(static_cast<Nanoseconds>(single * 1000.0F) * 1'000, kShortestPeriod);
}

void add_publisher(const Field& item, message::Formats& messages, Node& node, NodeOrigin& origin) {
  const Fields fields(
      item, "publisher",
      with_qos({"topic_name", "msg_type", "freq_hz", "period_ms", "msg_size", "msg_pass_by"}));
  Publisher publisher;
  publisher.topic = read_qualified(fields, "topic_name", topic_problem, node);
  publisher.type = read_plugin_type(fields.at("msg_type"), messages, read_type);
  read_size(fields, "msg_size", messages, Sizes::kNumbers, false, publisher);
  const Nanoseconds period = read_period(fields, "publisher");
  publisher.frequency_hz = 1e9 / static_cast<double>(period);
  publisher.pass_by = PassBy::kUnique;
  fields.word("msg_pass_by", kIrobotPassByWords, publisher.pass_by);
  if (publisher.pass_by == PassBy::kLoaned) {
    fields.at("msg_pass_by").require_none(loan_problem(messages, publisher.type));
  }
  publisher.qos = read_qos(fields, End::kPublisher);
  node.timers.push_back(
      own_timer(timer_name(fields.text("topic_name")), period, &Timer::publish, node.publishers.size()));
  node.publishers.push_back(std::move(publisher));
  origin.add(Part::kPublisher, fields);
  origin.add(Part::kTimer, fields);
}

void add_subscription(const Field& item, message::Formats& messages, Node& node, NodeOrigin& origin) {
  const Fields fields(item, "subscriber", with_qos({"topic_name", "msg_type", "msg_pass_by"}));
  Subscription subscription;
  subscription.topic = read_qualified(fields, "topic_name", topic_problem, node);
  subscription.type = read_plugin_type(fields.at("msg_type"), messages, read_type);
  fields.word("msg_pass_by", kIrobotPassByWords, subscription.pass_by);
  // irobot_benchmark warns here and treats the message as shared.
  if (subscription.pass_by == PassBy::kLoaned) subscription.pass_by = PassBy::kShared;
  subscription.qos = read_qos(fields, End::kSubscription);
  node.subscriptions.push_back(std::move(subscription));
  origin.add(Part::kSubscription, fields);
}

void add_client(const Field& item, message::Formats& messages, Node& node, NodeOrigin& origin) {
  const Fields fields(item, "client", with_qos({"service_name", "srv_type", "freq_hz", "period_ms"}));
  Client client;
  client.service = read_qualified(fields, "service_name", service_problem, node);
  client.type = read_plugin_type(fields.at("srv_type"), messages, read_service_type);
  const Nanoseconds period = read_period(fields, "client");
  client.frequency_hz = 1e9 / static_cast<double>(period);
  client.qos = read_qos(fields, End::kService);
  node.timers.push_back(
      own_timer(timer_name(fields.text("service_name")), period, &Timer::request, node.clients.size()));
  node.clients.push_back(std::move(client));
  origin.add(Part::kClient, fields);
  origin.add(Part::kTimer, fields);
}

void add_server(const Field& item, message::Formats& messages, Node& node, NodeOrigin& origin) {
  const Fields fields(item, "server", with_qos({"service_name", "srv_type"}));
  Server server;
  server.service = read_qualified(fields, "service_name", service_problem, node);
  server.type = read_plugin_type(fields.at("srv_type"), messages, read_service_type);
  server.qos = read_qos(fields, End::kService);
  node.servers.push_back(std::move(server));
  origin.add(Part::kServer, fields);
}

Node read_node(const Fields& fields, const std::string& suffix, message::Formats& messages, NodeOrigin& origin) {
  Node node;
  node.name = fields.text("node_name") + suffix;
  fields.at("node_name").require_none(node_name_problem(node.name));
  if (const auto given = fields.find("node_namespace")) {
    node.node_namespace = qualify_namespace(given->text() + suffix);
    given->require_none(namespace_problem(node.node_namespace));
  }
  node.executor = static_cast<int>(fields.integer("executor_id", 0, kMaxInt, node.executor));
  for (const Field& item : fields.list("publishers")) add_publisher(item, messages, node, origin);
  for (const Field& item : fields.list("subscribers")) add_subscription(item, messages, node, origin);
  for (const Field& item : fields.list("clients")) add_client(item, messages, node, origin);
  separate_timer_names(node);
  for (const Field& item : fields.list("servers")) add_server(item, messages, node, origin);
  return node;
}

}  // namespace

Draft parse_irobot(const Document& document, std::string_view default_name, message::Formats& messages) {
  const Fields root(document, document.root(), "topology", {"nodes"});
  Draft draft;
  draft.name = default_name;
  Process process;
  process.name = default_name;
  ProcessOrigin origin;
  origin.label = document.label();
  NodeAdder adder(messages);
  for (const Field& item : root.list("nodes")) {
    const Fields fields(item, "node",
                        {"node_name", "node_namespace", "executor_id", "number", "publishers", "subscribers",
                         "clients", "servers"});
    adder.add(process, origin, fields, [&](const std::string& suffix, NodeOrigin& written) {
      return read_node(fields, suffix, messages, written);
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
