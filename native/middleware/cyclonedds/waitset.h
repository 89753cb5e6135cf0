// A wait-set on top of Cyclone's, with one read condition per reader and a guard condition for wake().
#pragma once

#include <dds/dds.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "middleware/cyclonedds/participant.h"
#include "middleware/middleware.h"
#include "middleware/support/waitset.h"

namespace perflab::middleware::cyclonedds {

class Reader;

class WaitSet {
 public:
  explicit WaitSet(Participant& participant);

  void attach(Reader& reader, std::uint64_t cookie);
  perflab_status wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                      std::size_t* ready_count, perflab_error* error) noexcept;
  void wake() noexcept;

 private:
  support::Places places_;
  std::vector<dds_attach_t> triggered_;  // places, or kWake
  std::atomic<bool> woken_{false};       // set by wake(); the guard condition is also set for polling
  Entity waitset_;
  Entity guard_;
};

}  // namespace perflab::middleware::cyclonedds
