// Syntax of TSDL: from text to blocks with attributes and to types whose names are looked up already.
//
// What the parser does not know yet, because it may stand further down in the text, is left to metadata.cpp:
// the trace's byte order, clocks, and the fields that lengths of sequences and selectors of variants refer
// to.
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

inline constexpr unsigned kDeepest = 100;  // levels of types inside each other

// The right side of `name = ...`, a length in brackets, a selector.
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
  std::string name;  // as in the text, underscore and all
  Location where;
  const TypeNode* type = nullptr;
};

struct LabelNode {
  std::string label;
  Location where;
  // Two's complement; `negative` says which sign the text gave.
  std::uint64_t lowest = 0;
  std::uint64_t highest = 0;
  bool lowest_negative = false;
  bool highest_negative = false;
};

// A type as written. Only what belongs to its kind is filled.
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
    later,  // a name that was not known where it was used: declared at the top level further down, or nowhere
  };
  Kind kind = Kind::integer;
  Location where;
  std::string name;    // of `later`
  std::string advice;  // of `later`: what to do if the name is declared nowhere

  Integer integer;                 // byte order and clock are not filled
  Float floating;                  // the byte order is not filled
  std::optional<ByteOrder> order;  // of both; nothing: that of the trace
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
  std::deque<TypeNode> nodes;  // all types; they stay where they are
  std::vector<std::string> warnings;
};

// Throws MetadataError; `name` stands before the line number in messages.
[[nodiscard]] Document parse(std::string_view text, const std::string& name);

// For messages: "structure", "sequence", ...
[[nodiscard]] std::string_view name_of(TypeNode::Kind kind) noexcept;

[[nodiscard]] std::string joined(const std::vector<std::string>& path);

}  // namespace perflab::ctf::tsdl
