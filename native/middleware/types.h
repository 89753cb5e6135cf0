// What C++ on both sides of the plug-in interface needs of its types.
#pragma once

#include <cstring>

#include "middleware/middleware.h"

namespace perflab::middleware {

inline bool same(const perflab_identity& a, const perflab_identity& b) noexcept {
  return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

// The name of the first policy that keeps a writer and a reader from matching, or nullptr (DDS 1.4, 2.2.3).
inline const char* incompatible_policy(const perflab_qos& offered, const perflab_qos& requested) noexcept {
  if (offered.reliability < requested.reliability) return "reliability";
  if (offered.durability < requested.durability) return "durability";
  if (offered.deadline_ns > requested.deadline_ns) return "deadline";
  if (offered.liveliness < requested.liveliness) return "liveliness";
  if (offered.lease_duration_ns > requested.lease_duration_ns) return "liveliness";
  return nullptr;
}

}  // namespace perflab::middleware
