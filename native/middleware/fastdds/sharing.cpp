#include "middleware/fastdds/sharing.h"

#include <cinttypes>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <mutex>
#include <string_view>
#include <vector>

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

namespace {

struct Range {
  std::uintptr_t first;
  std::uintptr_t last;
  bool data_sharing;
};

std::vector<Range> read_ranges() {
  std::vector<Range> out;
  std::ifstream maps("/proc/self/maps");
  std::string line;
  while (std::getline(maps, line)) {
    Range one{};
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR, &one.first, &one.last) != 2) continue;
    one.data_sharing = line.find(kDataSharing) != std::string::npos;
    out.push_back(one);
  }
  return out;
}

}  // namespace

bool in_data_sharing(const void* address) {
  static std::mutex mutex;
  static std::vector<Range> ranges;
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  const std::lock_guard lock(mutex);
  for (int attempt = 0; attempt < 2; ++attempt) {
    for (const Range& one : ranges) {
      if (wanted >= one.first && wanted < one.last) return one.data_sharing;
    }
    ranges = read_ranges();
  }
  return false;
}

}  // namespace perflab::middleware::fastdds
