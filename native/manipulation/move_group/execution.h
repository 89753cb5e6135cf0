// Sends trajectories to the arm's controller and monitors them: MoveIt's PlanExecution and
// TrajectoryExecutionManager.
//
//   fresh state, start within its tolerance -> goal to the controller -> accepted -> result, at the latest after
//   1.2 * duration + 0.5 s -> wait for standstill
//
// Another thread checks every 10 ms whether execution is done, a stop was requested, or the scene changed so
// that the rest of the path collides.
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

// How a motion ended. The names are outcomes of the workload.
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
  Nanoseconds answer_limit = 5'000'000'000;          // how long the controller may take to answer a goal or a
                                                     // cancel; MoveIt waits forever
};

// The interface of a controller's action client, which tests replace. Handlers may be called from any thread,
// and after cancel().
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
  // False if it could not be sent.
  virtual bool send(const planning::Trajectory& trajectory, Handlers handlers) = 0;
  virtual void cancel() = 0;
};

// Durations of an execution's parts, in ns of CLOCK_MONOTONIC; kUnknownTime: not reached.
struct ExecutionTimes {
  Nanoseconds state_wait = kUnknownTime;  // wait for a state newer than the start
  Nanoseconds accept = kUnknownTime;      // from sending the goal to its answer
  Nanoseconds result = kUnknownTime;      // from the answer to the result
  Nanoseconds standstill = kUnknownTime;  // from the result until standstill was observed
};

class Execution {
 public:
  Execution(std::shared_ptr<const Model> model, const SimClock& clock, const StateMonitor& monitor,
            Controller& controller, const ExecutionSettings& settings);

  // Queries and notifications during a motion; each may be empty.
  struct Watch {
    std::function<void()> begin_thread;  // called first in the thread created for the motion
    // Called at each poll: whether to end the motion (PREEMPTED once the controller has reported the stop);
    // and what is wrong with the motion from `elapsed` seconds on, if anything.
    std::function<bool()> cancelled;
    std::function<std::optional<std::string>(double elapsed)> blocked;
  };
  // One call at a time.
  [[nodiscard]] Ending run(const planning::Trajectory& trajectory, const Watch& watch);
  [[nodiscard]] const ExecutionTimes& times() const noexcept { return times_; }
  // How long the controller has followed the current motion, by the clock; empty before it accepted it.
  // Thread-safe.
  [[nodiscard]] std::optional<Nanoseconds> elapsed() const noexcept;

  // The process ends: run() returns soon, regardless of the controller, and later calls return at once.
  // Thread-safe.
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
  std::atomic<Nanoseconds> started_{0};  // when the controller accepted the motion, by the clock; 0: not yet
  std::mutex sending_;
  bool sent_ = false;   // guarded by the lock
  bool ended_ = false;  // guarded by the lock: nothing may be sent any more
};

}  // namespace perflab::manipulation
