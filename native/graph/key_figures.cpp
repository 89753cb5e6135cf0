#include "graph/key_figures.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "graph/check.h"
#include "graph/fields.h"
#include "graph/names.h"
#include "graph/text.h"

namespace perflab::graph {
namespace {

constexpr std::size_t kMaxName = 40;

// One name or a list of them, with their places. `what` says what they name: "node".
std::vector<WrittenName> read_names(const Field& field, std::string_view what) {
  const std::string item_name = fmt::format("a {} in {}", what, field.name());
  std::vector<Field> items{Field(field.document(), field.value(), item_name)};
  if (field.kind() == Kind::kList) items = field.items(item_name);
  if (items.empty()) field.fail("{} names no {}; name one", field.name(), what);
  std::vector<WrittenName> names;
  for (const Field& item : items) names.push_back({item.text(), item.place()});
  return names;
}

WrittenKeyFigure read_key_figure(const Field& field) {
  const Fields fields(field, "key figure", {"from", "to", "lost", "jitter"});
  const auto lost = fields.find("lost");
  const auto jitter = fields.find("jitter");
  const bool path = fields.has("from") || fields.has("to");
  if ((path ? 1 : 0) + (lost ? 1 : 0) + (jitter ? 1 : 0) != 1) {
    fields.fail("a key figure has either 'from' and 'to', or 'lost', or 'jitter'");
  }
  WrittenKeyFigure figure;
  if (path) {
    figure.of = read_names(fields.at("from"), "node");
    figure.to = {fields.text("to"), fields.at("to").place()};
  } else if (lost) {
    figure.kind = KeyFigureKind::kLost;
    if (lost->kind() != Kind::kString || lost->written() != "all") figure.of = read_names(*lost, "topic");
  } else {
    figure.kind = KeyFigureKind::kJitter;
    figure.of = {{jitter->text(), jitter->place()}};
  }
  return figure;
}

class Resolver {
 public:
  explicit Resolver(const Graph& graph) {
    for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
      nodes_.emplace(node.qualified_name(), &node);
      for (const Publisher& publisher : node.publishers) {
        publishers_[publisher.topic].push_back({&node, &publisher});
      }
      for (const Subscription& subscription : node.subscriptions) subscribed_.insert(subscription.topic);
    });
  }

  [[nodiscard]] KeyFigure resolve(const WrittenKeyFigure& written) const {
    KeyFigure figure;
    figure.name = written.name.text;
    figure.kind = written.kind;
    switch (written.kind) {
      case KeyFigureKind::kPath:
        resolve_path(written, figure);
        break;
      case KeyFigureKind::kLost:
        for (const WrittenName& topic : written.of) figure.topics.push_back(topic_of(topic));
        break;
      case KeyFigureKind::kJitter:
        resolve_jitter(written, figure);
        break;
    }
    return figure;
  }

 private:
  struct End {
    const Node* node;
    const Publisher* publisher;
  };

  const Node& node_of(const WrittenName& name) const {
    const std::string qualified = name.text.starts_with('/') ? name.text : "/" + name.text;
    const auto found = nodes_.find(qualified);
    if (found != nodes_.end()) return *found->second;
    std::vector<std::string_view> known;
    for (const auto& [known_name, node] : nodes_) known.push_back(known_name);
    const std::string_view near = closest(qualified, known);
    throw InputError(fmt::format(
        "{}: the graph has no node {}; {}", name.place, quote(qualified),
        near.empty() ? "name one of its nodes, with its namespace" : fmt::format("did you mean {}?", near)));
  }

  [[nodiscard]] std::string topic_of(const WrittenName& name) const {
    if (const std::string problem = topic_problem(name.text);
        !problem.empty() || name.text.starts_with('~')) {
      throw InputError(
          fmt::format("{}: {}", name.place,
                      problem.empty() ? "a private topic needs its full name" : problem));
    }
    const std::string topic = qualify_topic(name.text, "/", "");
    if (publishers_.contains(topic) && subscribed_.contains(topic)) return topic;
    std::vector<std::string_view> known;
    for (const auto& [known_name, ends] : publishers_) {
      if (subscribed_.contains(known_name)) known.push_back(known_name);
    }
    const std::string_view near = closest(topic, known);
    throw InputError(fmt::format("{}: nothing is delivered on {}; {}", name.place, topic,
                                 near.empty() ? "name a topic with a publisher and a subscription"
                                              : fmt::format("did you mean {}?", near)));
  }

  // The nodes whose timers and cyclic reactions start what a publisher sends.
  [[nodiscard]] std::set<const Node*> origins_of(const End& last) const {
    std::set<const Node*> origins;
    std::set<const Publisher*> seen{last.publisher};
    std::vector<End> open{last};
    while (!open.empty()) {
      const auto [node, publisher] = open.back();
      open.pop_back();
      const auto index = static_cast<std::size_t>(publisher - node->publishers.data());
      const auto sends = [index](const std::vector<std::size_t>& publish) {
        return std::ranges::find(publish, index) != publish.end();
      };
      if (std::ranges::any_of(node->timers, [&](const Timer& timer) { return sends(timer.publish); })) {
        origins.insert(node);
      }
      for (const Reaction& reaction : node->reactions) {
        if (!sends(reaction.publish)) continue;
        if (reaction.kind == ReactionKind::kCyclic) {
          origins.insert(node);
          continue;
        }
        for (const std::size_t input : reaction.on) {
          const auto before = publishers_.find(node->subscriptions[input].topic);
          if (before == publishers_.end()) continue;
          for (const End& end : before->second) {
            if (seen.insert(end.publisher).second) open.push_back(end);
          }
        }
      }
    }
    return origins;
  }

