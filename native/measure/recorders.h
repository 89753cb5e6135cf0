// What is recorded per message: EdgeRecorder on the receiving side, PublisherRecorder on the sending side.
//
// Definitions (docs/method.md explains them):
//   latency = callback - published      response = callback - intended    dispatch = callback - arrived
//   work = done - callback              publish_delay = published - intended
//   publish_call = duration of publish()
//   serialize = duration of encoding a message from its struct, within publish()
//   deserialize = duration of decoding it into one, before the callback
//   period = published - published of the message before     period_jitter = |period - intended period|
// A message belongs to the measured part if its intended time lies after `measured_from`; everything before
// is warm-up, counted apart and recorded nowhere. Duplicates enter no histogram.
//
// A recorder is used by one thread at a time; other threads may read it meanwhile. Recording neither
// allocates nor locks nor calls the kernel.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>

#include "measure/classification.h"
#include "measure/event_queue.h"
#include "measure/histogram.h"
#include "measure/sequence.h"

namespace perflab::measure {

// Times and numbers carried by the message itself.
struct MessageTimes {
  Nanoseconds intended_ns = 0;
  Nanoseconds published_ns = 0;
  std::uint64_t sequence = 0;
};

// The memory of all recorders of a process.
class RecorderMemory {
 public:
  RecorderMemory(std::size_t edges, std::size_t publishers)
      : histograms(5 * edges + 5 * publishers), windows(edges) {}

  // Prefaults for a run of this duration, before its start (HistogramMemory::prefault). Long runs use all
  // windows and the whole queue.
  void prefault(Nanoseconds duration, MessageEventQueue& events) noexcept {
    histograms.prefault(duration);
    if (duration < kLong) return;
    windows.prefault();
    events.prefault();
  }

  HistogramMemory histograms;
  SequenceMemory windows;

 private:
  static constexpr Nanoseconds kLong = 300 * kNanosecondsPerSecond;
};

// The figures that an edge records besides latency and response.
struct EdgeFigures {
  bool dispatch = false;
  bool work = false;
  bool deserialize = false;
  bool events = true;  // also report late, too late and lost messages one by one
};

class EdgeRecorder {
 public:
  // `edge` is the index of this edge in events. Memory and queue outlive the recorder.
  EdgeRecorder(RecorderMemory& memory, MessageEventQueue& events, std::uint32_t edge,
               const ThresholdSettings& thresholds, double frequency_hz, EdgeFigures figures = {})
      : latency_(memory.histograms),
        response_(memory.histograms),
        sequence_(memory.windows),
        thresholds_(thresholds, frequency_hz),
        events_(figures.events ? &events : nullptr),
        edge_(edge) {
    if (figures.dispatch) dispatch_ = std::make_unique<Histogram>(memory.histograms);
    if (figures.work) work_ = std::make_unique<Histogram>(memory.histograms);
    if (figures.deserialize) deserialize_ = std::make_unique<Histogram>(memory.histograms);
  }

  // Before the first message: messages due after this instant count.
  void measure_from(Nanoseconds instant) noexcept { measured_from_ = instant; }

  [[nodiscard]] bool measures(Nanoseconds intended_ns) const noexcept { return intended_ns > measured_from_; }

  // Call at callback entry. `arrived_ns` is kUnknownTime if the middleware does not report it. True if the
  // message is in the measured part and not a duplicate.
  bool record_callback(const MessageTimes& message, Nanoseconds callback_ns,
                       Nanoseconds arrived_ns) noexcept {
    if (first_callback_ns_ == kUnknownTime) [[unlikely]] {
      detail::store(first_intended_ns_, message.intended_ns);
      detail::store(first_callback_ns_, callback_ns);
    }
    if (message.intended_ns <= measured_from_) [[unlikely]] {
      detail::add<std::uint64_t>(warmup_received_, 1);
      return false;
    }
    const std::uint64_t highest = sequence_.highest();
    const SequenceVerdict verdict = sequence_.update(message.sequence);
    if (verdict != SequenceVerdict::kInOrder) [[unlikely]] {
      if (verdict == SequenceVerdict::kDuplicate || verdict == SequenceVerdict::kBeyondWindow) return false;
      if (verdict == SequenceVerdict::kAfterGap) {
        tell({callback_ns, highest + 1, static_cast<std::int64_t>(message.sequence - highest - 1), 0, edge_,
              MessageEventKind::kLost});
      }
    }
    const Nanoseconds latency = callback_ns - message.published_ns;
    latency_.record(latency, callback_ns);
    response_.record(callback_ns - message.intended_ns, callback_ns);
    if (dispatch_ && arrived_ns != kUnknownTime) dispatch_->record(callback_ns - arrived_ns, callback_ns);
    const Punctuality punctuality = thresholds_.classify(latency);
    if (punctuality == Punctuality::kOnTime) [[likely]] {
      detail::add<std::uint64_t>(on_time_, 1);
    } else if (punctuality == Punctuality::kLate) {
      detail::add<std::uint64_t>(late_, 1);
      tell({callback_ns, message.sequence, latency, thresholds_.late(), edge_, MessageEventKind::kLate});
    } else {
      detail::add<std::uint64_t>(too_late_, 1);
      tell({callback_ns, message.sequence, latency, thresholds_.too_late(), edge_,
            MessageEventKind::kTooLate});
    }
    return true;
  }

