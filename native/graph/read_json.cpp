#include <fmt/format.h>

#include <iterator>
#include <nlohmann/json.hpp>

#include "graph/text.h"
#include "graph/tree_builder.h"

namespace perflab::graph {
namespace {

// Counts the characters passed to nlohmann's lexer, because its events have no positions.
class CountingIterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = char;
  using difference_type = std::ptrdiff_t;
  using pointer = const char*;
  using reference = const char&;

  CountingIterator(const char* at, std::size_t* consumed) : at_(at), consumed_(consumed) {}

  reference operator*() const { return *at_; }
  CountingIterator& operator++() {
    ++at_;
    ++*consumed_;
    return *this;
  }
  CountingIterator operator++(int) {
    CountingIterator before = *this;
    ++*this;
    return before;
  }
  bool operator==(const CountingIterator& other) const { return at_ == other.at_; }

 private:
  const char* at_;
  std::size_t* consumed_;
};

// A token starts at the first character after the previous token that is neither blank nor a separator.
class Handler : public nlohmann::json_sax<nlohmann::json> {
 public:
  Handler(const Document& document, const std::size_t& consumed)
      : document_(document), builder_(document), consumed_(consumed) {}

  bool null() override { return scalar(Kind::kNull, "null"); }
  bool boolean(bool value) override { return scalar(Kind::kBoolean, value ? "true" : "false"); }
  bool number_integer(number_integer_t value) override { return number(fmt::format("{}", value)); }
  bool number_unsigned(number_unsigned_t value) override { return number(fmt::format("{}", value)); }
  bool number_float(number_float_t, const string_t& text) override { return number(text); }
  bool string(string_t& value) override { return scalar(Kind::kString, std::move(value)); }
  bool binary(binary_t&) override { return false; }

  bool start_object(std::size_t) override { return open(Kind::kMapping); }
  bool start_array(std::size_t) override { return open(Kind::kList); }
  bool end_object() override { return close(); }
  bool end_array() override { return close(); }

  bool key(string_t& value) override {
    const std::size_t begin = token_begin();
    end_ = consumed_;
    builder_.key(std::move(value), begin);
    return true;
  }

  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error while parsing ..."
    std::string_view reason = error.what();
    if (const std::size_t start = reason.find("syntax error"); start != std::string_view::npos) {
      reason.remove_prefix(start);
    } else if (const std::size_t bracket = reason.find("] "); bracket != std::string_view::npos) {
      reason.remove_prefix(bracket + 2);
    }
    // For an unterminated string the reason repeats all of the following text.
    constexpr std::size_t kLongestReason = 200;
    const bool by_content = !document_.label().ends_with(".json");
    document_.fail(token_begin(),
                   fmt::format("not valid JSON: {}{}{}", reason.substr(0, kLongestReason),
                               reason.size() > kLongestReason ? "..." : "",
                               by_content ? " (a text that begins with '{' is read as JSON)" : ""));
  }

  Value take() { return builder_.take(); }

 private:
  [[nodiscard]] std::size_t token_begin() const {
    const std::size_t begin = document_.text().find_first_not_of(" \t\r\n,:", end_);
    return begin == std::string::npos ? document_.text().size() : begin;
  }
  bool scalar(Kind kind, std::string text) {
    const std::size_t begin = token_begin();
    end_ = consumed_;
    builder_.scalar(kind, begin, std::move(text));
    return true;
  }
  bool number(std::string text) {
    const std::size_t begin = token_begin();
    // The lexer has read one character beyond the number, unless the text ended.
    const std::size_t last = document_.text().find_first_not_of("+-.0123456789eE", begin);
    end_ = last == std::string::npos ? document_.text().size() : last;
    builder_.scalar(Kind::kNumber, begin, std::move(text));
    return true;
  }
  bool open(Kind kind) {
    const std::size_t begin = token_begin();
    end_ = consumed_;
    builder_.open(kind, begin);
    return true;
  }
  bool close() {
    end_ = consumed_;
    builder_.close();
    return true;
  }

  const Document& document_;
  TreeBuilder builder_;
  const std::size_t& consumed_;
  std::size_t end_ = 0;  // end of the previous token
};

}  // namespace

Value read_json(const Document& document) {
  const std::string& text = document.text();
  std::size_t consumed = 0;
  Handler handler(document, consumed);
  const CountingIterator begin(text.data(), &consumed);
  const CountingIterator end(text.data() + text.size(), &consumed);
  if (!nlohmann::json::sax_parse(begin, end, &handler)) document.fail(consumed, "not valid JSON");
  return handler.take();
}

}  // namespace perflab::graph
