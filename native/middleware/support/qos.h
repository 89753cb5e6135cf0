// QoS checks common to all of DDS: valid values and policy names.
#pragma once

#include <cstdint>
#include <string>

#include "middleware/middleware.h"

namespace perflab::middleware::support {

// Throws BadInput if topic or type is empty, or a policy has a value that DDS does not allow.
const perflab_endpoint_settings& checked(const char* plugin, const perflab_endpoint_settings& settings);

// USER_DATA as visible to peers: the endpoint's own, followed by that of its QoS.
std::string user_data_of(const perflab_endpoint_settings& settings);

// The name for a QosPolicyId_t (DDS 1.4, 2.3.3; DDS-XTypes 1.3, 7.6.3); "unknown" for policies that perflab
// does not use.
const char* policy_name(std::uint32_t id) noexcept;

}  // namespace perflab::middleware::support
