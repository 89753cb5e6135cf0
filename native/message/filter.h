// Content filters: select the messages that a reader wants, in the subset of SQL defined by DDS (DDS 1.4,
// annex B).
//
//   a comparison   FIELD OPERATOR VALUE, VALUE OPERATOR FIELD or FIELD OPERATOR FIELD; operators are = <> != < <= > >=
//   a range        FIELD BETWEEN VALUE AND VALUE, inclusive; FIELD NOT BETWEEN ...
//   combinations   AND, OR, NOT and parentheses; NOT binds tighter than AND, AND tighter than OR
//   a field        of the type, or of a nested struct: "id", "header.sequence"; a single number, bool or string
//   a value        a number (12, -3, 0x1F, 1.5e3), TRUE or FALSE, a text in single quotes, where '' is a quote
//
// Keywords are case-insensitive. Numbers are compared by exact value, regardless of type: no float32 equals
// 0.1. Strings are compared byte by byte, bools only with = and <>. Not supported: LIKE and MATCH, parameters
// (%0), elements of arrays and sequences, wstring.
//
// A filter is compiled once and then evaluated on encoded messages without decoding them, or on structs of
// the type. Evaluation does not allocate.
//
// Example:
//   const Filter filter(type, "range BETWEEN 0.5 AND 10 AND NOT frame = 'map'");
//   const std::span<const std::uint8_t> pieces[] = {bytes};
//   if (filter.match(pieces) == Filter::Match::kYes) use(bytes);
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "message/source.h"
#include "message/type.h"

namespace perflab::message {

class Filter {
 public:
  static constexpr std::size_t kLongest = 1000;    // characters of an expression
  static constexpr std::size_t kMostFields = 16;   // different fields in an expression
  static constexpr std::size_t kDeepest = 64;      // nesting of parentheses and NOTs

  // `type` must outlive the filter. Throws BadInput with one line: the place in the expression, what is wrong
  // there, and what would be right.
  Filter(const Type& type, std::string_view expression);

  [[nodiscard]] const std::string& expression() const noexcept { return expression_; }
  // True if the filter depends on these bytes of the struct.
  [[nodiscard]] bool reads(std::size_t offset, std::size_t size) const noexcept;

  enum class Match : std::uint8_t { kNo, kYes, kMalformed };  // kMalformed: the bytes are not a message of
                                                              // the type

  // Evaluates an encoded message of either byte order. Reads no further than the last field needed.
  [[nodiscard]] Match match(Pieces pieces) const noexcept;
  // Evaluates a struct of the type.
  [[nodiscard]] bool match_object(const void* object) const noexcept;

 private:
  enum class Sort : std::uint8_t { kNumber, kBool, kText };
  enum class Compare : std::uint8_t { kEqual, kUnequal, kLess, kLessOrEqual, kGreater, kGreaterOrEqual };
  struct Field {
    std::vector<std::size_t> path;  // indexes of members, from the outermost struct inwards
    std::size_t offset = 0;         // in the struct
    Primitive primitive = Primitive::kBool;
  };
  // A field, or a value of the expression.
  struct Operand {
    bool is_field = false;
    std::size_t field = 0;
    long double number = 0;
    std::string text;
  };
  struct Node {
    enum class Kind : std::uint8_t { kAnd, kOr, kNot, kCompare };
    Kind kind = Kind::kCompare;
    std::size_t left = 0;  // nodes
    std::size_t right = 0;
    Sort sort = Sort::kNumber;
    Compare compare = Compare::kEqual;
    Operand first{};
    Operand second{};
  };
  struct Text;
  struct Value;
  class Parser;
  class Reader;
  class Evaluation;

  void sort_fields();

  const Type* type_;
  std::string expression_;
  std::vector<Field> fields_;  // in message order
  std::vector<Node> nodes_;
  std::size_t root_ = 0;
};

}  // namespace perflab::message
