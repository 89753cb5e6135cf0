// A program whose functions are called like those of rclcpp's executor, to be built with -finstrument-functions and
// recorded. It has no ROS 2 in it: three timers are ready by turns, and waiting is a sleep of 2 ms.
#include <chrono>
#include <cstddef>
#include <thread>

namespace rclcpp {

struct AnyExecutable {
  int timer = -1;
};

class Executor {
 public:
  explicit Executor(int rounds) : rounds_(rounds) {}

  void spin() {
    AnyExecutable next;
    while (get_next_executable(next)) execute_any_executable(next);
  }

 private:
  // Looks, waits, and looks again: as rclcpp does.
  bool get_next_executable(AnyExecutable& next) {
    if (get_next_ready_executable(next)) return true;
    if (round_ == rounds_) return false;
    wait_for_work();
    return get_next_ready_executable(next);
  }

  bool get_next_ready_executable(AnyExecutable& next) {
    if (ready_ == 0) return false;
    next.timer = --ready_;
    return true;
  }

  void wait_for_work() {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    ready_ = 3;
    ++round_;
  }

  void execute_any_executable(const AnyExecutable& next) {
    for (int i = 0; i <= next.timer; ++i) on_timer();
  }

  void on_timer() {
    for (int i = 0; i < 20'000; ++i) sum_ = sum_ + i;
  }

  int rounds_, round_ = 0, ready_ = 0;
  volatile long sum_ = 0;
};

}  // namespace rclcpp

int main() {
  rclcpp::Executor executor(50);
  executor.spin();
}
