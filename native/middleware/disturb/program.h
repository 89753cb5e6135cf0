// The disturbance program: its options.
//
//   disturb.delay              every message arrives this much later (0ns)
//   disturb.jitter             plus a uniform extra of 0..jitter, without overtaking (0ns)
//   disturb.loss               probability that a message is lost (0)
//   disturb.loss_every         every n-th message from a writer to a reader is lost
//   disturb.reorder_every      every n-th message (n >= 2) arrives right after its successor, or 50 ms late if
//                              none follows
//   disturb.duplicate_every    every n-th message arrives twice
//   disturb.stall_every        nothing arrives during the first `stall` of every such period of the clock ...
//   disturb.stall              ... and everything at the end of the stall, in order
//   disturb.seed               for jitter and loss (1)
//   disturb.topic              disturbs only this topic, e.g. rt/amazon
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "middleware/middleware.h"

namespace perflab::middleware::disturb {

struct Program {
  std::int64_t delay_ns = 0;
  std::int64_t jitter_ns = 0;
  double loss = 0;                  // probability
  std::uint64_t loss_every = 0;     // 0: never; likewise below
  std::uint64_t reorder_every = 0;  // at least 2
  std::uint64_t duplicate_every = 0;
  std::int64_t stall_every_ns = 0;
  std::int64_t stall_ns = 0;  // less than stall_every_ns
  std::uint64_t seed = 1;
  std::string topic;  // empty: every topic

  // `wire_name` is as in create_writer(); the option `topic` may omit "rt/".
  [[nodiscard]] bool concerns(std::string_view wire_name) const;
};

// True if the option belongs to the disturbance rather than to the plug-in below it.
[[nodiscard]] bool is_of_disturbance(std::string_view key) noexcept;

// `options` are those of the disturbance; `seed` is the default seed. Throws BadInput.
Program read_program(std::span<const perflab_option> options, std::uint64_t seed = 1);

// The program in the description of effective settings; null if it disturbs nothing.
nlohmann::json to_json(const Program& program);

}  // namespace perflab::middleware::disturb
