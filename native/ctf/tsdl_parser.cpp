#include "ctf/tsdl_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <unordered_set>
#include <utility>

namespace perflab::ctf::tsdl {

namespace {

constexpr std::uint64_t kLargestAlignment = std::uint64_t{1} << 20;  // bits; a page is 2^15

constexpr std::array<std::string_view, 12> kBaseWords = {"void",   "char",  "short",    "int",
                                                         "long",   "float", "double",   "unsigned",
                                                         "signed", "_Bool", "_Complex", "_Imaginary"};
constexpr std::array<std::string_view, 6> kBlocks = {"trace", "env", "clock", "stream", "event", "callsite"};

template <std::size_t N>
bool is_one_of(std::string_view word, const std::array<std::string_view, N>& words) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// Names of types that are visible in a block, a structure or a variant, and not outside.
struct Names {
  Names* outer = nullptr;
  std::unordered_map<std::string, const TypeNode*> types;
};

// A type as named or written in front of a declarator. Which type a name means depends on the declarator's
// stars.
struct Specifier {
  const TypeNode* type = nullptr;  // null: `name` is still to be looked up
  std::string name;
  Location where;
};

class Parser : Reporter {
 public:
  Parser(std::string_view text, const std::string& name)
      : Reporter(name, document_.warnings), lexer_(text, name) {}

  Document parse() {
    Names top;
    names_ = &top;
    while (peek().kind != TokenKind::end) {
      if (accept(";")) continue;
      const bool is_block =
          peek().kind == TokenKind::word && peek(1).spelling == "{" && !is_type_start(peek().spelling);
      if (is_block && is_one_of(peek().spelling, kBlocks)) {
        parse_block();
      } else if (is_block) {
        skip_unknown_block();
      } else {
        parse_declaration();
      }
    }
    document_.types = std::move(top.types);
    return std::move(document_);
  }

 private:
  // Tokens.

  const Token& peek(std::size_t ahead = 0) {
    while (ahead_.size() <= ahead) ahead_.push_back(lexer_.next());
    return ahead_[ahead];
  }

  Token take() {
    Token token = std::move(const_cast<Token&>(peek()));
    ahead_.pop_front();
    return token;
  }

  bool is_mark(std::string_view mark) { return peek().kind == TokenKind::mark && peek().spelling == mark; }

  bool is_word(std::string_view word) { return peek().kind == TokenKind::word && peek().spelling == word; }

  bool accept(std::string_view mark) {
    if (!is_mark(mark)) return false;
    take();
    return true;
  }

  [[noreturn]] void unexpected(const std::string& wanted) {
    const Token& token = peek();
    if (token.kind == TokenKind::end) {
      if (!open_.empty()) {
        fail(token.where,
             "the text ends inside the braces that were opened at line {}, column {}; '}}' is missing",
             open_.back().line, open_.back().column);
      }
      fail(token.where, "the text ends where {} would be right", wanted);
    }
    fail(token.where, "{} where {} would be right", in_quotes(token.spelling), wanted);
  }

  void expect(std::string_view mark, const char* after) {
    if (!accept(mark)) unexpected(fmt::format("'{}' {}", mark, after));
  }

  void open_brace(const char* after) {
    const Location where = peek().where;
    expect("{", after);
    open_.push_back(where);
  }

  // True at the closing brace, which is taken.
  bool close_brace() {
    if (!is_mark("}")) return false;
    take();
    open_.pop_back();
    return true;
  }

  Token take_word(const char* wanted) {
    if (peek().kind != TokenKind::word) unexpected(wanted);
    return take();
  }

  // Blocks.

  void parse_block() {
    Block block;
    const Token kind = take_word("a block");
    block.kind = kind.spelling;
    block.where = kind.where;
    Names inner{names_, {}};
    names_ = &inner;
    in_block_ = true;
    open_brace("after the name of the block");
    while (!close_brace()) {
      if (accept(";")) continue;
      if (is_attribute()) {
        block.attributes.push_back(parse_attribute(true));
      } else {
        parse_declaration();
      }
    }
    names_ = inner.outer;
    in_block_ = false;
    expect(";", "after the block");
    document_.blocks.push_back(std::move(block));
  }

