// Builds a Value from the events of a reader, within the bounds of document.h.
//
// Example:
//   TreeBuilder builder(document);
//   builder.open(Kind::kMapping, 0);
//   builder.key("name", 2);
//   builder.scalar(Kind::kString, 8, "ping");
//   builder.close();
//   Value root = builder.take();
#pragma once

#include <string>
#include <unordered_set>
#include <vector>

#include "graph/document.h"

namespace perflab::graph {

class TreeBuilder {
 public:
  explicit TreeBuilder(const Document& document) : document_(document) {}

  void scalar(Kind kind, std::size_t offset, std::string text);
  void key(std::string text, std::size_t offset);  // the next key of the innermost mapping
  void open(Kind kind, std::size_t offset);        // a list or mapping
  void close();                                    // the innermost list or mapping

  // True if a key, not a value, is expected next.
  [[nodiscard]] bool expects_key() const;
  [[nodiscard]] Value take() { return std::move(root_); }

 private:
  struct Level {
    Value value;
    std::unordered_set<std::string> seen;  // keys
  };

  void count(std::size_t offset);
  void add(Value value);

  const Document& document_;
  std::size_t values_ = 0;
  std::vector<Level> levels_;
  Value root_;
};

// The readers. Strict JSON (RFC 8259): no comments, no trailing commas, no duplicate keys, no NaN. One YAML
// document (1.2 core schema): anchors, aliases and tags are refused. Both throw InputError with the place of
// the first error.
Value read_json(const Document& document);
Value read_yaml(const Document& document);

}  // namespace perflab::graph
