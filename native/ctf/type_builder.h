// Builds the types of fields from types as written (tsdl_parser.h): resolves names, clocks and byte orders,
// and finds the fields that give lengths of sequences and selectors of variants.
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

// A built type, with facts that are needed while other types are built.
struct Built {
  FieldTypePtr type;
  const tsdl::TypeNode* node = nullptr;  // as written, including names
  std::uint64_t fields = 0;              // including nested ones
  std::uint64_t elements = 1;  // number of values in one field; for arrays, of all elements
  unsigned levels = 0;
  bool refers = false;  // contains a sequence or variant, so it depends on its place
};

// Input types of a trace, and the types built from them.
struct Types {
  const tsdl::Document& document;
  const Metadata& metadata;  // for its byte order and clocks
  tsdl::Reporter report;
  std::array<std::optional<Built>, kScopes> scopes{};  // scopes before the current one
  std::uint64_t all_fields = 0;
  std::unordered_map<const tsdl::TypeNode*, Built> shared{};  // types that do not depend on their place
  // Fields by name as written, of the structures that were searched.
  std::unordered_map<const void*, std::unordered_map<std::string_view, std::uint32_t>> indices{};
  std::set<const tsdl::TypeNode*> warned{};
};

// Builds the structure of a scope and makes it known to later scopes. Throws MetadataError.
[[nodiscard]] FieldTypePtr build_scope(Types& types, Scope scope, const tsdl::Attribute& attribute);

}  // namespace perflab::ctf
