// The rules of DDS about QoS: what is valid, and what an offered QoS must be for a requested one.
#pragma once

#include <cstdint>

#include "middleware/middleware.h"

namespace perflab::middleware::sim {

// Throws StatusError with PERFLAB_BAD_OPTION.
void check(const perflab_qos& qos);
void check_names(const char* topic, const char* type);

// The name of the first policy that keeps a writer and a reader from matching, or nullptr (DDS 1.4, 2.2.3).
const char* incompatible_policy(const perflab_qos& offered, const perflab_qos& requested) noexcept;

inline bool finite(std::int64_t duration_ns) noexcept { return duration_ns != PERFLAB_DURATION_INFINITE; }

}  // namespace perflab::middleware::sim
