// Lets several threads use a single-threaded resource without waiting: a thread that finds it in use leaves a
// task, which the current user runs before it leaves. So tasks of one thread run in its order, and a task
// that directly or indirectly causes another never waits for itself.
//
// Example:
//   Turns<std::vector<std::uint8_t>> turns;
//   turns.take([&] { return publish(bytes); }, [&] { return copy_of(bytes); }, [&](const auto& kept) { publish(kept);
//   });
#pragma once

#include <mutex>
#include <new>
#include <utility>
#include <vector>

#include "base/gate.h"

namespace perflab::runtime {

template <typename Task>
class Turns {
 public:
  // Returns the result of `now`; or, if another thread is inside, true once the result of `make` is queued
  // for `later`, and false if there is no memory. `now` and `later` are noexcept.
  template <typename Now, typename Make, typename Later>
  bool take(const Now& now, const Make& make, const Later& later) noexcept {
    if (gate_.try_enter()) {
      const bool done = now();
      gate_.leave([&](Gate::Marks) { work(later); });
      return done;
    }
    try {
      Task task = make();
      const std::lock_guard lock(mutex_);
      tasks_.push_back(std::move(task));
    } catch (const std::bad_alloc&) {
      return false;
    }
    gate_.pass(kTask, [&](Gate::Marks) { work(later); });
    return true;
  }

 private:
  static constexpr Gate::Marks kTask = 1;

  template <typename Later>
  void work(const Later& later) noexcept {
    for (;;) {
      std::vector<Task> tasks;
      {
        const std::lock_guard lock(mutex_);
        tasks.swap(tasks_);
      }
      if (tasks.empty()) return;
      for (Task& task : tasks) later(task);
    }
  }

  Gate gate_;
  std::mutex mutex_;
  std::vector<Task> tasks_;
};

}  // namespace perflab::runtime
