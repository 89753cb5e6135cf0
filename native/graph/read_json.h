// Strict JSON (RFC 8259) into a tree: no comments, no trailing commas, no duplicate keys, no NaN.
#pragma once

#include "graph/document.h"

namespace perflab::graph {

// Throws InputError with the place of the first error.
Value read_json(const Document& document);

}  // namespace perflab::graph
