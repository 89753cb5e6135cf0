// Global state of the loaded libddsc: its version and its log.
#pragma once

#include "middleware/support/library.h"

namespace perflab::middleware::cyclonedds {

// The version of the loaded libddsc.
const char* library_version();

// Captures the library's log, which Cyclone otherwise writes to stderr.
support::Log& library_log();

}  // namespace perflab::middleware::cyclonedds
