#include "graph/parse.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <nlohmann/json.hpp>
#include <unordered_set>

#include "graph/document.h"
#include "graph/draft.h"
#include "graph/names.h"
#include "graph/text.h"

namespace perflab::graph {
namespace {

constexpr std::size_t kMaxGraphName = 100;

// Reads one byte more than allowed, so that read_document() detects the excess. Most files are small, and
// clearing memory for the largest takes longer than parsing a graph.
std::string read_bounded(std::istream& stream, const std::string& label) {
  constexpr std::size_t kAtFirst = std::size_t{64} << 10;
  std::string text;
  while (stream && text.size() <= kMaxFileBytes) {
    const std::size_t had = text.size();
    text.resize(std::min(std::max(2 * had, kAtFirst), kMaxFileBytes + 1));
    stream.read(text.data() + had, static_cast<std::streamsize>(text.size() - had));
    if (stream.bad()) throw InputError(fmt::format("{}: cannot be read: {}", label, std::strerror(errno)));
    text.resize(had + static_cast<std::size_t>(stream.gcount()));
  }
  return text;
}

// Topologies of irobot_benchmark name their nodes by `node_name`.
bool is_irobot(const Value& root) {
  const Value* nodes = root.kind == Kind::kMapping ? root.find("nodes") : nullptr;
  if (nodes == nullptr || nodes->kind != Kind::kList) return false;
  return std::ranges::any_of(nodes->items,
                             [](const Value& node) { return node.find("node_name") != nullptr; });
}

Draft parse_one(const Input& input, message::Formats& messages) {
  const Document document = read_document(input.label, input.text);
  const Value& root = document.root();
  if (root.kind == Kind::kNull)
    document.fail(root.offset, "the file contains no graph; it needs at least `nodes`");
  if (root.kind != Kind::kMapping) {
    document.fail(root.offset,
                  fmt::format("a graph must be a mapping with `nodes` or `processes`, but it is {}",
                              name_of(root.kind)));
  }
  const std::string name = as_file_name(input.default_name);
  return is_irobot(root) ? parse_irobot(document, name, messages) : parse_perflab(document, name, messages);
}

// "a+b", or "a+2_more" if that is too long.
std::string joined_name(const std::vector<Draft>& drafts) {
  std::string name = drafts.front().name;
  for (std::size_t i = 1; i < drafts.size(); ++i) name += "+" + drafts[i].name;
  if (name.size() <= kMaxGraphName) return name;
  const std::string rest = drafts.size() == 1 ? "" : fmt::format("+{}_more", drafts.size() - 1);
  return drafts.front().name.substr(0, kMaxGraphName - rest.size()) + rest;
}

// Processes of several files may have the same name; within one file check() reports it.
void make_unique(std::vector<Draft>& drafts) {
  std::unordered_set<std::string> names;
  for (Draft& draft : drafts) {
    std::unordered_set<std::string> own;
    for (Process& process : draft.processes) {
      const std::string base = process.name;
      for (int n = 2; names.contains(process.name); ++n) {
        const std::string suffix = fmt::format("_{}", n);
        process.name = base.substr(0, kMaxGraphName - suffix.size()) + suffix;
      }
      own.insert(process.name);
    }
    names.merge(own);
  }
}

// Adds the members of one object to another. Throws InputError if both have one of the same name.
void merge(const std::string& from, std::string_view what, std::string& to) {
  auto all = nlohmann::ordered_json::parse(to);
  const auto more = nlohmann::ordered_json::parse(from);
  for (const auto& [name, value] : more.items()) {
    if (all.contains(name))
      throw InputError(fmt::format("two of the files declare the {} {}; right would be one", what, quote(name)));
    all[name] = value;
  }
  to = all.dump();
}

}  // namespace

Input read_file(const std::string& path) {
  std::error_code error;
  const std::filesystem::file_status status = std::filesystem::status(path, error);
  if (status.type() == std::filesystem::file_type::not_found) {
    throw InputError(fmt::format("{}: does not exist; check the path", path));
  }
  if (error) throw InputError(fmt::format("{}: cannot be read: {}", path, error.message()));
  if (std::filesystem::is_directory(status)) {
    throw InputError(fmt::format("{}: is a directory; name a graph file in it", path));
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) throw InputError(fmt::format("{}: cannot be read: {}", path, std::strerror(errno)));
  return {path, read_bounded(stream, path), std::filesystem::path(path).stem().string()};
}

Input read_standard_input(const std::string& name) { return {name, read_bounded(std::cin, name), name}; }

Graph parse_graph(const std::vector<Input>& inputs, const std::shared_ptr<message::Formats>& messages) {
  if (inputs.empty()) throw InputError("no graph file is given; name at least one");
  std::vector<Draft> drafts;
  for (const Input& input : inputs) drafts.push_back(parse_one(input, *messages));
  make_unique(drafts);

  Graph graph;
  graph.messages = messages;
  graph.name = joined_name(drafts);
  Draft all;
  for (Draft& draft : drafts) {
    if (draft.serialization != Serialization::kUnspecified) graph.serialization = draft.serialization;
    graph.keyed = graph.keyed || draft.keyed;
    graph.limit_ns = std::max(graph.limit_ns, draft.limit_ns);
    merge(draft.own_figures, "figure", graph.own_figures);
    merge(draft.own_outcomes, "outcome", graph.own_outcomes);
    std::ranges::move(draft.processes, std::back_inserter(graph.processes));
    std::ranges::move(draft.origins, std::back_inserter(all.origins));
    std::ranges::move(draft.key_figures, std::back_inserter(all.key_figures));
  }
  check(graph, [&](const Item& item) { return all.place(item); });
  graph.key_figures = resolve_key_figures(graph, all.key_figures);
  return graph;
}

}  // namespace perflab::graph
