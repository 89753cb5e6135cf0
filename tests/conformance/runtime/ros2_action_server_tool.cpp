// An action server as an application writes it with rclcpp_action. Of four goals it lets two succeed, aborts one and rejects
// one; each takes 50 ms with feedback each 10 ms, and may be cancelled. At SIGINT it says what it has counted:
// "accepted 3 rejected 1 succeeded 2 aborted 1 canceled 0 feedback 12".
//
//   ros2_action_server_tool ACTION perflab_msgs/action/Stamped | control_msgs/action/FollowJointTrajectory
#include <atomic>
#include <chrono>
#include <iostream>
#include <memory>
#include <mutex>
#include <perflab_msgs/action/stamped.hpp>
#include <rclcpp/rclcpp.hpp>
#include <rclcpp_action/rclcpp_action.hpp>
#include <string>
#include <thread>
#include <vector>
#ifdef PERFLAB_HAS_CONTROL_MSGS
#include <control_msgs/action/follow_joint_trajectory.hpp>
#endif

namespace {

using namespace std::chrono_literals;

struct Counts {
  std::atomic<int> accepted{0}, rejected{0}, succeeded{0}, aborted{0}, canceled{0}, feedback{0};
};

template <typename Action>
class Server {
 public:
  using Handle = rclcpp_action::ServerGoalHandle<Action>;

  Server(const std::shared_ptr<rclcpp::Node>& node, const std::string& action)
      : server_(rclcpp_action::create_server<Action>(
            node, action,
            [this](const rclcpp_action::GoalUUID&, std::shared_ptr<const typename Action::Goal>) {
              const bool reject = asked_++ % 4 == 3;
              ++(reject ? counts_.rejected : counts_.accepted);
              return reject ? rclcpp_action::GoalResponse::REJECT : rclcpp_action::GoalResponse::ACCEPT_AND_EXECUTE;
            },
            [](std::shared_ptr<Handle>) { return rclcpp_action::CancelResponse::ACCEPT; },
            [this](std::shared_ptr<Handle> goal) {
              const bool abort = taken_++ % 3 == 2;
              const std::scoped_lock lock(mutex_);
              threads_.emplace_back([this, goal, abort] { work(*goal, abort); });
            })) {}

  void finish() {
    for (std::thread& thread : threads_) thread.join();
    std::cout << "accepted " << counts_.accepted << " rejected " << counts_.rejected << " succeeded " << counts_.succeeded
              << " aborted " << counts_.aborted << " canceled " << counts_.canceled << " feedback " << counts_.feedback
              << std::endl;
  }

 private:
  void work(Handle& goal, bool abort) {
    const auto result = std::make_shared<typename Action::Result>();
    for (int step = 0; step < 5; ++step) {
      std::this_thread::sleep_for(10ms);
      if (goal.is_canceling()) {
        goal.canceled(result);
        ++counts_.canceled;
        return;
      }
      goal.publish_feedback(std::make_shared<typename Action::Feedback>());
      ++counts_.feedback;
    }
    if (abort) {
      goal.abort(result);
      ++counts_.aborted;
    } else {
      goal.succeed(result);
      ++counts_.succeeded;
    }
  }

  Counts counts_;
  std::atomic<int> asked_{0}, taken_{0};
  std::mutex mutex_;
  std::vector<std::thread> threads_;
  typename rclcpp_action::Server<Action>::SharedPtr server_;
};

template <typename Action>
void serve(const std::string& action) {
  const auto node = std::make_shared<rclcpp::Node>("action_server");
  Server<Action> server(node, action);
  rclcpp::spin(node);
  server.finish();
}

}  // namespace

int main(int argc, char** argv) {
  const std::string type = argc == 3 ? argv[2] : "";
  rclcpp::init(argc, argv);
  if (type == "perflab_msgs/action/Stamped") {
    serve<perflab_msgs::action::Stamped>(argv[1]);
#ifdef PERFLAB_HAS_CONTROL_MSGS
  } else if (type == "control_msgs/action/FollowJointTrajectory") {
    serve<control_msgs::action::FollowJointTrajectory>(argv[1]);
#endif
  } else {
    std::cerr << "usage: ros2_action_server_tool ACTION TYPE; it has no type '" << type << "'\n";
    return 2;
  }
  return 0;
}
