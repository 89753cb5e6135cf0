// A publisher's rate control when its readers fall behind: additive increase, multiplicative decrease (Chiu
// and Jain 1989), like TCP's congestion window.
//
// Subscriptions acknowledge messages that their nodes have handled (Acknowledgement); a throttle receives the
// acknowledgements and evaluates one interval after the other:
//   behind    an acknowledged message is older than the target, or too few were acknowledged: the rate is multiplied by
//             `decrease`, and messages due before that no longer count
//   in time   every reader acknowledged something, nothing too late: the rate grows by `increase` of the full rate
//   unknown   a reader acknowledged nothing, and no more was sent than may be in flight: the rate stays
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "base/time.h"
#include "graph/model.h"

namespace perflab::graph {

// The rate as a share of the full one. Pure: no clock, no threads.
class RateControl {
 public:
  enum class Verdict { kBehind, kInTime, kUnknown };

  // Observations since the last interval, or since the last decrease.
  struct Interval {
    std::uint64_t sent = 0;
    std::uint64_t accepted = 0;            // acknowledged messages, of the slowest reader
    bool all_heard = false;                // every reader acknowledged something
    Nanoseconds worst_age = kUnknownTime;  // from a message's due time until its acknowledgement came
  };

  RateControl(const Throttle& settings, double full_hz, std::uint32_t every) noexcept
      : settings_(settings), full_hz_(full_hz), every_(every) {}

  [[nodiscard]] double share() const noexcept { return share_; }

  Verdict judge(const Interval& interval) noexcept {
    const Verdict verdict = verdict_on(interval);
    if (verdict == Verdict::kBehind) share_ = std::max(settings_.lowest, share_ * settings_.decrease);
    if (verdict == Verdict::kInTime) share_ = std::min(1.0, share_ + settings_.increase);
    return verdict;
  }

 private:
  [[nodiscard]] Verdict verdict_on(const Interval& interval) const noexcept {
    if (interval.worst_age > settings_.target_ns) return Verdict::kBehind;
    const double sent = static_cast<double>(interval.sent);
    // Messages in flight for no longer than the target are not missing, nor are those that wait for further
    // ones to complete an acknowledgement.
    const double on_the_way = share_ * full_hz_ * static_cast<double>(settings_.target_ns) / 1e9 + every_;
    const double missing = sent - on_the_way - static_cast<double>(interval.accepted);
    if (missing > (1 - settings_.accepted) * sent) return Verdict::kBehind;
    return interval.all_heard ? Verdict::kInTime : Verdict::kUnknown;
  }

  const Throttle& settings_;
  const double full_hz_;
  const double every_;
  double share_ = 1.0;
};

// Acknowledgements of one subscription since the last evaluation. One thread calls heard(), another all other
// functions.
class Acknowledged {
 public:
  struct Heard {
    std::uint64_t count;
    Nanoseconds worst_age;  // kUnknownTime: none
  };

  void heard(Nanoseconds due_ns, Nanoseconds at_ns) noexcept {
    if (due_ns <= since_.load(std::memory_order_relaxed)) return;
    count_.fetch_add(1, std::memory_order_relaxed);
    const Nanoseconds age = at_ns - due_ns;
    Nanoseconds worst = worst_.load(std::memory_order_relaxed);
    while (age > worst && !worst_.compare_exchange_weak(worst, age, std::memory_order_relaxed)) {
    }
  }

  Heard take() noexcept {
    return {count_.exchange(0, std::memory_order_relaxed), worst_.exchange(kUnknownTime, std::memory_order_relaxed)};
  }
  // From now on, ignores messages that were due up to this instant.
  void ignore_until(Nanoseconds due_ns) noexcept { since_.store(due_ns, std::memory_order_relaxed); }

