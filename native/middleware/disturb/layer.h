// The classes behind the C interface of the layer (disturb.h).
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <type_traits>
#include <vector>

#include "base/gate.h"
#include "base/queue.h"
#include "middleware/disturb/disturbance.h"
#include "middleware/disturb/program.h"
#include "middleware/disturb/scheduler.h"
#include "middleware/middleware.h"
#include "middleware/support/waitset.h"
#include "middleware/types.h"

namespace perflab::middleware::disturb {

class Participant;

// One message in flight to one reader.
struct Message {
  std::vector<std::uint8_t> bytes;
  perflab_sample sample;    // reported with it
  std::int64_t offered_ns;  // by the layer's clock; likewise below
  std::int64_t expires_ns;  // INT64_MAX: never
  bool copy;
  bool overtaken;
  bool stalled;
};

// Arrival to delivery, by the layer's clock.
struct DelayStatistics {
  std::uint64_t count = 0;
  std::int64_t min_ns = INT64_MAX;
  std::int64_t max_ns = INT64_MIN;
  double sum_ns = 0;

  void add(std::int64_t delay_ns) noexcept { add({1, delay_ns, delay_ns, static_cast<double>(delay_ns)}); }
  void add(const DelayStatistics& other) noexcept {
    min_ns = std::min(min_ns, other.min_ns);
    max_ns = std::max(max_ns, other.max_ns);
    sum_ns += other.sum_ns;
    count += other.count;
  }
};

// One writer and one reader. Outlives both, for the report. Guarded by the participant's mutex.
struct Edge {
  Edge(const perflab_identity& from, const std::string& on, const Program& program, std::uint64_t stream)
      : writer(from), topic(on), disturbance(program, stream) {}

  const perflab_identity writer;
  perflab_identity reader{};  // set once the plug-in below has created it
  const std::string topic;
  std::optional<std::int64_t> lifespan_ns;  // set with the first message

  Disturbance disturbance;
  std::unique_ptr<Message> held;
  std::uint64_t held_number = 0;
  std::size_t pending = 0;  // with the scheduler
  std::size_t pending_bytes = 0;

  std::uint64_t delivered = 0;
  std::uint64_t reordered = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t stalled = 0;
  std::uint64_t expired = 0;     // exceeded their lifespan before they were due
  std::uint64_t overflowed = 0;  // too many in flight
  DelayStatistics delay;
};

class Writer {
 public:
  Writer(Participant& participant, const perflab_endpoint_settings& settings, const perflab_listener* listener);
  ~Writer() { below_.destroy_writer(writer_); }
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  perflab_identity identity() const noexcept { return below_.writer_identity(writer_); }
  std::size_t matched() noexcept { return below_.matched_readers(writer_); }
  void stamp_next(std::int64_t source_timestamp_ns) noexcept {
    below_.stamp_next(writer_, source_timestamp_ns);
  }
  perflab_status write(const perflab_bytes* parts, std::size_t count, const perflab_sample_identity* related,
                       std::int64_t* sequence, perflab_error* error) noexcept {
    if (related == nullptr && sequence == nullptr) return below_.write(writer_, parts, count, error);
    return below_.write_related(writer_, parts, count, related, sequence, error);
  }

 private:
  const perflab_middleware& below_;
  perflab_writer* writer_ = nullptr;
};

class Reader : public support::Attachment {
 public:
  Reader(Participant& participant, const perflab_endpoint_settings& settings, const perflab_listener* listener);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  perflab_identity identity() const noexcept { return below_.reader_identity(reader_); }
  std::size_t matched() noexcept { return below_.matched_writers(reader_); }
  std::int64_t lifespan(const perflab_identity& writer) noexcept { return below_.lifespan(reader_, &writer); }
  perflab_status take(perflab_sample* sample, perflab_error* error);
  void return_sample(perflab_sample* sample) noexcept;

  // Used by the wait-set.
  bool has_data() noexcept;

  // Used by the scheduler.
  void run(Job& job) noexcept;

