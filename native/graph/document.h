// A JSON or YAML text as a tree whose values know their position.
//
// Example:
//   const Document document = read_document("topology.yaml", text);
//   document.place(document.root().offset);  // "topology.yaml:1:1"
//
// Reading is bounded in time and memory for any text; errors throw InputError with one line. YAML means one
// document of the 1.2 core schema without anchors, aliases and tags; JSON is strict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace perflab::graph {

inline constexpr std::size_t kMaxFileBytes = 16u << 20;
inline constexpr std::size_t kMaxDepth = 32;          // of nested lists and mappings
inline constexpr std::size_t kMaxValues = 1'000'000;  // per file

enum class Kind { kNull, kBoolean, kNumber, kString, kList, kMapping };

// "a string", "a list"
std::string_view name_of(Kind kind);

struct Key {
  std::string text;
  std::size_t offset = 0;  // in bytes from the beginning of the text
};

struct Value {
  Kind kind = Kind::kNull;
  std::size_t offset = 0;
  std::string text;          // a scalar as written, without quotes and escapes
  std::vector<Key> keys;     // for a mapping; all different
  std::vector<Value> items;  // for a list, or the values of `keys`

  // The value of a key, or nullptr.
  [[nodiscard]] const Value* find(std::string_view key) const;
};

struct Position {
  std::uint32_t line = 1;
  std::uint32_t column = 1;  // in characters
};

class Document {
 public:
  // `label` names the text in messages: its file name.
  Document(std::string label, std::string text);

  [[nodiscard]] const std::string& label() const { return label_; }
  [[nodiscard]] const std::string& text() const { return text_; }
  [[nodiscard]] const Value& root() const { return root_; }
  void set_root(Value root) { root_ = std::move(root); }

  [[nodiscard]] Position position(std::size_t offset) const;
  [[nodiscard]] std::string place(std::size_t offset) const;
  [[noreturn]] void fail(std::size_t offset, std::string_view problem) const;

 private:
  std::string label_;
  std::string text_;
  std::vector<std::size_t> lines_;  // offset of the first byte of each line
  Value root_;
};

// Reads names ending in ".json" and texts starting with '{' as JSON, all others as YAML.
Document read_document(std::string label, std::string text);

}  // namespace perflab::graph
