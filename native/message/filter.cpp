#include "message/filter.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "message/literal.h"

namespace perflab::message {
namespace {

// long double represents all 64-bit integers and all floats exactly.
static_assert(std::numeric_limits<long double>::digits >= 64);

constexpr bool is_letter(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

struct Token {
  enum class Kind { kEnd, kName, kWord, kNumber, kText, kSign };
  Kind kind = Kind::kEnd;
  std::size_t at = 0;        // in the expression
  std::string_view written;  // as written there
  std::string value;         // a word in upper case; a text without its quotes
};

constexpr std::array<std::string_view, 8> kWords{"AND", "OR", "NOT", "BETWEEN", "TRUE", "FALSE", "LIKE", "MATCH"};

std::string capitals(std::string_view text) {
  std::string out(text);
  for (char& c : out) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  return out;
}

template <typename Number>
long double read_as(const std::uint8_t* bytes) noexcept {
  Number number;
  std::memcpy(&number, bytes, sizeof number);
  return static_cast<long double>(number);
}

long double number_of(Primitive primitive, const std::uint8_t* bytes) noexcept {
  switch (primitive) {
    case Primitive::kBool:
      return *bytes != 0 ? 1 : 0;
    case Primitive::kByte:
    case Primitive::kChar:
    case Primitive::kUint8:
      return *bytes;
    case Primitive::kInt8:
      return read_as<std::int8_t>(bytes);
    case Primitive::kInt16:
      return read_as<std::int16_t>(bytes);
    case Primitive::kUint16:
      return read_as<std::uint16_t>(bytes);
    case Primitive::kInt32:
      return read_as<std::int32_t>(bytes);
    case Primitive::kUint32:
      return read_as<std::uint32_t>(bytes);
    case Primitive::kInt64:
      return read_as<std::int64_t>(bytes);
    case Primitive::kUint64:
      return read_as<std::uint64_t>(bytes);
    case Primitive::kFloat32:
      return read_as<float>(bytes);
    case Primitive::kFloat64:
      return read_as<double>(bytes);
    case Primitive::kString:
    case Primitive::kWstring:
      break;
  }
  return 0;
}

}  // namespace

// ---- the expression ----

class Filter::Parser {
 public:
  explicit Parser(Filter& filter) : filter_(filter), text_(filter.expression_) {
    if (text_.size() > kLongest) {
      throw BadInput("filter: the expression has " + std::to_string(text_.size()) + " characters; it must have at most " +
                     std::to_string(kLongest));
    }
    next();
  }

  std::size_t parse() {
    if (now_.kind == Token::Kind::kEnd) throw BadInput("filter: the expression is empty; write one like \"id < 5\"");
    const std::size_t root = disjunction();
    if (now_.kind != Token::Kind::kEnd) fail("AND, OR or the end is expected");
    return root;
  }

 private:
  struct Term {
    Operand operand;
    Sort sort = Sort::kNumber;
    Token token;
  };

  [[noreturn]] void fail_at(const Token& token, const std::string& problem) const {
    const std::string what = token.kind == Token::Kind::kEnd ? std::string("at its end") : quote(token.written);
    throw BadInput("filter: character " + std::to_string(token.at + 1) + ", " + what + ": " + problem);
  }
  [[noreturn]] void fail(const std::string& problem) const { fail_at(now_, problem); }

  // ---- tokens ----

  [[nodiscard]] char peek(std::size_t ahead = 0) const noexcept {
    return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0';
  }

