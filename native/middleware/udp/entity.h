// What writers and readers have in common: what may be asked of them.
#pragma once

#include <cstdint>

#include "middleware/middleware.h"
#include "middleware/support/local_domain.h"

namespace perflab::middleware::udp {

class Participant;

inline constexpr std::int32_t kDeepest = 16384;  // history of a reader

class Entity : public support::Entity {
 public:
  // Throws Unsupported for what datagrams alone cannot do, and for messages of a fixed size that no socket
  // here can hold.
  Entity(Participant& of, bool writes, const perflab_endpoint_settings& settings,
         const perflab_listener* called);

  const perflab_identity& identity() const noexcept { return id; }

  Participant& participant;
};

}  // namespace perflab::middleware::udp
