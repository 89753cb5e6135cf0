#include "middleware/cyclonedds/iceoryx.h"

#include <dds/features.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cctype>
#include <cstring>
#include <fstream>

namespace perflab::middleware::cyclonedds::iceoryx {
namespace {

constexpr const char* kDaemonSocket = "/tmp/roudi";

// 16 bytes that are unique to this machine, in Cyclone's notation of an address.
std::string address_of_machine() {
  std::string id;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), id);
  std::string digits;
  for (const char c : id) {
    if (std::isxdigit(static_cast<unsigned char>(c)) == 0) continue;
    if (!digits.empty() && digits.size() % 3 == 2) digits += ':';
    digits += c;
  }
  return digits;
}

}  // namespace

bool is_built_in() noexcept {
#ifdef DDS_HAS_SHM
  return true;
#else
  return false;
#endif
}

bool daemon_runs() noexcept {
  const int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (probe < 0) return false;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, kDaemonSocket, sizeof address.sun_path - 1);
  // Refused if the daemon has ended and only its socket file is left.
  const bool runs = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  close(probe);
  return runs;
}

std::string configuration(std::uint32_t domain) {
  // The iceoryx service does not distinguish domains.
  return "<SharedMemory><Enable>true</Enable><Locator>iceoryx/" + address_of_machine() +
         "</Locator><Prefix>perflab_" + std::to_string(domain) + "</Prefix><LogLevel>fatal</LogLevel></SharedMemory>";
}

const char* unsuitable(const perflab_qos& qos, bool ignores_local) noexcept {
  if (qos.history != PERFLAB_KEEP_LAST) return "history keep_all; right would be keep_last";
  if (qos.durability != PERFLAB_VOLATILE) return "a durability beyond volatile; right would be volatile";
  if (qos.liveliness != PERFLAB_AUTOMATIC) return "liveliness manual_by_topic; right would be automatic";
  if (qos.deadline_ns != PERFLAB_DURATION_INFINITE) return "a deadline; right would be none";
  if (qos.partition.text[0] != '\0') return "a partition; right would be none";
  if (ignores_local) return "endpoints of a process that do not match; right would be no intra-process delivery";
  return nullptr;
}

}  // namespace perflab::middleware::cyclonedds::iceoryx
