// Waiting for readers. Each attached reader has a bit, which is set exactly while it has messages; so a look
// at 64 readers is the look at one number.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "middleware/middleware.h"

namespace perflab::middleware::direct {

class Participant;
class Reader;

class WaitSet {
 public:
  explicit WaitSet(Participant&) {}
  ~WaitSet();
  WaitSet(const WaitSet&) = delete;
  WaitSet& operator=(const WaitSet&) = delete;

  void attach(Reader& reader, std::uint64_t cookie);
  void forget(const Reader& reader) noexcept;
  perflab_status wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                      std::size_t* ready_count, perflab_error*) noexcept;
  void wake() noexcept;

 private:
  friend class Attachment;
  struct Place {
    Reader* reader;  // null: it was destroyed
    std::uint64_t cookie;
  };

  std::size_t collect(std::uint64_t* ready, std::size_t capacity) noexcept;
  void notify() noexcept;

  // Changed only while nobody waits.
  std::vector<Place> places_;                      // in order of attachment
  std::deque<std::atomic<std::uint64_t>> bits_{};  // stay where they are
  std::size_t first_ = 0;                          // where collecting starts: the first that did not fit

  std::atomic<bool> sleeping_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::atomic<bool> woken_{false};  // changed under the mutex
};

// A reader's end of it; used under the reader's mutex.
class Attachment {
 public:
  Attachment() = default;
  Attachment(WaitSet& waitset, std::size_t place) noexcept;
  [[nodiscard]] WaitSet* waitset() const noexcept { return waitset_; }
  // The reader has something, or no longer. Nothing where there is no wait-set.
  void set() noexcept;
  void clear() noexcept;

 private:
  WaitSet* waitset_ = nullptr;
  std::atomic<std::uint64_t>* bits_ = nullptr;
  std::uint64_t bit_ = 0;
};

}  // namespace perflab::middleware::direct
