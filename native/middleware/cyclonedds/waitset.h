// A wait-set on Cyclone's own, with one read condition per reader and a guard condition for wake().
#pragma once

#include <dds/dds.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "middleware/cyclonedds/participant.h"
#include "middleware/middleware.h"

namespace perflab::middleware::cyclonedds {

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
                      std::size_t* ready_count, perflab_error* error) noexcept;
  void wake() noexcept;

 private:
  struct Attachment {
    Reader* reader;
    std::uint64_t cookie;
    Entity condition;
    bool ready;
  };

  std::vector<Attachment> attachments_;  // in order of attachment
  std::vector<dds_attach_t> triggered_;  // indices into attachments_, or kWake
  std::size_t first_ = 0;                // where the search starts: behind the last one that fitted
  std::atomic<bool> woken_{false};       // by wake(); the guard condition is also set to look without waiting
  Entity waitset_;
  Entity guard_;
};

}  // namespace perflab::middleware::cyclonedds
