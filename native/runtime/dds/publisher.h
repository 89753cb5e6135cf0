// A publisher of the `dds` runtime: the writer, and the local subscriptions that it reaches without the
// writer.
#pragma once

#include <optional>
#include <vector>

#include "middleware/host/plugin.h"
#include "runtime/dds/dds_runtime.h"
#include "runtime/dds/intra_process.h"

namespace perflab::runtime {

class DdsRuntime::DdsPublisher final : public Publisher {
 public:
  // `trace` may be null; requests and replies are not traced.
  DdsPublisher(const measure::Clock& clock, EventSink& sink, const EndpointSettings& settings,
               const perflab_capabilities& middleware, const perflab_ros2_tracepoints* trace)
      : clock_(clock),
        sink_(sink),
        settings_(settings),
        can_relate_(middleware.related_samples),
        can_stamp_(middleware.source_timestamps),
        trace_(settings.kind == TopicKind::kTopic ? trace : nullptr) {}
  ~DdsPublisher() override;

  bool prepare(const Outgoing& message) noexcept override;
  bool publish(const Outgoing& message) noexcept override;
  void* prepare_object(message::Object& own) noexcept override;
  bool publish_object(const message::Codec& codec, void* object, std::int64_t source_timestamp_ns,
                      Nanoseconds& serialize_ns) noexcept override;
  bool publish_related(std::span<const perflab_bytes> parts, const perflab_sample_identity* related,
                       std::int64_t* sequence) noexcept override;
  [[nodiscard]] Passing passing() noexcept override;
  [[nodiscard]] perflab_identity identity() const noexcept override { return identity_; }
  [[nodiscard]] std::size_t matched() noexcept override {
    return takers_.count() + writer_->matched_readers();
  }

  perflab_listener listener() noexcept;
  void set_writer(middleware::Writer writer);
  void add_taker(Taker& taker, bool owns) { (owns ? takers_.owning : takers_.sharing).push_back(&taker); }
  [[nodiscard]] const EndpointSettings& settings() const noexcept { return settings_; }
  // The trace's handle of the writer; the publisher itself is the handle of the rcl publisher.
  [[nodiscard]] const void* rmw_handle() const noexcept { return &writer_; }

 private:
  [[nodiscard]] bool gives_away() const noexcept { return settings_.pass_by == PassBy::kUnique; }
  [[nodiscard]] bool lends() const noexcept { return settings_.pass_by == PassBy::kLoaned; }
  bool borrow() noexcept;
  bool prepare_loan(const Outgoing& message) noexcept;
  bool publish_loaned(const Outgoing& message) noexcept;
  bool publish_locally(const Outgoing& outgoing) noexcept;
  bool publish_object_locally(const message::Codec& codec, void* object, std::int64_t source_timestamp_ns,
                              Nanoseconds& serialize_ns) noexcept;
  bool publish_object_loaned(const message::Codec& codec, const void* object, Nanoseconds& serialize_ns) noexcept;
  // Empty if there is no memory (which has been reported). Valid until the next call.
  std::span<const std::uint8_t> encode(const message::Codec& codec, const void* object,
                                       Nanoseconds& serialize_ns) noexcept;
  bool give(MessageRef message, bool keep, MessageRef& kept) noexcept;
  // Passes a message to the subscriptions of the process. `kept` is set if readers elsewhere need it too; a
  // write then follows.
  bool hand_over(MessageRef message, std::int64_t source_timestamp_ns, MessageRef& kept) noexcept;
  bool write(std::span<const perflab_bytes> parts) noexcept;
  bool failed(const char* text) noexcept;
  // Call before a write if tracing, or if the sender sets a source time stamp (0: none).
  void before_write(const void* message, std::int64_t source_timestamp_ns) noexcept {
    if (trace_ != nullptr) [[unlikely]] {
      tell_write(message, source_timestamp_ns);
    } else if (source_timestamp_ns != 0) {
      writer_->stamp_next(source_timestamp_ns);
    }
  }
  void tell_write(const void* message, std::int64_t source_timestamp_ns) noexcept;

  const measure::Clock& clock_;
  EventSink& sink_;
  const EndpointSettings settings_;
  const bool can_relate_;
  const bool can_stamp_;
  const perflab_ros2_tracepoints* const trace_;
  perflab_identity identity_{};
  Takers takers_;
  MessageRef prepared_;
  void* loan_ = nullptr;
  std::int64_t local_sequence_ = 0;
  std::vector<std::uint8_t> encoded_;  // the last struct; grows to the largest
  std::optional<middleware::Writer> writer_;
};

}  // namespace perflab::runtime
