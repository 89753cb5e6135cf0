// Waiting for readers.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "middleware/middleware.h"

namespace perflab::middleware::sim {

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
  // A reader may have become ready.
  void signal() noexcept;

 private:
  std::size_t collect(std::uint64_t* ready, std::size_t capacity) noexcept;

  // Changed only while nobody waits.
  std::vector<std::pair<Reader*, std::uint64_t>> attachments_;
  std::size_t first_ = 0;  // where collecting starts

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t signals_ = 0;
  bool woken_ = false;
};

}  // namespace perflab::middleware::sim
