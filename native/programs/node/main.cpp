// perflab-node: one process of a graph, measured.
//
//   perflab-node --config FILE [--control-fd N] [--check]
//
// With a control channel it does what perflab says (docs/formats.md, section 3) and ends with it. Without one
// it runs by itself, which is of use under a debugger or a profiler. With --check it creates everything and
// ends.

#include <string>

#include "base/program.h"
#include "programs/node/config.h"
#include "programs/node/node.h"

int main(int argc, char** argv) {
  using namespace perflab;
  std::string config_file;
  bool check = false;
  Program program("perflab-node", "--config FILE [--control-fd N] [--check]", WhenPerflabEnds::kFinish);
  program.options().text("config", config_file).flag("check", check);
  return program.run(argc, argv, [&](Control& control) {
    program.options().require(!config_file.empty());
    const node::Config config = node::read_config(config_file);
    if (!check) node::require_schedule(config);
    node::Node node(config, control);
    if (!check) node.run();
  });
}
