// A small instrumented node: it says a number, waits until the number comes back, and reports how long its answers took.
//
// docs/programs.md explains it, and how it is built and run.
#include <atomic>

#include "messages/std_msgs/msg/int64.h"
#include "program/program.h"

using namespace perflab;
using messages::std_msgs::msg::Int64;

class Talker final : public program::Application {
 public:
  // Says what there is: nothing is sent yet, and `perflab run` may end here, after it has heard what is wrong.
  explicit Talker(program::Context& context)
      : context_(context),
        turns_(context.options().integer("turns", 500, 1, 1'000'000)),
        period_ns_(context.options().duration("period", 2'000'000, 100'000)),
        chatter_(context.publisher<Int64>("/talker", "/chatter")),
        turn_(context.times("turn")),
        lateness_(context.times("lateness")) {
    context.on_message<Int64>("/talker", "/echo",
                              [this](const Int64& echo, const program::Received& how) { on_echo(echo, how); });
    context.thread("control", [this](const program::Running& running) { control(running); });
  }

  void stop() override { context_.figure("said", static_cast<double>(said_.load())); }

 private:
  // A thread of its own, which `--thread control=FIFO:50` makes a real-time thread.
  void control(const program::Running& running) {
    for (Nanoseconds due_ns = running.start().at_ns; !running.stopped(); due_ns += period_ns_) {
      program::Clock::sleep_until(due_ns);
      const Nanoseconds now_ns = context_.clock().now();
      lateness_.record(now_ns - due_ns, now_ns);
      chatter_.message().data = said_.load();
      if (chatter_.publish(due_ns)) ++said_;
    }
  }

  // In the thread of the node's executor.
  void on_echo(const Int64& echo, const program::Received& how) {
    turn_.record(how.callback_ns - how.due_ns, how.callback_ns);
    if (echo.data != heard_) context_.outcome("out_of_order", "not the number that was expected");
    heard_ = echo.data + 1;
    if (heard_ == turns_) {
      context_.figure("turns", static_cast<double>(heard_));
      context_.end();
    }
  }

  program::Context& context_;
  const std::int64_t turns_;
  const Nanoseconds period_ns_;
  const program::Publisher<Int64> chatter_;
  program::Times& turn_;
  program::Times& lateness_;
  std::atomic<std::int64_t> said_{0};
  std::int64_t heard_ = 0;
};

int main(int argc, char** argv) {
  return program::run("talker", argc, argv,
                      [](program::Context& context) { return std::make_unique<Talker>(context); });
}
