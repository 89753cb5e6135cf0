// Words of TSDL, the language of a trace's metadata: what the text says between spaces and comments.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace perflab::ctf::tsdl {

// Both count from 1; columns are bytes.
struct Location {
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

enum class TokenKind : std::uint8_t { word, integer, text, mark, end };

struct Token {
  TokenKind kind = TokenKind::end;
  Location where;
  std::string_view spelling;  // as it stands in the text
  std::uint64_t value = 0;    // of integers
  std::string text;           // of strings and characters in quotes: without the quotes, escapes replaced
};

// "NAME:LINE:COLUMN: what".
[[nodiscard]] std::string complaint(const std::string& name, Location where, std::string_view what);
[[noreturn]] void fail_with(const std::string& complaint);

// Throws MetadataError.
template <typename... Args>
[[noreturn]] void fail(const std::string& name, Location where, fmt::format_string<Args...> format,
                       Args&&... args) {
  fail_with(complaint(name, where, fmt::format(format, std::forward<Args>(args)...)));
}

// Says what is wrong with a text, and where: an error ends the reading, a warning does not.
class Reporter {
 public:
  // Both must outlive the reporter.
  Reporter(const std::string& name, std::vector<std::string>& warnings) : name_(name), warnings_(warnings) {}

  template <typename... Args>
  [[noreturn]] void fail(Location where, fmt::format_string<Args...> format, Args&&... args) const {
    tsdl::fail(name_, where, format, std::forward<Args>(args)...);
  }
  template <typename... Args>
  void warn(Location where, fmt::format_string<Args...> format, Args&&... args) const {
    warnings_.push_back(complaint(name_, where, fmt::format(format, std::forward<Args>(args)...)));
  }

 private:
  const std::string& name_;
  std::vector<std::string>& warnings_;
};

// For messages: in single quotes, cut to a few words, nothing that a terminal would take for a command.
[[nodiscard]] std::string in_quotes(std::string_view text);

class Lexer {
 public:
  // Both must outlive the lexer.
  Lexer(std::string_view text, const std::string& name) : text_(text), name_(name) {}

  // The next token; again and again `end` after the last. Throws MetadataError where the text is none of
  // TSDL.
  Token next();

 private:
  [[nodiscard]] char peek(std::size_t ahead = 0) const noexcept {
    return position_ + ahead < text_.size() ? text_[position_ + ahead] : '\0';
  }
  [[nodiscard]] bool at_end() const noexcept { return position_ >= text_.size(); }
  [[nodiscard]] Location here() const noexcept;
  void advance() noexcept;
  void skip_blank();
  [[nodiscard]] std::size_t continuation() const noexcept;
  void lex_integer(Token& token);
  void lex_quoted(Token& token);
  [[nodiscard]] char lex_escape();

  std::string_view text_;
  const std::string& name_;
  std::size_t position_ = 0;
  std::size_t line_begin_ = 0;
  std::uint32_t line_ = 1;
};

}  // namespace perflab::ctf::tsdl
