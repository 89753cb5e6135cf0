// Endpoints, or whole participants with endpoints, created and destroyed on a schedule.
//
// Cycle k is due at start + k * period. It deletes what an earlier cycle left at its index and creates it
// anew, so that an object lives until its index comes round again: topics / rate for endpoints, one period
// for the participant. Missed cycles are skipped.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "measure/clock.h"
#include "middleware/host/plugin.h"
#include "programs/churn/config.h"

namespace perflab::churn {

struct Counts {
  std::uint64_t created = 0;  // writer-reader pairs, or participants
  std::uint64_t deleted = 0;
  std::uint64_t skipped = 0;  // missed cycles
};

class Churn {
 public:
  // Throws Error; Unsupported if no other process could see the churn. `config` and `clock` must outlive it.
  Churn(const Config& config, const measure::Clock& clock);
  ~Churn() { clear(); }
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;

  void start(Nanoseconds at_ns) noexcept { start_ns_ = at_ns; }
  [[nodiscard]] Nanoseconds next_due() const noexcept { return start_ns_ + cycle_ * config_.period_ns; }
  // Runs one cycle. Precondition: next_due() <= now. Throws Error.
  void run_cycle(Nanoseconds now);
  // Deletes everything.
  void clear() noexcept;
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  struct Pair {
    middleware::Writer writer;
    middleware::Reader reader;
  };

  [[nodiscard]] middleware::Participant open() const;
  [[nodiscard]] Pair create_pair(middleware::Participant& participant, std::size_t topic) const;

  const Config& config_;
  const measure::Clock& clock_;
  middleware::Plugin plugin_;
  perflab_host host_{};
  Nanoseconds start_ns_ = 0;
  std::int64_t cycle_ = 0;
  Counts counts_;
  std::optional<middleware::Participant> participant_;  // declared before the pairs, because it must outlive
                                                        // them
  std::vector<std::optional<Pair>> pairs_;              // indexed by topic
};

}  // namespace perflab::churn
