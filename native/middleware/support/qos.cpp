#include "middleware/support/qos.h"

#include <algorithm>
#include <iterator>
#include <string>

#include "base/error.h"

namespace perflab::middleware::support {
namespace {

// Cyclone DDS uses 25 instead of 23; neither library reports another policy under that number.
struct Policy {
  std::uint32_t id;
  const char* name;
};
constexpr Policy kPolicies[] = {
    {2, "durability"},        {3, "presentation"},        {4, "deadline"},
    {5, "latency_budget"},    {6, "ownership"},           {8, "liveliness"},
    {10, "partition"},        {11, "reliability"},        {12, "destination_order"},
    {13, "history"},          {14, "resource_limits"},    {23, "data_representation"},
    {24, "type_consistency"}, {25, "data_representation"}};

[[noreturn]] void refuse(const char* plugin, const std::string& what) {
  throw BadInput(std::string(plugin) + ": " + what);
}

void check_duration(const char* plugin, const char* policy, std::int64_t value_ns) {
  if (value_ns > 0) return;
  refuse(plugin, std::string(policy) + " of " + std::to_string(value_ns) +
                     " ns; right would be above 0, or infinite");
}

bool is_empty(const char* name) { return name == nullptr || *name == '\0'; }

}  // namespace

const perflab_endpoint_settings& checked(const char* plugin, const perflab_endpoint_settings& settings) {
  if (is_empty(settings.topic) || is_empty(settings.type))
    refuse(plugin, "topic or type is empty; right would be e.g. rt/amazon");
  const perflab_qos& qos = settings.qos;
  check_duration(plugin, "deadline", qos.deadline_ns);
  check_duration(plugin, "lifespan", qos.lifespan_ns);
  check_duration(plugin, "lease duration", qos.lease_duration_ns);
  if (qos.history == PERFLAB_KEEP_LAST && qos.depth <= 0)
    refuse(plugin, "history depth " + std::to_string(qos.depth) + "; right would be at least 1");
  return settings;
}

std::string user_data_of(const perflab_endpoint_settings& settings) {
  return std::string(settings.user_data != nullptr ? settings.user_data : "") + settings.qos.user_data.text;
}

const char* policy_name(std::uint32_t id) noexcept {
  const auto* const known = std::ranges::find(kPolicies, id, &Policy::id);
  return known != std::end(kPolicies) ? known->name : "unknown";
}

}  // namespace perflab::middleware::support