  void skip_unknown_block() {
    const Token kind = take();
    warn(kind.where,
         "the block {} is unknown and passed over; known are trace, env, clock, stream, event "
         "and callsite",
         in_quotes(kind.spelling));
    open_brace("");
    const std::size_t outside = open_.size() - 1;
    while (open_.size() > outside) {
      if (is_mark("{")) {
        open_brace("");
      } else if (!close_brace()) {
        if (peek().kind == TokenKind::end) unexpected("");
        take();
      }
    }
    expect(";", "after the block");
  }

  bool is_attribute() {
    if (peek().kind != TokenKind::word) return false;
    const Token& second = peek(1);
    return second.kind == TokenKind::mark && (second.spelling == "=" || second.spelling == ":=" ||
                                              second.spelling == "." || second.spelling == "->");
  }

  Attribute parse_attribute(bool types_allowed) {
    Attribute attribute;
    attribute.where = peek().where;
    attribute.name = joined(parse_path("the name of an attribute"));
    if (types_allowed && accept(":=")) {
      attribute.type = parse_abstract_type();
    } else {
      expect("=", "after the name of an attribute");
      attribute.value = parse_expression();
    }
    expect(";", "after the attribute");
    return attribute;
  }

  std::vector<std::string> parse_path(const char* wanted) {
    std::vector<std::string> path;
    do {
      path.emplace_back(take_word(wanted).spelling);
    } while (accept(".") || accept("->"));
    return path;
  }

  Expression parse_expression() {
    Expression expression;
    expression.where = peek().where;
    if (accept("(")) {
      if (is_mark("(")) unexpected("a value");
      expression = parse_expression();
      expect(")", "after the value");
      return expression;
    }
    if (is_mark("+") || is_mark("-")) {
      expression.negative = take().spelling == "-";
      if (peek().kind != TokenKind::integer) unexpected("an integer");
    }
    switch (peek().kind) {
      case TokenKind::integer:
        expression.kind = Expression::Kind::integer;
        expression.magnitude = take().value;
        break;
      case TokenKind::text:
        expression.kind = Expression::Kind::text;
        expression.text = take().text;
        while (peek().kind == TokenKind::text) expression.text += take().text;
        break;
      case TokenKind::word:
        expression.kind = Expression::Kind::path;
        expression.path = parse_path("a name after the dot");
        break;
      default:
        unexpected("a number, a string or a name");
    }
    return expression;
  }

  // Declarations of types: typealias, typedef, and named structures, variants and enumerations.

  void parse_declaration() {
    if (is_word("typealias")) {
      parse_typealias();
    } else if (is_word("typedef")) {
      parse_typedef();
    } else if (is_word("struct") || is_word("variant") || is_word("enum")) {
      parse_specifier();
      expect(";", "after the declaration");
    } else {
      unexpected(names_->outer == nullptr ? "a block or the declaration of a type"
                                          : "an attribute or the declaration of a type");
    }
  }

  void declare(const std::string& type_name, Location where, const TypeNode* type) {
    if (!names_->types.emplace(type_name, type).second) {
      fail(where, "the type {} is declared twice; use another name", in_quotes(type_name));
    }
  }

  void parse_typealias() {
    take();
    const TypeNode* type = parse_abstract_type();
    expect(":=", "after the type of a typealias");
    const Location where = peek().where;
    std::string alias = parse_type_words("the new name of the type");
    alias += parse_stars();
    declare(alias, where, type);
    expect(";", "after the typealias");
  }

  void parse_typedef() {
    take();
    const Specifier specifier = parse_specifier();
    do {
      const FieldNode field = parse_declarator(specifier, "the new name of the type");
      declare(field.name, field.where, field.type);
    } while (accept(","));
    expect(";", "after the typedef");
  }

  // A type without the name of a field: `uint8_t`, `void *`, `uint8_t [16]`.
  const TypeNode* parse_abstract_type() {
    const Specifier specifier = parse_specifier();
    const std::string stars = parse_stars();
    return parse_dimensions(resolve(specifier, stars));
  }

