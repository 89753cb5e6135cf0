#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <sstream>

#include "graph/text.h"
#include "graph/tree_builder.h"

namespace perflab::graph {
namespace {

bool all_digits(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }

std::string_view without_sign(std::string_view text) {
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  return text;
}

// [-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?
bool is_decimal(std::string_view text) {
  text = without_sign(text);
  if (const std::size_t exponent = text.find_first_of("eE"); exponent != std::string_view::npos) {
    if (!all_digits(without_sign(text.substr(exponent + 1)))) return false;
    text = text.substr(0, exponent);
  }
  const std::size_t point = text.find('.');
  const std::string_view whole = text.substr(0, point);
  const std::string_view fraction =
      point == std::string_view::npos ? std::string_view() : text.substr(point + 1);
  if (whole.empty()) return all_digits(fraction);
  return all_digits(whole) && (fraction.empty() || all_digits(fraction));
}

// The tag resolution of the core schema (YAML 1.2.2, 10.3.2) for plain scalars.
Kind kind_of_plain(std::string_view text) {
  const auto is = [&](std::initializer_list<std::string_view> words) {
    return std::ranges::find(words, text) != words.end();
  };
  if (is({"", "~", "null", "Null", "NULL"})) return Kind::kNull;
  if (is({"true", "True", "TRUE", "false", "False", "FALSE"})) return Kind::kBoolean;
  const std::string_view digits = without_sign(text);
  const bool special =
      digits == ".inf" || digits == ".Inf" || digits == ".INF" || is({".nan", ".NaN", ".NAN"});
  const bool prefixed = (text.starts_with("0x") && text.size() > 2 &&
                         text.find_first_not_of("0123456789abcdefABCDEF", 2) == std::string_view::npos) ||
                        (text.starts_with("0o") && text.size() > 2 &&
                         text.find_first_not_of("01234567", 2) == std::string_view::npos);
  return special || prefixed || is_decimal(text) ? Kind::kNumber : Kind::kString;
}

// yaml-cpp buffers the tokens of an unfinished flow collection, a hundred bytes or more each, before the
// handler sees the first. So collections that could not be accepted anyway are refused before parsing.
// Brackets in quotes and comments count as well, hence these limits are far above those of the handler.
void check_flow(const Document& document) {
  constexpr std::size_t kMaxOpen = 1'000;
  constexpr std::size_t kMaxIndicators = 2 * kMaxValues;
  std::size_t open = 0;
  std::size_t indicators = 0;
  const std::string& text = document.text();
  for (std::size_t i = 0; i < text.size(); ++i) {
    switch (text[i]) {
      case '[':
      case '{':
        if (++open > kMaxOpen) {
          document.fail(i, fmt::format("lists and mappings are nested more than {} deep", kMaxDepth));
        }
        [[fallthrough]];
      case ',':
      case ':':
      case '?':
        if (++indicators > kMaxIndicators) {
          document.fail(i, fmt::format("the file has more than {} values", kMaxValues));
        }
        break;
      case ']':
      case '}':
        if (open > 0) --open;
        break;
      default:
        break;
    }
  }
}

class Handler : public YAML::EventHandler {
 public:
  explicit Handler(const Document& document) : document_(document), builder_(document) {}

  void OnDocumentStart(const YAML::Mark& mark) override {
    if (documents_++ > 0) document_.fail(offset(mark), "a second document starts; a file contains one graph");
  }
  void OnDocumentEnd() override {}

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    refuse_anchor(mark, anchor);
    if (builder_.expects_key()) document_.fail(offset(mark), "a key is missing before the colon");
    builder_.scalar(Kind::kNull, offset(mark), "");
  }
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t) override {
    document_.fail(offset(mark), "aliases (*name) are not available; write the value out");
  }
  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (builder_.expects_key()) {
      builder_.key(value, offset(mark));
    } else {
      // yaml-cpp gives "?" to plain scalars and "!" to quoted ones and blocks.
      builder_.scalar(tag == "!" ? Kind::kString : kind_of_plain(value), offset(mark), value);
    }
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value) override {
    open(Kind::kList, mark, tag, anchor);
  }
  void OnSequenceEnd() override { builder_.close(); }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value) override {
    open(Kind::kMapping, mark, tag, anchor);
  }
  void OnMapEnd() override { builder_.close(); }

  [[nodiscard]] std::size_t offset(const YAML::Mark& mark) const {
    return mark.is_null() ? 0 : static_cast<std::size_t>(std::max(mark.pos, 0));
  }
  Value take() { return builder_.take(); }

 private:
  void open(Kind kind, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor) {
    refuse_anchor(mark, anchor);
    refuse_tag(mark, tag);
    if (builder_.expects_key())
      document_.fail(offset(mark),
                     "a key must be a plain word, not a list or mapping; is a bracket or brace left open?");
    builder_.open(kind, offset(mark));
  }
  void refuse_anchor(const YAML::Mark& mark, YAML::anchor_t anchor) const {
    if (anchor != 0) document_.fail(offset(mark), "anchors (&name) are not available; write the value out");
  }
  void refuse_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag.empty() || tag == "?" || tag == "!") return;
    document_.fail(offset(mark), fmt::format("tag {} is not available; remove it", quote(tag)));
  }

  const Document& document_;
  TreeBuilder builder_;
  int documents_ = 0;
};

}  // namespace

Value read_yaml(const Document& document) {
  check_flow(document);
  Handler handler(document);
  std::istringstream stream(document.text());
  try {
    YAML::Parser parser(stream);
    while (parser.HandleNextDocument(handler)) {
    }
  } catch (const YAML::Exception& error) {
    document.fail(handler.offset(error.mark), fmt::format("not valid YAML: {}", error.msg));
  }
  return handler.take();
}

}  // namespace perflab::graph
