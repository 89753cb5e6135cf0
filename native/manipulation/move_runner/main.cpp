#include "manipulation/move_runner/move_runner.h"

int main(int argc, char** argv) {
  return perflab::program::run("perflab-move-runner", argc, argv, perflab::manipulation::make_move_runner);
}