  FieldNode parse_declarator(const Specifier& specifier, const char* wanted) {
    const std::string stars = parse_stars();
    FieldNode field;
    if (peek().kind == TokenKind::word && is_type_start(peek().spelling) && !is_mark_after_name())
      unexpected(wanted);
    const Token word = take_word(wanted);
    field.name = word.spelling;
    field.where = word.where;
    field.type = parse_dimensions(resolve(specifier, stars));
    if (is_mark(":")) {
      fail(peek().where, "bit fields in C's way are not of TSDL; use integer {{ size = N; align = 1; ... }}");
    }
    return field;
  }

  bool is_mark_after_name() {
    const Token& after = peek(1);
    return after.kind == TokenKind::mark &&
           (after.spelling == ";" || after.spelling == "," || after.spelling == "[");
  }

  std::string parse_stars() {
    std::string stars;
    while (true) {
      if (is_mark("*")) {
        take();
        stars += stars.empty() ? " *" : "*";
      } else if (is_word("const")) {
        take();
      } else {
        return stars;
      }
    }
  }

  // `[3][length]` after a name: an array of sequences.
  const TypeNode* parse_dimensions(const TypeNode* element) {
    std::vector<TypeNode> dimensions;
    while (is_mark("[")) {
      TypeNode node;
      node.where = take().where;
      if (is_mark("]")) unexpected("the length of the array, or the name of the field that holds it,");
      const Expression length = parse_expression();
      switch (length.kind) {
        case Expression::Kind::integer:
          if (length.negative && length.magnitude != 0) {
            fail(length.where, "the length of an array is negative; it must be 0 or more");
          }
          node.kind = TypeNode::Kind::array;
          node.length = length.magnitude;
          break;
        case Expression::Kind::path:
          node.kind = TypeNode::Kind::sequence;
          node.path = length;
          break;
        case Expression::Kind::text:
          fail(length.where,
               "the length of an array is a string; it must be a number or the name of a field");
      }
      expect("]", "after the length");
      if (dimensions.size() >= kDeepest) too_deep(node.where);
      dimensions.push_back(std::move(node));
    }
    for (auto node = dimensions.rbegin(); node != dimensions.rend(); ++node) {
      node->element = element;
      element = keep(std::move(*node));
    }
    return element;
  }

  [[noreturn]] void too_deep(Location where) {
    fail(where, "types are nested too deeply; {} levels are the most", kDeepest);
  }

  const TypeNode* keep(TypeNode&& node) { return &document_.nodes.emplace_back(std::move(node)); }

  // Names.

  // Looks a name up from the innermost braces outward.
  const TypeNode* find(const std::string& type_name) const {
    for (const Names* names = names_; names != nullptr; names = names->outer) {
      if (const auto found = names->types.find(type_name); found != names->types.end()) return found->second;
    }
    return nullptr;
  }

  // A type that is not known: inside a block it may be declared at the top level further down.
  const TypeNode* find_or_later(const std::string& type_name, Location where, const std::string& advice) {
    if (const TypeNode* found = find(type_name)) return found;
    if (!in_block_) {
      fail(where, "the type {} is unknown; {}", in_quotes(type_name), advice);
    }
    TypeNode node;
    node.kind = TypeNode::Kind::later;
    node.where = where;
    node.name = type_name;
    node.advice = advice;
    return keep(std::move(node));
  }

  const TypeNode* resolve(const Specifier& specifier, const std::string& stars) {
    if (specifier.type != nullptr && stars.empty()) return specifier.type;
    if (specifier.type != nullptr) {
      fail(specifier.where,
           "a pointer to a type without a name has no size; declare its name with typealias");
    }
    return find_or_later(specifier.name + stars, specifier.where, "declare it with typealias or typedef");
  }

  bool is_type_start(std::string_view word) {
    static constexpr std::array<std::string_view, 6> kWords = {"struct",  "variant",        "enum",
                                                               "integer", "floating_point", "string"};
    return is_one_of(word, kWords) || is_one_of(word, kBaseWords) || word == "const";
  }

  // `unsigned long`, or one name of the metadata's own.
  std::string parse_type_words(const char* wanted) {
    std::string result;
    while (is_word("const")) take();
    while (peek().kind == TokenKind::word && is_one_of(peek().spelling, kBaseWords)) {
      if (!result.empty()) result += ' ';
      result += take().spelling;
      while (is_word("const")) take();
    }
    if (result.empty()) result = take_word(wanted).spelling;
    return result;
  }