 private:
  std::atomic<std::uint64_t> count_{0};
  std::atomic<Nanoseconds> worst_{kUnknownTime};
  std::atomic<Nanoseconds> since_{kUnknownTime};
};

// The throttle of one timer. The timer's thread calls admits(), subscriptions call the sources in their
// threads; any thread may read its history.
class LiveThrottle {
 public:
  // One interval, evaluated at its end.
  struct Step {
    Nanoseconds at_ns;
    double rate_hz;  // rate of the next interval
    std::uint64_t sent;
    std::uint64_t accepted;
    Nanoseconds worst_age_ns;
  };

  // `longest_ns`: length of a trial; further steps are counted, but not kept.
  LiveThrottle(const Throttle& settings, double full_hz, Nanoseconds longest_ns)
      : settings_(settings),
        full_hz_(full_hz),
        control_(settings_, full_hz, largest_every(settings)),
        steps_(static_cast<std::size_t>(std::clamp<Nanoseconds>(longest_ns / settings.interval_ns + 16, 16, kMostSteps))) {
    for (std::size_t i = 0; i < settings.sources.size(); ++i) sources_.push_back(std::make_unique<Acknowledged>());
  }

  [[nodiscard]] const Throttle& settings() const noexcept { return settings_; }
  [[nodiscard]] double full_hz() const noexcept { return full_hz_; }
  Acknowledged& source(std::size_t index) noexcept { return *sources_[index]; }

  // True if a tick may publish. `measured`: the tick is in the measured part.
  [[nodiscard]] bool admits(Nanoseconds now, bool measured) noexcept {
    if (began_ == kUnknownTime) began_ = now;
    if (now - began_ >= settings_.interval_ns) judge(now);
    credit_ += control_.share();
    if (credit_ < 1.0) {
      if (measured) withheld_.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    credit_ -= 1.0;
    ++sent_;
    return true;
  }

  // Withheld ticks of the measured part.
  [[nodiscard]] std::uint64_t withheld() const noexcept { return withheld_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::uint64_t steps_beyond() const noexcept { return beyond_.load(std::memory_order_relaxed); }
  [[nodiscard]] std::size_t steps() const noexcept { return count_.load(std::memory_order_acquire); }
  [[nodiscard]] const Step& step(std::size_t index) const noexcept { return steps_[index]; }

 private:
  static constexpr Nanoseconds kMostSteps = 100'000;

  static std::uint32_t largest_every(const Throttle& settings) noexcept {
    std::uint32_t largest = 1;
    for (const Throttle::Source& source : settings.sources) largest = std::max(largest, source.every);
    return largest;
  }

  void judge(Nanoseconds now) noexcept {
    RateControl::Interval interval{.sent = sent_, .accepted = sent_, .all_heard = true};
    for (std::size_t i = 0; i < sources_.size(); ++i) {
      const Throttle::Source& source = settings_.sources[i];
      const Acknowledged::Heard heard = sources_[i]->take();
      interval.worst_age = std::max(interval.worst_age, heard.worst_age);
      if (!source.counted) continue;  // acknowledges messages of others
      interval.accepted = std::min(interval.accepted, heard.count * source.every);
      interval.all_heard = interval.all_heard && heard.count > 0;
    }
    if (control_.judge(interval) == RateControl::Verdict::kBehind) {
      for (const auto& source : sources_) {
        source->ignore_until(now);
        static_cast<void>(source->take());
      }
    }
    keep({now, control_.share() * full_hz_, interval.sent, interval.accepted, interval.worst_age});
    sent_ = 0;
    began_ = now;
  }

  void keep(const Step& step) noexcept {
    const std::size_t count = count_.load(std::memory_order_relaxed);
    if (count == steps_.size()) {
      beyond_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    steps_[count] = step;
    count_.store(count + 1, std::memory_order_release);
  }

  const Throttle& settings_;
  const double full_hz_;
  RateControl control_;
  std::vector<std::unique_ptr<Acknowledged>> sources_;  // in the order of the settings
  double credit_ = 0.0;                                 // a message is worth 1
  std::uint64_t sent_ = 0;                              // sent in this interval
  Nanoseconds began_ = kUnknownTime;                    // start of this interval
  std::atomic<std::uint64_t> withheld_{0};
  std::vector<Step> steps_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> beyond_{0};
};

}  // namespace perflab::graph
