// Collects everything that happens besides the measured path until the controlling thread writes it:
// discovery, QoS events, failures of the middleware, and the node's own milestones.
#pragma once

#include <array>
#include <mutex>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

#include "measure/event_queue.h"
#include "program/records.h"
#include "runtime/runtime.h"

namespace perflab::node {

class EventLog final : public runtime::EventSink {
 public:
  // Bounds the size of files: events beyond this many are counted, not kept.
  static constexpr std::size_t kMaximum = 200'000;

  explicit EventLog(std::size_t maximum = kMaximum) : maximum_(maximum) {}

  void on_event(const perflab_event& event) noexcept override;
  void on_write_failed(Nanoseconds at_ns, const char* text) noexcept override;
  void on_failure(Nanoseconds at_ns, const char* text) noexcept override;
  void note(Nanoseconds at_ns, const std::string& code, const std::string& text = {});

  // Writes all events so far to the file, with the message events of the queue.
  void flush(RecordFile& file, measure::MessageEventQueue& messages);
  // Writes how many events were left out, if any.
  void finish(RecordFile& file, const measure::MessageEventQueue& messages, Nanoseconds at_ns);

  [[nodiscard]] std::size_t participants_found() const;
  // When the last participant was found and the last endpoint matched; kUnknownTime if none was reported.
  [[nodiscard]] Nanoseconds last_participant_at() const;
  [[nodiscard]] Nanoseconds last_match_at() const;
  // The first failure that invalidates the measurement; empty if there was none.
  [[nodiscard]] std::string failure() const;
  // The reported incompatible QoS, one line each.
  [[nodiscard]] std::vector<std::string> incompatibilities() const;

 private:
  // Counts an event; true if there is room for it. Requires mutex_, like everything below.
  bool make_room() noexcept;
  // Keeps what make() returns; an event for which there is no memory is dropped and counted.
  template <typename Make>
  void add(Make make) noexcept;

  const std::size_t maximum_;
  mutable std::mutex mutex_;
  std::vector<nlohmann::json> pending_;
  std::size_t kept_ = 0;  // written or pending
  std::size_t left_out_ = 0;
  std::size_t participants_found_ = 0;
  Nanoseconds last_participant_at_ = kUnknownTime;
  Nanoseconds last_match_at_ = kUnknownTime;
  std::set<std::string> incompatibilities_;
  std::array<char, sizeof(perflab_error)> failure_{};  // its text; empty: none
};

}  // namespace perflab::node