  // Types.

  Specifier parse_specifier() {
    if (++depth_ > kDeepest) too_deep(peek().where);
    while (is_word("const")) take();
    Specifier result;
    result.where = peek().where;
    if (is_word("integer")) {
      result.type = parse_integer();
    } else if (is_word("floating_point")) {
      result.type = parse_float();
    } else if (is_word("string")) {
      result.type = parse_string();
    } else if (is_word("enum")) {
      result.type = parse_enumeration();
    } else if (is_word("struct")) {
      result.type = parse_structure();
    } else if (is_word("variant")) {
      result.type = parse_variant();
    } else {
      result.name = parse_type_words("a type");
    }
    --depth_;
    return result;
  }

  // The attributes in the braces of an integer, a float or a string; `known` names those that there are.
  template <std::size_t N>
  std::vector<Attribute> parse_type_attributes(const char* what,
                                               const std::array<std::string_view, N>& known) {
    std::vector<Attribute> result;
    std::unordered_set<std::string> seen;
    open_brace(fmt::format("after '{}'", what).c_str());
    while (!close_brace()) {
      if (accept(";")) continue;
      Attribute attribute = parse_attribute(false);
      if (!seen.insert(attribute.name).second) {
        fail(attribute.where, "the attribute {} of this {} is given twice; once is right",
             in_quotes(attribute.name), what);
      }
      if (is_one_of(attribute.name, known)) {
        result.push_back(std::move(attribute));
      } else {
        warn(attribute.where, "the attribute {} of this {} is unknown and passed over; known are {}",
             in_quotes(attribute.name), what, fmt::join(known, ", "));
      }
    }
    return result;
  }

  std::uint64_t number(const Attribute& attribute, std::uint64_t lowest, std::uint64_t highest) {
    const Expression& value = attribute.value;
    if (value.kind != Expression::Kind::integer) {
      fail(value.where, "'{}' must be a whole number", attribute.name);
    }
    if ((value.negative && value.magnitude != 0) || value.magnitude < lowest || value.magnitude > highest) {
      fail(value.where, "'{}' is {}{}; it must be from {} to {}", attribute.name, value.negative ? "-" : "",
           value.magnitude, lowest, highest);
    }
    return value.magnitude;
  }

  // The word or string of an attribute; nothing for numbers.
  static std::optional<std::string> word_of(const Expression& value) {
    if (value.kind == Expression::Kind::text) return value.text;
    if (value.kind == Expression::Kind::path) return joined(value.path);
    return std::nullopt;
  }

  std::uint32_t alignment_of(const Expression& value) {
    if (value.kind != Expression::Kind::integer)
      fail(value.where, "the alignment must be a whole number of bits");
    if (value.negative || !std::has_single_bit(value.magnitude)) {
      fail(value.where, "the alignment is {}{}; it must be a power of two", value.negative ? "-" : "",
           value.magnitude);
    }
    if (value.magnitude > kLargestAlignment) {
      fail(value.where, "the alignment is {} bits; {} is the largest", value.magnitude, kLargestAlignment);
    }
    return static_cast<std::uint32_t>(value.magnitude);
  }

  static std::uint32_t default_alignment(std::uint32_t size) { return size % 8 == 0 ? 8 : 1; }

  bool is_true(const Expression& value) {
    if (value.kind == Expression::Kind::integer && !value.negative && value.magnitude <= 1)
      return value.magnitude == 1;
    const auto word = word_of(value);
    if (word == "true" || word == "TRUE") return true;
    if (word == "false" || word == "FALSE") return false;
    fail(value.where, "'signed' must be true, false, 1 or 0");
  }

  std::optional<ByteOrder> order_of(const Expression& value) {
    const auto word = word_of(value);
    if (word == "native") return std::nullopt;
    if (word == "le") return ByteOrder::little;
    if (word == "be" || word == "network") return ByteOrder::big;
    fail(value.where, "'byte_order' must be native, network, be or le");
  }

