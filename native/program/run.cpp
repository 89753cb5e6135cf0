#include <string>

#include "base/program.h"
#include "program/config.h"
#include "program/node.h"
#include "program/program.h"
#include "realtime/thread.h"

namespace perflab::program {

int run(const std::string& name, int argc, char** argv, const Make& make) {
  std::string config_file;
  bool check = false;
  Program program(name, "--config FILE [--control-fd N] [--check]", WhenPerflabEnds::kFinish);
  program.options().text("config", config_file).flag("check", check);
  return program.run(argc, argv, [&](Control& control) {
    program.options().require(!config_file.empty());
    const node::Config config = node::read_config(config_file);
    // Tracers, profilers and top show the process by its name in the graph.
    realtime::name_this_thread(config.process_name);
    if (!check) node::require_schedule(config);
    node::Node node(config, control, make);
    if (!check) node.run();
  });
}

}  // namespace perflab::program
