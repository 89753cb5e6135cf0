// The result of reading one file: processes, and where each of their parts was written.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/check.h"
#include "graph/document.h"
#include "graph/fields.h"
#include "graph/key_figures.h"
#include "graph/model.h"

namespace perflab::graph {

struct NodeOrigin {
  Position node;
  std::array<std::vector<Position>, kParts> parts;  // indexed by Part

  void add(Part part, const Field& field) {
    parts[static_cast<std::size_t>(part)].push_back(field.position());
  }
};

struct ProcessOrigin {
  std::string label;  // name of the file
  Position process;
  std::vector<Position> executors;
  std::vector<NodeOrigin> nodes;     // nodes as written
  std::vector<std::size_t> node_of;  // for each node of the model, its index in `nodes`
};

struct Draft {
  std::string name;
  Serialization serialization = Serialization::kUnspecified;
  bool keyed = false;
  Nanoseconds limit_ns = 0;
  std::string own_figures = "{}";   // JSON, as in Graph
  std::string own_outcomes = "{}";
  std::vector<Process> processes;
  std::vector<ProcessOrigin> origins;  // one per process
  std::vector<WrittenKeyFigure> key_figures;

  // The place of a part, for check().
  [[nodiscard]] std::string place(const Item& item) const;
};

// Adds nodes to processes and enforces the limits of check.h over the whole file.
class NodeAdder {
 public:
  explicit NodeAdder(message::Formats& messages) : messages_(messages) {}

  // The types that nodes may use.
  [[nodiscard]] message::Formats& messages() const noexcept { return messages_; }

  // Adds as many copies of a node as its key `number` says; `make(suffix, origin)` builds one whose names end
  // with the suffix. The rules for a single node are checked on the first copy, before the others are
  // created.
  template <typename Make>
  void add(Process& process, ProcessOrigin& origin, const Fields& fields, Make make) {
    const auto copies = static_cast<std::size_t>(fields.integer("number", 1, kMaxNodes, 1));
    origin.nodes.emplace_back();
    for (std::size_t copy = 1; copy <= copies; ++copy) {
      NodeOrigin written;
      written.node = fields.position();
      Node node = make(fields.has("number") ? "_" + std::to_string(copy) : std::string(), written);
      if (copy == 1) {
        origin.nodes.back() = std::move(written);
        first_copy(process, node, origin, fields, copies);
      }
      origin.node_of.push_back(origin.nodes.size() - 1);
      process.nodes.push_back(std::move(node));
    }
  }

 private:
  void first_copy(const Process& process, const Node& node, const ProcessOrigin& origin, const Field& field,
                  std::size_t copies);

  message::Formats& messages_;
  std::size_t nodes_ = 0;
  std::size_t parts_ = 0;
};

// How a format writes sizes: as a number of bytes, or also as a text with a unit.
enum class Sizes { kNumbers, kNumbersOrText };

// The type named by a field, as in message::Format::name.
std::string read_type(const Field& field, message::Formats& messages, std::string_view written);
std::string read_service_type(const Field& field, message::Formats& messages, std::string_view written);
std::string read_action_type(const Field& field, message::Formats& messages, std::string_view written);

// Sets the size of a publisher's messages from the key. Without the key it is that of the type; a type of
// variable size is then an error, unless a program may publish the messages (`program`) and so determines
// each size.
void read_size(const Fields& fields, std::string_view key, message::Formats& messages, Sizes written, bool program,
               Publisher& publisher);

// The executors whose ids nodes use, in the order of first use.
std::vector<Executor> executors_in_use(const std::vector<Node>& nodes);

// The name of a timer without a name in the file: the first topic it publishes, else the first service it
// requests, else the first waitable it triggers, as written.
std::string timer_name(std::string_view written);

// A timer for a single publisher, client or waitable of the node; `acts` is the list that receives its index.
Timer own_timer(std::string name, Nanoseconds period_ns, std::vector<std::size_t> Timer::* acts,
                std::size_t index);

// Makes generated timer names unique: a client's own timer with the name of another timer of the node gets
// the suffix "_request", an action client's "_goal", a waitable's "_trigger". Call it before timers that the
// file may name are added.
void separate_timer_names(Node& node);

// The readers of the two formats; `default_name` is the graph's name if the file has none.
Draft parse_perflab(const Document& document, std::string_view default_name, message::Formats& messages);
Draft parse_irobot(const Document& document, std::string_view default_name, message::Formats& messages);

}  // namespace perflab::graph
