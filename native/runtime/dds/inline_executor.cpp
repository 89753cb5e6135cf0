// `inline`: callbacks run in the thread that delivers the message (the middleware's or a publisher's) or
// triggers the waitable; timers run in a thread of their own.
//
// Two threads may deliver messages of one subscription at the same time; both go through the subscription's
// gate. So callbacks never overlap, no thread waits for another, and a callback that publishes to its own
// subscription, or triggers its own waitable, does not recurse.
#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "runtime/dds/executor.h"
#include "runtime/dds/subscription.h"
#include "runtime/dds/waitable.h"

namespace perflab::runtime {

class DdsRuntime::InlineExecutor final : public OneThreadExecutor {
 public:
  using OneThreadExecutor::OneThreadExecutor;
  ~InlineExecutor() override { InlineExecutor::stop(); }

  void add_subscription(DdsSubscription& subscription) override { add(subscription); }
  void add_waitable(DdsWaitable& waitable) override { add(waitable); }

  void create_threads() override {
    if (!timers_.empty()) workers_.create(settings_, 1, [this](std::size_t) { run_timers(); });
  }
  void run() override {
    open_.store(true, std::memory_order_release);
    // Handles what came before the start.
    for (Entity* const entity : entities_) {
      enter(*entity, entity->sources[1] == nullptr ? kFirst : kFirst | kSecond);
    }
    workers_.release();
  }
  void stop() noexcept override {
    {
      const std::lock_guard lock(mutex_);
      stopping_.store(true, std::memory_order_relaxed);
    }
    open_.store(false, std::memory_order_release);
    wake_.notify_all();
    workers_.join();
    // Lets running callbacks finish and prevents further ones.
    for (Entity* const entity : entities_) entity->gate.close();
    entities_.clear();
  }

  void on_ready(Source& source) noexcept override {
    if (!open_.load(std::memory_order_acquire)) return;
    enter(source.entity, static_cast<Gate::Marks>(source.index));
  }

 private:
  // Marks: the sources of the entity that have something.
  static constexpr Gate::Marks kFirst = 1;
  static constexpr Gate::Marks kSecond = 2;

  void add(Entity& entity) {
    entity.sources[0]->index = kFirst;
    if (entity.sources[1] != nullptr) entity.sources[1]->index = kSecond;
    entities_.push_back(&entity);
  }

  void enter(Entity& entity, Gate::Marks left) noexcept {
    entity.gate.pass(left, [this, &entity](Gate::Marks marks) {
      if ((marks & kFirst) != 0) run_all(*entity.sources[0]);
      if ((marks & kSecond) != 0) run_all(*entity.sources[1]);
    });
  }
  void run_all(Source& source) noexcept {
    while (open_.load(std::memory_order_relaxed)) {
      if (source.run_one() != Source::Turn::kMore) return;
    }
  }
  void run_timers() noexcept {
    std::unique_lock lock(mutex_);
    while (!stopping()) {
      const Nanoseconds wait = until_next_tick();
      if (wait == TimerQueue::kNever) return;
      if (wait > 0) {
        wake_.wait_for(lock, std::chrono::nanoseconds(wait));
        continue;
      }
      lock.unlock();
      run_due_timers();
      lock.lock();
    }
  }

  std::vector<Entity*> entities_;
  std::atomic<bool> open_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

std::unique_ptr<DdsRuntime::DdsExecutor> DdsRuntime::Executors::make_inline(
    const measure::Clock& clock, const ExecutorSettings& settings) {
  return std::make_unique<InlineExecutor>(clock, settings);
}

}  // namespace perflab::runtime
