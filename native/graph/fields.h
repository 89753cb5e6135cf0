// Typed access to the values of a document; every failure names its place.
//
// Example:
//   const Fields fields(document, value, "subscription", {"topic", "type"});
//   const std::string topic = fields.text("topic");          // fails where it is missing or no string
//   if (const Value* qos = fields.find("qos")) ...
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "graph/document.h"
#include "graph/model.h"
#include "graph/text.h"
#include "graph/vocabulary.h"

namespace perflab::graph {

// Fails unless the value has that kind; `what` is the value's name in messages.
void require_kind(const Document& document, const Value& value, Kind kind, std::string_view what);

const std::string& text_of(const Document& document, const Value& value, std::string_view what);
std::int64_t integer_of(const Document& document, const Value& value, std::string_view what, std::int64_t low,
                        std::int64_t high);
double number_of(const Document& document, const Value& value, std::string_view what);
bool boolean_of(const Document& document, const Value& value, std::string_view what);

// Fails with the list of words where `text` is none of them. `what` names what they are for: "reliability".
[[noreturn]] void fail_word(const Document& document, const Value& value, std::string_view what,
                            const std::vector<std::string_view>& words);

// The enumerator of a word.
template <typename Words>
auto word_value(const Document& document, const Value& value, std::string_view what, const Words& words) {
  if (value.kind == Kind::kList || value.kind == Kind::kMapping)
    require_kind(document, value, Kind::kString, what);
  if (const auto found = value_of(words, value.text)) return *found;
  fail_word(document, value, what, texts_of(words));
}

// A mapping all of whose keys are known.
class Fields {
 public:
  // `what` names the mapping in messages: "publisher".
  Fields(const Document& document, const Value& value, std::string_view what,
         std::vector<std::string_view> known);

  [[nodiscard]] const Value& value() const { return value_; }
  [[nodiscard]] const Value* find(std::string_view key) const { return value_.find(key); }
  [[nodiscard]] const Value& at(std::string_view key) const;
  void require(std::string_view key) const { static_cast<void>(at(key)); }
  [[nodiscard]] const std::string& text(std::string_view key) const;
  // The items of a list; none where the key is absent.
  [[nodiscard]] const std::vector<Value>& list(std::string_view key) const;

 private:
  const Document& document_;
  const Value& value_;
  std::string_view what_;
};

}  // namespace perflab::graph
