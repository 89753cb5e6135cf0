// Runs a graph in YAML to its end on the virtual runtime.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "graph/live.h"
#include "graph/parse.h"
#include "runtime/virtual/virtual_runtime.h"

namespace perflab::graph {

inline constexpr Nanoseconds kMs = 1'000'000;

class VirtualLab {
 public:
  using Options = runtime::VirtualRuntime::Options;

  VirtualLab(const std::string& yaml, Nanoseconds duration_ns, const Options& options = {},
             Nanoseconds warmup_ns = 0)
      : VirtualLab(parse_graph({{"test.yaml", yaml, "test"}}), duration_ns, options, warmup_ns) {}

  VirtualLab(Graph graph, Nanoseconds duration_ns, const Options& options = {}, Nanoseconds warmup_ns = 0)
      : graph_(std::move(graph)), runtime_(options, 1) {
    live_ = std::make_unique<LiveGraph>(graph_, std::nullopt, runtime_, events_,
                                        LiveSettings{.duration_ns = duration_ns,
                                                     .warmup_ns = warmup_ns,
                                                     .measure_dispatch = true,
                                                     .measure_work = true});
    EXPECT_TRUE(live_->unmatched().empty());
    live_->set_writers(live_->writers());
    live_->start(kBase);
    while (!runtime_.timers_done()) std::this_thread::yield();
    runtime_.stop();
  }

  static constexpr Nanoseconds kBase = 1'000'000'000'000;

  [[nodiscard]] const LiveGraph& live() const { return *live_; }
  [[nodiscard]] LiveGraph& live() { return *live_; }
  [[nodiscard]] measure::MessageEventQueue& events() { return events_; }
  [[nodiscard]] std::string description() { return runtime_.describe(); }

  [[nodiscard]] const measure::EdgeRecorder& edge(const std::string& topic,
                                                  const std::string& subscription = {}) const {
    for (const EdgeView& view : live_->edges()) {
      if (view.publisher->topic == topic &&
          (subscription.empty() || view.subscription_node->name == subscription)) {
        return *view.recorder;
      }
    }
    throw std::out_of_range("no edge " + topic);
  }
  [[nodiscard]] const measure::PublisherRecorder& publisher(const std::string& topic) const {
    for (const PublisherView& view : live_->publishers()) {
      if (view.publisher->topic == topic) return *view.recorder;
    }
    throw std::out_of_range("no publisher " + topic);
  }

  // sent = unique received + head + gap + tail, from independent counts of both ends.
  void expect_conservation() const {
    for (const EdgeView& view : live_->edges()) {
      const measure::SequenceTracker& sequence = view.recorder->sequence();
      for (const PublisherView& sender : live_->publishers()) {
        if (sender.publisher != view.publisher) continue;
        const std::uint64_t sent = sender.recorder->sent();
        if (sequence.received() == 0) continue;
        const std::uint64_t first = *sender.recorder->first_sequence();
        const std::uint64_t head = sequence.lowest() - first;
        const std::uint64_t tail = first + sent - 1 - sequence.highest();
        EXPECT_EQ(sent, sequence.received() + head + sequence.gap() + tail) << view.publisher->topic;
      }
      EXPECT_EQ(view.recorder->latency().count(), sequence.received());
      EXPECT_EQ(view.recorder->on_time() + view.recorder->late() + view.recorder->too_late(),
                sequence.received());
    }
  }

 private:
  Graph graph_;
  measure::MessageEventQueue events_;
  runtime::VirtualRuntime runtime_;
  std::unique_ptr<LiveGraph> live_;
};

}  // namespace perflab::graph
