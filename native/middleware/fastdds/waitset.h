// A wait-set of its own. The library's status condition is reset by any take(), also with data left, and its
// read conditions cost a lock per condition and message; here a reader that has got data sets a mark, and
// only marked readers are asked.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "middleware/middleware.h"

namespace perflab::middleware::fastdds {

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
  // An attached reader got data; called under locks of the library.
  void signal() noexcept;

 private:
  struct Attachment {
    Reader* reader;
    std::uint64_t cookie;
  };

  std::size_t collect(std::uint64_t* ready, std::size_t capacity) noexcept;

  // Readers are asked under it, which takes locks of the library; so signal() must not take it.
  std::mutex attachments_mutex_;
  std::vector<Attachment> attachments_;  // in order of attachment
  std::size_t first_ = 0;                // where the search starts: the first that did not fit

  std::mutex mutex_;
  std::condition_variable changed_;
  std::uint64_t signals_ = 0;
  bool woken_ = false;
};

}  // namespace perflab::middleware::fastdds
