#include "tracing/scheduler/tracepoint.h"

#include <linux/mount.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <sstream>

#include "base/descriptor.h"
#include "tracing/scheduler/source.h"

namespace perflab::tracing {
namespace {

constexpr const char* kTracefs = "/sys/kernel/tracing";

// A detached tracefs mount that only this process has, by its descriptor (Linux 5.2, root). Empty if not
// permitted.
const std::string& own_tracefs() {
  static const Descriptor own = [] {
    const Descriptor context(static_cast<int>(syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC)));
    if (syscall(SYS_fsconfig, context.number(), FSCONFIG_CMD_CREATE, nullptr, nullptr, 0) != 0)
      return Descriptor();
    return Descriptor(
        static_cast<int>(syscall(SYS_fsmount, context.number(), FSMOUNT_CLOEXEC, MOUNT_ATTR_RDONLY)));
  }();
  static const std::string place = own.open() ? "/proc/self/fd/" + std::to_string(own.number()) : "";
  return place;
}

}  // namespace

const TracepointField* TracepointFormat::find(std::string_view field) const noexcept {
  const auto found = std::ranges::find(fields, field, &TracepointField::name);
  return found == fields.end() ? nullptr : &*found;
}

// "	field:char prev_comm[16];	offset:8;	size:16;	signed:0;"
TracepointFormat parse_tracepoint_format(const std::string& text) {
  TracepointFormat format;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && !line.starts_with("print fmt:");) {
    if (line.starts_with("name: ")) format.name = line.substr(6);
    std::sscanf(line.c_str(), "ID: %u", &format.id);
    TracepointField field;
    std::array<char, 256> declaration{};
    if (std::sscanf(line.c_str(), " field:%255[^;]; offset:%zu; size:%zu;", declaration.data(), &field.offset,
                    &field.size) != 3)
      continue;
    const std::string_view words = declaration.data();
    const std::string_view name = words.substr(words.rfind(' ') + 1);
    field.located = words.starts_with("__data_loc ");
    field.name = name.substr(0, name.find('['));
    format.fields.push_back(field);
  }
  if (format.name.empty() || format.id == 0 || format.fields.empty())
    throw Unsupported("a format file of tracefs has no name, no ID or no fields");
  return format;
}

TracepointFormat read_tracepoint_format(const std::string& group, const std::string& name) {
  const std::string events = std::string(kTracefs) + "/events", file = "/" + group + "/" + name + "/format";
  int reason = 0;
  // Looks where tracefs is mounted; before Linux 4.1 and elsewhere below debugfs; if not mounted, mounts it
  // for this process only.
  for (const std::string& place :
       {std::string(kTracefs), std::string("/sys/kernel/debug/tracing"), own_tracefs()}) {
    if (const auto text = read_file(place + "/events" + file)) return parse_tracepoint_format(*text);
    if (reason == 0 || reason == ENOENT) reason = errno;
  }
  if (reason == EACCES || reason == EPERM)
    throw Unsupported(
        std::string(kTracefs) +
        " cannot be read by this user (tracefs, which says where the fields of the scheduler's events "
        "are): sudo mount -o remount,mode=750,gid=$(id -g) " +
        kTracefs);
  if (reason != ENOENT) throw Unsupported(events + file + ": " + std::strerror(reason));
  if (own_tracefs().empty() && access(events.c_str(), F_OK) != 0)
    throw Unsupported(
        std::string("tracefs is not mounted, and only root can do without it: sudo mount -t tracefs none ") +
        kTracefs + ", or use the source ebpf");
  throw Unsupported("this kernel has no tracepoint " + group + ":" + name + " (" + events + file +
                    "): it needs one built with CONFIG_TRACEPOINTS and CONFIG_EVENT_TRACING");
}

}  // namespace perflab::tracing
