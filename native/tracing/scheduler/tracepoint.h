// Tracepoint formats from tracefs, as needed for perf_event_open(2).
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
  bool located = false;  // `__data_loc`: 16 bits offset, 16 bits length of data elsewhere in the record
};

struct TracepointFormat {
  std::string name;
  std::uint32_t id = 0;
  std::vector<TracepointField> fields;

  // nullptr: no field of this name.
  [[nodiscard]] const TracepointField* find(std::string_view field) const noexcept;
};

// Parses a `format` file. Throws Unsupported if it is malformed.
[[nodiscard]] TracepointFormat parse_tracepoint_format(const std::string& text);

// Reads it from tracefs, mounted or not. Throws Unsupported if this user may not read it, or the tracepoint
// does not exist.
[[nodiscard]] TracepointFormat read_tracepoint_format(const std::string& group, const std::string& name);

}  // namespace perflab::tracing