  // The decoding time of a recorded message; only if that figure is recorded.
  void record_deserialized(Nanoseconds duration_ns, Nanoseconds at_ns) noexcept {
    deserialize_->record(duration_ns, at_ns);
  }

  [[nodiscard]] bool wants_done() const noexcept { return work_ != nullptr; }
  // Call when the user callback of a recorded message has returned; only if wants_done().
  void record_done(Nanoseconds callback_ns, Nanoseconds done_ns) noexcept {
    work_->record(done_ns - callback_ns, done_ns);
  }

  [[nodiscard]] const Histogram& latency() const noexcept { return latency_; }
  [[nodiscard]] const Histogram& response() const noexcept { return response_; }
  // Null if not requested; dispatch also stays empty if arrival times are unknown.
  [[nodiscard]] const Histogram* dispatch() const noexcept { return dispatch_.get(); }
  [[nodiscard]] const Histogram* work() const noexcept { return work_.get(); }
  [[nodiscard]] const Histogram* deserialize() const noexcept { return deserialize_.get(); }
  [[nodiscard]] const SequenceTracker& sequence() const noexcept { return sequence_; }
  [[nodiscard]] std::uint64_t on_time() const noexcept { return detail::load(on_time_); }
  [[nodiscard]] std::uint64_t late() const noexcept { return detail::load(late_); }
  [[nodiscard]] std::uint64_t too_late() const noexcept { return detail::load(too_late_); }
  [[nodiscard]] std::uint64_t warmup_received() const noexcept { return detail::load(warmup_received_); }
  // Callback time and due time of the first message, warm-up included; kUnknownTime if there was none.
  [[nodiscard]] Nanoseconds first_callback() const noexcept { return detail::load(first_callback_ns_); }
  [[nodiscard]] Nanoseconds first_intended() const noexcept { return detail::load(first_intended_ns_); }

 private:
  void tell(const MessageEvent& event) noexcept {
    if (events_ != nullptr) events_->push(event);
  }

  Histogram latency_;
  Histogram response_;
  std::unique_ptr<Histogram> dispatch_;
  std::unique_ptr<Histogram> work_;
  std::unique_ptr<Histogram> deserialize_;
  SequenceTracker sequence_;
  Thresholds thresholds_;
  MessageEventQueue* events_;  // null: only count
  Nanoseconds measured_from_ = kUnknownTime;
  std::uint64_t on_time_ = 0;
  std::uint64_t late_ = 0;
  std::uint64_t too_late_ = 0;
  std::uint64_t warmup_received_ = 0;
  Nanoseconds first_intended_ns_ = kUnknownTime;
  Nanoseconds first_callback_ns_ = kUnknownTime;
  std::uint32_t edge_;
};

class PublisherRecorder {
 public:
  // The memory outlives the recorder. `period_ns` is the period of the publisher; 0: no period, or not
  // requested, and then neither `period` nor `period_jitter` is recorded. `serialize`: record that figure.
  explicit PublisherRecorder(RecorderMemory& memory, Nanoseconds period_ns = 0, bool serialize = false)
      : publish_delay_(memory.histograms), publish_call_(memory.histograms), period_ns_(period_ns) {
    if (serialize) serialize_ = std::make_unique<Histogram>(memory.histograms);
    if (period_ns == 0) return;
    period_ = std::make_unique<Histogram>(memory.histograms);
    period_jitter_ = std::make_unique<Histogram>(memory.histograms);
  }

