// A program's options as a table: "--name VALUE" and "--flag". Plain getopt_long(3), because perflab measures
// the memory of some of its own programs.
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

// The arguments do not fit the program's usage; the text is the usage line.
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
  // A number from `lowest` to `highest`.
  template <typename Number>
  Options& number(const char* name, Number& to, Number lowest, Number highest);
  // `take` throws BadInput if the value is invalid.
  Options& value(const char* name, Take take);

  // Sets the given options and returns the arguments after them. Reads all options before it throws the first
  // error, so that e.g. the control channel is known even if another option is wrong. Throws Usage, or
  // BadInput with a line that says what would be right.
  std::vector<std::string> parse(int argc, char** argv) const;
  // Throws Usage unless `complete`, i.e. unless all required options were given.
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

// Parses a number. Throws BadInput, which names the option and says what would be right.
template <typename Number>
Number parse_number(std::string_view option, std::string_view text, Number lowest, Number highest);

template <typename Number>
Options& Options::number(const char* name, Number& to, Number lowest, Number highest) {
  return value(name, [=, &to](std::string_view text) { to = parse_number(name, text, lowest, highest); });
}

}  // namespace perflab
