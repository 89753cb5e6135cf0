// The common part of writers and readers: checks their settings.
#pragma once

#include <cstdint>

#include "middleware/middleware.h"
#include "middleware/support/local_domain.h"

namespace perflab::middleware::udp {

class Participant;

inline constexpr std::int32_t kDeepest = 16384;  // maximum history depth of a reader

class Entity : public support::Entity {
 public:
  // Throws Unsupported for requests that plain datagrams cannot meet, and for messages of a fixed size that
  // exceed every socket buffer.
  Entity(Participant& of, bool writes, const perflab_endpoint_settings& settings,
         const perflab_listener* called);

  const perflab_identity& identity() const noexcept { return id; }

  Participant& participant;
};

}  // namespace perflab::middleware::udp