  std::uint32_t base_of(const Expression& value) {
    static constexpr std::array<std::pair<std::string_view, std::uint32_t>, 16> kNames = {
        {{"decimal", 10},
         {"dec", 10},
         {"d", 10},
         {"i", 10},
         {"u", 10},
         {"hexadecimal", 16},
         {"hex", 16},
         {"x", 16},
         {"X", 16},
         {"p", 16},
         {"octal", 8},
         {"oct", 8},
         {"o", 8},
         {"binary", 2},
         {"b", 2},
         {"bin", 2}}};
    if (value.kind == Expression::Kind::integer && !value.negative) {
      for (const std::uint32_t base : {2U, 8U, 10U, 16U}) {
        if (value.magnitude == base) return base;
      }
    }
    const auto word = word_of(value);
    for (const auto& [known, base] : kNames) {
      if (word == known) return base;
    }
    fail(value.where, "'base' must be 2, 8, 10 or 16, or binary, octal, decimal or hexadecimal");
  }

  bool is_text_encoding(const Expression& value) {
    const auto word = word_of(value);
    if (word == "none" || word == "NONE") return false;
    for (const auto* known : {"UTF8", "utf8", "UTF-8", "utf-8", "ASCII", "ascii"}) {
      if (word == known) return true;
    }
    fail(value.where, "'encoding' must be none, UTF8 or ASCII");
  }

  const TypeNode* parse_integer() {
    static constexpr std::array<std::string_view, 7> kKnown = {"size", "align",    "signed", "byte_order",
                                                               "base", "encoding", "map"};
    TypeNode node;
    node.where = take().where;
    node.kind = TypeNode::Kind::integer;
    bool has_alignment = false;
    for (auto& attribute : parse_type_attributes("integer", kKnown)) {
      if (attribute.name == "size") {
        node.integer.size = static_cast<std::uint32_t>(number(attribute, 1, 64));
      } else if (attribute.name == "align") {
        node.integer.alignment = alignment_of(attribute.value);
        has_alignment = true;
      } else if (attribute.name == "signed") {
        node.integer.is_signed = is_true(attribute.value);
      } else if (attribute.name == "byte_order") {
        node.order = order_of(attribute.value);
      } else if (attribute.name == "base") {
        node.integer.base = base_of(attribute.value);
      } else if (attribute.name == "encoding") {
        node.integer.is_text = is_text_encoding(attribute.value);
      } else {
        const auto& path = attribute.value.path;
        if (path.size() != 3 || path[0] != "clock" || path[2] != "value") {
          fail(attribute.value.where, "'map' must be clock.NAME.value");
        }
        node.map = std::move(attribute.value);
      }
    }
    if (node.integer.size == 0) fail(node.where, "this integer has no size; add size = BITS, from 1 to 64");
    if (!has_alignment) node.integer.alignment = default_alignment(node.integer.size);
    return keep(std::move(node));
  }

  const TypeNode* parse_float() {
    static constexpr std::array<std::string_view, 4> kKnown = {"exp_dig", "mant_dig", "byte_order", "align"};
    TypeNode node;
    node.where = take().where;
    node.kind = TypeNode::Kind::floating;
    auto& type = node.floating;
    bool has_alignment = false;
    for (const auto& attribute : parse_type_attributes("floating_point", kKnown)) {
      if (attribute.name == "exp_dig") {
        type.exponent_bits = static_cast<std::uint32_t>(number(attribute, 1, 64));
      } else if (attribute.name == "mant_dig") {
        type.mantissa_bits = static_cast<std::uint32_t>(number(attribute, 1, 128));
      } else if (attribute.name == "byte_order") {
        node.order = order_of(attribute.value);
      } else {
        type.alignment = alignment_of(attribute.value);
        has_alignment = true;
      }
    }
    const bool is_known = (type.exponent_bits == 8 && type.mantissa_bits == 24) ||
                          (type.exponent_bits == 11 && type.mantissa_bits == 53);
    if (!is_known) {
      fail(node.where,
           "a floating_point with exp_dig = {} and mant_dig = {} cannot be read; 8 and 24, or 11 "
           "and 53, can",
           type.exponent_bits, type.mantissa_bits);
    }
    if (!has_alignment) type.alignment = default_alignment(type.exponent_bits + type.mantissa_bits);
    return keep(std::move(node));
  }