  void next() {
    while (at_ < text_.size() && (is_blank(text_[at_]) || text_[at_] == '\n' || text_[at_] == '\r')) ++at_;
    now_ = {.kind = Token::Kind::kEnd, .at = at_, .written = {}, .value = {}};
    if (at_ == text_.size()) return;
    const char c = peek();
    const bool signed_number = (c == '-' || c == '+') && (is_digit(peek(1)) || peek(1) == '.');
    if (is_letter(c)) {
      name();
    } else if (is_digit(c) || signed_number || (c == '.' && is_digit(peek(1)))) {
      take(Token::Kind::kNumber, number_length());
    } else if (c == '\'') {
      quoted();
    } else {
      sign();
    }
  }
  void take(Token::Kind kind, std::size_t length) {
    now_.kind = kind;
    now_.written = text_.substr(at_, length);
    at_ += length;
  }
  void name() {
    std::size_t length = 0;
    while (is_letter(peek(length)) || is_digit(peek(length)) || peek(length) == '.') ++length;
    take(Token::Kind::kName, length);
    now_.value = capitals(now_.written);
    if (std::ranges::find(kWords, now_.value) != kWords.end()) now_.kind = Token::Kind::kWord;
  }
  [[nodiscard]] std::size_t number_length() const noexcept {
    std::size_t length = 1;
    for (;; ++length) {
      const char c = peek(length);
      const char before = peek(length - 1);
      const bool of_exponent = (c == '-' || c == '+') && (before == 'e' || before == 'E');
      if (!is_digit(c) && !is_letter(c) && c != '.' && !of_exponent) return length;
    }
  }
  void quoted() {
    std::size_t length = 1;
    for (; at_ + length < text_.size(); ++length) {
      if (peek(length) != '\'') {
        now_.value += peek(length);
      } else if (peek(length + 1) == '\'') {
        now_.value += '\'';
        ++length;
      } else {
        take(Token::Kind::kText, length + 1);
        return;
      }
    }
    take(Token::Kind::kText, length);
    fail("the text is not closed; add the closing quote '");
  }
  void sign() {
    const char c = peek();
    const bool two = (c == '<' && (peek(1) == '=' || peek(1) == '>')) || ((c == '>' || c == '!') && peek(1) == '=');
    take(Token::Kind::kSign, two ? 2 : 1);
    if (std::string_view("()=<>").find(c) != std::string_view::npos || two) return;
    if (c == '%') fail("parameters are not supported; write the value itself");
    if (c == '"') fail("write texts in single quotes: 'text'");
    if (c == '[') fail("elements of arrays and sequences are not supported; use a single field");
    fail("is not part of a filter; known are fields, = <> != < <= > >=, BETWEEN, AND, OR, NOT, parentheses and values");
  }
  [[nodiscard]] bool is_word(std::string_view word) const noexcept {
    return now_.kind == Token::Kind::kWord && now_.value == word;
  }
  [[nodiscard]] bool is_sign(std::string_view sign) const noexcept {
    return now_.kind == Token::Kind::kSign && now_.written == sign;
  }

  // ---- conditions ----

  std::size_t add(Node node) {
    filter_.nodes_.push_back(std::move(node));
    return filter_.nodes_.size() - 1;
  }
  std::size_t disjunction() {
    std::size_t left = conjunction();
    while (is_word("OR")) {
      next();
      const std::size_t right = conjunction();
      left = add({.kind = Node::Kind::kOr, .left = left, .right = right});
    }
    return left;
  }
  std::size_t conjunction() {
    std::size_t left = condition();
    while (is_word("AND")) {
      next();
      const std::size_t right = condition();
      left = add({.kind = Node::Kind::kAnd, .left = left, .right = right});
    }
    return left;
  }
  std::size_t condition() {
    if (!is_word("NOT") && !is_sign("(")) return predicate();
    if (++depth_ > kDeepest) fail("more than " + std::to_string(kDeepest) + " nested conditions; use fewer");
    std::size_t made = 0;
    if (is_word("NOT")) {
      next();
      made = add({.kind = Node::Kind::kNot, .left = condition()});
    } else {
      next();
      made = disjunction();
      if (!is_sign(")")) fail("a closing parenthesis is expected, or AND or OR");
      next();
    }
    --depth_;
    return made;
  }
  std::size_t predicate() {
    const Term first = term();
    const bool negated = is_word("NOT");
    if (negated) next();
    if (is_word("BETWEEN")) return range(first, negated);
    if (negated) fail("BETWEEN is expected after NOT");
    if (is_word("LIKE") || is_word("MATCH")) fail("is not supported; compare with = or <>");
    const Token at = now_;
    const std::optional<Compare> compare = comparison();
    if (!compare) {
      fail("a comparison is expected after " + quote(first.token.written) + ": = <> != < <= > >= or BETWEEN" +
           (first.operand.is_field && first.sort == Sort::kBool ? "; a bool alone is written as = TRUE" : ""));
    }
    next();
    return compared(first, at, *compare, term());
  }
  std::size_t range(const Term& field, bool negated) {
    const Token at = now_;
    if (!field.operand.is_field) fail_at(field.token, "BETWEEN must follow a field");
    next();
    const Term lowest = term();
    if (!is_word("AND")) fail("AND and the upper limit are expected after BETWEEN");
    next();
    const Term highest = term();
    for (const Term* const end : {&lowest, &highest}) {
      if (end->operand.is_field)
        fail_at(end->token, "the limits of BETWEEN must be values; compare fields with <= and >=");
    }
    const std::size_t above = compared(field, at, Compare::kGreaterOrEqual, lowest);
    const std::size_t below = compared(field, at, Compare::kLessOrEqual, highest);
    const std::size_t both = add({.kind = Node::Kind::kAnd, .left = above, .right = below});
    return negated ? add({.kind = Node::Kind::kNot, .left = both}) : both;
  }
  std::size_t compared(const Term& first, const Token& at, Compare compare, const Term& second) {
    if (!first.operand.is_field && !second.operand.is_field) fail_at(first.token, "two values are compared; one must be a field");
    if (first.sort != second.sort) {
      const auto told = [](const Term& term) {
        const std::string_view sort = term.sort == Sort::kBool ? "TRUE or FALSE" : term.sort == Sort::kText ? "a text" : "a number";
        return quote(term.token.written) + " is " + std::string(sort);
      };
      fail_at(second.token, told(first) + " and " + told(second) + "; compare like with like");
    }
    const bool orders = compare != Compare::kEqual && compare != Compare::kUnequal;
    if (orders && first.sort == Sort::kBool) fail_at(at, "TRUE and FALSE have no order; use = or <>");
    return add({.kind = Node::Kind::kCompare, .sort = first.sort, .compare = compare, .first = first.operand, .second = second.operand});
  }
  [[nodiscard]] std::optional<Compare> comparison() const noexcept {
    if (is_sign("=")) return Compare::kEqual;
    if (is_sign("<>") || is_sign("!=")) return Compare::kUnequal;
    if (is_sign("<")) return Compare::kLess;
    if (is_sign("<=")) return Compare::kLessOrEqual;
    if (is_sign(">")) return Compare::kGreater;
    if (is_sign(">=")) return Compare::kGreaterOrEqual;
    return std::nullopt;
  }

