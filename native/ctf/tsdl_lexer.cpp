#include "ctf/tsdl_lexer.h"

#include <fmt/format.h>

#include <array>
#include <limits>

#include "ctf/metadata.h"

namespace perflab::ctf::tsdl {

namespace {

bool is_word_start(char c) noexcept { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

bool is_word(char c) noexcept { return is_word_start(c) || is_digit(c); }

// 16 for what is no digit in any base.
unsigned digit(char c) noexcept {
  if (is_digit(c)) return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return 16;
}

bool is_blank(char c) noexcept {
  return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\v' || c == '\f';
}

}  // namespace

std::string complaint(const std::string& name, Location where, std::string_view what) {
  return fmt::format("{}:{}:{}: {}", name, where.line, where.column, what);
}

void fail_with(const std::string& complaint) { throw MetadataError(complaint); }

std::string in_quotes(std::string_view text) {
  constexpr std::size_t kLongest = 60;
  std::string result = "'";
  for (const char c : text.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte < 0x20 || byte >= 0x7f) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += c;
    }
  }
  if (text.size() > kLongest) result += "...";
  return result + "'";
}

Location Lexer::here() const noexcept {
  return {line_, static_cast<std::uint32_t>(position_ - line_begin_ + 1)};
}

void Lexer::advance() noexcept {
  if (text_[position_++] == '\n') {
    ++line_;
    line_begin_ = position_;
  }
}

// Length of a backslash and the end of line after it, which count as nothing; 0 where there is none.
std::size_t Lexer::continuation() const noexcept {
  if (peek() != '\\') return 0;
  if (peek(1) == '\n') return 2;
  return peek(1) == '\r' && peek(2) == '\n' ? 3 : 0;
}

void Lexer::skip_blank() {
  while (!at_end()) {
    if (is_blank(peek())) {
      advance();
    } else if (const auto length = continuation(); length != 0) {
      for (std::size_t i = 0; i < length; ++i) advance();
    } else if (peek() == '/' && peek(1) == '/') {
      while (!at_end() && peek() != '\n') advance();
    } else if (peek() == '/' && peek(1) == '*') {
      const Location begin = here();
      advance();
      advance();
      while (!at_end() && !(peek() == '*' && peek(1) == '/')) advance();
      if (at_end()) fail(name_, begin, "this comment is not closed; '*/' is missing");
      advance();
      advance();
    } else {
      return;
    }
  }
}

Token Lexer::next() {
  skip_blank();
  Token token;
  token.where = here();
  if (at_end()) return token;
  const std::size_t begin = position_;
  const char c = peek();
  if (c == '"' || c == '\'' || (c == 'L' && (peek(1) == '"' || peek(1) == '\''))) {
    lex_quoted(token);
  } else if (is_word_start(c)) {
    token.kind = TokenKind::word;
    while (is_word(peek())) advance();
  } else if (is_digit(c)) {
    lex_integer(token);
  } else {
    token.kind = TokenKind::mark;
    static constexpr std::array<std::string_view, 3> kLong = {"...", ":=", "->"};
    static constexpr std::string_view kShort = "{}()[]<>;,=.:*+-";
    std::size_t length = kShort.find(c) == std::string_view::npos ? 0 : 1;
    for (const auto mark : kLong) {
      if (text_.substr(position_, mark.size()) == mark) length = mark.size();
    }
    if (length == 0) {
      const auto byte = static_cast<unsigned char>(c);
      fail(name_, token.where, "{}",
           byte < 0x20 || byte >= 0x7f ? fmt::format("byte 0x{:02x} has no place in metadata text", byte)
                                       : fmt::format("'{}' has no place in metadata text", c));
    }
    for (std::size_t i = 0; i < length; ++i) advance();
  }
  token.spelling = text_.substr(begin, position_ - begin);
  return token;
}

void Lexer::lex_integer(Token& token) {
  token.kind = TokenKind::integer;
  const std::size_t begin = position_;
  unsigned base = 10;
  if (peek() == '0' && (peek(1) == 'x' || peek(1) == 'X')) base = 16;
  if (peek() == '0' && (peek(1) == 'b' || peek(1) == 'B')) base = 2;
  if (peek() == '0' && is_digit(peek(1))) base = 8;
  if (base == 16 || base == 2) {
    advance();
    advance();
  }
  const std::size_t first = position_;
  bool overflow = false;
  for (unsigned d = 0; (d = digit(peek())) < base; advance()) {
    if (token.value > (std::numeric_limits<std::uint64_t>::max() - d) / base) overflow = true;
    token.value = token.value * base + d;
  }
  const bool any = position_ != first;
  for (int suffix = 0;
       suffix < 3 && std::string_view("uUlL").find(peek()) != std::string_view::npos && !at_end(); ++suffix) {
    advance();
  }
  while (is_word(peek())) {
    advance();
    overflow = false;
    token.kind = TokenKind::end;  // no integer: the message below
  }
  const auto spelling = text_.substr(begin, position_ - begin);
  if (!any || token.kind != TokenKind::integer) {
    fail(name_, token.where, "{} is no integer; use decimal, 0x hexadecimal or 0 octal digits",
         in_quotes(spelling));
  }
  if (overflow) {
    fail(name_, token.where, "integer {} is out of range; the largest has 64 bits", in_quotes(spelling));
  }
}

// At the backslash. The character that the escape stands for.
char Lexer::lex_escape() {
  const Location where = here();
  advance();
  const char c = peek();
  static constexpr std::string_view kNames = "abfnrtv\\'\"?";
  static constexpr std::string_view kValues = "\a\b\f\n\r\t\v\\'\"?";
  if (const auto index = kNames.find(c); !at_end() && index != std::string_view::npos) {
    advance();
    return kValues[index];
  }
  unsigned base = 0;
  std::size_t most = 0;
  if (c == 'x' && digit(peek(1)) < 16) {
    base = 16;
    most = 2;
    advance();
  } else if (digit(c) < 8) {
    base = 8;
    most = 3;
  } else {
    fail(name_, where, "unknown escape {}; write \\\\ for a backslash",
         in_quotes(text_.substr(position_ - 1, 2)));
  }
  unsigned value = 0;
  for (std::size_t i = 0; i < most && digit(peek()) < base; ++i, advance())
    value = value * base + digit(peek());
  if (value == 0 || value > 0xff) {
    fail(name_, where, "this escape stands for no character; 1 to 0xff (\\377) are possible");
  }
  return static_cast<char>(value);
}

void Lexer::lex_quoted(Token& token) {
  token.kind = TokenKind::text;
  if (peek() == 'L') advance();
  const char quote = peek();
  advance();
  while (peek() != quote || at_end()) {
    if (at_end() || peek() == '\n') {
      fail(name_, token.where, "this string is not closed; {} is missing before the end of the line", quote);
    }
    if (peek() == '\0') fail(name_, here(), "a zero byte inside a string; metadata is text without any");
    if (const auto length = continuation(); length != 0) {
      for (std::size_t i = 0; i < length; ++i) advance();
    } else if (peek() == '\\') {
      token.text += lex_escape();
    } else {
      token.text += peek();
      advance();
    }
  }
  advance();
}

}  // namespace perflab::ctf::tsdl
