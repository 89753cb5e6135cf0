// The error of all readers of graphs.
#pragma once

#include <string_view>

#include "base/error.h"
#include "base/text.h"

namespace perflab::graph {

// An unusable graph. what() is one line: where, what, and what would be right.
class InputError : public BadInput {
 public:
  explicit InputError(std::string_view text) : BadInput(one_line(text)) {}
};

}  // namespace perflab::graph
