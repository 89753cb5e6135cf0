// The options of a program as a table: "--name VALUE" and "--flag". Plain getopt_long(3), for a program's own
// memory may be a part of what it measures.
//
// Example:
//   Options options("perflab-x --depth N [--check]");
//   options.number("depth", depth, 1, 100).flag("check", check);
//   options.parse(argc, argv);
//   options.require(depth > 0);
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace perflab {

// What was given is not what the program takes at all: the text is its usage.
class Usage : public BadInput {
 public:
  using BadInput::BadInput;
};

class Options {
 public:
  using Take = std::function<void(std::string_view text)>;

  // "perflab-x --depth N [--check]"
  explicit Options(const std::string& usage) : usage_("usage: " + usage) {}

  Options& flag(const char* name, bool& to);
  Options& text(const char* name, std::string& to);
  // From `lowest` to `highest`.
  template <typename Number>
  Options& number(const char* name, Number& to, Number lowest, Number highest);
  // `take` throws BadInput where it cannot be that.
  Options& value(const char* name, Take take);

  // Sets what is given, and returns what stands behind the options. Throws the first error when all have been
  // looked at, so that e.g. the control channel is known although the rest is wrong: Usage, or BadInput with
  // a line that says what would be right.
  std::vector<std::string> parse(int argc, char** argv) const;
  // Throws Usage unless everything is there that must be.
  void require(bool complete) const;

 private:
  struct Entry {
    const char* name;
    bool takes_value;
    Take take;
  };

  std::string usage_;
  std::vector<Entry> entries_;
};

// The number that the text is. Throws BadInput, which names the option and says what would be right.
template <typename Number>
Number parse_number(std::string_view option, std::string_view text, Number lowest, Number highest);

template <typename Number>
Options& Options::number(const char* name, Number& to, Number lowest, Number highest) {
  return value(name, [=, &to](std::string_view text) { to = parse_number(name, text, lowest, highest); });
}

}  // namespace perflab