  // ---- fields and values ----

  Term term() {
    Term read{.operand = {}, .token = now_};
    if (now_.kind == Token::Kind::kName) {
      read.operand.is_field = true;
      read.operand.field = field(now_);
      read.sort = sort_of(filter_.fields_[read.operand.field].primitive);
    } else if (now_.kind == Token::Kind::kText) {
      read.operand.text = now_.value;
      read.sort = Sort::kText;
    } else if (now_.kind == Token::Kind::kNumber) {
      read.operand.number = number(now_);
    } else if (is_word("TRUE") || is_word("FALSE")) {
      read.operand.number = is_word("TRUE") ? 1 : 0;
      read.sort = Sort::kBool;
    } else {
      fail("a field or a value is expected");
    }
    next();
    return read;
  }

  static Sort sort_of(Primitive primitive) noexcept {
    if (primitive == Primitive::kBool) return Sort::kBool;
    return is_text(primitive) ? Sort::kText : Sort::kNumber;
  }

  [[nodiscard]] long double number(const Token& token) const {
    std::string_view digits = token.written;
    const bool negative = digits.front() == '-';
    if (negative || digits.front() == '+') digits.remove_prefix(1);
    const bool hexadecimal = digits.starts_with("0x") || digits.starts_with("0X");
    if (hexadecimal) digits.remove_prefix(2);
    const char* const end = digits.data() + digits.size();
    std::uint64_t whole = 0;
    const auto as_whole = std::from_chars(digits.data(), end, whole, hexadecimal ? 16 : 10);
    if (as_whole.ec == std::errc() && as_whole.ptr == end) {
      const auto value = static_cast<long double>(whole);
      return negative ? -value : value;
    }
    double real = 0;
    const auto as_real = std::from_chars(digits.data(), end, real);
    if (hexadecimal || as_real.ec != std::errc() || as_real.ptr != end)
      fail_at(token, "is not a number, or too large; write it as 12, -3, 0x1F or 1.5e3");
    return negative ? -real : real;
  }

