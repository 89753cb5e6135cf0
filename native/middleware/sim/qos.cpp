#include "middleware/sim/qos.h"

#include <string>

#include "middleware/support/status.h"

namespace perflab::middleware::sim {

void check(const perflab_qos& qos) {
  const auto refuse = [](const char* policy, std::int64_t value, const char* right) {
    throw support::StatusError(PERFLAB_BAD_OPTION, std::string("sim: ") + policy + " of " +
                                                       std::to_string(value) + "; right would be " + right);
  };
  if (qos.history == PERFLAB_KEEP_LAST && qos.depth <= 0) refuse("history depth", qos.depth, "at least 1");
  if (qos.deadline_ns <= 0) refuse("deadline", qos.deadline_ns, "above 0 ns, or infinite");
  if (qos.lifespan_ns <= 0) refuse("lifespan", qos.lifespan_ns, "above 0 ns, or infinite");
  if (qos.lease_duration_ns <= 0) refuse("lease duration", qos.lease_duration_ns, "above 0 ns, or infinite");
}

void check_names(const char* topic, const char* type) {
  if (topic != nullptr && *topic != '\0' && type != nullptr && *type != '\0') return;
  throw support::StatusError(PERFLAB_BAD_OPTION,
                             "sim: an empty topic or type; right would be e.g. rt/amazon");
}

}  // namespace perflab::middleware::sim
