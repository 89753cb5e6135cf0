#include "middleware/udp/entity.h"

#include <string>

#include "base/error.h"
#include "middleware/udp/participant.h"

namespace perflab::middleware::udp {
namespace {

bool finite(std::int64_t duration_ns) { return duration_ns != PERFLAB_DURATION_INFINITE; }

// A datagram that is lost stays lost, and nobody watches a clock: what needs more than that is refused.
support::Endpoint checked(const perflab_endpoint_settings& settings) {
  support::Endpoint info = support::checked_endpoint("udp", settings);
  const perflab_qos& qos = info.qos;
  const auto refuse = [&](const std::string& what, const char* right) {
    throw Unsupported("udp: topic '" + info.topic + "': " + what + "; right would be " + right);
  };
  if (qos.reliability == PERFLAB_RELIABLE)
    refuse("reliability reliable, but datagrams are sent once", "reliability best_effort");
  if (qos.durability == PERFLAB_TRANSIENT_LOCAL)
    refuse("durability transient_local, but nothing is kept for later readers", "durability volatile");
  if (finite(qos.deadline_ns)) refuse("a deadline, which nobody watches", "no deadline");
  if (finite(qos.lifespan_ns)) refuse("a lifespan, which nobody watches", "no lifespan");
  if (finite(qos.lease_duration_ns))
    refuse("liveliness with a lease, which nobody watches", "no lease duration");
  if (qos.liveliness == PERFLAB_MANUAL_BY_TOPIC)
    refuse("liveliness manual_by_topic, which nobody watches", "liveliness automatic");
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