  // The index of the field with this name; adds it on first use.
  std::size_t field(const Token& token) {
    Field found;
    const Type* type = filter_.type_;
    std::string_view left = token.written;
    for (;;) {
      const std::size_t dot = left.find('.');
      const std::string_view name = left.substr(0, dot);
      const Member* const member = type->member(name);
      if (member == nullptr) fail_unknown(token, *type, name);
      found.path.push_back(static_cast<std::size_t>(member - type->members.data()));
      found.offset += member->offset;
      if (member->plurality != Plurality::kOne)
        fail_at(token, quote(name) + " is an array or a sequence, whose elements cannot be used; use a "
                                     "single field");
      if (dot == std::string_view::npos) {
        require_value(token, *member);
        found.primitive = member->element.primitive;
        break;
      }
      if (member->element.type == nullptr)
        fail_at(token, quote(name) + " of " + type->name + " is not a struct and has no fields; remove what "
                                                           "follows it");
      type = member->element.type;
      left.remove_prefix(dot + 1);
    }
    std::vector<Field>& fields = filter_.fields_;
    const auto same = std::ranges::find(fields, found.path, &Field::path);
    if (same != fields.end()) return static_cast<std::size_t>(same - fields.begin());
    if (fields.size() == kMostFields)
      fail_at(token, "the expression has more than " + std::to_string(kMostFields) + " different fields; use fewer");
    fields.push_back(std::move(found));
    return fields.size() - 1;
  }
  void require_value(const Token& token, const Member& member) const {
    if (member.element.type != nullptr)
      fail_at(token, "is a struct; name one of its fields: " + list_of(names_of(*member.element.type)));
    if (member.element.primitive == Primitive::kWstring) fail_at(token, "is a wstring, which is not supported; use a string");
  }
  static std::vector<std::string_view> names_of(const Type& type) {
    std::vector<std::string_view> names;
    for (const Member& member : type.members) names.emplace_back(member.name);
    return names;
  }
  [[noreturn]] void fail_unknown(const Token& token, const Type& type, std::string_view name) const {
    const std::vector<std::string_view> names = names_of(type);
    const std::string_view near = closest(name, names);
    fail_at(token, type.name + " has no field " + quote(name) + "; " +
                       (near.empty() ? "its fields are " + list_of(names) : "did you mean " + std::string(near) + "?"));
  }

