#include "middleware/udp/entity.h"

#include <string>

#include "base/error.h"
#include "middleware/udp/participant.h"

namespace perflab::middleware::udp {
namespace {

// A lost datagram stays lost, and there is no timer: plugin.cpp declares no policy that needs more.
support::Endpoint checked(const perflab_endpoint_settings& settings) {
  support::Endpoint info = support::checked_endpoint("udp", settings);
  const perflab_qos& qos = info.qos;
  if (qos.history == PERFLAB_KEEP_LAST && qos.depth > kDeepest)
    throw BadInput("udp: history depth " + std::to_string(qos.depth) + "; right would be 1 to " +
                   std::to_string(kDeepest));
  return info;
}

}  // namespace

Entity::Entity(Participant& of, bool writes, const perflab_endpoint_settings& settings,
               const perflab_listener* called)
    : support::Entity(writes, checked(settings), called, of.next_identity()), participant(of) {
  if (settings.fixed_size > of.largest_message())
    throw Unsupported("udp: topic '" + info.topic + "': " + of.too_large(settings.fixed_size));
}

}  // namespace perflab::middleware::udp
