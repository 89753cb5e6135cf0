// What the simulator shall do to messages: its options.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "middleware/middleware.h"
#include "middleware/support/options.h"

namespace perflab::middleware::sim {

struct Program {
  std::int64_t delay_ns = 0;
  std::int64_t jitter_ns = 0;
  double loss = 0;                  // probability
  std::uint64_t loss_every = 0;     // 0: never; likewise below
  std::uint64_t reorder_every = 0;  // at least 2
  std::uint64_t duplicate_every = 0;
  std::uint64_t seed = 1;
  std::int64_t match_delay_ns = 0;
  std::int64_t max_blocking_time_ns = 1'000'000'000;
  std::string topic;  // empty: every topic

  // `wire_name` is as in create_writer(); the option `topic` may leave out "rt/".
  bool concerns(std::string_view wire_name) const;
};

// delay, jitter, loss, loss_every, reorder_every, duplicate_every and seed; what the virtual runtime shares
// with the simulator. Throws StatusError with PERFLAB_BAD_OPTION, as read_program() does.
void read_disturbance(const support::Options& options, Program& program);

// All options; they are documented in plugin.cpp.
Program read_program(const perflab_participant_settings& settings);

}  // namespace perflab::middleware::sim
