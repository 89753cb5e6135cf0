// The timers of a LiveGraph, which start everything else.
#pragma once

#include <functional>
#include <utility>
#include <vector>

#include "graph/live_actions.h"
#include "graph/live_parts.h"
#include "graph/throttle.h"

namespace perflab::graph {

// A timer of a program.
class LiveGraph::ProgramTimer final : public runtime::TimerHandler {
 public:
  explicit ProgramTimer(std::function<void(Nanoseconds)> on_tick) : on_tick_(std::move(on_tick)) {}
  void on_tick(Nanoseconds due_ns) noexcept override { on_tick_(due_ns); }
  void on_skipped(Nanoseconds /*first_due_ns*/, std::uint64_t /*count*/) noexcept override {}

 private:
  const std::function<void(Nanoseconds)> on_tick_;
};

class LiveGraph::LiveTimer final : public runtime::TimerHandler {
 public:
  LiveTimer(const Timer& timer, std::vector<LivePublisher*> publishers, std::vector<LiveClient*> clients,
            std::vector<LiveActionClient*> action_clients, std::vector<LiveWaitable*> waitables,
            measure::LoopRecorder* loops, LiveThrottle* throttle, runtime::Runtime& runtime)
      : timer_(timer),
        publishers_(std::move(publishers)),
        clients_(std::move(clients)),
        action_clients_(std::move(action_clients)),
        waitables_(std::move(waitables)),
        loops_(loops),
        throttle_(throttle),
        runtime_(runtime) {
    if (loops_ == nullptr) return;
    for (LivePublisher* publisher : publishers_) publisher->record_loops(*loops_);
  }

  void measure_from(Nanoseconds instant) noexcept {
    measured_from_ = instant;
    if (loops_ != nullptr) loops_->measure_from(instant);
  }

  void on_tick(Nanoseconds due_ns) noexcept override {
    if (throttle_ != nullptr && !throttle_->admits(runtime_.clock().now(), due_ns > measured_from_)) return;
    if (loops_ != nullptr) loops_->record_woken(due_ns, runtime_.clock().now());
    runtime_.work(timer_.work_ns);
    for (LivePublisher* publisher : publishers_) publisher->publish(due_ns);
    for (LiveClient* client : clients_) client->request(due_ns);
    for (LiveActionClient* client : action_clients_) client->send(due_ns);
    for (LiveWaitable* waitable : waitables_) waitable->trigger(due_ns);
  }

  void on_skipped(Nanoseconds first_due_ns, std::uint64_t count) noexcept override {
    // Skipped warm-up ticks do not count.
    if (first_due_ns <= measured_from_) {
      const auto before = static_cast<std::uint64_t>((measured_from_ - first_due_ns) / timer_.period_ns + 1);
      if (before >= count) return;
      count -= before;
      first_due_ns += static_cast<Nanoseconds>(before) * timer_.period_ns;
    }
    for (LivePublisher* publisher : publishers_) publisher->recorder().record_not_sent(first_due_ns, count);
    for (LiveClient* client : clients_) client->recorder().record_not_sent(first_due_ns, count);
    for (LiveActionClient* client : action_clients_) client->recorder().record_not_sent(first_due_ns, count);
    for (LiveWaitable* waitable : waitables_) waitable->left_out(count);
  }

 private:
  const Timer& timer_;
  std::vector<LivePublisher*> publishers_;
  std::vector<LiveClient*> clients_;
  std::vector<LiveActionClient*> action_clients_;
  std::vector<LiveWaitable*> waitables_;
  measure::LoopRecorder* loops_;  // null: not measured
  LiveThrottle* throttle_;        // null: not throttled
  runtime::Runtime& runtime_;
  Nanoseconds measured_from_ = kUnknownTime;
};

}  // namespace perflab::graph
