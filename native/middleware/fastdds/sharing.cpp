#include "middleware/fastdds/sharing.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string_view>

namespace perflab::middleware::fastdds {
namespace {

namespace fs = std::filesystem;
constexpr std::string_view kFolder = "/dev/shm/";
constexpr std::string_view kLockEnd = "_el";
constexpr std::string_view kDataSharing = "fast_datasharing_";

template <typename Function>
void for_each_entry(const char* folder, Function&& function) {
  std::error_code code;
  for (fs::directory_iterator at(folder, code), end; !code && at != end; at.increment(code))
    function(at->path());
}

}  // namespace

std::set<std::string> held_locks() {
  std::set<std::string> out;
  for_each_entry("/proc/self/fd", [&](const fs::path& entry) {
    std::error_code code;
    const std::string file = fs::read_symlink(entry, code);
    if (!code && file.starts_with(kFolder) && file.ends_with(kLockEnd)) out.insert(file);
  });
  return out;
}

std::set<std::string> files_of_locks(const std::set<std::string>& locks) {
  std::set<std::string> out;
  for (const std::string& lock : locks) {
    const std::string held = lock.substr(kFolder.size());
    const std::string name = held.substr(0, held.size() - kLockEnd.size());
    std::error_code code;
    for (const std::string& file : {name, held, "sem." + name + "_mutex"}) {
      if (fs::exists(std::string(kFolder) + file, code)) out.insert(file);
    }
  }
  return out;
}

std::set<std::string> data_sharing_files(const perflab_identity& participant) {
  std::string prefix(kDataSharing);
  for (std::size_t i = 0; i < 12; ++i) {
    char text[4];
    std::snprintf(text, sizeof text, i == 11 ? "%02x" : "%02x.", static_cast<unsigned>(participant.bytes[i]));
    prefix += text;
  }
  std::set<std::string> out;
  for_each_entry("/dev/shm", [&](const fs::path& entry) {
    if (entry.filename().string().starts_with(prefix)) out.insert(entry.filename());
  });
  return out;
}

// Looked up each time: mappings change while writers come and go, and with an outdated answer an overwritten
// message would go unnoticed.
bool in_data_sharing(const void* address) noexcept {
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  const int maps = open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (maps < 0) return false;
  bool found = false;
  bool known = false;
  char text[8192];  // lines are shorter: addresses, and a path of at most 4096 characters
  std::size_t have = 0;
  while (!known) {
    const ssize_t got = ::read(maps, text + have, sizeof text - have);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) break;
    have += static_cast<std::size_t>(got);
    std::string_view rest(text, have);
    for (std::size_t end; !known && (end = rest.find('\n')) != std::string_view::npos;
         rest.remove_prefix(end + 1)) {
      const std::string_view line = rest.substr(0, end);
      std::uintptr_t first = 0;
      std::uintptr_t last = 0;
      const auto dash = std::from_chars(line.data(), line.data() + line.size(), first, 16);
      if (dash.ec != std::errc() || dash.ptr == line.data() + line.size()) continue;
      std::from_chars(dash.ptr + 1, line.data() + line.size(), last, 16);
      known = wanted >= first && wanted < last;
      found = known && line.find(kDataSharing) != std::string_view::npos;
    }
    have = rest.size();
    std::memmove(text, rest.data(), have);
  }
  close(maps);
  return found;
}

}  // namespace perflab::middleware::fastdds
