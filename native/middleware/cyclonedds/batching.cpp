#include "middleware/cyclonedds/batching.h"

#include <pthread.h>

#include <algorithm>
#include <chrono>
#include <limits>

namespace perflab::middleware::cyclonedds {
namespace {

using Clock = std::chrono::steady_clock;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(Clock::now().time_since_epoch()).count();
}

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

}  // namespace

Batching::Batching() : thread_([this] { run(); }) { pthread_setname_np(thread_.native_handle(), "batch"); }

Batching::~Batching() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void Batching::add(Batch& batch) {
  const std::lock_guard lock(mutex_);
  batches_.push_back(&batch);
}

void Batching::remove(Batch& batch) noexcept {
  const std::lock_guard lock(mutex_);
  std::erase(batches_, &batch);
}

void Batching::wait_for_others(Batch& batch) noexcept {
  {
    const std::lock_guard lock(mutex_);
    batch.due_ns_ = now_ns() + batch.delay_ns_;
    batch.waits_.store(true, std::memory_order_relaxed);
  }
  changed_.notify_one();
}

// A write that comes after `waits_` is cleared here is either sent by the following flush, which holds the
// library's lock of the writer, or finds `waits_` false and sets it again.
std::vector<dds_entity_t> Batching::due(std::int64_t now, std::int64_t& next_ns) {
  std::vector<dds_entity_t> found;
  next_ns = kNever;
  for (Batch* const batch : batches_) {
    if (!batch->waits_.load(std::memory_order_relaxed)) continue;
    if (batch->due_ns_ <= now) {
      if (!batch->writing_.load(std::memory_order_relaxed)) {
        batch->waits_.store(false, std::memory_order_relaxed);
        found.push_back(batch->writer_);
        continue;
      }
      // That write may hold the lock for as long as the library waits for room, having sent everything
      // queued: other writers must not wait for it.
      batch->due_ns_ = now + batch->delay_ns_;
    }
    next_ns = std::min(next_ns, batch->due_ns_);
  }
  return found;
}

void Batching::run() {
  std::unique_lock lock(mutex_);
  while (!ends_) {
    std::int64_t next_ns = kNever;
    const std::vector<dds_entity_t> writers = due(now_ns(), next_ns);
    if (!writers.empty()) {
      lock.unlock();
      for (const dds_entity_t writer : writers) dds_write_flush(writer);  // no effect if the writer is gone
      flushes_ += writers.size();
      lock.lock();
    } else if (next_ns == kNever) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, Clock::time_point(std::chrono::nanoseconds(next_ns)));
    }
  }
}

}  // namespace perflab::middleware::cyclonedds
