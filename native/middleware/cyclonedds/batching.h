// Messages that wait for others to leave in one datagram with them, and what sends them in the end.
//
// With Internal/WriteBatch the library sends a datagram when it is full, and has nothing that sends one that does not
// fill: a thread of each participant does.
#pragma once

#include <dds/dds.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace perflab::middleware::cyclonedds {

// What one writer has that may wait. Called by those who write alone, but for the two atomics.
class Batch {
 public:
  Batch(dds_entity_t writer, std::int64_t delay_ns) : writer_(writer), delay_ns_(delay_ns) {}

 private:
  friend class Batching;
  const dds_entity_t writer_;
  const std::int64_t delay_ns_;
  std::atomic<bool> waits_{false};    // something may, since it was last sent
  std::atomic<bool> writing_{false};  // a write is under way, which may last while the library waits for room
  std::int64_t due_ns_ = 0;           // under the mutex of Batching
};

class Batching {
 public:
  Batching();
  // Writers have left.
  ~Batching();
  Batching(const Batching&) = delete;
  Batching& operator=(const Batching&) = delete;

  void add(Batch& batch);
  void remove(Batch& batch) noexcept;

  // Around each write.
  static void begin(Batch& batch) noexcept { batch.writing_.store(true, std::memory_order_relaxed); }
  void end(Batch& batch) noexcept {
    batch.writing_.store(false, std::memory_order_relaxed);
    if (!batch.waits_.load(std::memory_order_relaxed)) [[unlikely]]
      wait_for_others(batch);
  }

  // How often it sent what waited.
  std::uint64_t flushes() const noexcept { return flushes_; }

 private:
  void wait_for_others(Batch& batch) noexcept;
  void run();
  // What is due now; sets the time at which something else will be.
  std::vector<dds_entity_t> due(std::int64_t now_ns, std::int64_t& next_ns);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Batch*> batches_;
  bool ends_ = false;
  std::atomic<std::uint64_t> flushes_{0};
  std::thread thread_;
};

}  // namespace perflab::middleware::cyclonedds
