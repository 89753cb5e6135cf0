// A subscription of the `dds` runtime: the reader, the queue of messages from this process, and their
// handler.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <utility>

#include "middleware/host/plugin.h"
#include "runtime/dds/dds_runtime.h"
#include "runtime/dds/intra_process.h"
#include "runtime/dds/source.h"

namespace perflab::runtime {

// One of the two ways by which messages reach a subscription.
class DdsRuntime::MessageSource : public DdsRuntime::Source {
 public:
  explicit MessageSource(DdsSubscription& owner) noexcept;

  DdsSubscription& subscription;

 protected:
  ~MessageSource() = default;
};

class DdsRuntime::DdsSubscription final : public Subscription, public DdsRuntime::Entity {
 public:
  // `ring_depth` 0: no delivery within the process. `trace` may be null.
  DdsSubscription(const measure::Clock& clock, MessageHandler& handler, EventSink& sink,
                  DdsExecutor& executor, const EndpointSettings& settings, std::size_t ring_depth,
                  const perflab_ros2_tracepoints* trace);

  [[nodiscard]] perflab_identity identity() const noexcept override { return identity_; }
  [[nodiscard]] std::size_t matched() noexcept override;
  void tell_client(const perflab_identity& client) noexcept override;
  void tell_sent(const perflab_sample_identity& call) noexcept override;

  // The listener of its reader; without `tell_data` the executor uses a wait-set.
  perflab_listener listener(bool tell_data) noexcept;
  void set_reader(middleware::Reader reader);
  middleware::Reader& reader() { return *from_middleware_.reader; }
  // No callback of the reader runs afterwards.
  void close() noexcept;

  [[nodiscard]] const EndpointSettings& settings() const noexcept { return settings_; }
  MessageSource& from_middleware() noexcept { return from_middleware_; }
  // Null if nothing is delivered within the process.
  MessageSource* from_process() noexcept { return from_process_ ? &*from_process_ : nullptr; }
  [[nodiscard]] bool process_waits() const noexcept { return from_process_ && !from_process_->ring.empty(); }
  Taker& taker() noexcept { return *from_process_; }
  // The executor polls: a take that returns nothing is not traced.
  void poll() noexcept { polled_ = true; }
  void add_local_writer() noexcept { ++local_writers_; }

  // The trace's handles of the reader and of the ring of local messages; the subscription itself is the
  // handle of the rcl subscription, or of the service or client whose requests or replies it takes.
  [[nodiscard]] const void* rmw_handle() const noexcept { return &from_middleware_.reader; }
  [[nodiscard]] const void* ring() const noexcept { return &from_process_->ring; }

 private:
  struct FromMiddleware final : MessageSource {
    using MessageSource::MessageSource;
    Turn run_one() noexcept override;
    Turn take_one() noexcept override { return take(taken) ? Turn::kLast : Turn::kNothing; }
    void run_taken() noexcept override { handle(taken); }
    [[nodiscard]] const void* executed() const noexcept override {
      return subscription.settings_.kind == TopicKind::kTopic ? &subscription : nullptr;
    }
    // False if there is nothing.
    bool take(perflab_sample& sample) noexcept;
    // Runs the callback and returns the sample.
    void handle(perflab_sample& sample) noexcept;
    std::optional<middleware::Reader> reader;
    perflab_sample taken{};  // taken by take_one()
  };
  struct FromProcess final : MessageSource, Taker {
    FromProcess(DdsSubscription& owner, std::size_t depth)
        : MessageSource(owner), ring(depth, owner.trace_takes_) {}
    Turn run_one() noexcept override;
    Turn take_one() noexcept override { return take(taken); }
    void run_taken() noexcept override { handle(std::exchange(taken, {})); }
    void accept(MessageRef message) noexcept override;
    Turn take(Ring::Entry& entry) noexcept;
    void handle(const Ring::Entry& entry) noexcept;
    Ring ring;
    Ring::Entry taken;  // taken by take_one()
  };

  void handle(const MessageSource& source, const Delivery& delivery) noexcept;
  void tell_taken(const Delivery& delivery) noexcept;

  const measure::Clock& clock_;
  MessageHandler& handler_;
  EventSink& sink_;
  DdsExecutor& executor_;
  const EndpointSettings settings_;
  const perflab_ros2_tracepoints* const trace_takes_;      // null also for requests and replies
  const perflab_ros2_tracepoints* const trace_calls_;      // null also for topics
  const perflab_ros2_tracepoints* const trace_callbacks_;  // null also for replies
  perflab_identity identity_{};
  std::size_t local_writers_ = 0;
  bool polled_ = false;
  FromMiddleware from_middleware_{*this};
  std::optional<FromProcess> from_process_;
};

}  // namespace perflab::runtime
