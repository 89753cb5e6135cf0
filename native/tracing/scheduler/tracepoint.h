// Tracepoints as tracefs describes them: what perf_event_open(2) wants to know of them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace perflab::tracing {

struct TracepointField {
  std::string name;
  std::size_t offset = 0, size = 0;
  bool located = false;  // `__data_loc`: 16 bits offset, 16 bits length of what lies elsewhere in the record
};

struct TracepointFormat {
  std::string name;
  std::uint32_t id = 0;
  std::vector<TracepointField> fields;

  // nullptr: there is none of this name.
  [[nodiscard]] const TracepointField* find(std::string_view field) const noexcept;
};

// A `format` file. Throws Unsupported where it makes no sense.
[[nodiscard]] TracepointFormat parse_tracepoint_format(const std::string& text);

// Of tracefs, mounted or not. Throws Unsupported where this user may not read it, or it has no such
// tracepoint.
[[nodiscard]] TracepointFormat read_tracepoint_format(const std::string& group, const std::string& name);

}  // namespace perflab::tracing
