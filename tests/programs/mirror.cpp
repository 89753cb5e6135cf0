// A program for tests: sends back what it gets, with the due time that it had.
#include "messages/std_msgs/msg/string.h"
#include "program/program.h"

using namespace perflab;
using messages::std_msgs::msg::String;

int main(int argc, char** argv) {
  return program::run("perflab-mirror", argc, argv, [](program::Context& context) -> std::unique_ptr<program::Application> {
    const program::Publisher<String> pong = context.publisher<String>("/mirror", "/pong");
    context.on_message<String>("/mirror", "/ping", [pong](const String& ping, const program::Received& how) {
      pong.publish(ping, how.due_ns);
    });
    return std::make_unique<program::Application>();
  });
}
