// The library's shared memory: which files belong to this process, and which addresses are in data sharing.
//
// Each file is identified by something only its owner has: a segment or port of the shared-memory transport
// by the lock file (`<name>_el`) that this process holds open, a data-sharing file by the GUID of our writer
// or reader in its name.
#pragma once

#include <cstddef>
#include <set>
#include <string>

#include "middleware/middleware.h"

namespace perflab::middleware::fastdds {

// Lock files of the shared-memory transport that this process holds open, e.g. "/dev/shm/fastrtps_3f0e_el".
std::set<std::string> held_locks();
// The existing names in /dev/shm that belong to these locks, including the locks.
std::set<std::string> files_of_locks(const std::set<std::string>& locks);
// The names in /dev/shm of the data-sharing files of the participant with this identity (its first 12 bytes).
std::set<std::string> data_sharing_files(const perflab_identity& participant);
// True if the address is in a mapping of a data-sharing file. Reads /proc/self/maps without allocating.
bool in_data_sharing(const void* address) noexcept;

}  // namespace perflab::middleware::fastdds
