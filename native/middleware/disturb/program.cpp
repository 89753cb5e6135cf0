#include "middleware/disturb/program.h"

#include <nlohmann/json.hpp>

#include "middleware/support/options.h"

namespace perflab::middleware::disturb {
namespace {

constexpr std::string_view kPrefix = "disturb.";
constexpr std::int64_t kLongest_ns = 3'600'000'000'000;

std::string_view plain(std::string_view name) {
  if (name.starts_with("rt/")) name.remove_prefix(3);
  if (name.starts_with('/')) name.remove_prefix(1);
  return name;
}

}  // namespace

bool Program::concerns(std::string_view wire_name) const {
  return topic.empty() || plain(topic) == plain(wire_name);
}

bool is_of_disturbance(std::string_view key) noexcept { return key.starts_with(kPrefix); }

Program read_program(std::span<const perflab_option> given, std::uint64_t seed) {
  const support::Options options("disturbance", given,
                                 {"disturb.delay", "disturb.duplicate_every", "disturb.jitter", "disturb.loss",
                                  "disturb.loss_every", "disturb.reorder_every", "disturb.seed", "disturb.stall",
                                  "disturb.stall_every", "disturb.topic"});
  const auto every = [&](std::string_view key, std::uint64_t least) {
    const std::uint64_t value = options.integer(key).value_or(0);
    if (options.text(key) && value < least)
      options.refuse(key, "a whole number of at least " + std::to_string(least));
    return value;
  };
  Program program;
  const auto duration_ns = [&](std::string_view key) {
    const std::int64_t value = options.duration_ns(key).value_or(0);
    if (value > kLongest_ns) options.refuse(key, "one hour (3600s) at most");
    return value;
  };
  program.delay_ns = duration_ns("disturb.delay");
  program.jitter_ns = duration_ns("disturb.jitter");
  program.loss = options.probability("disturb.loss").value_or(0);
  program.loss_every = every("disturb.loss_every", 1);
  program.reorder_every = every("disturb.reorder_every", 2);
  program.duplicate_every = every("disturb.duplicate_every", 1);
  program.stall_every_ns = duration_ns("disturb.stall_every");
  program.stall_ns = duration_ns("disturb.stall");
  if (options.text("disturb.stall_every") && !options.text("disturb.stall"))
    options.refuse("disturb.stall", "how long each stall of disturb.stall_every lasts, e.g. 100ms");
  if (program.stall_ns > 0 && program.stall_ns >= program.stall_every_ns)
    options.refuse("disturb.stall", "less than disturb.stall_every, e.g. 100ms in every 1s");
  program.seed = options.integer("disturb.seed").value_or(seed);
  program.topic = options.text("disturb.topic").value_or("");
  if (options.text("disturb.topic") && plain(program.topic).empty())
    options.refuse("disturb.topic", "a topic such as rt/amazon");
  return program;
}

nlohmann::json to_json(const Program& program) {
  const auto unless_zero = [](auto n) { return n == 0 ? nlohmann::json(nullptr) : nlohmann::json(n); };
  return {{"delay_ns", program.delay_ns},
          {"jitter_ns", program.jitter_ns},
          {"loss", program.loss},
          {"loss_every", unless_zero(program.loss_every)},
          {"reorder_every", unless_zero(program.reorder_every)},
          {"duplicate_every", unless_zero(program.duplicate_every)},
          {"stall_every_ns", unless_zero(program.stall_every_ns)},
          {"stall_ns", unless_zero(program.stall_ns)},
          {"seed", program.seed},
          {"topic", program.topic.empty() ? nlohmann::json(nullptr) : nlohmann::json(program.topic)}};
}

}  // namespace perflab::middleware::disturb