  void measure_from(Nanoseconds instant) noexcept { measured_from_ = instant; }

  // The sequence number of the next message. Warm-up and measured messages are numbered separately, each from
  // 0, so that a receiver that ignores the warm-up sees no gap, even if messages of both parts are sent
  // interleaved.
  [[nodiscard]] std::uint64_t next_sequence(Nanoseconds intended_ns) const noexcept {
    return intended_ns <= measured_from_ ? warmup_sent_ : sent_;
  }
  [[nodiscard]] bool measures(Nanoseconds intended_ns) const noexcept { return intended_ns > measured_from_; }
  // Call after a successful write; `returned_ns` is when publish() returned, `serialize_ns` the encoding
  // time, or kUnknownTime if nothing was encoded.
  void record_sent(const MessageTimes& message, Nanoseconds returned_ns,
                   Nanoseconds serialize_ns = kUnknownTime) noexcept {
    if (message.intended_ns <= measured_from_) [[unlikely]] {
      detail::add<std::uint64_t>(warmup_sent_, 1);
      return;
    }
    if (sent_ == 0) [[unlikely]]
      detail::store(first_sequence_, message.sequence);
    publish_delay_.record(message.published_ns - message.intended_ns, message.published_ns);
    publish_call_.record(returned_ns - message.published_ns, message.published_ns);
    if (serialize_ && serialize_ns != kUnknownTime) serialize_->record(serialize_ns, message.published_ns);
    if (period_) {
      if (last_published_ != kUnknownTime) [[likely]] {
        const Nanoseconds period = message.published_ns - last_published_;
        period_->record(period, message.published_ns);
        period_jitter_->record(std::abs(period - period_ns_), message.published_ns);
      }
      last_published_ = message.published_ns;
    }
    detail::add<std::uint64_t>(sent_, 1);
  }
  // A due message that the schedule skipped.
  void record_not_sent(Nanoseconds intended_ns, std::uint64_t count) noexcept {
    if (intended_ns > measured_from_) detail::add(not_sent_, count);
  }
  // A failed write: the message was not sent and has no sequence number.
  void record_write_error(Nanoseconds intended_ns) noexcept {
    if (intended_ns > measured_from_) detail::add<std::uint64_t>(write_errors_, 1);
  }

  [[nodiscard]] const Histogram& publish_delay() const noexcept { return publish_delay_; }
  [[nodiscard]] const Histogram& publish_call() const noexcept { return publish_call_; }
  // Null if messages are not encoded one by one.
  [[nodiscard]] const Histogram* serialize() const noexcept { return serialize_.get(); }
  // Between successive measured messages; null if the publisher has no period.
  [[nodiscard]] const Histogram* period() const noexcept { return period_.get(); }
  [[nodiscard]] const Histogram* period_jitter() const noexcept { return period_jitter_.get(); }
  [[nodiscard]] std::uint64_t sent() const noexcept { return detail::load(sent_); }
  [[nodiscard]] std::uint64_t warmup_sent() const noexcept { return detail::load(warmup_sent_); }
  [[nodiscard]] std::uint64_t not_sent() const noexcept { return detail::load(not_sent_); }
  [[nodiscard]] std::uint64_t write_errors() const noexcept { return detail::load(write_errors_); }
  // Sequence number of the first measured message; null if there is none yet.
  [[nodiscard]] std::optional<std::uint64_t> first_sequence() const noexcept {
    if (sent() == 0) return std::nullopt;
    return detail::load(first_sequence_);
  }

 private:
  Histogram publish_delay_;
  Histogram publish_call_;
  std::unique_ptr<Histogram> serialize_;
  std::unique_ptr<Histogram> period_;
  std::unique_ptr<Histogram> period_jitter_;
  Nanoseconds period_ns_;
  Nanoseconds last_published_ = kUnknownTime;
  Nanoseconds measured_from_ = kUnknownTime;
  std::uint64_t sent_ = 0;
  std::uint64_t warmup_sent_ = 0;
  std::uint64_t not_sent_ = 0;
  std::uint64_t write_errors_ = 0;
  std::uint64_t first_sequence_ = 0;
};

}  // namespace perflab::measure
