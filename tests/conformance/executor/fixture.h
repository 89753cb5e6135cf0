// What the tests of the executors share: a runtime on the plug-in under test, handlers that record, bounded
// waits.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../middleware/fixture.h"
#include "measure/clock.h"
#include "message/cdr.h"
#include "runtime/dds/dds_runtime.h"

namespace perflab::runtime::conformance {

using namespace std::chrono_literals;
using perflab::conformance::DomainLock;
using perflab::conformance::eventually;
using perflab::conformance::intact;
using perflab::conformance::keep_all;
using perflab::conformance::kPatience;
using perflab::conformance::make_message;
using perflab::conformance::number_of;
using perflab::conformance::subject;

inline constexpr std::size_t kMessageBytes = message::kFrameBytes + 64;
inline constexpr const char* kRosType = "perflab_msgs/msg/Conformance";

// What no test expects is a failure of the test.
class Sink final : public EventSink {
 public:
  void on_event(const perflab_event& event) noexcept override {
    const std::lock_guard lock(mutex_);
    events_.push_back(event.kind);
  }
  void on_write_failed(Nanoseconds, const char* text) noexcept override {
    const std::lock_guard lock(mutex_);
    write_failures_.emplace_back(text);
  }
  void on_failure(Nanoseconds, const char* text) noexcept override { ADD_FAILURE() << text; }

  std::size_t count(perflab_event_kind kind) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(std::count(events_.begin(), events_.end(), kind));
  }
  std::vector<std::string> write_failures() const {
    const std::lock_guard lock(mutex_);
    return write_failures_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<perflab_event_kind> events_;
  std::vector<std::string> write_failures_;
};

// Sets a mark while a callback runs; two at a time are a failure.
class Alone {
 public:
  explicit Alone(std::atomic<bool>& running) : running_(running) {
    EXPECT_FALSE(running_.exchange(true)) << "two callbacks at a time";
  }
  ~Alone() { running_ = false; }

 private:
  std::atomic<bool>& running_;
};

// Records the numbers of messages in the order of their callbacks.
class Inbox final : public MessageHandler {
 public:
  void on_message(const Delivery& delivery) noexcept override {
    const Alone alone(running_);
    const std::uint64_t number = number_of(delivery.bytes);
    {
      const std::lock_guard lock(mutex_);
      numbers_.push_back(number);
    }
    if (on_each) on_each(delivery);
    count_.fetch_add(1);
  }
  std::size_t count() const { return count_; }
  std::vector<std::uint64_t> numbers() const {
    const std::lock_guard lock(mutex_);
    return numbers_;
  }

  // In the callback.
  std::function<void(const Delivery&)> on_each;

 private:
  mutable std::mutex mutex_;
  std::vector<std::uint64_t> numbers_;
  std::atomic<std::size_t> count_{0};
  std::atomic<bool> running_{false};
};

class Ticks final : public TimerHandler {
 public:
  explicit Ticks(const measure::Clock& clock) : clock_(clock) {}
  void on_tick(Nanoseconds due_ns) noexcept override {
    const Alone alone(running_);
    EXPECT_LE(due_ns, clock_.now()) << "a tick before its time";
    {
      const std::lock_guard lock(mutex_);
      dues_.push_back(due_ns);
    }
    if (on_each) on_each();
    count_.fetch_add(1);
  }
  void on_skipped(Nanoseconds, std::uint64_t count) noexcept override { skipped_.fetch_add(count); }
  std::size_t count() const { return count_; }
  std::uint64_t skipped() const { return skipped_; }
  std::vector<Nanoseconds> dues() const {
    const std::lock_guard lock(mutex_);
    return dues_;
  }

  std::function<void()> on_each;

 private:
  const measure::Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<Nanoseconds> dues_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<bool> running_{false};
};

// Opened once; whoever passes before waits, but not for ever.
class Gate {
 public:
  void open() { open_ = true; }
  void pass() const {
    EXPECT_TRUE(eventually([this] { return open_.load(); })) << "nobody opened the gate";
  }

 private:
  std::atomic<bool> open_{false};
};

inline perflab_qos keep_last(int depth) {
  perflab_qos qos = middleware::default_qos();
  qos.depth = depth;
  return qos;
}

inline bool send(Publisher& publisher, std::uint64_t number) {
  const auto bytes = make_message(number, kMessageBytes);
  const std::span<const std::uint8_t> whole(bytes);
  const auto payload = whole.subspan(message::kFrameBytes);
  return publisher.prepare(payload) && publisher.publish(whole.first(message::kFrameBytes), payload);
}

// A runtime in a domain of its own.
class Lab : public testing::Test {
 protected:
  ~Lab() override {
    if (runtime_) runtime_->stop();
  }