  const TypeNode* parse_string() {
    static constexpr std::array<std::string_view, 1> kKnown = {"encoding"};
    TypeNode node;
    node.where = take().where;
    node.kind = TypeNode::Kind::text;
    if (is_mark("{")) {
      for (const auto& attribute : parse_type_attributes("string", kKnown)) {
        if (!is_text_encoding(attribute.value)) {
          fail(attribute.value.where, "the 'encoding' of a string must be UTF8 or ASCII");
        }
      }
    }
    return keep(std::move(node));
  }

  // `NAME` in front of the braces of a structure, variant or enumeration; empty where there is none.
  std::string parse_tag(const char* kind) {
    if (peek().kind != TokenKind::word) return {};
    return fmt::format("{} {}", kind, take().spelling);
  }

  const TypeNode* parse_enumeration() {
    TypeNode node;
    node.where = take().where;
    node.kind = TypeNode::Kind::enumeration;
    const std::string tag = parse_tag("enum");
    if (!is_mark("{") && !is_mark(":")) {
      if (tag.empty()) unexpected("'{' and labels, ':' and a type, or the name of an enumeration");
      return find_or_later(tag, node.where, "declare it with enum NAME { ... }");
    }
    if (accept(":")) {
      for (const auto kind : {TypeNode::Kind::text, TypeNode::Kind::structure, TypeNode::Kind::variant}) {
        // Their braces, not the labels', would come next.
        if (is_word(keyword_of(kind))) refuse_container(peek().where, kind);
      }
      const Specifier specifier = parse_specifier();
      node.element = resolve(specifier, "");
    } else {
      node.element = find_or_later("int", node.where, "declare it, or write enum : TYPE { ... }");
    }
    using Kind = TypeNode::Kind;
    const auto kind = node.element->kind;
    if (kind != Kind::integer && kind != Kind::later) refuse_container(node.where, kind);
    parse_labels(node);
    const TypeNode* type = keep(std::move(node));
    if (!tag.empty()) declare(tag, type->where, type);
    return type;
  }

  static std::string_view keyword_of(TypeNode::Kind kind) {
    if (kind == TypeNode::Kind::structure) return "struct";
    return kind == TypeNode::Kind::variant ? "variant" : "string";
  }

  [[noreturn]] void refuse_container(Location where, TypeNode::Kind kind) {
    fail(where, "the type of this enumeration is {}; it must be an integer", name_of(kind));
  }

  void parse_labels(TypeNode& node) {
    open_brace("before the labels of an enumeration");
    LabelNode next;  // what the next label without a value stands for
    bool is_exhausted = false;
    while (!close_brace()) {
      LabelNode label;
      label.where = peek().where;
      if (peek().kind == TokenKind::text) {
        label.label = take().text;
      } else {
        label.label = take_word("a label").spelling;
      }
      if (accept("=")) {
        std::tie(label.lowest, label.lowest_negative) = parse_bound();
        label.highest = label.lowest;
        label.highest_negative = label.lowest_negative;
        if (accept("...")) std::tie(label.highest, label.highest_negative) = parse_bound();
        if (is_less(label.highest, label.highest_negative, label.lowest, label.lowest_negative)) {
          fail(label.where, "the range of the label {} ends before it begins; write the lower value first",
               in_quotes(label.label));
        }
      } else {
        if (is_exhausted) {
          fail(label.where, "no value is left for the label {}; give it one", in_quotes(label.label));
        }
        label.lowest = label.highest = next.lowest;
        label.lowest_negative = label.highest_negative = next.lowest_negative;
      }
      next.lowest = label.highest + 1;
      next.lowest_negative = label.highest_negative && next.lowest != 0;
      is_exhausted = !label.highest_negative && next.lowest == 0;
      node.labels.push_back(std::move(label));
      if (!accept(",") && !is_mark("}")) unexpected("',' or '}' after a label");
    }
  }

  static bool is_less(std::uint64_t a, bool a_negative, std::uint64_t b, bool b_negative) {
    return a_negative != b_negative ? a_negative : a < b;  // two's complement keeps the order among negatives
  }

