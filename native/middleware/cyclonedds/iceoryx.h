// Cyclone DDS with iceoryx: messages of fixed size in memory that the processes of a machine share.
//
// iceoryx has a daemon, RouDi, of which a machine has one. Where none runs the library waits for it and then ends the
// process, so that is found out before.
#pragma once

#include <string>

#include "middleware/middleware.h"

namespace perflab::middleware::cyclonedds::iceoryx {

// Subscribers hold 256 chunks at most; what is in the history of a reader, and taken, is held.
constexpr std::int32_t kDeepestInPlace = 200;

// Whether this library was built with it.
bool is_built_in() noexcept;
bool daemon_runs() noexcept;

// What Cyclone is told: who shares this machine's memory are the participants of the domain that perflab opens.
std::string configuration(std::uint32_t domain);

// What of an endpoint of fixed size iceoryx does not carry, and what would be right; null where there is nothing. The library
// lets such an endpoint in for the network, but what one with shared memory writes then never reaches it from another
// process (0.10.2 sends its acknowledgements to the shared memory, where nobody reads them); and partitions it forgets.
const char* unsuitable(const perflab_qos& qos, bool ignores_local) noexcept;

}  // namespace perflab::middleware::cyclonedds::iceoryx
