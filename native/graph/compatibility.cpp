// Request against offer, as DDS defines it (DDS 1.4, 2.2.3).
#include <fmt/format.h>

#include "graph/check.h"
#include "graph/units.h"

namespace perflab::graph {
namespace {

std::string limit_text(std::int64_t ns) {
  return ns == PERFLAB_DURATION_INFINITE ? std::string("infinite") : duration_text(ns);
}

}  // namespace

std::string compatibility_problem(const perflab_qos& publisher, const perflab_qos& subscription) {
  if (publisher.reliability < subscription.reliability) {
    return "reliability is best_effort there and reliable here; make both the same, or the publisher "
           "reliable";
  }
  if (publisher.durability < subscription.durability) {
    return "durability is volatile there and transient_local here; make both the same, or the publisher "
           "transient_local";
  }
  if (publisher.deadline_ns > subscription.deadline_ns) {
    return fmt::format("deadline is {} there and {} here; the publisher's must not be longer",
                       limit_text(publisher.deadline_ns), limit_text(subscription.deadline_ns));
  }
  if (publisher.liveliness < subscription.liveliness) {
    return "liveliness is automatic there and manual_by_topic here; make both the same, or the publisher "
           "manual_by_topic";
  }
  if (publisher.lease_duration_ns > subscription.lease_duration_ns) {
    return fmt::format("lease_duration is {} there and {} here; the publisher's must not be longer",
                       limit_text(publisher.lease_duration_ns), limit_text(subscription.lease_duration_ns));
  }
  return {};
}

}  // namespace perflab::graph
