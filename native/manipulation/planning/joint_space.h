// The space in which OMPL plans for an arm: MoveIt's, where distance and extent are sums over the joints
// (JointModelGroup::distance).
#pragma once

#include <ompl/base/spaces/RealVectorStateSpace.h>

#include <cmath>

#include "manipulation/robot/robot.h"

namespace perflab::manipulation::planning {

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
  double distance(const ompl::base::State* first, const ompl::base::State* second) const override {
    double sum = 0.0;
    for (unsigned i = 0; i < dimension_; ++i) {
      sum += std::abs(first->as<StateType>()->values[i] - second->as<StateType>()->values[i]);
    }
    return sum;
  }
};

}  // namespace perflab::manipulation::planning
