// The disturbance of one edge (one writer, one reader): determines which messages are lost, late, out of
// order, duplicated or stalled.
//
// Pure arithmetic without clock or thread, so that tests know the exact answers.
//
// Example:
//   Disturbance disturbance(program, 0);
//   Disturbance::Arrivals arrivals;
//   switch (disturbance.offer(message, now_ns, arrivals)) {
//     case Disturbance::Outcome::lost: forget(message); break;
//     case Disturbance::Outcome::held: call_release_at(disturbance.held_until_ns(), message); break;
//     case Disturbance::Outcome::passed: break;
//   }
//   for (const auto& arrival : arrivals) deliver_at(arrival.due_ns, arrival.message);
//
// Rules. The n-th message offered to the edge (from 1) is lost if loss_every divides n, or with probability
// `loss`. A message that is not lost is due at offered + delay + a uniform extra of 0..jitter. If that falls
// into the first `stall` of a period of `stall_every`, counted from time 0 of the clock, it is due at the end
// of that stall. It is never due before its predecessor: jitter does not reorder. If reorder_every divides n,
// and no other message is held, it is held until the next message that is not lost, and is due right after
// it; if there is none within kReorderFlush_ns after its due time (not counting a stall), it is released in
// order. If duplicate_every divides n it arrives twice, the copy right after the original.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "middleware/disturb/program.h"

namespace perflab::middleware::disturb {

inline constexpr std::int64_t kReorderFlush_ns = 50'000'000;

class Disturbance {
 public:
  enum class Outcome { passed, lost, held };

  struct Arrival {
    std::int64_t due_ns;
    void* message;
    bool copy;       // second delivery of a duplicated message
    bool overtaken;  // a later message is due before it
    bool stalled;    // delayed to the end of a stall
  };

  // The messages that an offer releases: itself, its copy, and the same for a message that was held.
  class Arrivals {
   public:
    const Arrival* begin() const noexcept { return items_.data(); }
    const Arrival* end() const noexcept { return items_.data() + count_; }
    std::size_t size() const noexcept { return count_; }

   private:
    friend class Disturbance;
    std::array<Arrival, 4> items_{};
    std::size_t count_ = 0;
  };

  // `stream` selects an independent random sequence for each edge.
  Disturbance(const Program& program, std::uint64_t stream);

  Outcome offer(void* message, std::int64_t offered_ns, Arrivals& arrivals) noexcept;

  // The message that waits for a successor, or nullptr; and how long it waits.
  void* held() const noexcept { return held_.message; }
  std::int64_t held_until_ns() const noexcept { return after_stall(held_.due_ns + kReorderFlush_ns); }
  // Stops waiting.
  void release(Arrivals& arrivals) noexcept;

  std::uint64_t offered() const noexcept { return offered_; }
  std::uint64_t lost() const noexcept { return lost_; }

 private:
  struct Held {  // held back until a successor comes
    void* message = nullptr;
    std::int64_t due_ns = 0;
    bool doubled = false;
    bool stalled = false;
  };

  double uniform() noexcept;
  // The end of the stall that contains this instant, otherwise the instant itself.
  std::int64_t after_stall(std::int64_t at_ns) const noexcept;
  static void add(Arrivals& arrivals, const Held& message, std::int64_t due_ns, bool overtaken) noexcept;

  std::int64_t delay_ns_;
  std::int64_t jitter_ns_;
  double loss_;
  std::uint64_t loss_every_;
  std::uint64_t reorder_every_;
  std::uint64_t duplicate_every_;
  std::int64_t stall_every_ns_;
  std::int64_t stall_ns_;

  std::uint64_t random_;
  std::uint64_t offered_ = 0;
  std::uint64_t lost_ = 0;
  std::int64_t last_due_ns_ = INT64_MIN;
  Held held_;
};

}  // namespace perflab::middleware::disturb
