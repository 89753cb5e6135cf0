// The rules of DDS about QoS: what is valid. What matches is in middleware/types.h.
#pragma once

#include <cstdint>

#include "middleware/middleware.h"

namespace perflab::middleware::sim {

// Throws StatusError with PERFLAB_BAD_OPTION.
void check(const perflab_qos& qos);
void check_names(const char* topic, const char* type);

inline bool finite(std::int64_t duration_ns) noexcept { return duration_ns != PERFLAB_DURATION_INFINITE; }

}  // namespace perflab::middleware::sim
