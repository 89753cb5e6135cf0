// Typed access to the values of a document; every error names its place.
//
// Example:
//   const Fields fields(item, "subscription", {"topic", "type"});
//   const std::string topic = fields.text("topic");          // throws if missing or not a string
//   if (const auto qos = fields.find("qos")) ...
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "graph/document.h"
#include "graph/model.h"
#include "graph/text.h"
#include "graph/units.h"
#include "graph/vocabulary.h"

namespace perflab::graph {

// A value of a document. `name` is used in messages: "'depth'".
class Field {
 public:
  Field(const Document& document, const Value& value, std::string name)
      : document_(&document), value_(&value), name_(std::move(name)) {}

  [[nodiscard]] const Document& document() const { return *document_; }
  [[nodiscard]] const Value& value() const { return *value_; }
  [[nodiscard]] Kind kind() const { return value_->kind; }
  [[nodiscard]] const std::string& written() const { return value_->text; }
  [[nodiscard]] const std::string& name() const { return name_; }
  [[nodiscard]] Position position() const { return document_->position(value_->offset); }
  [[nodiscard]] std::string place() const { return document_->place(value_->offset); }

  template <typename... Args>
  [[noreturn]] void fail(fmt::format_string<Args...> problem, Args&&... args) const {
    document_->fail(value_->offset, fmt::format(problem, std::forward<Args>(args)...));
  }
  // Throws unless `problem` is empty.
  void require_none(std::string_view problem) const {
    if (!problem.empty()) fail("{}", problem);
  }
  void require(Kind kind) const;

  [[nodiscard]] const std::string& text() const;
  [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high) const;
  [[nodiscard]] double number() const;
  [[nodiscard]] bool boolean() const;
  // The items of a list, each called `name`.
  [[nodiscard]] std::vector<Field> items(const std::string& name = {}) const;

  // The enumerator for a word. `what` says what the words are for: "reliability".
  template <typename Words>
  auto word(std::string_view what, const Words& words) const {
    if (kind() == Kind::kList || kind() == Kind::kMapping) {
      Field(*document_, *value_, std::string(what)).require(Kind::kString);
    }
    if (const auto found = value_of(words, written())) return *found;
    fail_word(what, texts_of(words));
  }
  [[noreturn]] void fail_word(std::string_view what, const std::vector<std::string_view>& words) const;

  // Parses the value with a function of units.h.
  template <typename Parse>
  auto parsed(Parse parse) const {
    try {
      return parse();
    } catch (const UnitError& error) {
      fail("{}: {}", name_, error.what());
    }
  }

 private:
  const Document* document_;
  const Value* value_;
  std::string name_;
};

// A mapping that must only have known keys.
class Fields : public Field {
 public:
  // `what` names the mapping in messages: "publisher".
  Fields(const Document& document, const Value& value, std::string_view what,
         const std::vector<std::string_view>& known);
  Fields(const Field& field, std::string_view what, const std::vector<std::string_view>& known);

  [[nodiscard]] bool has(std::string_view key) const { return value().find(key) != nullptr; }
  [[nodiscard]] std::optional<Field> find(std::string_view key) const;
  [[nodiscard]] Field at(std::string_view key) const;
  void require_key(std::string_view key) const { static_cast<void>(at(key)); }
  [[nodiscard]] const std::string& text(std::string_view key) const;
  [[nodiscard]] std::int64_t integer(std::string_view key, std::int64_t low, std::int64_t high,
                                     std::int64_t otherwise) const;
  // Sets the enumerator if the key is present.
  template <typename Words, typename Enumerator>
  void word(std::string_view key, const Words& words, Enumerator& enumerator) const {
    if (const auto field = find(key)) enumerator = field->word(key, words);
  }
  // The items of a list; empty if the key is absent.
  [[nodiscard]] std::vector<Field> list(std::string_view key) const;
};

}  // namespace perflab::graph
