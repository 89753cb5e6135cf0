// Endpoints, or whole participants with endpoints, that come and go on a schedule.
//
// The k-th cycle is due at start + k * period. It deletes what an earlier cycle left in its place and creates
// it anew, so that what is created lives until its place comes round again: topics / rate for endpoints, one
// period for the participant. Cycles that were missed are left out.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "measure/clock.h"
#include "middleware/host/plugin.h"
#include "programs/churn/config.h"

namespace perflab::churn {

struct Counts {
  std::uint64_t created = 0;  // pairs of a writer and a reader, or participants
  std::uint64_t deleted = 0;
  std::uint64_t skipped = 0;  // cycles that were missed
};

class Churn {
 public:
  // Throws Error; Unsupported where nobody in another process could see the churn.
  // `config` and `clock` outlive it.
  Churn(const Config& config, const measure::Clock& clock);
  ~Churn() { clear(); }
  Churn(const Churn&) = delete;
  Churn& operator=(const Churn&) = delete;

  void start(Nanoseconds at_ns) noexcept { start_ns_ = at_ns; }
  [[nodiscard]] Nanoseconds next_due() const noexcept { return start_ns_ + cycle_ * config_.period_ns; }
  // One cycle; to be called when next_due() <= now. Throws Error.
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
  std::optional<middleware::Participant> participant_;  // before the pairs: it outlives them
  std::vector<std::optional<Pair>> pairs_;              // by topic
};

}  // namespace perflab::churn
