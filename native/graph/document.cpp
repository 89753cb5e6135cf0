#include "graph/document.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/text.h"
#include "graph/tree_builder.h"

namespace perflab::graph {
namespace {

constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";
constexpr std::string_view kBlank = " \t\r\n";

// Characters that neither format allows unescaped.
bool is_forbidden(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return (byte < 0x20 && c != '\t' && c != '\n' && c != '\r') || byte == 0x7f;
}

void check_characters(const Document& document) {
  const std::string_view text = document.text();
  if (const std::size_t bad = find_invalid_utf8(text); bad != std::string_view::npos) {
    document.fail(bad, "the text is not UTF-8; save the file as UTF-8");
  }
  const auto control = std::ranges::find_if(text, is_forbidden);
  if (control != text.end()) {
    document.fail(static_cast<std::size_t>(control - text.begin()),
                  fmt::format("control character 0x{:02x}; remove it", static_cast<unsigned char>(*control)));
  }
}

bool is_json(std::string_view label, std::string_view text) {
  if (label.ends_with(".json")) return true;
  const std::size_t first = text.find_first_not_of(kBlank);
  return first != std::string_view::npos && text[first] == '{';
}

}  // namespace

std::string_view name_of(Kind kind) {
  switch (kind) {
    case Kind::kNull:
      return "nothing";
    case Kind::kBoolean:
      return "true or false";
    case Kind::kNumber:
      return "a number";
    case Kind::kString:
      return "a string";
    case Kind::kList:
      return "a list";
    case Kind::kMapping:
      return "a mapping";
  }
  return "a value";
}

const Value* Value::find(std::string_view key) const {
  const auto found = std::ranges::find(keys, key, &Key::text);
  return found == keys.end() ? nullptr : &items[static_cast<std::size_t>(found - keys.begin())];
}

Document::Document(std::string label, std::string text) : label_(std::move(label)), text_(std::move(text)) {
  if (text_.starts_with(kByteOrderMark)) text_.erase(0, kByteOrderMark.size());
  lines_.push_back(0);
  for (std::size_t i = 0; i < text_.size(); ++i) {
    if (text_[i] == '\n') lines_.push_back(i + 1);
  }
}

Position Document::position(std::size_t offset) const {
  offset = std::min(offset, text_.size());
  const auto next = std::ranges::upper_bound(lines_, offset);
  const std::size_t start = *std::prev(next);
  // Continuation bytes of UTF-8 are not characters.
  const auto continuations = std::count_if(
      text_.begin() + static_cast<std::ptrdiff_t>(start), text_.begin() + static_cast<std::ptrdiff_t>(offset),
      [](char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; });
  return {static_cast<std::uint32_t>(next - lines_.begin()),
          static_cast<std::uint32_t>(offset - start - static_cast<std::size_t>(continuations) + 1)};
}

std::string Document::place(std::size_t offset) const {
  const Position at = position(offset);
  return fmt::format("{}:{}:{}", label_, at.line, at.column);
}

void Document::fail(std::size_t offset, std::string_view problem) const {
  throw InputError(fmt::format("{}: {}", place(offset), problem));
}

Document read_document(std::string label, std::string text) {
  if (text.size() > kMaxFileBytes) {
    throw InputError(fmt::format("{}:1:1: the file has {} bytes; at most {} (16 MiB) are read", label,
                                 text.size(), kMaxFileBytes));
  }
  Document document(std::move(label), std::move(text));
  check_characters(document);
  if (document.text().find_first_not_of(kBlank) == std::string::npos) {
    document.fail(0, "the file is empty; a graph needs at least `nodes`");
  }
  document.set_root(is_json(document.label(), document.text()) ? read_json(document) : read_yaml(document));
  return document;
}

}  // namespace perflab::graph