  DdsRuntime& open(const DdsSettings& settings) {
    middleware::ParticipantSettings participant;
    participant.domain = domain_.id();
    participant.participants_expected = 4;
    participant.options = subject().options;
    runtime_.reset();  // one participant per process and domain
    runtime_ = std::make_unique<DdsRuntime>(plugin_, participant, settings, clock_, sink_);
    return *runtime_;
  }
  DdsRuntime& runtime() { return *runtime_; }
  std::size_t executor(ExecutorKind kind, int threads = 2, const std::string& name = "executor_0") {
    return runtime_->add_executor({.kind = kind, .name = name, .threads = threads});
  }
  EndpointSettings endpoint(const std::string& topic, const perflab_qos& qos,
                            PassBy pass_by = PassBy::kUnspecified, std::size_t group = 0) const {
    EndpointSettings settings;
    settings.group = group;
    settings.topic = topic;
    settings.ros_type = kRosType;
    settings.fixed_size = kMessageBytes;
    settings.qos = qos;
    settings.pass_by = pass_by;
    return settings;
  }
  Inbox& subscribe(std::size_t executor, const std::string& topic, const perflab_qos& qos,
                   std::size_t group = 0, PassBy pass_by = PassBy::kUnspecified) {
    Inbox& inbox = inboxes_.emplace_back();
    subscriptions_.push_back(
        &runtime_->create_subscription(executor, endpoint(topic, qos, pass_by, group), inbox));
    return inbox;
  }
  Publisher& publisher(const std::string& topic, const perflab_qos& qos,
                       PassBy pass_by = PassBy::kUnspecified) {
    return runtime_->create_publisher(endpoint(topic, qos, pass_by));
  }
  Ticks& timer(std::size_t executor, Nanoseconds period_ns, std::int64_t first, std::int64_t last,
               bool skip_missed = false, std::size_t group = 0) {
    Ticks& ticks = ticks_.emplace_back(clock_);
    runtime_->create_timer(executor, {"timer", group, period_ns, first, last, skip_missed}, ticks);
    return ticks;
  }
  // Of all subscriptions so far.
  bool all_matched(std::size_t writers) {
    return eventually([&] {
      return std::ranges::all_of(subscriptions_, [&](Subscription* s) { return s->matched() >= writers; });
    });
  }

  DomainLock domain_;
  middleware::Plugin plugin_ = middleware::Plugin::load(subject().plugin);
  measure::MonotonicClock clock_;
  Sink sink_;
  std::deque<Inbox> inboxes_;
  std::deque<Ticks> ticks_;
  std::vector<Subscription*> subscriptions_;
  std::unique_ptr<DdsRuntime> runtime_;
};

struct Case {
  ExecutorKind kind;
  const char* name;
  bool intra_process;
};

// A new executor is one line here.
inline constexpr Case kOneAtATime[] = {{ExecutorKind::kSingleThreaded, "single_threaded", false},
                                       {ExecutorKind::kEvents, "events", false},
                                       {ExecutorKind::kMultiThreaded, "multi_threaded", false}};

inline std::vector<Case> with_and_without_intra_process(std::vector<Case> cases) {
  const std::size_t count = cases.size();
  for (std::size_t i = 0; i < count; ++i) {
    cases.push_back(cases[i]);
    cases.back().intra_process = true;
  }
  return cases;
}
inline std::vector<Case> queueing_executors() {
  return with_and_without_intra_process({std::begin(kOneAtATime), std::end(kOneAtATime)});
}
inline std::vector<Case> all_executors() {
  std::vector<Case> cases(std::begin(kOneAtATime), std::end(kOneAtATime));
  cases.push_back({ExecutorKind::kInline, "inline", false});
  return with_and_without_intra_process(std::move(cases));
}
inline std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(info.param.name) + (info.param.intra_process ? "_intra_process" : "");
}

// What holds for every executor.
class AnyExecutor : public Lab, public testing::WithParamInterface<Case> {
 protected:
  AnyExecutor() { open({.intra_process = GetParam().intra_process}); }
  std::size_t executor(int threads = 2) { return Lab::executor(GetParam().kind, threads); }
  // Nothing is lost: within a process only keep_last exists.
  perflab_qos lossless(int messages) const {
    return GetParam().intra_process ? keep_last(messages) : keep_all();
  }
};

// What holds for those that have a queue, that is, where a callback may publish what it subscribes.
class QueueingExecutor : public AnyExecutor {};

}  // namespace perflab::runtime::conformance
