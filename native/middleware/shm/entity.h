// The common part of writers and readers.
#pragma once

#include <algorithm>
#include <cstdint>

#include "middleware/middleware.h"
#include "middleware/support/local_domain.h"

namespace perflab::middleware::shm {

class Participant;

inline bool finite(std::int64_t duration_ns) noexcept { return duration_ns != PERFLAB_DURATION_INFINITE; }

class Entity : public support::Entity {
 public:
  Entity(Participant& of, bool writes, const perflab_endpoint_settings& settings,
         const perflab_listener* called);

  const perflab_identity& identity() const noexcept { return id; }

  Participant& participant;
};

// Counts deadline periods without a message.
class Deadline {
 public:
  explicit Deadline(std::int64_t period_ns) : period_ns_(period_ns) {}
  // `last_ns`: time of the last message, 0 if none is due. Returns how many periods have ended without a
  // message since the last call.
  std::int32_t missed(std::int64_t now_ns, std::int64_t last_ns) noexcept {
    since_ns_ = last_ns == 0 ? 0 : std::max(since_ns_, last_ns);
    std::int32_t count = 0;
    if (!finite(period_ns_) || since_ns_ == 0) return 0;
    for (; now_ns - since_ns_ >= period_ns_; since_ns_ += period_ns_) ++count;
    return count;
  }
  // When to check again.
  std::int64_t due_ns(std::int64_t now_ns) const noexcept {
    if (!finite(period_ns_)) return PERFLAB_DURATION_INFINITE;
    return (since_ns_ == 0 ? now_ns : since_ns_) + period_ns_;
  }

 private:
  const std::int64_t period_ns_;
  std::int64_t since_ns_ = 0;
};

// Interval for polling something that is not reported, within a lease.
inline std::int64_t part_of(std::int64_t lease_ns) noexcept {
  return std::max<std::int64_t>(lease_ns / 4, 1'000'000);
}

}  // namespace perflab::middleware::shm
