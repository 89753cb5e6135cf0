// C++ helpers for the types of the plug-in interface, used on both of its sides.
#pragma once

#include <cstddef>
#include <cstdint>
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

// A message in parts: its total size, and its bytes concatenated. An empty part may have a null address.
inline std::size_t size_of(const perflab_bytes* parts, std::size_t count) noexcept {
  std::size_t size = 0;
  for (std::size_t i = 0; i < count; ++i) size += parts[i].size;
  return size;
}
inline void put_together(const perflab_bytes* parts, std::size_t count, std::uint8_t* to) noexcept {
  for (std::size_t i = 0; i < count; ++i) {
    if (parts[i].size > 0) std::memcpy(to, parts[i].data, parts[i].size);
    to += parts[i].size;
  }
}

// Lets identities be keys of maps.
struct IdentityLess {
  bool operator()(const perflab_identity& a, const perflab_identity& b) const noexcept {
    return std::memcmp(a.bytes, b.bytes, sizeof a.bytes) < 0;
  }
};

// 32 hexadecimal digits, as in logs of DDS tools but without dots.
inline std::string to_hex(const perflab_identity& identity) { return perflab::to_hex(identity.bytes); }
// The inverse of to_hex(); empty if the text is not an identity.
inline std::optional<perflab_identity> identity_from_hex(std::string_view text) {
  perflab_identity identity;
  return from_hex(text, identity.bytes) ? std::optional(identity) : std::nullopt;
}

// Maps statuses of the interface to perflab's errors.
constexpr Error::Kind kind_of(perflab_status status) noexcept {
  if (status == PERFLAB_BAD_OPTION) return Error::Kind::kBadInput;
  return status == PERFLAB_UNSUPPORTED ? Error::Kind::kUnsupported : Error::Kind::kFailed;
}
constexpr perflab_status status_of(Error::Kind kind) noexcept {
  if (kind == Error::Kind::kBadInput) return PERFLAB_BAD_OPTION;
  return kind == Error::Kind::kUnsupported ? PERFLAB_UNSUPPORTED : PERFLAB_FAILED;
}

inline void require_ok(perflab_status status, const perflab_error& error) {
  if (status < 0) throw Error(kind_of(status), error.text);
}

// The default QoS of ROS 2: keep_last 10, reliable, volatile, automatic, no deadline, lifespan or lease; for
// policies that ROS 2 does not have, the default of DDS.
[[nodiscard]] constexpr perflab_qos default_qos() noexcept {
  perflab_qos qos{};
  qos.depth = 10;
  qos.reliability = PERFLAB_RELIABLE;
  qos.deadline_ns = qos.lifespan_ns = qos.lease_duration_ns = PERFLAB_DURATION_INFINITE;
  qos.max_samples = qos.max_instances = qos.max_samples_per_instance = PERFLAB_COUNT_UNLIMITED;
  return qos;
}

}  // namespace perflab::middleware
