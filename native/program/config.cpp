#include "program/config.h"

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <string_view>

#include "base/config_file.h"
#include "graph/check.h"
#include "graph/resolved.h"
#include "graph/vocabulary.h"
#include "program/hiccup.h"

namespace perflab::node {
namespace {

using nlohmann::json;

// The value of the word at `key`, one of `words`; nothing if the key is absent or null.
template <typename Words>
auto word(const json& config, const char* key, const Words& words)
    -> std::optional<decltype(words.front().value)> {
  if (!config.contains(key) || config.at(key).is_null()) return std::nullopt;
  const auto text = config.at(key).get<std::string>();
  if (const auto value = graph::value_of(words, text)) return value;
  std::string known;
  for (const std::string_view name : graph::texts_of(words))
    known.append(known.empty() ? "" : ", ").append(name);
  throw std::invalid_argument(std::string(key) + ": unknown '" + text + "', known are " + known);
}

// Settings of the configuration that override those of the graph.
void read_overrides(const json& config, Config& result) {
  result.live.executor = word(config, "executor", graph::kExecutorWords);
  if (config.contains("executor_threads") && !config.at("executor_threads").is_null()) {
    const int threads = config.at("executor_threads").get<int>();
    const std::string problem = graph::threads_problem(graph::ExecutorKind::kMultiThreaded, threads);
    if (threads == 0 || !problem.empty())
      throw std::invalid_argument("executor_threads: " + (problem.empty() ? "must be at least 1" : problem));
    result.live.executor_threads = threads;
  }
  if (config.contains("executor_period_ns") && !config.at("executor_period_ns").is_null()) {
    const auto period_ns = config.at("executor_period_ns").get<Nanoseconds>();
    const std::string problem = graph::executor_period_problem(graph::ExecutorKind::kLet, period_ns);
    if (period_ns == 0 || !problem.empty())
      throw std::invalid_argument("executor_period_ns: " + (problem.empty() ? "must be at least 1000" : problem));
    result.live.executor_period_ns = period_ns;
  }
  result.live.pass_by = word(config, "pass_by", graph::kPassByWords);
  result.live.name_threads = config.value("name_threads", true);
  result.intra_process = config.value("intra_process", false);
  result.service_framing = word(config, "service_framing", graph::kFramingWords);
  for (std::size_t p = 0; p < result.graph.processes.size(); ++p) {
    if (result.process && *result.process != p) continue;
    graph::Process& process = result.graph.processes[p];
    if (config.contains("threads")) {
      const json& threads = config.at("threads");
      if (threads.contains("executors") && !threads.at("executors").is_null()) {
        process.threads.executors = graph::thread_settings_from_json(threads.at("executors"));
        for (graph::Executor& executor : process.executors) executor.thread = {};
      }
      for (auto& [name, settings] : process.threads.program) {
        if (threads.contains(name) && !threads.at(name).is_null())
          settings = graph::thread_settings_from_json(threads.at(name));
      }
      if (threads.contains("middleware") && !threads.at("middleware").is_null()) {
        process.threads.middleware = graph::thread_settings_from_json(threads.at("middleware"));
      }
    }
    if (config.contains("lock_memory") && !config.at("lock_memory").is_null()) {
      process.lock_memory = config.at("lock_memory").get<bool>();
    }
  }
}

Nanoseconds positive(const json& config, const char* key, Nanoseconds otherwise) {
  const Nanoseconds value = config.value(key, otherwise);
  if (value <= 0) throw std::invalid_argument(std::string(key) + ": must be more than 0");
  return value;
}

Nanoseconds not_negative(const json& config, const char* key, Nanoseconds otherwise) {
  const Nanoseconds value = config.value(key, otherwise);
  if (value < 0) throw std::invalid_argument(std::string(key) + ": must not be negative");
  return value;
}

std::optional<Nanoseconds> hiccup_period(const json& config) {
  if (!config.contains("hiccup_ns") || config.at("hiccup_ns").is_null()) return std::nullopt;
  const auto period = config.at("hiccup_ns").get<Nanoseconds>();
  if (period < Hiccup::kShortest || period > Hiccup::kLongest)
    throw std::invalid_argument("hiccup_ns: must be from " + std::to_string(Hiccup::kShortest) + " to " +
                                std::to_string(Hiccup::kLongest));
  return period;
}

// Which messages are recorded one by one; none for null.
void read_recording(const json& config, Config& result) {
  if (!config.contains("messages") || config.at("messages").is_null()) return;
  const json& messages = config.at("messages");
  graph::LiveSettings::Recording& recording = result.live.recording.emplace();
  recording.topics = messages.at("topics").get<std::vector<std::string>>();
  recording.contents = messages.at("contents").get<bool>();
  recording.buffer_bytes = messages.at("buffer_bytes").get<std::size_t>();
  recording.waits = !result.runtime->can.real_time;
  result.message_limit_bytes = messages.at("limit_bytes").get<std::uint64_t>();
}

// Nothing if the runtime has tracepoints of its own.
std::optional<std::string> tracing_library(const json& config, const runtime::Capabilities& can) {
  if (!config.contains("tracing") || config.at("tracing").is_null()) return std::nullopt;
  const json& tracing = config.at("tracing");
  if (can.own_tracepoints) return std::nullopt;
  if (!tracing.is_object() || !tracing.contains("library") || !tracing.at("library").is_string() ||
      tracing.at("library").get<std::string>().empty())
    throw std::invalid_argument(R"(tracing: must be null or {"library": "/path"}, not )" + tracing.dump());
  return tracing.at("library").get<std::string>();
}

// For a runtime that does not report the writer of a message: throws if a subscription of the process has
// several publishers whose messages do not identify them either.
void refuse_several_unknown_writers(const graph::Graph& graph, const std::string& process) {
  std::map<std::string, std::size_t> publishers;  // of such messages, by topic
  for (const graph::Process& one : graph.processes) {
    for (const graph::Node& node : one.nodes) {
      for (const graph::Publisher& publisher : node.publishers) {
        if (graph.messages->find(publisher.type)->stamp == message::Stamp::kNone) ++publishers[publisher.topic];
      }
    }
  }
  for (const graph::Process& one : graph.processes) {
    if (one.name != process) continue;
    for (const graph::Node& node : one.nodes) {
      for (const graph::Subscription& subscription : node.subscriptions) {
        const auto found = publishers.find(subscription.topic);
        if (found != publishers.end() && found->second > 1)
          throw std::invalid_argument(subscription.topic + ": has " + std::to_string(found->second) +
                                      " publishers, whose messages of " + subscription.type +
                                      " do not identify their publisher, and this runtime does not report "
                                      "it; right would be a type with a perflab_msgs/Header, or a topic for "
                                      "each");
      }
    }
  }
}

bool filters(const graph::Process& process, const std::string& topic) {
  return std::ranges::any_of(process.nodes, [&](const graph::Node& node) {
    return std::ranges::any_of(node.subscriptions, [&](const graph::Subscription& subscription) {
      return subscription.topic == topic && !subscription.filter.empty();
    });
  });
}

bool subscribes(const graph::Process& process, const std::string& topic) {
  return std::ranges::any_of(process.nodes, [&](const graph::Node& node) {
    return std::ranges::find(node.subscriptions, topic, &graph::Subscription::topic) != node.subscriptions.end();
  });
}

// For a runtime that does not report which request a reply answers: throws if the graph has a service type
// that needs it.
void refuse_services_known_by_number(const graph::Graph& graph, const std::string& process) {
  for (const graph::Process& one : graph.processes) {
    if (one.name != process) continue;
    for (const graph::Node& node : one.nodes) {
      for (const graph::Client& client : node.clients) {
        if (graph.messages->find_request(client.type)->stamp == message::Stamp::kNone ||
            graph.messages->find_response(client.type)->stamp == message::Stamp::kNone)
          throw std::invalid_argument(client.service + ": requests of " + client.type +
                                      " are identified by their numbers, which this runtime does not report; "
                                      "right would be a type whose messages have a perflab_msgs/Header, or "
                                      "time and id");
      }
    }
  }
}

// In virtual time callbacks take only the time that the graph says, so an unthrottled timer would be due forever at the same
// instant.
void refuse_unthrottled_timers(const graph::Graph& graph) {
  graph::for_each_node(graph, [](const graph::Node& node, const graph::Item& /*item*/) {
    for (const graph::Timer& timer : node.timers) {
      if (timer.arrivals == graph::Arrivals::kUnthrottled)
        throw std::invalid_argument("timer " + timer.name + " of " + node.qualified_name() +
                                    ": arrivals are unthrottled, which never ends in virtual time; right "
                                    "would be a period, or another runtime");
    }
  });
}

void refuse_filters(const graph::Graph& graph, const RuntimeKind& runtime) {
  graph::for_each_node(graph, [&](const graph::Node& node, const graph::Item& /*item*/) {
    for (const graph::Subscription& subscription : node.subscriptions) {
      if (!subscription.filter.empty())
        throw std::invalid_argument("subscription " + subscription.topic + " of " + node.qualified_name() + ": the runtime " +
                                    std::string(runtime.name) +
                                    " has no content filters; right would be no filter, or another middleware");
    }
  });
}

// True if messages are passed to the runtime as structs. Throws if the runtime does not support the request.
bool every_message_is_encoded(graph::Serialization asked, const RuntimeKind& runtime) {
  const bool every = asked == graph::Serialization::kEvery;
  const runtime::Capabilities& can = runtime.can;
  if (every && !can.structs)
    throw std::invalid_argument("serialization: the runtime " + std::string(runtime.name) +
                                " cannot do 'every'; right would be once");
  return every || (can.structs_unless_asked && asked != graph::Serialization::kOnce);
}

// A program's messages differ from each other, so each is encoded.
graph::Serialization asked_of(const Config& config) {
  const graph::Serialization asked = config.graph.serialization;
  if (!config.process || config.graph.processes[*config.process].program.empty()) return asked;
  if (asked == graph::Serialization::kOnce)
    throw std::invalid_argument("serialization: once, but process " + config.process_name +
                                " is a program, whose messages differ from each other; right would be every");
  return graph::Serialization::kEvery;
}

Config parse(const json& config) {
  Config result;
  if (config.at("schema").get<int>() != 1)
    throw std::invalid_argument("schema: this perflab-node reads schema 1");
  result.graph = graph::graph_from_json(config.at("graph"));
  result.runtime = &find_runtime(config.at("runtime").get<std::string>());
  const runtime::Capabilities& can = result.runtime->can;
  const json& process = config.at("process");
  if (process.is_null()) {
    if (!can.several_processes)
      throw std::invalid_argument("process: only the virtual runtime runs all of them");
    result.process_name = result.graph.name;
  } else {
    result.process_name = process.get<std::string>();
    for (std::size_t i = 0; i < result.graph.processes.size(); ++i) {
      if (result.graph.processes[i].name == result.process_name) result.process = i;
    }
    if (!result.process)
      throw std::invalid_argument("process: the graph has no process '" + result.process_name + "'");
  }
  const json& middleware = config.at("middleware");
  result.middleware_name = middleware.at("name").get<std::string>();
  if (can.real_time) {
    result.middleware_library = middleware.at("library").get<std::string>();
    result.domain = middleware.at("domain").get<std::uint32_t>();
    result.live.domain = result.domain;
    result.network = middleware.value("network", result.network);
  }
  if (middleware.contains("options")) {
    for (const auto& [key, value] : middleware.at("options").items()) {
      result.middleware_options.emplace_back(key, value.get<std::string>());
    }
  }
  read_overrides(config, result);
  result.live.duration_ns = config.contains("duration_ns") && config.at("duration_ns").is_null()
                                ? graph::LiveSettings::kUntilEnded
                                : positive(config, "duration_ns", 0);
  result.live.warmup_ns = not_negative(config, "warmup_ns", 0);
  result.sampling_ns = positive(config, "sampling_ns", result.sampling_ns);
  result.checkpoint_ns = positive(config, "checkpoint_ns", result.checkpoint_ns);
  result.discovery_timeout_ns = not_negative(config, "discovery_timeout_ns", result.discovery_timeout_ns);
  result.hiccup_ns = hiccup_period(config);
  read_recording(config, result);
  result.allocation_sites = config.value("allocation_sites", false);
  result.peers_change = config.value("peers_change", false);
  result.rejoins = config.value("rejoins", false);
  result.tracing_library = tracing_library(config, can);
  result.traced = config.contains("tracing") && !config.at("tracing").is_null();
  result.seed = config.value("seed", result.seed);
  result.live.seed = result.seed;
  if (config.contains("schedule_fd") && !config.at("schedule_fd").is_null())
    result.live.schedule_descriptor = config.at("schedule_fd").get<int>();
  result.records = config.at("records").get<std::string>();
  if (config.contains("thresholds")) {
    const json& thresholds = config.at("thresholds");
    measure::ThresholdSettings& to = result.live.thresholds;
    to.late_percent = thresholds.value("late_percent", to.late_percent);
    to.late_ns = thresholds.value("late_ns", to.late_ns);
    to.too_late_percent = thresholds.value("too_late_percent", to.too_late_percent);
    to.too_late_ns = thresholds.value("too_late_ns", to.too_late_ns);
  }
  if (!can.real_time && !result.live.ends_by_itself())
    throw std::invalid_argument("duration_ns: null is not possible in virtual time; right would be a number");
  if (!can.real_time) refuse_unthrottled_timers(result.graph);
  if (!can.tells_writers) refuse_several_unknown_writers(result.graph, result.process_name);
  if (!can.request_numbers) refuse_services_known_by_number(result.graph, result.process_name);
  if (result.graph.keyed && !can.keys)
    throw Unsupported("keyed: the runtime " + std::string(result.runtime->name) +
                      " does not support instances; right would be no keys");
  if (!can.filters) refuse_filters(result.graph, *result.runtime);
  result.live.real_time = can.real_time;
  result.live.source_timestamps = can.source_timestamps;
  result.live.structs = every_message_is_encoded(asked_of(result), *result.runtime);
  result.live.times_encoding = can.times_encoding;
  for (const json& name : config.value("measure", json::array())) {
    if (name == "dispatch") {
      result.live.measure_dispatch = true;
    } else if (name == "work") {
      result.live.measure_work = true;
    } else if (name == "loops") {
      result.live.measure_loops = true;
    } else {
      throw std::invalid_argument("measure: unknown '" + name.dump() + "', known are dispatch, work and loops");
    }
  }
  return result;
}

}  // namespace

void require_schedule(const Config& config) {
  if (!config.process || config.live.schedule_descriptor >= 0) return;
  const std::vector<graph::Process>& processes = config.graph.processes;
  const auto refuse_filter = [&](const graph::Publisher& publisher, std::size_t other) {
    throw BadInput("process " + config.process_name + ", schedule_fd: missing; which messages on " + publisher.topic +
                   " a content filter wants must be shared between this process and " + processes[other].name +
                   "; right would be the memory that all processes share, or no filter");
  };
  const auto refuse = [&](const graph::Publisher& publisher, std::size_t other) {
    throw BadInput("process " + config.process_name + ", schedule_fd: missing; messages of " + publisher.type + " on " +
                   publisher.topic + " do not contain their due time, and process " + processes[other].name +
                   " has the other end; right would be the memory that all processes share, or a type with a "
                   "perflab_msgs/Header");
  };
  for (std::size_t from = 0; from < processes.size(); ++from) {
    for (std::size_t to = 0; to < processes.size(); ++to) {
      if (from == to || (from != *config.process && to != *config.process)) continue;
      if (processes[from].outside() || processes[to].outside()) continue;  // their messages are not counted
      for (const graph::Node& node : processes[from].nodes) {
        for (const graph::Publisher& publisher : node.publishers) {
          const bool says = config.graph.messages->find(publisher.type)->stamp == message::Stamp::kHeader;
          const std::size_t other = from == *config.process ? to : from;
          if (!says && subscribes(processes[to], publisher.topic)) refuse(publisher, other);
          if (filters(processes[to], publisher.topic)) refuse_filter(publisher, other);
        }
      }
    }
  }
}

Config read_config(const std::string& file) { return read_config_file(file, parse); }

}  // namespace perflab::node
