// QoS as all of DDS has it: which values there are, and what the policies are called.
#pragma once

#include <cstdint>
#include <string>

#include "middleware/middleware.h"

namespace perflab::middleware::support {

// Throws BadInput where topic or type has no name, or a policy a value that DDS
// has not.
const perflab_endpoint_settings& checked(const char* plugin, const perflab_endpoint_settings& settings);

// What peers see: the endpoint's own, and behind it that of its QoS.
std::string user_data_of(const perflab_endpoint_settings& settings);

// By its QosPolicyId_t (DDS 1.4, 2.3.3; DDS-XTypes 1.3, 7.6.3), "unknown" where perflab has no use for it.
const char* policy_name(std::uint32_t id) noexcept;

}  // namespace perflab::middleware::support
