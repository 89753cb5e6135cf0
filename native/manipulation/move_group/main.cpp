#include "manipulation/move_group/move_group.h"

int main(int argc, char** argv) {
  return perflab::program::run("perflab-move-group", argc, argv, perflab::manipulation::make_move_group);
}
