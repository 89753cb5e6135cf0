// From types as they are written (tsdl_parser.h) to the types of fields: names, clocks and byte orders are
// looked up, and the lengths of sequences and selectors of variants found among the fields before them.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <unordered_map>

#include "ctf/metadata.h"
#include "ctf/tsdl_parser.h"

namespace perflab::ctf {

inline constexpr std::array<const char*, kScopes> kScopeNames = {
    "trace.packet.header",  "stream.packet.context", "stream.event.header",
    "stream.event.context", "event.context",         "event.fields"};

[[nodiscard]] constexpr std::size_t index_of(Scope scope) noexcept { return static_cast<std::size_t>(scope); }

// A type with what is known of it while types are built.
struct Built {
  FieldTypePtr type;
  const tsdl::TypeNode* node = nullptr;  // as written: has the names as written
  std::uint64_t fields = 0;              // with all inside
  std::uint64_t elements = 1;  // integers, texts and so on in one field; of arrays: of all elements
  unsigned levels = 0;
  bool refers = false;  // has a sequence or variant inside: differs from place to place
};

// What the types of a trace are built from, and those that are built.
struct Types {
  const tsdl::Document& document;
  const Metadata& metadata;  // its byte order and its clocks
  tsdl::Reporter report;
  std::array<std::optional<Built>, kScopes> scopes{};  // those that come before what is being built
  std::uint64_t all_fields = 0;
  std::unordered_map<const tsdl::TypeNode*, Built> shared{};  // types that are the same in all places
  // Of structures that were looked into: the fields by their names as written.
  std::unordered_map<const void*, std::unordered_map<std::string_view, std::uint32_t>> indices{};
  std::set<const tsdl::TypeNode*> warned{};
};

// The structure of a scope, which is known afterwards to scopes that come later. Throws MetadataError.
[[nodiscard]] FieldTypePtr build_scope(Types& types, Scope scope, const tsdl::Attribute& attribute);

}  // namespace perflab::ctf