  // A message carries the due time of the oldest of all its origins. So a path that omits one of them could
  // not be distinguished from those that start there.
  void resolve_path(const WrittenKeyFigure& written, KeyFigure& figure) const {
    std::map<const Node*, const WrittenName*> from;
    for (const WrittenName& name : written.of) {
      const Node& node = node_of(name);
      if (!from.emplace(&node, &name).second) {
        throw InputError(
            fmt::format("{}: 'from' names {} twice; name it once", name.place, node.qualified_name()));
      }
      figure.from.push_back(node.qualified_name());
    }
    const Node& to = node_of(written.to);
    figure.to = to.qualified_name();
    std::set<const Node*> arrived;
    for (const Subscription& subscription : to.subscriptions) {
      const auto ends = publishers_.find(subscription.topic);
      if (ends == publishers_.end()) continue;
      for (const End& end : ends->second) {
        const std::set<const Node*> origins = origins_of(end);
        if (std::ranges::none_of(origins, [&](const Node* node) { return from.contains(node); })) continue;
        for (const Node* origin : origins) {
          if (from.contains(origin)) continue;
          throw InputError(
              fmt::format("{}: messages that reach {} on {} may also start at {}, and their age is that of "
                          "the oldest; add it to 'from'",
                          written.to.place, figure.to, subscription.topic, origin->qualified_name()));
        }
        arrived.insert(origins.begin(), origins.end());
        figure.edges.push_back({end.node->qualified_name(), subscription.topic, to.name_of(subscription)});
      }
    }
    for (const auto& [node, name] : from) {
      if (arrived.contains(node)) continue;
      throw InputError(
          fmt::format("{}: no message that starts at {} reaches {}; a path starts at a timer or a cyclic "
                      "reaction, and ends at the "
                      "next cyclic one",
                      name->place, node->qualified_name(), figure.to));
    }
  }

  void resolve_jitter(const WrittenKeyFigure& written, KeyFigure& figure) const {
    const WrittenName& name = written.of.front();
    const Node& node = node_of(name);
    for (const Publisher& publisher : node.publishers) {
      const Nanoseconds period_ns = node.period_of(publisher);
      if (period_ns != 0) figure.publishers.push_back({node.qualified_name(), publisher.topic, period_ns});
    }
    if (figure.publishers.empty()) {
      throw InputError(
          fmt::format("{}: {} publishes nothing by a timer or a cyclic reaction, so it has no jitter; "
                      "name a node that does",
                      name.place, node.qualified_name()));
    }
  }

  std::map<std::string, const Node*> nodes_;
  std::map<std::string, std::vector<End>> publishers_;  // by topic
  std::set<std::string> subscribed_;
};

}  // namespace

std::string figure_name_problem(std::string_view what, std::string_view name) {
  const auto is_lower = [](char c) { return c >= 'a' && c <= 'z'; };
  const bool good = !name.empty() && name.size() <= kMaxName && is_lower(name.front()) &&
                    std::ranges::all_of(name, [&](char c) { return is_lower(c) || is_digit(c) || c == '_'; });
  if (good) return "";
  return fmt::format("the {} {} needs another name: a lower-case letter, then at most {} of a to z, 0 to 9 and _", what,
                     quote(name), kMaxName - 1);
}

std::vector<WrittenKeyFigure> read_key_figures(const Field& field) {
  field.require(Kind::kMapping);
  std::vector<WrittenKeyFigure> figures;
  for (std::size_t i = 0; i < field.value().keys.size(); ++i) {
    const Key& name = field.value().keys[i];
    if (const std::string problem = figure_name_problem("key figure", name.text); !problem.empty()) {
      field.document().fail(name.offset, problem);
    }
    figures.push_back(read_key_figure({field.document(), field.value().items[i], "key figure"}));
    figures.back().name = {name.text, field.document().place(name.offset)};
  }
  return figures;
}

std::vector<KeyFigure> resolve_key_figures(const Graph& graph, const std::vector<WrittenKeyFigure>& written) {
  const Resolver resolver(graph);
  std::map<std::string_view, std::string_view> places;
  std::vector<KeyFigure> figures;
  for (const WrittenKeyFigure& figure : written) {
    const auto [found, added] = places.emplace(figure.name.text, figure.name.place);
    if (!added) {
      throw InputError(fmt::format("{}: the key figure {} is declared already, at {}; give it another name",
                                   figure.name.place, figure.name.text, found->second));
    }
    figures.push_back(resolver.resolve(figure));
  }
  return figures;
}

}  // namespace perflab::graph
