// Proves by counting that the measured path does not allocate.
#include "measure/allocations.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <thread>

#include "../rows.h"
#include "graph/live.h"
#include "measure/recorders.h"
#include "message/format.h"

namespace perflab {
namespace {

using measure::allocations_of_this_thread;

TEST(Allocations, TheCounterCounts) {
  const std::uint64_t before = allocations_of_this_thread();
  const auto integer = std::make_unique<int>(1);
  EXPECT_EQ(allocations_of_this_thread(), before + 1);
}

TEST(Allocations, RecordersDoNotAllocate) {
  measure::MessageEventQueue events;
  measure::RecorderMemory memory(1, 1);
  measure::EdgeRecorder edge(memory, events, 0, {}, 100.0, {.dispatch = true, .work = true});
  measure::PublisherRecorder publisher(memory, 1'000'000);
  const std::uint64_t before = allocations_of_this_thread();
  for (std::uint64_t i = 0; i < 10'000; ++i) {
    const auto now = static_cast<Nanoseconds>(i * 1'000'000);
    // On time, late, too late, lost and repeated: every branch.
    publisher.record_sent({now, now + 10, i}, now + 20);
    edge.record_callback({now, now + 10, i % 7 == 0 ? i + 2 : i}, now + static_cast<Nanoseconds>(i * 2'000),
                         now + 30);
    edge.record_done(now, now + 40);
  }
  EXPECT_EQ(allocations_of_this_thread(), before);
}

// A runtime that calls the handlers in the test's own thread.
class DirectRuntime final : public runtime::Runtime {
 public:
  class Endpoint final : public runtime::Publisher, public runtime::Subscription {
   public:
    bool publish(const runtime::Outgoing& message) noexcept override {
      std::uint8_t* end = buffer_.data();
      for (const auto piece : {message.before, message.stamp, message.after}) end = std::ranges::copy(piece, end).out;
      if (handler != nullptr)
        handler->on_message({.bytes = {buffer_.data(), message.size()},
                             .writer = identity(),
                             .source_timestamp_ns = message.source_timestamp_ns});
      return true;
    }
    bool publish_related(std::span<const perflab_bytes>, const perflab_sample_identity*,
                         std::int64_t*) noexcept override {
      return false;
    }
    [[nodiscard]] runtime::Passing passing() noexcept override { return {}; }
    [[nodiscard]] perflab_identity identity() const noexcept override { return {}; }
    [[nodiscard]] std::size_t matched() noexcept override { return 1; }
    runtime::MessageHandler* handler = nullptr;

   private:
    std::array<std::uint8_t, 4096> buffer_{};
  };

  [[nodiscard]] const measure::Clock& clock() const noexcept override { return clock_; }
  std::size_t add_executor(const runtime::ExecutorSettings&) override { return 0; }
  runtime::Publisher& create_publisher(const runtime::EndpointSettings&) override { return endpoint_; }
  runtime::Subscription& create_subscription(std::size_t, const runtime::EndpointSettings&,
                                             runtime::MessageHandler& handler) override {
    endpoint_.handler = &handler;
    return endpoint_;
  }
  runtime::Client& create_client(std::size_t, const runtime::ServiceSettings&,
                                 runtime::MessageHandler&) override {
    throw std::logic_error("no services here");
  }
  runtime::Server& create_server(std::size_t, const runtime::ServiceSettings&,
                                 runtime::RequestHandler&) override {
    throw std::logic_error("no services here");
  }
  runtime::ActionClient& create_action_client(std::size_t, const runtime::ActionSettings&,
                                              runtime::ActionClientHandler&) override {
    throw std::logic_error("no actions here");
  }
  runtime::ActionServer& create_action_server(std::size_t, const runtime::ActionSettings&,
                                              runtime::ActionServerHandler&) override {
    throw std::logic_error("no actions here");
  }
  [[nodiscard]] runtime::ServiceFraming service_framing() const noexcept override {
    return runtime::ServiceFraming::kRmwCyclonedds;
  }
  void create_timer(std::size_t, const runtime::TimerSettings&, runtime::TimerHandler& handler) override {
    timer = &handler;
  }
  runtime::Waitable& create_waitable(std::size_t, const runtime::WaitableSettings&,
                                     runtime::WaitableHandler&) override {
    throw std::logic_error("no waitables here");
  }
  void work(Nanoseconds) noexcept override {}
  void start(Nanoseconds) override {}
  [[nodiscard]] bool timers_done() const noexcept override { return true; }
  void stop() noexcept override {}
  [[nodiscard]] std::string describe() override { return "{}"; }

  runtime::TimerHandler* timer = nullptr;

 private:
  measure::MonotonicClock clock_;
  Endpoint endpoint_;
};

struct Sent {
  std::string text;  // the type
  std::uint32_t length;
};
class AllocationsOf : public testing::TestWithParam<Sent> {};

TEST_P(AllocationsOf, AMessageFromTimerToCallbackAreNone) {
  graph::Graph graph;
  graph.name = "pair";
  graph::Process& process = graph.processes.emplace_back();
  process.name = "pair";
  process.executors.emplace_back();
  const perflab_qos qos = graph::default_qos();
  graph::Node node;
  node.name = "pair";
  node.node_namespace = "/";
  const auto& [type, length] = GetParam();
  const auto bytes = static_cast<std::uint32_t>(graph.messages->find(type)->payload_bytes(length));
  node.publishers.push_back({.topic = "/topic", .type = type, .length = length, .size_bytes = bytes,
                             .frequency_hz = 1000.0, .qos = qos});
  node.subscriptions.push_back({.topic = "/topic", .type = type, .qos = qos, .filter = {}});
  graph::Timer& timer = node.timers.emplace_back();
  timer.name = "tick";
  timer.period_ns = 1'000'000;
  timer.publish = {0};
  node.reactions.push_back({graph::ReactionKind::kSink, {0}, {}, 0, 0});
  process.nodes.push_back(node);

  DirectRuntime runtime;
  measure::MessageEventQueue events;
  // A ring with room for some of the messages, but not for all.
  const graph::RecordingNeeds needs = graph::recording_needs(graph, 0, {});
  measure::MessageRing ring(1u << 20, needs.ends);
  graph::LiveGraph live(graph, 0, runtime, events,
                        {.duration_ns = kNanosecondsPerSecond,
                         .measure_dispatch = true,
                         .measure_work = true,
                         .recording = graph::LiveSettings::Recording{}},
                        &ring);
  live.set_writers(live.writers());
  live.start(0);
  ASSERT_NE(runtime.timer, nullptr);
  const std::uint64_t before = allocations_of_this_thread();
  for (Nanoseconds tick = 1; tick <= 10'000; ++tick) runtime.timer->on_tick(tick);
  EXPECT_EQ(allocations_of_this_thread(), before);
  EXPECT_EQ(live.totals().completed, 10'000u);
  EXPECT_GT(ring.lost_publications(0), 0u);
  std::uint64_t written = 0, contents = 0;
  struct Count {
    std::uint64_t& written;
    std::uint64_t& contents;
    void operator()(const measure::DeliveryRow& row) { written += row.callback_ns >= row.published_ns ? 1 : 0; }
    void operator()(const measure::PublicationRow&, std::span<const std::uint8_t> of) { contents += of.empty() ? 0 : 1; }
  };
  ring.take(Count{written, contents});
  EXPECT_EQ(written + ring.lost_deliveries(0), 10'000u);
  EXPECT_EQ(contents + ring.lost_publications(0), 10'000u);
}

// A header that is copied; a position that is the same in every message, one that must be searched, and none.
INSTANTIATE_TEST_SUITE_P(
    , AllocationsOf,
    rows::of<Sent>({{"stamped1kb", 1024}, {"array1k", 1024}, {"unbounded_sequence", 1000}, {"sensor_msgs/msg/Imu", 0}}),
    rows::by_text);

}  // namespace
}  // namespace perflab
