// perflab-simulator: the simulated arm (simulator.h).
#include "manipulation/simulator/simulator.h"

int main(int argc, char** argv) {
  return perflab::program::run("perflab-simulator", argc, argv, [](perflab::program::Context& context) {
    return std::make_unique<perflab::manipulation::Simulator>(context);
  });
}
