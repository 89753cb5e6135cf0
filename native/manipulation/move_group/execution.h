// Sends trajectories to the arm's controller and watches over them: MoveIt's PlanExecution and TrajectoryExecutionManager.
//
//   fresh state, start within its tolerance -> goal to the controller -> accepted -> result, at the latest after
//   1.2 * duration + 0.5 s -> until the arm stands still
//
// Beside it another thread looks each 10 ms whether that is done, the motion was to be stopped, or the scene changed so
// that what is left of the path collides.
//
// Sources: moveit2, plan_execution.cpp, trajectory_execution_manager.cpp, action_based_controller_handle.hpp.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/time.h"
#include "manipulation/move_group/sim_clock.h"
#include "manipulation/move_group/state_monitor.h"
#include "manipulation/planning/planner.h"
#include "manipulation/robot/robot.h"

namespace perflab::manipulation {

// How a motion ended. Its names are words of the workload's outcomes.
struct Ending {
  std::string label = "SUCCESS";  // MoveIt's code
  std::string branch;             // which check refused or failed; "" for success
  std::string message;
};

struct ExecutionSettings {
  double start_tolerance = 0.01;                     // rad: MoveIt's allowed_start_tolerance; 0 skips the check, and the wait at the end
  double duration_scaling = 1.2;                     // allowed_execution_duration_scaling
  double duration_margin = 0.5;                      // s: allowed_goal_duration_margin
  Nanoseconds poll = 10'000'000;                     // WallRate(100)
  Nanoseconds result_poll = 50'000'000;              // under sim time
  Nanoseconds answer_limit = 5'000'000'000;          // for the controller to answer a goal or a cancel; MoveIt waits for ever
};

// What a controller's action client does, as a test can do it, too. Handlers may be called from any thread, and after cancel().
class Controller {
 public:
  enum class Status { kUnknown, kSucceeded, kCanceled, kAborted };
  struct Result {
    Status status = Status::kUnknown;
    std::int32_t error_code = 0;  // control_msgs/action/FollowJointTrajectory
    std::string error_text;
  };
  struct Handlers {
    std::function<void(bool accepted)> on_answer;
    std::function<void(const Result&)> on_result;
  };

  Controller() = default;
  Controller(const Controller&) = delete;
  Controller& operator=(const Controller&) = delete;
  virtual ~Controller() = default;
  // False where it could not be sent.
  virtual bool send(const planning::Trajectory& trajectory, Handlers handlers) = 0;
  virtual void cancel() = 0;
};

// Parts of an execution, in ns of CLOCK_MONOTONIC; kUnknownTime: it did not come to that.
struct ExecutionTimes {
  Nanoseconds state_wait = kUnknownTime;  // for a state newer than the start
  Nanoseconds accept = kUnknownTime;      // from sending the goal to its answer
  Nanoseconds result = kUnknownTime;      // from the answer to the result
  Nanoseconds standstill = kUnknownTime;  // from the result until the arm was seen to stand still
};

class Execution {
 public:
  Execution(std::shared_ptr<const Model> model, const SimClock& clock, const StateMonitor& monitor,
            Controller& controller, const ExecutionSettings& settings);

  // What is asked and told on the way; each may be empty.
  struct Watch {
    std::function<void()> begin_thread;  // called first by the thread that is made for the motion
    // Asked each poll: whether the motion shall end, PREEMPTED once the controller says that it has stopped; and what is wrong
    // with it from `elapsed` s on, if anything.
    std::function<bool()> cancelled;
    std::function<std::optional<std::string>(double elapsed)> blocked;
  };
  // One call at a time.
  [[nodiscard]] Ending run(const planning::Trajectory& trajectory, const Watch& watch);
  [[nodiscard]] const ExecutionTimes& times() const noexcept { return times_; }
  // For how long the controller has followed the present motion, by the clock; nothing before it took it. Any thread.
  [[nodiscard]] std::optional<Nanoseconds> elapsed() const noexcept;

  // The process ends: run() returns soon, whatever the controller says, and each later one at once. Any thread.
  void abandon() noexcept { abandoned_.store(true); }

 private:
  struct Exchange;
  [[nodiscard]] Ending execute(const planning::Trajectory& trajectory);
  [[nodiscard]] std::optional<Ending> start_differs(const planning::Trajectory& trajectory);
  [[nodiscard]] Ending follow(const planning::Trajectory& trajectory);
  void wait_for_standstill();
  void cancel();

  const std::shared_ptr<const Model> model_;
  const SimClock& clock_;
  const StateMonitor& monitor_;
  Controller& controller_;
  const ExecutionSettings settings_;
  ExecutionTimes times_;
  std::atomic<bool> abandoned_{false};
  std::atomic<bool> cancelled_{false};
  std::atomic<Nanoseconds> started_{0};  // by the clock, when the controller took the motion; 0: not yet
  std::mutex sending_;
  bool sent_ = false;   // under the lock
  bool ended_ = false;  // likewise: nothing is to be sent any more
};

}  // namespace perflab::manipulation
