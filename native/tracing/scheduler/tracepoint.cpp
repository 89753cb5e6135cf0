#include "tracing/scheduler/tracepoint.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>

#include "tracing/scheduler/source.h"

namespace perflab::tracing {
namespace {

// Since 4.1 tracefs has a place of its own; before and elsewhere it is below debugfs.
constexpr std::array<const char*, 2> kPlaces = {"/sys/kernel/tracing", "/sys/kernel/debug/tracing"};

std::optional<std::string> read_text(const std::string& path, int& reason) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) {
    reason = errno;
    return std::nullopt;
  }
  std::string text;
  std::array<char, 4096> part;
  ssize_t got = 0;
  while ((got = read(file, part.data(), part.size())) > 0)
    text.append(part.data(), static_cast<std::size_t>(got));
  reason = got < 0 ? errno : 0;
  close(file);
  return got < 0 ? std::nullopt : std::optional(text);
}

std::optional<std::size_t> number_behind(std::string_view line, std::string_view key) {
  const auto at = line.find(key);
  if (at == std::string_view::npos) return std::nullopt;
  line.remove_prefix(at + key.size());
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  std::size_t number = 0;
  const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
  return error == std::errc() ? std::optional(number) : std::nullopt;
}

// "	field:char prev_comm[16];	offset:8;	size:16;	signed:0;"
std::optional<TracepointField> field_of(std::string_view line) {
  const auto start = line.find("field:"), end = line.find(';');
  const auto offset = number_behind(line, "offset:"), size = number_behind(line, "size:");
  if (start == std::string_view::npos || end == std::string_view::npos || !offset || !size)
    return std::nullopt;
  std::string_view declaration = line.substr(start + 6, end - start - 6);
  TracepointField field;
  field.located = declaration.starts_with("__data_loc ");
  const std::string_view name = declaration.substr(declaration.rfind(' ') + 1);
  field.name = name.substr(0, name.find('['));
  field.offset = *offset;
  field.size = *size;
  return field;
}

}  // namespace

const TracepointField* TracepointFormat::find(std::string_view field) const noexcept {
  const auto found = std::ranges::find(fields, field, &TracepointField::name);
  return found == fields.end() ? nullptr : &*found;
}

TracepointFormat parse_tracepoint_format(std::string_view text) {
  TracepointFormat format;
  while (!text.empty()) {
    const auto end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
    if (line.starts_with("print fmt:")) break;
    if (line.starts_with("name: ")) format.name = line.substr(6);
    if (line.starts_with("ID: "))
      format.id = static_cast<std::uint32_t>(number_behind(line, "ID:").value_or(0));
    if (const auto field = field_of(line)) format.fields.push_back(*field);
  }
  if (format.name.empty() || format.id == 0 || format.fields.empty())
    throw Unavailable("a format file of tracefs has no name, no ID or no fields");
  return format;
}

TracepointFormat read_tracepoint_format(const std::string& group, const std::string& name) {
  int reason = ENOENT;
  for (const std::string place : kPlaces) {
    int problem = 0;
    const auto text = read_text(place + "/events/" + group + "/" + name + "/format", problem);
    if (text) return parse_tracepoint_format(*text);
    if (problem != ENOENT) reason = problem;
  }
  const std::string place = kPlaces[0];
  if (reason == EACCES || reason == EPERM)
    throw Unavailable(
        place +
        " cannot be read by this user (tracefs, which says where the fields of the scheduler's events are): "
        "sudo mount -o remount,mode=750,gid=$(id -g) " +
        place);
  if (reason != ENOENT)
    throw Unavailable(place + "/events/" + group + "/" + name + "/format: " + std::strerror(reason));
  if (access((place + "/events").c_str(), F_OK) != 0)
    throw Unavailable("tracefs is not mounted: sudo mount -t tracefs tracefs " + place);
  throw Unavailable("this kernel has no tracepoint " + group + ":" + name + " (" + place + "/events/" +
                    group + "): it needs one built with CONFIG_TRACEPOINTS and CONFIG_EVENT_TRACING");
}

}  // namespace perflab::tracing