  Filter& filter_;
  std::string_view text_;
  std::size_t at_ = 0;
  Token now_;
  std::size_t depth_ = 0;
};

Filter::Filter(const Type& type, std::string_view expression) : type_(&type), expression_(expression) {
  root_ = Parser(*this).parse();
  sort_fields();
}

void Filter::sort_fields() {
  std::vector<std::size_t> order(fields_.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::ranges::sort(order, {}, [this](std::size_t i) -> const auto& { return fields_[i].path; });
  std::vector<std::size_t> place(order.size());
  std::vector<Field> sorted;
  for (const std::size_t from : order) {
    place[from] = sorted.size();
    sorted.push_back(std::move(fields_[from]));
  }
  fields_ = std::move(sorted);
  for (Node& node : nodes_) {
    for (Operand* const operand : {&node.first, &node.second}) {
      if (operand->is_field) operand->field = place[operand->field];
    }
  }
}

bool Filter::reads(std::size_t offset, std::size_t size) const noexcept {
  return std::ranges::any_of(fields_, [&](const Field& field) {
    const std::size_t bytes = is_text(field.primitive) ? sizeof(Sequence) : size_of(field.primitive);
    return field.offset < offset + size && offset < field.offset + bytes;
  });
}

// ---- messages ----

// A string, possibly in several pieces: the bytes at hand, and how many follow from a position in the pieces
// on.
struct Filter::Text {
  const std::uint8_t* data;
  std::size_t size;
  Source::Place rest_at;
  std::uint64_t rest;

  // The next bytes; empty at the end.
  std::span<const std::uint8_t> next(Pieces pieces) noexcept {
    if (size == 0 && rest > 0) {
      while (rest_at.within == pieces[rest_at.piece].size()) rest_at = {rest_at.piece + 1, 0};
      const auto piece = pieces[rest_at.piece].subspan(rest_at.within);
      data = piece.data();
      size = static_cast<std::size_t>(std::min<std::uint64_t>(rest, piece.size()));
      rest_at.within += size;
      rest -= size;
    }
    return {data, size};
  }
  void drop(std::size_t count) noexcept {
    data += count;
    size -= count;
  }
};

// The value of one field of a message.
struct Filter::Value {
  union {
    long double number;
    Text text;
  };
};

// Reads the fields of a message in order.
class Filter::Reader {
 public:
  Reader(const Filter& filter, Pieces pieces, Value* values) noexcept : filter_(filter), from_(pieces), values_(values) {}

  bool read() noexcept { return from_.open() && structure(*filter_.type_, 0, filter_.fields_.size(), 0, false); }

 private:
  // Reads the fields `first` to `last`, all in this struct, at `depth` of their paths; `whole`: also skips
  // the rest of the struct.
  bool structure(const Type& type, std::size_t first, std::size_t last, std::size_t depth, bool whole) noexcept {
    std::size_t at = 0;
    while (first < last) {
      const std::size_t wanted = filter_.fields_[first].path[depth];
      for (; at < wanted; ++at) {
        if (!leave_member(type.members[at])) return false;
      }
      std::size_t end = first + 1;
      while (end < last && filter_.fields_[end].path[depth] == wanted) ++end;
      const bool nested = filter_.fields_[first].path.size() > depth + 1;
      if (!(nested ? structure(*type.members[at].element.type, first, end, depth + 1, whole || end < last)
                   : value(filter_.fields_[first], values_[first])))
        return false;
      first = end;
      ++at;
    }
    for (; whole && at < type.members.size(); ++at) {
      if (!leave_member(type.members[at])) return false;
    }
    return true;
  }
  bool leave_member(const Member& member) noexcept {
    std::uint64_t count = member.in_place();
    if (member.is_sequence() && !from_.length(count)) return false;
    return leave(member.element, count, from_);
  }
  bool value(const Field& field, Value& to) noexcept {
    if (is_text(field.primitive)) return text(to.text);
    std::uint8_t bytes[8];
    if (!from_.native(size_of(field.primitive), bytes)) return false;
    to.number = number_of(field.primitive, bytes);
    return true;
  }
  bool text(Text& to) noexcept {
    std::uint64_t length = 0;
    if (!from_.length(length)) return false;
    // The length counts the zero; an empty string may omit it.
    const std::uint64_t characters = length > 0 ? length - 1 : 0;
    const auto lent = from_.lend(static_cast<std::size_t>(characters));
    to = {lent.data(), lent.size(), from_.place(), characters - lent.size()};
    return from_.take(static_cast<std::size_t>(length - lent.size()));
  }

  const Filter& filter_;
  Source from_;
  Value* values_;
};

class Filter::Evaluation {
 public:
  Evaluation(const Filter& filter, Pieces pieces, const Value* values) noexcept
      : filter_(filter), pieces_(pieces), values_(values) {}

  [[nodiscard]] bool holds(std::size_t index) const noexcept {
    const Node& node = filter_.nodes_[index];
    switch (node.kind) {
      case Node::Kind::kAnd:
        return holds(node.left) && holds(node.right);
      case Node::Kind::kOr:
        return holds(node.left) || holds(node.right);
      case Node::Kind::kNot:
        return !holds(node.left);
      case Node::Kind::kCompare:
        break;
    }
    if (node.sort == Sort::kText) return applies(node.compare, compare(text(node.first), text(node.second)), 0);
    return applies(node.compare, number(node.first), number(node.second));
  }

 private:
  template <typename Number>
  static bool applies(Compare compare, Number first, Number second) noexcept {
    switch (compare) {
      case Compare::kEqual:
        return first == second;
      case Compare::kUnequal:
        return first != second;
      case Compare::kLess:
        return first < second;
      case Compare::kLessOrEqual:
        return first <= second;
      case Compare::kGreater:
        return first > second;
      case Compare::kGreaterOrEqual:
        return first >= second;
    }
    return false;
  }
  [[nodiscard]] long double number(const Operand& operand) const noexcept {
    return operand.is_field ? values_[operand.field].number : operand.number;
  }
  [[nodiscard]] Text text(const Operand& operand) const noexcept {
    if (operand.is_field) return values_[operand.field].text;
    return {reinterpret_cast<const std::uint8_t*>(operand.text.data()), operand.text.size(), {}, 0};
  }
  // Negative, 0 or positive, like memcmp().
  [[nodiscard]] int compare(Text first, Text second) const noexcept {
    for (;;) {
      const auto one = first.next(pieces_);
      const auto other = second.next(pieces_);
      const std::size_t both = std::min(one.size(), other.size());
      if (both == 0) return one.empty() ? (other.empty() ? 0 : -1) : 1;
      if (const int order = std::memcmp(one.data(), other.data(), both); order != 0) return order;
      first.drop(both);
      second.drop(both);
    }
  }

  const Filter& filter_;
  Pieces pieces_;
  const Value* values_;
};

Filter::Match Filter::match(Pieces pieces) const noexcept {
  Value values[kMostFields];
  if (!Reader(*this, pieces, values).read()) return Match::kMalformed;
  return Evaluation(*this, pieces, values).holds(root_) ? Match::kYes : Match::kNo;
}

bool Filter::match_object(const void* object) const noexcept {
  Value values[kMostFields];
  const auto* const bytes = static_cast<const std::uint8_t*>(object);
  for (std::size_t i = 0; i < fields_.size(); ++i) {
    const Field& field = fields_[i];
    if (!is_text(field.primitive)) {
      values[i].number = number_of(field.primitive, bytes + field.offset);
      continue;
    }
    Sequence text;
    std::memcpy(&text, bytes + field.offset, sizeof text);
    values[i].text = {static_cast<const std::uint8_t*>(text.data), text.size, {}, 0};
  }
  return Evaluation(*this, {}, values).holds(root_);
}

}  // namespace perflab::message
