#include "middleware/shm/entity.h"

#include <string>

#include "base/error.h"
#include "middleware/shm/participant.h"
#include "middleware/shm/ring.h"

namespace perflab::middleware::shm {

namespace {

support::Endpoint checked(const perflab_endpoint_settings& settings) {
  support::Endpoint info = support::checked_endpoint("shm", settings);
  if (info.qos.history == PERFLAB_KEEP_LAST && info.qos.depth > static_cast<std::int32_t>(kMostMessages))
    throw BadInput("shm: history depth " + std::to_string(info.qos.depth) + "; right would be 1 to " +
                   std::to_string(kMostMessages));
  return info;
}

}  // namespace

Entity::Entity(Participant& of, bool writes, const perflab_endpoint_settings& settings,
               const perflab_listener* called)
    : support::Entity(writes, checked(settings), called, of.next_identity()), participant(of) {}

}  // namespace perflab::middleware::shm
