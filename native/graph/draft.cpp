#include "graph/draft.h"

#include <fmt/format.h>

#include <limits>
#include <unordered_set>
#include <utility>

#include "graph/units.h"
#include "message/format.h"

namespace perflab::graph {
namespace {

const Position& position_of(const ProcessOrigin& origin, const NodeOrigin& node, const Item& item) {
  if (item.part == Part::kNode) return node.node;
  if (item.part == Part::kExecutor && item.index < origin.executors.size())
    return origin.executors[item.index];
  if (item.part <= Part::kExecutor) return origin.process;
  const std::vector<Position>& parts = node.parts[static_cast<std::size_t>(item.part)];
  return item.index < parts.size() ? parts[item.index] : node.node;
}

std::string place_in(const ProcessOrigin& origin, const NodeOrigin& node, const Item& item) {
  const Position& position = position_of(origin, node, item);
  return fmt::format("{}:{}:{}", origin.label, position.line, position.column);
}

}  // namespace

std::string Draft::place(const Item& item) const {
  static const NodeOrigin kNowhere;
  const ProcessOrigin& origin = origins.at(item.process);
  const bool in_node = item.node < origin.node_of.size();
  return place_in(origin, in_node ? origin.nodes.at(origin.node_of[item.node]) : kNowhere, item);
}

void NodeAdder::first_copy(const Process& process, const Node& node, const ProcessOrigin& origin, const Field& field,
                           std::size_t copies) {
  nodes_ += copies;
  parts_ += copies * count_parts(node);
  if (nodes_ > kMaxNodes) field.fail("the graph has more than {} nodes", kMaxNodes);
  if (parts_ > kMaxParts) field.fail("the graph has more than {} {}", kMaxParts, kPartWords);
  check_node(process, node, messages_, {Part::kNode, 0, 0, 0},
             [&](const Item& item) { return place_in(origin, origin.nodes.back(), item); });
}

std::string timer_name(std::string_view written) {
  if (written.starts_with("~/")) written.remove_prefix(2);
  if (written.starts_with('/')) written.remove_prefix(1);
  return std::string(written);
}

Timer own_timer(std::string name, Nanoseconds period_ns, std::vector<std::size_t> Timer::* acts,
                std::size_t index) {
  Timer timer;
  timer.name = std::move(name);
  timer.period_ns = period_ns;
  (timer.*acts).push_back(index);
  return timer;
}

void separate_timer_names(Node& node) {
  std::unordered_set<std::string> names;
  const auto separate = [&](const std::vector<std::size_t> Timer::* what, const char* suffix) {
    for (Timer& timer : node.timers) {
      if ((timer.*what).empty()) continue;
      if (!names.insert(timer.name).second) names.insert(timer.name += suffix);
    }
  };
  separate(&Timer::publish, "");
  separate(&Timer::request, "_request");
  separate(&Timer::goal, "_goal");
  separate(&Timer::trigger, "_trigger");
}

std::string read_type(const Field& field, message::Formats& messages, std::string_view written) {
  field.require_none(type_problem(messages, written));
  return messages.find(written)->name;
}

std::string read_service_type(const Field& field, message::Formats& messages, std::string_view written) {
  field.require_none(service_type_problem(messages, written));
  return *messages.service_name(written);
}

std::string read_action_type(const Field& field, message::Formats& messages, std::string_view written) {
  field.require_none(action_type_problem(messages, written));
  return *messages.action_name(written);
}

void read_size(const Fields& fields, std::string_view key, message::Formats& messages, Sizes written, bool program,
               Publisher& publisher) {
  const message::Format& format = *messages.find(publisher.type);
  const auto field = fields.find(key);
  if (!field && format.variable && program) {
    publisher.sized = false;
    return;
  }
  if (!field && format.variable)
    fields.fail("the publisher lacks the key '{}', which {} needs", key, publisher.type);
  if (field) {
    const auto size =
        written == Sizes::kNumbersOrText && field->kind() != Kind::kNumber
            ? field->parsed([&] { return parse_size(field->text()); })
            : static_cast<std::uint32_t>(field->integer(0, std::numeric_limits<std::uint32_t>::max()));
    field->require_none(size_problem(messages, publisher.type, size));
    publisher.length = size;
  }
  publisher.size_bytes = static_cast<std::uint32_t>(format.payload_bytes(publisher.length));
  if (!format.variable) publisher.length = publisher.size_bytes;
}

std::vector<Executor> executors_in_use(const std::vector<Node>& nodes) {
  std::vector<Executor> executors;
  std::unordered_set<int> seen;
  for (const Node& node : nodes) {
    if (seen.insert(node.executor).second) executors.push_back({.id = node.executor});
  }
  return executors;
}

}  // namespace perflab::graph
