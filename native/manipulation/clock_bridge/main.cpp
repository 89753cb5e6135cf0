// perflab-clock-bridge takes ros_gz_bridge's place in the stack: it republishes the simulator's time (/world/clock) on /clock,
// for all nodes that use simulated time. It drops no message.
#include "messages/rosgraph_msgs/msg/clock.h"
#include "program/program.h"

using namespace perflab;
using messages::rosgraph_msgs::msg::Clock;

int main(int argc, char** argv) {
  return program::run("perflab-clock-bridge", argc, argv, [](program::Context& context) {
    context.reentrant();
    const program::Publisher<Clock> clock = context.publisher<Clock>("/clock_bridge", "/clock");
    context.on_message<Clock>("/clock_bridge", "/world/clock", [clock](const Clock& time, const program::Received& how) {
      clock.publish(time, how.due_ns);
    });
    return std::make_unique<program::Application>();
  });
}
