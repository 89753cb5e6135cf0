// perflab-node: one process of a graph, measured, that has no program of its own.
//
//   perflab-node --config FILE [--control-fd N] [--check]
//
// With a control channel it does what perflab says (docs/formats.md, section 3) and ends with it. Without one
// it runs by itself, which is of use under a debugger or a profiler. With --check it creates everything and
// ends.

#include "program/program.h"

int main(int argc, char** argv) { return perflab::program::run("perflab-node", argc, argv, {}); }
