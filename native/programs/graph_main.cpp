// perflab-graph: reads and checks graph files, and prints their content.
//
// Exit codes: 0 success, 2 usage error or bad input (one line on stderr, nothing on stdout; `types` prints a
// line for each wrong interface file, and the types of the others), 1 any other failure.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "graph/describe.h"
#include "graph/parse.h"
#include "graph/resolved.h"
#include "graph/text.h"
#include "graph_schema.h"
#include "message/definitions.h"
#include "message/format.h"

namespace {

using nlohmann::ordered_json;
using perflab::Error;
using perflab::graph::Graph;
using perflab::graph::Input;
using perflab::graph::InputError;

struct Arguments {
  std::vector<std::string> files;
  std::string name = "stdin";
  std::vector<std::string> message_paths;
  bool pretty = false;
  bool each = false;
};

// The prefixes of the sourced ROS 2, last to first: a workspace comes before its underlay.
std::vector<std::string> prefixes_of_ros() {
  const char* const value = std::getenv("AMENT_PREFIX_PATH");
  std::vector<std::string> prefixes;
  std::istringstream parts(value == nullptr ? "" : value);
  for (std::string part; std::getline(parts, part, ':');) {
    if (!part.empty()) prefixes.push_back(part);
  }
  std::ranges::reverse(prefixes);
  return prefixes;
}

std::shared_ptr<perflab::message::Formats> read_messages(const Arguments& arguments) {
  auto library = std::make_shared<perflab::message::Library>(perflab::message::brought());
  for (const std::string& prefix : prefixes_of_ros()) library->add_installed(prefix);
  for (const std::string& folder : arguments.message_paths) library->add_folder(folder);
  return std::make_shared<perflab::message::Formats>(std::move(library));
}

Graph read_graph(const Arguments& arguments) {
  std::vector<Input> inputs;
  bool standard_input = false;
  for (const std::string& file : arguments.files) {
    if (file == "-" && standard_input)
      throw InputError("-: standard input can be read only once; name it once");
    standard_input = standard_input || file == "-";
    inputs.push_back(file == "-" ? perflab::graph::read_standard_input(arguments.name)
                                 : perflab::graph::read_file(file));
  }
  return perflab::graph::parse_graph(inputs, read_messages(arguments));
}

ordered_json description_of(const Graph& graph) {
  const perflab::graph::Description d = perflab::graph::describe(graph);
  ordered_json json;
  json["schema"] = 1;
  json["name"] = graph.name;
  json["processes"] = d.processes;
  json["executors"] = d.executors;
  json["participants"] = d.participants;
  json["nodes"] = d.nodes;
  json["publishers"] = d.publishers;
  json["subscriptions"] = d.subscriptions;
  json["clients"] = d.clients;
  json["servers"] = d.servers;
  json["action_clients"] = d.action_clients;
  json["action_servers"] = d.action_servers;
  json["waitables"] = d.waitables;
  json["timers"] = d.timers;
  json["reactions"] = d.reactions;
  json["edges"] = d.edges;
  json["unmatched_publishers"] = d.unmatched_publishers;
  json["unmatched_subscriptions"] = d.unmatched_subscriptions;
  json["rates_settled"] = d.rates_settled;
  json["published_per_s"] = d.published_per_s;
  json["delivered_per_s"] = d.delivered_per_s;
  json["published_bytes_per_s"] = d.published_bytes_per_s;
  json["delivered_bytes_per_s"] = d.delivered_bytes_per_s;
  json["requests_per_s"] = d.requests_per_s;
  json["topics"] = ordered_json::array();
  for (const auto& topic : d.topics) {
    json["topics"].push_back({{"topic", topic.topic},
                              {"type", topic.type},
                              {"publishers", topic.publishers},
                              {"subscriptions", topic.subscriptions},
                              {"published_per_s", topic.published_per_s},
                              {"published_bytes_per_s", topic.published_bytes_per_s}});
  }
  json["services"] = ordered_json::array();
  for (const auto& service : d.services) {
    json["services"].push_back({{"service", service.service},
                                {"type", service.type},
                                {"server", service.server},
                                {"clients", service.clients},
                                {"requests_per_s", service.requests_per_s},
                                {"request_bytes_per_s", service.request_bytes_per_s}});
  }
  json["actions"] = ordered_json::array();
  for (const auto& action : d.actions) {
    json["actions"].push_back({{"action", action.action},
                               {"type", action.type},
                               {"server", action.server},
                               {"clients", action.clients},
                               {"goals_per_s", action.goals_per_s},
                               {"duration_ns", action.duration_ns},
                               {"feedback_per_s", action.feedback_per_s}});
  }
  return json;
}

// Calls the function and collects its error about a wrong interface file, each once: other types may use the
// same file.
template <typename Function>
void keeping(std::set<std::string>& wrong, Function&& function) {
  try {
    function();
  } catch (const perflab::BadInput& error) {
    wrong.insert(error.what());
  }
}

ordered_json message_type(const perflab::message::Format& format) {
  using perflab::message::Stamp;
  const std::string& ros_type = format.type->name;
  return {{"name", format.name},
                    {"ros_type", ros_type},
                    {"family", perflab::message::Formats::family_of(ros_type)},
                    {"payload_bytes", format.variable ? ordered_json(nullptr) : ordered_json(format.payload_bytes(0))},
                    {"variable", format.variable},
                    {"plain", format.type->plain},
                    {"struct_bytes", format.type->size},
                    {"keys", format.key ? format.key->names() : std::vector<std::string>{}},
                    {"stamp", format.stamp == Stamp::kNone     ? ordered_json(nullptr)
                              : format.stamp == Stamp::kHeader ? ordered_json("header")
                                                               : ordered_json("time and id")}};
}

// All usable messages. `wrong` receives the errors of all interface files.
ordered_json message_types(const Arguments& arguments, std::set<std::string>& wrong) {
  const auto messages = read_messages(arguments);
  ordered_json list = ordered_json::array();
  for (const std::string& name : messages->names())
    keeping(wrong, [&] { list.push_back(message_type(*messages->find(name))); });
  for (const std::string& name : messages->library().names())
    keeping(wrong, [&] { static_cast<void>(messages->library().hash(name)); });
  return list;
}

// Describes each file separately: null if it is not a graph. Files do not change the types, so all share the
// parsed ones.
ordered_json descriptions_of_each(const Arguments& arguments) {
  const auto messages = read_messages(arguments);
  ordered_json list = ordered_json::array();
  for (const std::string& file : arguments.files) {
    try {
      list.push_back(description_of(perflab::graph::parse_graph({perflab::graph::read_file(file)}, messages)));
    } catch (const perflab::BadInput&) {
      list.push_back(nullptr);
    }
  }
  return list;
}

void print(const ordered_json& json, bool pretty) { std::cout << json.dump(pretty ? 2 : -1) << '\n'; }

void complain(std::string_view text) {
  const std::string line = perflab::one_line(text) + "\n";
  std::fwrite(line.data(), 1, line.size(), stderr);
}

void add_inputs(CLI::App& command, Arguments& arguments) {
  command.add_option("FILE", arguments.files, "graph files; - is standard input")->required();
  command.add_option("--name", arguments.name, "the name of standard input in messages, and of its graph");
  command.add_flag("--pretty", arguments.pretty, "indent the JSON");
}

void add_message_path(CLI::App& command, Arguments& arguments) {
  command.add_option("--message-path", arguments.message_paths,
                     "a folder with interface files, .../package/msg/Name.msg; may be given several times")
      ->allow_extra_args(false);  // the argument after the folder is a graph file
}

int run(int argc, char** argv) {
  CLI::App app("Reads graph files (perflab YAML or JSON, irobot_benchmark topologies) and prints JSON.",
               "perflab-graph");
  app.require_subcommand(1);
  Arguments arguments;
  CLI::App* resolve =
      app.add_subcommand("resolve", "one checked graph of all files, every default filled in");
  CLI::App* describe = app.add_subcommand("describe", "counts and rates of the graph");
  CLI::App* schema = app.add_subcommand("schema", "the JSON Schema of perflab's graph files");
  CLI::App* policies = app.add_subcommand("policies", "the QoS policies");
  CLI::App* types = app.add_subcommand("types", "the message types");
  add_inputs(*resolve, arguments);
  add_inputs(*describe, arguments);
  describe->add_flag("--each", arguments.each,
                     "each file is a separate graph: prints a list, with null for a file that is not a graph");
  types->add_flag("--pretty", arguments.pretty, "indent the JSON");
  for (CLI::App* const command : {resolve, describe, types}) add_message_path(*command, arguments);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& help) {
    return app.exit(help);
  } catch (const CLI::ParseError& error) {
    complain(fmt::format("perflab-graph: {}; see perflab-graph --help", error.what()));
    return perflab::exit_code(Error::Kind::kBadInput);
  }

  if (resolve->parsed()) print(perflab::graph::graph_to_json(read_graph(arguments)), arguments.pretty);
  if (describe->parsed())
    print(arguments.each ? descriptions_of_each(arguments) : description_of(read_graph(arguments)),
          arguments.pretty);
  if (schema->parsed()) std::cout << kGraphSchema;
  if (policies->parsed()) print(perflab::graph::policies_to_json(), false);
  std::set<std::string> wrong;
  if (types->parsed()) print(message_types(arguments, wrong), arguments.pretty);
  std::cout.flush();
  if (!std::cout) {
    complain("perflab-graph: standard output cannot be written");
    return perflab::exit_code(Error::Kind::kFailed);
  }
  for (const std::string& line : wrong) complain(line);
  return wrong.empty() ? 0 : perflab::exit_code(Error::Kind::kBadInput);
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const perflab::BadInput& error) {
    // The message has the place: in a graph file or an interface file.
    complain(error.what());
    return perflab::exit_code(error.kind());
  } catch (const std::exception& error) {
    complain(fmt::format("perflab-graph: {}", error.what()));
    return perflab::exit_code(perflab::kind_of(error));
  }
}
