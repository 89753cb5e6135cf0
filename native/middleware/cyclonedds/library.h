// What is global to the loaded libddsc: its version and its log.
#pragma once

#include "middleware/support/library.h"

namespace perflab::middleware::cyclonedds {

// The version of the libddsc that is loaded.
const char* library_version();

// Captures the library's log, which Cyclone writes to stderr by itself.
support::Log& library_log();

}  // namespace perflab::middleware::cyclonedds
