#include "graph/tree_builder.h"

#include <fmt/format.h>

#include <utility>

#include "graph/text.h"

namespace perflab::graph {

void TreeBuilder::scalar(Kind kind, std::size_t offset, std::string text) {
  count(offset);
  Value value;
  value.kind = kind;
  value.offset = offset;
  value.text = std::move(text);
  add(std::move(value));
}

void TreeBuilder::key(std::string text, std::size_t offset) {
  count(offset);
  Level& level = levels_.back();
  if (!level.seen.insert(text).second) {
    document_.fail(offset, fmt::format("key {} appears twice; remove one", quote(text)));
  }
  level.value.keys.push_back({std::move(text), offset});
}

void TreeBuilder::open(Kind kind, std::size_t offset) {
  count(offset);
  if (levels_.size() >= kMaxDepth) {
    document_.fail(offset, fmt::format("lists and mappings are nested more than {} deep", kMaxDepth));
  }
  Level& level = levels_.emplace_back();
  level.value.kind = kind;
  level.value.offset = offset;
}

void TreeBuilder::close() {
  Value value = std::move(levels_.back().value);
  levels_.pop_back();
  add(std::move(value));
}

bool TreeBuilder::expects_key() const {
  if (levels_.empty() || levels_.back().value.kind != Kind::kMapping) return false;
  return levels_.back().value.keys.size() == levels_.back().value.items.size();
}

void TreeBuilder::count(std::size_t offset) {
  if (++values_ > kMaxValues)
    document_.fail(offset, fmt::format("the file has more than {} values", kMaxValues));
}

void TreeBuilder::add(Value value) {
  if (levels_.empty()) {
    root_ = std::move(value);
  } else {
    levels_.back().value.items.push_back(std::move(value));
  }
}

}  // namespace perflab::graph
