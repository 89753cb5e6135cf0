// What C++ on both sides of the plug-in interface needs of its types.
#pragma once

#include <cstring>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/hex.h"
#include "middleware/middleware.h"

namespace perflab::middleware {

inline bool same(const perflab_identity& a, const perflab_identity& b) noexcept {
  return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) == 0;
}

// For maps.
struct IdentityLess {
  bool operator()(const perflab_identity& a, const perflab_identity& b) const noexcept {
    return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) < 0;
  }
};

// 32 hexadecimal digits, as in logs of DDS tools but without dots.
inline std::string to_hex(const perflab_identity& identity) { return perflab::to_hex(identity.bytes); }
// Its inverse; nothing where the text is no identity.
inline std::optional<perflab_identity> identity_from_hex(std::string_view text) {
  perflab_identity identity;
  return from_hex(text, identity.bytes) ? std::optional(identity) : std::nullopt;
}

// Errors on either side of the interface.
constexpr Error::Kind kind_of(perflab_status status) noexcept {
  if (status == PERFLAB_BAD_OPTION) return Error::Kind::kBadInput;
  return status == PERFLAB_UNSUPPORTED ? Error::Kind::kUnsupported : Error::Kind::kFailed;
}
constexpr perflab_status status_of(Error::Kind kind) noexcept {
  if (kind == Error::Kind::kBadInput) return PERFLAB_BAD_OPTION;
  return kind == Error::Kind::kUnsupported ? PERFLAB_UNSUPPORTED : PERFLAB_FAILED;
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
