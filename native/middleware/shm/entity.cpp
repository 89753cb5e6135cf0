#include "middleware/shm/entity.h"

#include <string>

#include "base/error.h"
#include "middleware/shm/participant.h"
#include "middleware/shm/ring.h"
#include "middleware/shm/wire.h"

namespace perflab::middleware::shm {
namespace {

void check_qos(const perflab_qos& qos) {
  const auto refuse = [](const char* policy, std::int64_t value, const std::string& right) {
    throw BadInput(std::string("shm: ") + policy + " of " + std::to_string(value) + "; right would be " +
                   right);
  };
  if (qos.history == PERFLAB_KEEP_LAST &&
      (qos.depth <= 0 || qos.depth > static_cast<std::int32_t>(kMostMessages)))
    refuse("history depth", qos.depth, "1 to " + std::to_string(kMostMessages));
  if (qos.deadline_ns <= 0) refuse("deadline", qos.deadline_ns, "above 0 ns, or infinite");
  if (qos.lifespan_ns <= 0) refuse("lifespan", qos.lifespan_ns, "above 0 ns, or infinite");
  if (qos.lease_duration_ns <= 0) refuse("lease duration", qos.lease_duration_ns, "above 0 ns, or infinite");
}

}  // namespace

Endpoint checked(const perflab_endpoint_settings& settings) {
  Endpoint info{settings.qos, settings.topic != nullptr ? settings.topic : "",
                settings.type != nullptr ? settings.type : ""};
  if (info.topic.empty() || info.type.empty() || info.topic.size() + info.type.size() > kLongestNames)
    throw BadInput("shm: an empty or endless topic or type; right would be e.g. rt/amazon");
  if (settings.loans) {
    throw Unsupported("shm: topic '" + info.topic +
                      "' shall pass loaned messages; right would be unique or shared");
  }
  check_qos(info.qos);
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
