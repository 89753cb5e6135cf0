// One YAML document (1.2 core schema) into a tree; anchors, aliases and tags are refused.
#pragma once

#include "graph/document.h"

namespace perflab::graph {

// Throws InputError with the place of the first error.
Value read_yaml(const Document& document);

}  // namespace perflab::graph
