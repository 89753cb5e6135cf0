#include "middleware/sim/program.h"

#include <span>

#include "middleware/support/options.h"
#include "middleware/support/status.h"

namespace perflab::middleware::sim {
namespace {

std::string_view plain(std::string_view name) {
  if (name.starts_with("rt/")) name.remove_prefix(3);
  if (name.starts_with('/')) name.remove_prefix(1);
  return name;
}

}  // namespace

bool Program::concerns(std::string_view wire_name) const {
  return topic.empty() || plain(topic) == plain(wire_name);
}

void read_disturbance(const support::Options& options, Program& program) {
  const auto every = [&](std::string_view key, std::uint64_t least) {
    const std::uint64_t value = options.integer(key).value_or(0);
    if (options.text(key) && value < least)
      options.refuse(key, "a whole number of at least " + std::to_string(least));
    return value;
  };
  program.delay_ns = options.duration_ns("delay").value_or(0);
  program.jitter_ns = options.duration_ns("jitter").value_or(0);
  program.loss = options.probability("loss").value_or(0);
  program.loss_every = every("loss_every", 1);
  program.reorder_every = every("reorder_every", 2);
  program.duplicate_every = every("duplicate_every", 1);
  program.seed = options.integer("seed").value_or(program.seed);
}

Program read_program(const perflab_participant_settings& settings) {
  const support::Options options("sim", std::span(settings.options, settings.option_count),
                                 {"delay", "duplicate_every", "jitter", "loss", "loss_every", "match_delay",
                                  "max_blocking_time", "reorder_every", "seed", "topic"});
  Program program;
  read_disturbance(options, program);
  program.match_delay_ns = options.duration_ns("match_delay").value_or(0);
  program.max_blocking_time_ns =
      options.duration_ns("max_blocking_time").value_or(program.max_blocking_time_ns);
  program.topic = options.text("topic").value_or("");
  if (options.text("topic") && plain(program.topic).empty())
    options.refuse("topic", "a topic such as rt/amazon");
  if (settings.domain > 232) {
    throw support::StatusError(PERFLAB_BAD_OPTION,
                               "sim: domain " + std::to_string(settings.domain) + "; right would be 0..232");
  }
  return program;
}

}  // namespace perflab::middleware::sim
