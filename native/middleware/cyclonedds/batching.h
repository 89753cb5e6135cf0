// Batching: messages wait to share a datagram with others, and a thread sends them in the end.
//
// With Internal/WriteBatch the library sends a datagram when it is full, but never one that does not fill up:
// a thread of each participant does that.
#pragma once

#include <dds/dds.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace perflab::middleware::cyclonedds {

// Messages of one writer that may be waiting. Only writing threads use it, except for the two atomics.
class Batch {
 public:
  Batch(dds_entity_t writer, std::int64_t delay_ns) : writer_(writer), delay_ns_(delay_ns) {}

 private:
  friend class Batching;
  const dds_entity_t writer_;
  const std::int64_t delay_ns_;
  std::atomic<bool> waits_{false};    // a message may be waiting since the last flush
  std::atomic<bool> writing_{false};  // a write is in progress, which may take long while the library waits
                                      // for room
  std::int64_t due_ns_ = 0;           // guarded by the mutex of Batching
};

class Batching {
 public:
  Batching();
  // All writers have been destroyed.
  ~Batching();
  Batching(const Batching&) = delete;
  Batching& operator=(const Batching&) = delete;

  void add(Batch& batch);
  void remove(Batch& batch) noexcept;

  // Called around each write.
  static void begin(Batch& batch) noexcept { batch.writing_.store(true, std::memory_order_relaxed); }
  void end(Batch& batch) noexcept {
    batch.writing_.store(false, std::memory_order_relaxed);
    if (!batch.waits_.load(std::memory_order_relaxed)) [[unlikely]]
      wait_for_others(batch);
  }

  // Number of flushes of waiting messages.
  std::uint64_t flushes() const noexcept { return flushes_; }

 private:
  void wait_for_others(Batch& batch) noexcept;
  void run();
  // The writers due now; sets the time when the next ones will be due.
  std::vector<dds_entity_t> due(std::int64_t now_ns, std::int64_t& next_ns);

  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Batch*> batches_;
  bool ends_ = false;
  std::atomic<std::uint64_t> flushes_{0};
  std::thread thread_;
};

}  // namespace perflab::middleware::cyclonedds
