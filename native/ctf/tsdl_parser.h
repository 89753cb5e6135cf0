// Syntax of TSDL: parses text to blocks with attributes, and to types with resolved names.
//
// metadata.cpp resolves what may be declared further down in the text: the trace's byte order, clocks, and
// the fields that give lengths of sequences and selectors of variants.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ctf/field_type.h"
#include "ctf/tsdl_lexer.h"

namespace perflab::ctf::tsdl {

inline constexpr unsigned kDeepest = 100;  // maximum nesting of types

// The right side of `name = ...`, a length in brackets, or a selector.
struct Expression {
  enum class Kind : std::uint8_t { integer, text, path };
  Kind kind = Kind::integer;
  Location where;
  std::uint64_t magnitude = 0;  // of integers
  bool negative = false;
  std::string text;               // of texts
  std::vector<std::string> path;  // of words with dots in between
};

struct TypeNode;

struct FieldNode {
  std::string name;  // as in the text, including underscores
  Location where;
  const TypeNode* type = nullptr;
};

struct LabelNode {
  std::string label;
  Location where;
  // Two's complement; `negative` is the sign in the text.
  std::uint64_t lowest = 0;
  std::uint64_t highest = 0;
  bool lowest_negative = false;
  bool highest_negative = false;
};

// A type as written. Only the members of its kind are set.
struct TypeNode {
  enum class Kind : std::uint8_t {
    integer,
    floating,
    text,
    enumeration,
    structure,
    variant,
    array,
    sequence,
    later,  // a name that was unknown at its use: declared further down at the top level, or nowhere
  };
  Kind kind = Kind::integer;
  Location where;
  std::string name;    // of `later`
  std::string advice;  // of `later`: advice if the name is declared nowhere

  Integer integer;                 // without byte order and clock
  Float floating;                  // without the byte order
  std::optional<ByteOrder> order;  // of integers and floats; nothing means the trace's
  std::optional<Expression> map;   // of integers

  const TypeNode* element = nullptr;  // of arrays and sequences; the integer of an enumeration
  std::uint64_t length = 0;           // of arrays
  std::optional<Expression> path;     // length of a sequence, selector of a variant

  std::vector<LabelNode> labels;
  std::shared_ptr<const std::vector<FieldNode>> fields;  // of structures; options of variants
  std::uint32_t alignment = 1;                           // of structures: align(N)
};

struct Attribute {
  std::string name;  // with its dots: "event.header"
  Location where;
  const TypeNode* type = nullptr;  // of `name := type`, else null
  Expression value;
};

struct Block {
  std::string kind;  // "trace", "stream", ...
  Location where;
  std::vector<Attribute> attributes;
};

struct Document {
  std::vector<Block> blocks;
  std::unordered_map<std::string, const TypeNode*>
      types;                   // of the top level; "struct x", "enum x", "variant x", or "x"
  std::deque<TypeNode> nodes;  // owner of all types; addresses are stable
  std::vector<std::string> warnings;
};

// Throws MetadataError; `name` stands before the line number in messages.
[[nodiscard]] Document parse(std::string_view text, const std::string& name);

// For messages: "structure", "sequence", ...
[[nodiscard]] std::string_view name_of(TypeNode::Kind kind) noexcept;

[[nodiscard]] std::string joined(const std::vector<std::string>& path);

}  // namespace perflab::ctf::tsdl
