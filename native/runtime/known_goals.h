// The goals that a client has sent, so that it can tell feedback for its own goals from other feedback.
// Thread-safe.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <mutex>
#include <new>
#include <utility>

#include "runtime/action.h"

namespace perflab::runtime {

class KnownGoals {
 public:
  // False if there is no memory.
  bool sent(const GoalId& id) noexcept {
    const std::lock_guard lock(mutex_);
    try {
      ended_by_id_.insert_or_assign(id, false);
      return true;
    } catch (const std::bad_alloc&) {
      return false;
    }
  }
  void not_sent(const GoalId& id) noexcept {
    const std::lock_guard lock(mutex_);
    ended_by_id_.erase(id);
  }
  // The goal is not forgotten at once: feedback may come after the result.
  void ended(const GoalId& id) noexcept {
    const std::lock_guard lock(mutex_);
    const auto goal = ended_by_id_.find(id);
    if (goal == ended_by_id_.end() || std::exchange(goal->second, true)) return;
    try {
      ended_.push_back(id);
    } catch (const std::bad_alloc&) {
      ended_by_id_.erase(goal);
      return;
    }
    if (ended_.size() <= kEndedKnown) return;
    ended_by_id_.erase(ended_.front());
    ended_.pop_front();
  }
  [[nodiscard]] bool contains(const GoalId& id) const noexcept {
    const std::lock_guard lock(mutex_);
    return ended_by_id_.contains(id);
  }

 private:
  static constexpr std::size_t kEndedKnown = 1000;

  mutable std::mutex mutex_;
  std::map<GoalId, bool> ended_by_id_;
  std::deque<GoalId> ended_;
};

}  // namespace perflab::runtime
