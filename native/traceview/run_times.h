// Instants at which threads certainly ran, because they emitted user-space events.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "traceview/ros.h"

namespace perflab::traceview {

// Sorts the instants once, at the first query. The tables must be complete and outlive this object.
class RunTimes {
 public:
  RunTimes(const Ros& ros, std::size_t threads) : ros_(ros), threads_(threads) {}

  // The first instant between begin and end at which the thread emitted an event.
  [[nodiscard]] std::optional<std::int64_t> first_in(std::int32_t thread, std::int64_t begin_ns, std::int64_t end_ns);

 private:
  void collect();

  const Ros& ros_;
  std::size_t threads_;
  std::vector<std::vector<std::int64_t>> times_;  // by thread, ascending
};

}  // namespace perflab::traceview
