// Graphs in which one message would go round for ever.
#pragma once

#include "graph/check.h"
#include "graph/model.h"

namespace perflab::graph {

// Throws InputError, naming the topics in their order, where reactions form a loop that nothing holds back.
// Relays and transforms answer every message at once; a fusion holds a loop back if one of its inputs comes
// from outside of the loop; a cyclic reaction always does.
void check_circulation(const Graph& graph, const Locate& locate);

}  // namespace perflab::graph
