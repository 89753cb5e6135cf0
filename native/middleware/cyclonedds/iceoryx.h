// Cyclone DDS with iceoryx: messages of fixed size in memory shared by the processes of a machine.
//
// iceoryx needs its daemon, RouDi, once per machine. Without it the library would wait and then end the
// process, so perflab checks beforehand.
#pragma once

#include <string>

#include "middleware/middleware.h"

namespace perflab::middleware::cyclonedds::iceoryx {

// Subscribers hold at most 256 chunks; messages in a reader's history and taken ones count.
constexpr std::int32_t kDeepestInPlace = 200;

// True if this library was built with it.
bool is_built_in() noexcept;
bool daemon_runs() noexcept;

// Cyclone's configuration: the participants that perflab opens in the domain share this machine's memory.
std::string configuration(std::uint32_t domain);

// The setting of a fixed-size endpoint that iceoryx does not support, and what would be right; null if there
// is none. The library lets such an endpoint use the network, but messages of a shared-memory writer in
// another process then never reach it (0.10.2 sends its acknowledgements to the shared memory, where nobody
// reads them); and it ignores partitions.
const char* unsuitable(const perflab_qos& qos, bool ignores_local) noexcept;

}  // namespace perflab::middleware::cyclonedds::iceoryx
