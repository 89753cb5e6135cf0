#include "middleware/shm/entity.h"

#include <string>

#include "base/error.h"
#include "middleware/shm/participant.h"
#include "middleware/shm/ring.h"
#include "middleware/shm/wire.h"
#include "middleware/support/qos.h"

namespace perflab::middleware::shm {

Endpoint checked(const perflab_endpoint_settings& settings) {
  support::checked("shm", settings);
  Endpoint info{settings.qos, settings.topic, settings.type,
                settings.user_data != nullptr ? settings.user_data : ""};
  if (info.topic.size() + info.type.size() + info.user_data.size() > kLongestNames)
    throw BadInput("shm: an endless topic, type or user data; right would be e.g. rt/amazon");
  if (settings.loans) {
    throw Unsupported("shm: topic '" + info.topic +
                      "' shall pass loaned messages; right would be unique or shared");
  }
  if (info.qos.history == PERFLAB_KEEP_LAST && info.qos.depth > static_cast<std::int32_t>(kMostMessages))
    throw BadInput("shm: history depth " + std::to_string(info.qos.depth) + "; right would be 1 to " +
                   std::to_string(kMostMessages));
  return info;
}

Entity::Entity(Participant& of, bool writes, const perflab_endpoint_settings& settings,
               const perflab_listener* called)
    : participant(of),
      is_writer(writes),
      info(checked(settings)),
      listener(called != nullptr ? *called : perflab_listener{}),
      id(of.next_identity()) {}

}  // namespace perflab::middleware::shm
