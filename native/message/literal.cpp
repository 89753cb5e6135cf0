#include "message/literal.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <system_error>
#include <utility>

#include "base/text.h"

namespace perflab::message {
namespace {

struct Named {
  std::string_view name;
  Primitive primitive;
};

constexpr std::array kPrimitives{
    Named{"bool", Primitive::kBool},         Named{"byte", Primitive::kByte},
    Named{"char", Primitive::kChar},         Named{"int8", Primitive::kInt8},
    Named{"uint8", Primitive::kUint8},       Named{"int16", Primitive::kInt16},
    Named{"uint16", Primitive::kUint16},     Named{"int32", Primitive::kInt32},
    Named{"uint32", Primitive::kUint32},     Named{"int64", Primitive::kInt64},
    Named{"uint64", Primitive::kUint64},     Named{"float32", Primitive::kFloat32},
    Named{"float64", Primitive::kFloat64},   Named{"string", Primitive::kString},
    Named{"wstring", Primitive::kWstring},
};

Literal refused(std::string problem) { return {std::nullopt, std::move(problem)}; }

// Removes underscores between digits of this base, as Python allows; empty if one is anywhere else.
std::optional<std::string> without_underscores(std::string_view number, int base) {
  const auto digit_at = [&](std::size_t index) {
    unsigned value = 0;
    if (index >= number.size()) return false;
    return std::from_chars(&number[index], &number[index] + 1, value, base).ec == std::errc{};
  };
  std::string result;
  for (std::size_t i = 0; i < number.size(); ++i) {
    if (number[i] != '_') {
      result += number[i];
    } else if (i == 0 || !digit_at(i - 1) || !digit_at(i + 1)) {
      return std::nullopt;
    }
  }
  return result;
}

struct Integer {
  bool negative = false;
  std::uint64_t magnitude = 0;
  bool outside = false;  // exceeds 64 bits; the magnitude is then meaningless
};

std::optional<Integer> read_integer(std::string_view text) {
  Integer integer;
  if (text.starts_with('-') || text.starts_with('+')) {
    integer.negative = text[0] == '-';
    text.remove_prefix(1);
  }
  int base = 10;
  if (text.size() > 2 && text[0] == '0') {
    const char letter = static_cast<char>(text[1] | 0x20);  // in lower case
    base = letter == 'x' ? 16 : letter == 'o' ? 8 : letter == 'b' ? 2 : 10;
    if (base != 10) text.remove_prefix(text[2] == '_' ? 3 : 2);
  }
  const std::optional<std::string> digits = without_underscores(text, base);
  if (!digits || digits->empty()) return std::nullopt;
  const char* const end = digits->data() + digits->size();
  const auto [last, code] = std::from_chars(digits->data(), end, integer.magnitude, base);
  if (last != end || code == std::errc::invalid_argument) return std::nullopt;
  integer.outside = code == std::errc::result_out_of_range;
  return integer;
}

Literal read_unsigned(Primitive type, std::string_view text) {
  const std::uint64_t most = ~std::uint64_t{0} >> (64 - 8 * size_of(type));
  const std::optional<Integer> integer = read_integer(text);
  const bool below = integer && integer->negative && integer->magnitude != 0;
  if (!integer || integer->outside || below || integer->magnitude > most) {
    return refused(quote(text) + " is not a " + std::string(name_of(type)) +
                   "; use a whole number from 0 to " + std::to_string(most));
  }
  return {Value(integer->magnitude), {}};
}

Literal read_signed(Primitive type, std::string_view text) {
  const std::uint64_t most = ~std::uint64_t{0} >> (65 - 8 * size_of(type));
  const std::optional<Integer> integer = read_integer(text);
  if (!integer || integer->outside || integer->magnitude > most + (integer->negative ? 1 : 0)) {
    return refused(quote(text) + " is not an " + std::string(name_of(type)) + "; use a whole number from -" +
                   std::to_string(most + 1) + " to " + std::to_string(most));
  }
  const std::uint64_t bits = integer->negative ? ~integer->magnitude + 1 : integer->magnitude;
  return {Value(static_cast<std::int64_t>(bits)), {}};
}

Literal read_bool(std::string_view text) {
  const std::string word = lower_case(text);
  if (word == "true" || word == "1") return {Value(true), {}};
  if (word == "false" || word == "0") return {Value(false), {}};
  return refused(quote(text) + " is not a bool; use true, false, 1 or 0");
}

Literal read_float(Primitive type, std::string_view text) {
  // Half a unit in the last place above the largest float32: smaller values round to it.
  constexpr double kFloat32End = 0x1.ffffffp127;
  const auto problem = [&](std::string_view what) {
    return refused(quote(text) + " is not a " + std::string(name_of(type)) + "; " + std::string(what));
  };
  std::string_view rest = text;
  const bool negative = rest.starts_with('-');
  if (negative || rest.starts_with('+')) rest.remove_prefix(1);
  // No words (inf, nan), no second sign, no hexadecimal digits: IDL does not accept them.
  const bool number = !rest.empty() && (is_digit(rest[0]) || rest[0] == '.');
  const std::optional<std::string> digits = number ? without_underscores(rest, 10) : std::nullopt;
  if (!digits) return problem("use a number such as -1.5 or 2e-3");
  double value = 0;
  const char* const end = digits->data() + digits->size();
  const auto [last, code] = std::from_chars(digits->data(), end, value);
  if (last != end || code == std::errc::invalid_argument) return problem("use a number such as -1.5 or 2e-3");
  if (code == std::errc::result_out_of_range || (type == Primitive::kFloat32 && value >= kFloat32End)) {
    return problem(type == Primitive::kFloat32 ? "its largest is 3.4028235e38"
                                               : "its largest is 1.7976931348623157e308");
  }
  return {Value(negative ? -value : value), {}};
}

void append_utf8(std::string& text, std::uint32_t code) {
  const auto add = [&](std::uint32_t byte) { text += static_cast<char>(byte); };
  if (code < 0x80) {
    add(code);
  } else if (code < 0x800) {
    add(0xc0 | code >> 6);
    add(0x80 | (code & 0x3f));
  } else {
    add(0xe0 | code >> 12);
    add(0x80 | (code >> 6 & 0x3f));
    add(0x80 | (code & 0x3f));
  }
}

// Removes a number of up to `most` digits from the front of `text`; empty if there is none.
std::optional<std::uint32_t> take_number(std::string_view& text, std::size_t most, int base) {
  std::uint32_t number = 0;
  const char* const end = text.data() + std::min(text.size(), most);
  const auto [last, code] = std::from_chars(text.data(), end, number, base);
  if (code != std::errc{}) return std::nullopt;
  text.remove_prefix(static_cast<std::size_t>(last - text.data()));
  return number;
}

// Escapes of IDL 4.2, table 7-9. A backslash before any other character is literal.
std::optional<std::string> unescaped(std::string_view text) {
  constexpr std::string_view kLetters = "ntvbrfa\\?'\"";
  constexpr std::string_view kMeanings = "\n\t\v\b\r\f\a\\?'\"";
  std::string result;
  while (!text.empty()) {
    const char c = text[0];
    text.remove_prefix(1);
    if (c != '\\' || text.empty()) {
      result += c;
      continue;
    }
    if (const std::size_t letter = kLetters.find(text[0]); letter != std::string_view::npos) {
      result += kMeanings[letter];
      text.remove_prefix(1);
      continue;
    }
    std::string_view rest = text;
    const bool named = rest[0] == 'x' || rest[0] == 'u';
    const std::size_t most = rest[0] == 'x' ? 2 : rest[0] == 'u' ? 4 : 3;
    if (named) rest.remove_prefix(1);
    const std::optional<std::uint32_t> code = take_number(rest, most, named ? 16 : 8);
    if (!code) {
      result += c;
      continue;
    }
    if (*code == 0 || (*code >= 0xd800 && *code <= 0xdfff)) return std::nullopt;
    append_utf8(result, *code);
    text = rest;
  }
  return result;
}

// Bytes of UTF-8, or units of UTF-16: characters beyond 16 bits, with four bytes, take two.
std::size_t length_of(Primitive type, std::string_view utf8) {
  if (type == Primitive::kString) return utf8.size();
  std::size_t units = 0;
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    units += byte >= 0xf0 ? 2 : (byte & 0xc0) != 0x80 ? 1 : 0;
  }
  return units;
}

Literal read_text(Primitive type, std::uint64_t bound, std::string_view written) {
  std::string text(written);
  for (const char mark : {'"', '\''}) {
    if (!written.starts_with(mark) || !written.ends_with(mark)) continue;
    text.clear();
    const std::string_view inner = written.size() < 2 ? "" : written.substr(1, written.size() - 2);
    for (std::size_t i = 0; i < inner.size(); ++i) {
      if (inner[i] == mark && !text.ends_with('\\')) {
        return refused("a quotation mark within " + quote(written) + " ends the text; write \\" + mark);
      }
      if (inner[i] == mark) text.pop_back();
      text += inner[i];
    }
    break;
  }
  std::optional<std::string> value = unescaped(text);
  if (!value) {
    return refused(quote(written) + " has an escape that is not allowed in text (NUL or a surrogate); remove "
                                    "it");
  }
  if (const std::size_t length = length_of(type, *value); bound > 0 && length > bound) {
    return refused(quote(written) + " has " + std::to_string(length) +
                   (type == Primitive::kString ? " bytes" : " units of UTF-16") + "; " +
                   std::string(name_of(type)) + "<=" + std::to_string(bound) + " takes at most " +
                   std::to_string(bound));
  }
  return {Value(*std::move(value)), {}};
}

// The end of the quoted text at the front of `text`, after its closing mark; npos if it is not closed.
std::size_t end_of_quoted(std::string_view text) {
  for (std::size_t i = 1; i < text.size(); ++i) {
    if (text[i] == text[0] && text[i - 1] != '\\') return i + 1;
  }
  return std::string_view::npos;
}

}  // namespace

