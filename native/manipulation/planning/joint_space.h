// The space in which OMPL plans for an arm, as in MoveIt: distance and extent are sums over the joints
// (JointModelGroup::distance).
#pragma once

#include <ompl/base/spaces/RealVectorStateSpace.h>

#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>

#include "manipulation/robot/robot.h"

namespace perflab::manipulation::planning {

// During its lifetime this thread's state samplers start from a given seed. OMPL's samplers are created by
// the thread that first needs one, and take their seeds from a global source: of several threads the fastest
// would get the first.
class SeededThread {
 public:
  explicit SeededThread(std::uint32_t seed) : before_(next()) { next() = seed; }
  ~SeededThread() { next() = before_; }
  SeededThread(const SeededThread&) = delete;
  SeededThread& operator=(const SeededThread&) = delete;

  // Seed of this thread's next sampler; empty: OMPL's choice.
  static std::optional<std::uint32_t>& next() {
    static thread_local std::optional<std::uint32_t> seed;
    return seed;
  }

 private:
  const std::optional<std::uint32_t> before_;
};

class JointSpace final : public ompl::base::RealVectorStateSpace {
 public:
  explicit JointSpace(const Model& model) : RealVectorStateSpace(static_cast<unsigned>(model.joints().size())) {
    ompl::base::RealVectorBounds bounds(dimension_);
    for (unsigned i = 0; i < dimension_; ++i) {
      bounds.setLow(i, model.limits()[i].lower);
      bounds.setHigh(i, model.limits()[i].upper);
    }
    setBounds(bounds);
  }
  double getMaximumExtent() const override {
    double sum = 0.0;
    for (unsigned i = 0; i < dimension_; ++i) sum += bounds_.high[i] - bounds_.low[i];
    return sum;
  }
  ompl::base::StateSamplerPtr allocDefaultStateSampler() const override {
    class Sampler final : public ompl::base::RealVectorStateSampler {
     public:
      explicit Sampler(const ompl::base::StateSpace* space) : RealVectorStateSampler(space) {
        std::optional<std::uint32_t>& seed = SeededThread::next();
        if (seed) rng_.setLocalSeed((*seed)++);
      }
    };
    return std::make_shared<Sampler>(this);
  }
  double distance(const ompl::base::State* first, const ompl::base::State* second) const override {
    double sum = 0.0;
    for (unsigned i = 0; i < dimension_; ++i) {
      sum += std::abs(first->as<StateType>()->values[i] - second->as<StateType>()->values[i]);
    }
    return sum;
  }
};

}  // namespace perflab::manipulation::planning