  std::pair<std::uint64_t, bool> parse_bound() {
    const Expression value = parse_expression();
    if (value.kind != Expression::Kind::integer) fail(value.where, "the value of a label must be an integer");
    if (value.negative && value.magnitude > std::uint64_t{1} << 63) {
      fail(value.where, "the value of a label is out of range; the lowest is -9223372036854775808");
    }
    const bool negative = value.negative && value.magnitude != 0;
    return {negative ? ~value.magnitude + 1 : value.magnitude, negative};
  }

  const TypeNode* parse_structure() {
    TypeNode node;
    node.where = take().where;
    node.kind = TypeNode::Kind::structure;
    const std::string tag = parse_tag("struct");
    if (!is_mark("{")) {
      if (tag.empty()) unexpected("'{' and fields, or the name of a structure");
      return find_or_later(tag, node.where, "declare it with struct NAME { ... }");
    }
    node.fields = parse_fields("structure");
    if (is_word("align") && peek(1).spelling == "(") {
      take();
      take();
      node.alignment = alignment_of(parse_expression());
      expect(")", "after the alignment");
    }
    const TypeNode* type = keep(std::move(node));
    if (!tag.empty()) declare(tag, type->where, type);
    return type;
  }

  const TypeNode* parse_variant() {
    TypeNode node;
    node.where = take().where;
    node.kind = TypeNode::Kind::variant;
    const std::string tag = parse_tag("variant");
    if (accept("<")) {
      node.path = parse_expression();
      if (node.path->kind != Expression::Kind::path) {
        fail(node.path->where, "the selector of a variant must be the name of a field");
      }
      expect(">", "after the selector");
    }
    if (!is_mark("{")) {
      if (tag.empty()) unexpected("'{' and options, or the name of a variant");
      const TypeNode* named = find_or_later(tag, node.where, "declare it with variant NAME { ... }");
      if (!node.path.has_value()) return named;
      if (named->kind == TypeNode::Kind::variant && named->path.has_value()) {
        fail(node.path->where, "this variant has its selector already; leave out this one");
      }
      node.fields = named->fields;
      node.name = tag;  // of a variant that is declared further down
      return keep(std::move(node));
    }
    node.fields = parse_fields("variant");
    const TypeNode* type = keep(std::move(node));
    if (!tag.empty()) declare(tag, type->where, type);
    return type;
  }

  std::shared_ptr<const std::vector<FieldNode>> parse_fields(const char* what) {
    auto fields = std::make_shared<std::vector<FieldNode>>();
    std::unordered_set<std::string> seen;
    Names inner{names_, {}};
    names_ = &inner;
    open_brace("before the fields");
    while (!close_brace()) {
      if (accept(";")) continue;
      if (is_word("typealias") || is_word("typedef")) {
        parse_declaration();
        continue;
      }
      const Specifier specifier = parse_specifier();
      const bool declares_only = specifier.type != nullptr && is_mark(";");
      if (declares_only) {
        take();
        continue;
      }
      do {
        FieldNode field = parse_declarator(specifier, "the name of a field");
        if (!seen.insert(field.name).second) {
          fail(field.where, "the field {} is declared twice in this {}; use another name",
               in_quotes(field.name), what);
        }
        fields->push_back(std::move(field));
      } while (accept(","));
      expect(";", "after the field");
    }
    names_ = inner.outer;
    return fields;
  }

  Document document_;
  Lexer lexer_;
  std::deque<Token> ahead_;
  std::vector<Location> open_;  // braces
  Names* names_ = nullptr;
  bool in_block_ = false;
  unsigned depth_ = 0;
};

}  // namespace

Document parse(std::string_view text, const std::string& name) { return Parser(text, name).parse(); }

std::string_view name_of(TypeNode::Kind kind) noexcept {
  constexpr std::array<std::string_view, 9> kNames{
      "an integer",     "a floating_point", "a string",
      "an enumeration", "a structure",      "a variant",
      "an array",       "a sequence",       "a type declared further down"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string joined(const std::vector<std::string>& path) { return fmt::format("{}", fmt::join(path, ".")); }

}  // namespace perflab::ctf::tsdl
