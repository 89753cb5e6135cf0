// What is global to the loaded libddsc: its version and its log.
#pragma once

#include <string>
#include <vector>

namespace perflab::middleware::cyclonedds {

// The version of the libddsc that is loaded, e.g. "0.10.2"; "unknown" if its file name does not tell.
const char* library_version();

// Cyclone writes warnings and errors to stderr. A plug-in prints nothing: from the first call on, the last
// lines are kept here instead, and end up in error texts and in describe().
void capture_log();
std::vector<std::string> log_lines();
void clear_log();

}  // namespace perflab::middleware::cyclonedds
