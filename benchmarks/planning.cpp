// Plans of random motions by perflab's planner and, of the same problem in the same process, by OMPL's own benchmark
// (ompl::tools::Benchmark): same space, limits, collisions, resolution, start and goal, RRTConnect and simplification.
//
//   planning [SCENE] [GOALS] [REPEATS]
//
// One JSON line: of each motion that both solve, the mean over the repeats of what solving and simplifying took each, s; and
// the parts of perflab's planner with one and with three attempts.

#include <ompl/base/goals/GoalStates.h>
#include <ompl/geometric/SimpleSetup.h>
#include <ompl/geometric/planners/rrt/RRTConnect.h>
#include <ompl/tools/benchmark/Benchmark.h>
#include <ompl/util/Console.h>

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "manipulation/planning/error_codes.h"
#include "manipulation/planning/joint_space.h"
#include "manipulation/planning/planner.h"

namespace {

using namespace perflab;
using namespace perflab::manipulation;
using planning::JointSpace;
namespace ob = ompl::base;
namespace og = ompl::geometric;

class Free final : public ob::StateValidityChecker {
 public:
  Free(const ob::SpaceInformationPtr& space, const State& scene)
      : StateValidityChecker(space), state_(std::make_unique<State>(scene)) {}
  bool isValid(const ob::State* state) const override {
    if (!si_->satisfiesBounds(state)) return false;
    state_->set({state->as<JointSpace::StateType>()->values, si_->getStateDimension()});
    return !state_->collides();
  }

 private:
  std::unique_ptr<State> state_;
};

Positions free_positions(const Model& model, State& state, SplitMix64& random) {
  for (;;) {
    Positions positions = random_positions(model, random);
    state.set(positions);
    if (!state.collides()) return positions;
  }
}

double seconds(Nanoseconds time) { return static_cast<double>(time) * 1e-9; }

// What one run of OMPL's benchmark took to solve and simplify; nothing where it found no way.
std::optional<double> peer(const Model& model, const State& scene, const Positions& start, const Positions& goal) {
  og::SimpleSetup setup(std::make_shared<JointSpace>(model));
  setup.getStateSpace()->setLongestValidSegmentFraction(planning::kSegmentFraction);
  setup.setStateValidityChecker(std::make_shared<Free>(setup.getSpaceInformation(), scene));
  const auto state = [&](const Positions& positions) {
    ob::ScopedState<> at(setup.getStateSpace());
    std::copy(positions.begin(), positions.end(), at->as<JointSpace::StateType>()->values);
    return at;
  };
  setup.setStartState(state(start));
  const auto goals = std::make_shared<ob::GoalStates>(setup.getSpaceInformation());
  goals->addState(state(goal));
  setup.setGoal(goals);
  ompl::tools::Benchmark benchmark(setup);
  benchmark.addPlanner(std::make_shared<og::RRTConnect>(setup.getSpaceInformation()));
  ompl::tools::Benchmark::Request request(5.0, 4096.0, 1);
  request.displayProgress = false;
  request.saveConsoleOutput = false;
  benchmark.benchmark(request);
  auto run = benchmark.getRecordedExperimentData().planners.front().runs.front();
  if (run["solved BOOLEAN"] != "1") return std::nullopt;
  return std::stod(run["time REAL"]) + std::stod(run["simplification time REAL"]);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string scene_name = argc > 1 ? argv[1] : "table";
  const int goals = argc > 2 ? std::atoi(argv[2]) : 100;
  const int repeats = argc > 3 ? std::atoi(argv[3]) : 5;
  ompl::msg::noOutputHandler();
  const auto model = Model::load("panda", scene_name);
  State scene(model);
  State scratch(model);
  SplitMix64 random(1);
  nlohmann::json ours = nlohmann::json::array();
  nlohmann::json peers = nlohmann::json::array();
  nlohmann::json parts;
  nlohmann::json outcomes;
  std::uint32_t seed = 0;
  for (int goal = 0; goal < goals; ++goal) {
    const Positions from = free_positions(*model, scratch, random);
    const Positions to = free_positions(*model, scratch, random);
    double our_sum = 0.0;
    double peer_sum = 0.0;
    int solved = 0;
    for (int repeat = 0; repeat < repeats; ++repeat) {
      std::optional<double> our;
      for (const std::size_t attempts : {1U, 3U}) {
        planning::Request request;
        request.start = from;
        request.goals = {planning::JointGoal{to}};
        request.attempts = attempts;
        request.velocity_scaling = request.acceleration_scaling = 0.5;
        request.seed = ++seed;
        const Nanoseconds begin = read_clock(CLOCK_MONOTONIC);
        const planning::Result result = planning::plan(model, request, scene);
        const Nanoseconds took = read_clock(CLOCK_MONOTONIC) - begin;
        auto& label = outcomes[std::to_string(attempts)][std::string(planning::label_of(result.code))];
        label = label.is_null() ? 1 : label.get<int>() + 1;
        const planning::Times& times = result.times;
        if (times.simplify != kUnknownTime && attempts == 1) our = seconds(times.solve + times.simplify);
        if (!result.succeeded()) continue;
        auto& part = parts[std::to_string(attempts)];
        part["all"].push_back(seconds(took));
        part["ik"].push_back(seconds(times.ik));
        part["solve"].push_back(seconds(times.solve));
        part["simplify"].push_back(seconds(times.simplify));
        part["parameterize"].push_back(seconds(times.parameterize));
        part["validate"].push_back(seconds(times.validate));
      }
      const std::optional<double> their = peer(*model, scene, from, to);
      if (!our || !their) continue;
      our_sum += *our;
      peer_sum += *their;
      ++solved;
    }
    if (solved == 0) continue;
    ours.push_back(our_sum / solved);
    peers.push_back(peer_sum / solved);
  }
  const nlohmann::json result = {{"ours_s", ours}, {"peer_s", peers}, {"parts_s", parts}, {"outcomes", outcomes}};
  std::puts(result.dump().c_str());
}
