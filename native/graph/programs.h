// The program part of a graph file (docs/programs.md): a process's program and options, and the figures and
// outcomes that programs report.
//
// Example, in a graph file:
//   program: perflab-simulator
//   options: {scene: table}
//   ends: true
//   ...
//   figures:
//     planning:     {words: planning time, unit: s}
//     control_loop: {kind: times, words: period of the control loop}
//   outcomes:
//     no_plan: {words: no plan was found}
#pragma once

#include <string>

#include "graph/fields.h"
#include "graph/model.h"

namespace perflab::graph {

// Reads `program`, `options` and `ends` of a process.
void read_program(const Fields& fields, Process& process);

// The mappings at `figures` and `outcomes`, as JSON: the same declarations that perflab has for a kind of
// workload (perflab/results/figure.py, outcome.py).
std::string read_own_figures(const Field& field);
std::string read_own_outcomes(const Field& field);

}  // namespace perflab::graph
