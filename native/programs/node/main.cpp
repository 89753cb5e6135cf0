// perflab-node: a measured process of a graph, for processes without a program.
//
//   perflab-node --config FILE [--control-fd N] [--check]
//
// With a control channel it follows perflab's requests (docs/formats.md, section 3) and ends with it. Without
// one it runs on its own, e.g. under a debugger or profiler. With --check it creates everything and ends.

#include "program/program.h"

int main(int argc, char** argv) { return perflab::program::run("perflab-node", argc, argv, {}); }
