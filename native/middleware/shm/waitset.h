// Waiting for readers: a thread in wait() sleeps on a bell, which the writers ring.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "middleware/middleware.h"
#include "middleware/shm/board.h"

namespace perflab::middleware::shm {

class Participant;
class Reader;

class WaitSet {
 public:
  explicit WaitSet(Participant& participant);
  ~WaitSet();
  WaitSet(const WaitSet&) = delete;
  WaitSet& operator=(const WaitSet&) = delete;

  void attach(Reader& reader, std::uint64_t cookie);
  void forget(const Reader& reader) noexcept;
  perflab_status wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                      std::size_t* ready_count, perflab_error*) noexcept;
  void wake() noexcept;

 private:
  std::size_t collect(std::uint64_t* ready, std::size_t capacity) noexcept;

  const std::shared_ptr<Board> board_;
  const std::uint32_t bell_;
  std::atomic<bool> woken_{false};
  // Only changed while no thread waits.
  std::vector<std::pair<Reader*, std::uint64_t>> attachments_;
  std::size_t first_ = 0;  // where collecting starts
};

}  // namespace perflab::middleware::shm