std::string_view name_of(Primitive primitive) noexcept {
  return std::ranges::find(kPrimitives, primitive, &Named::primitive)->name;
}

std::optional<Primitive> primitive_of(std::string_view name) noexcept {
  const auto* const found = std::ranges::find(kPrimitives, name, &Named::name);
  if (found == kPrimitives.end()) return std::nullopt;
  return found->primitive;
}

std::vector<std::string_view> primitive_names() {
  std::vector<std::string_view> names;
  for (const Named& named : kPrimitives) names.push_back(named.name);
  return names;
}

std::string lower_case(std::string_view text) {
  std::string result(text);
  for (char& c : result) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return result;
}

std::string_view trimmed(std::string_view text) noexcept {
  while (!text.empty() && is_blank(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_blank(text.back())) text.remove_suffix(1);
  return text;
}

Literal read_literal(Primitive type, std::uint64_t text_bound, std::string_view text) {
  switch (type) {
    case Primitive::kBool:
      return read_bool(text);
    case Primitive::kInt8:
    case Primitive::kInt16:
    case Primitive::kInt32:
    case Primitive::kInt64:
      return read_signed(type, text);
    case Primitive::kByte:
    case Primitive::kChar:
    case Primitive::kUint8:
    case Primitive::kUint16:
    case Primitive::kUint32:
    case Primitive::kUint64:
      return read_unsigned(type, text);
    case Primitive::kFloat32:
    case Primitive::kFloat64:
      return read_float(type, text);
    case Primitive::kString:
    case Primitive::kWstring:
      return read_text(type, text_bound, text);
  }
  return refused("no type");
}

Elements split_elements(std::string_view text, bool are_texts) {
  Elements elements;
  const auto refuse = [&](std::size_t at, std::string problem) {
    elements.at = at;
    elements.problem = std::move(problem);
    return elements;
  };
  if (text.size() < 2 || !text.starts_with('[') || !text.ends_with(']')) {
    return refuse(0, quote(text) + " is not a list of values; write [VALUE, VALUE]");
  }
  const std::size_t end = text.size() - 1;
  if (trimmed(text.substr(1, end - 1)).empty()) return elements;
  std::size_t at = 1;
  while (true) {
    while (at < end && is_blank(text[at])) ++at;
    // A trailing comma after the last string is allowed, as in rosidl_adapter.
    if (are_texts && at == end && !elements.texts.empty()) return elements;
    const bool quoted = are_texts && at < end && (text[at] == '"' || text[at] == '\'');
    std::size_t stop = std::min(end, text.find(',', at));
    if (quoted) {
      const std::size_t length = end_of_quoted(text.substr(at, end - at));
      if (length == std::string_view::npos) {
        return refuse(at, "the quotation mark is never closed; end the value with another");
      }
      stop = std::min(end, text.find_first_not_of(" \t", at + length));
      if (stop != end && text[stop] != ',') return refuse(stop, "a comma is missing; write [VALUE, VALUE]");
    }
    const std::string_view element = trimmed(text.substr(at, stop - at));
    if (element.empty()) return refuse(at, "a value is missing; write [VALUE, VALUE]");
    elements.texts.push_back(element);
    if (stop == end) return elements;
    at = stop + 1;
  }
}

}  // namespace perflab::message