 private:
  struct Event {
    perflab_event event;
    std::optional<std::string> policy;
  };

  // Messages from the plug-in below.
  void pull() noexcept;
  void below_reports(const perflab_event& event) noexcept;
  [[nodiscard]] bool is_full() const noexcept;
  void offer(const perflab_sample& sample);
  // Requires the participant's mutex; true if there is something to take and the host must be called.
  bool disturb(Edge& edge, std::unique_ptr<Message> message);
  bool flush(Edge& edge, std::uint64_t number);
  bool send(Edge& edge, const Disturbance::Arrivals& arrivals, std::unique_ptr<Message> offered);
  bool deliver(Edge& edge, std::unique_ptr<Message> message);
  Edge& edge_of(const perflab_identity& writer);
  void watch_deadline();

  std::unique_ptr<Message> copy_of(const perflab_sample& sample, std::int64_t lifespan_ns, std::int64_t now_ns);
  std::unique_ptr<Message> copy_of(const Message& message);
  void forget(std::unique_ptr<Message> message) noexcept;
  void keep_for_reuse(std::unique_ptr<Message> message) noexcept;
  void drop_expired() noexcept;
  void drop_first() noexcept;

  // Requires no lock.
  void report(perflab_event_kind kind, const perflab_identity& peer);
  void note(const perflab_event& event);
  void fail(const char* what) noexcept;
  void call_back() noexcept;

  Participant& participant_;
  const perflab_middleware& below_;
  const perflab_qos qos_;
  const std::string topic_;
  const std::string type_;
  const perflab_listener listener_;
  std::atomic<perflab_reader*> reader_{nullptr};

  Gate pulling_;
  std::atomic<std::size_t> live_{0};  // messages held back, untaken or not yet returned
  std::atomic<std::size_t> live_bytes_{0};
  std::atomic<bool> stopped_{false};  // the limit is reached, and further messages stay in the plug-in below

  // Guarded by the participant's mutex.
  std::map<perflab_identity, Edge*, IdentityLess> edges_;
  std::int64_t deadline_from_ns_ = 0;

  // Guarded by mutex_, which is locked after the participant's.
  GrowingQueue<std::unique_ptr<Message>> cache_;
  std::vector<std::unique_ptr<Message>> free_;
  std::vector<Event> events_;
  bool data_ = false;
  std::string failure_;  // failure in a callback, returned by take()

  Gate calling_;
};

class Participant {
 public:
  Participant(const perflab_middleware& below, const perflab_host& host, Program program,
              const perflab_participant_settings& settings);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  const char* describe();
  template <typename Each>
  void remote_endpoints(Each&& each) {
    if (below_.remote_endpoints == nullptr) return;  // the plug-in below reports none
    perflab_error error{};
    const auto call = [](void* context, const perflab_remote_endpoint* endpoint) {
      (*static_cast<std::remove_reference_t<Each>*>(context))(*endpoint);
    };
    require_ok(below_.remote_endpoints(participant_, call, &each, &error), error);
  }

  [[nodiscard]] const perflab_middleware& below() const noexcept { return below_; }
  [[nodiscard]] perflab_participant* handle() const noexcept { return participant_; }
  [[nodiscard]] bool tells_reception() const noexcept { return tells_reception_; }
  [[nodiscard]] std::int64_t host_now_ns() const noexcept { return host_.now_ns(host_.context); }
  std::mutex& mutex() noexcept { return mutex_; }
  Scheduler& scheduler() noexcept { return scheduler_; }
  // Requires the mutex. The edge stays until the participant is closed.
  Edge& add_edge(const perflab_identity& writer, const std::string& topic);

 private:
  const perflab_middleware& below_;
  const bool tells_reception_;
  const perflab_host host_;
  const Program program_;
  std::string description_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Edge>> edges_;
  std::map<std::string, std::uint64_t> edges_of_topic_;
  Scheduler scheduler_;
  perflab_participant* participant_ = nullptr;
};

}  // namespace perflab::middleware::disturb
