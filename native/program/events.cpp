#include "program/events.h"

#include <cstdio>
#include <new>

#include "middleware/host/plugin.h"

namespace perflab::node {
namespace {

using nlohmann::json;

// Indexed by their numbers in middleware.h, which start at 1.
constexpr std::array kEventCodes{
    "participant_found", "participant_lost", "writer_found",    "reader_found",    "matched",
    "unmatched",         "incompatible_qos", "deadline_missed", "liveliness_lost", "liveliness_changed",
    "sample_lost",       "writer_lost",      "reader_lost"};
static_assert(PERFLAB_PARTICIPANT_FOUND == 1 && kEventCodes.size() == PERFLAB_READER_LOST);

const char* code_of(perflab_event_kind kind) {
  const auto at = static_cast<std::size_t>(kind) - 1;
  return at < kEventCodes.size() ? kEventCodes[at] : "unknown";
}

const char* code_of(measure::MessageEventKind kind) {
  switch (kind) {
    case measure::MessageEventKind::kLate:
      return "late";
    case measure::MessageEventKind::kTooLate:
      return "too_late";
    case measure::MessageEventKind::kLost:
      return "lost";
  }
  return "unknown";
}

json message_record(const measure::MessageEvent& event) {
  json record = {{"type", "event"}, {"at_ns", event.at_ns}, {"code", code_of(event.kind)},
                 {"text", ""},      {"edge", event.edge},   {"sequence", event.sequence}};
  if (event.kind == measure::MessageEventKind::kLost) {
    record["count"] = event.value;
  } else {
    record["latency_ns"] = event.value;
    record["threshold_ns"] = event.threshold_ns;
  }
  return record;
}

}  // namespace

void EventLog::on_event(const perflab_event& event) noexcept {
  const std::lock_guard lock(mutex_);
  if (event.kind == PERFLAB_PARTICIPANT_FOUND) {
    ++participants_found_;
    last_participant_at_ = event.at_ns;
  }
  if (event.kind == PERFLAB_MATCHED) last_match_at_ = event.at_ns;
  add([&] {
    std::string text;
    if (event.topic != nullptr) text = event.topic;
    if (event.type != nullptr) text.append(text.empty() ? "" : " ").append(event.type);
    if (event.policy != nullptr) text.append(text.empty() ? "" : ": ").append(event.policy);
    if (event.kind == PERFLAB_INCOMPATIBLE_QOS) incompatibilities_.insert(text);
    return json{{"type", "event"},
                {"at_ns", event.at_ns},
                {"code", code_of(event.kind)},
                {"text", text},
                {"peer", middleware::to_hex(event.peer)},
                {"count", event.count}};
  });
}

void EventLog::on_write_failed(Nanoseconds at_ns, const char* text) noexcept {
  const std::lock_guard lock(mutex_);
  add([&] { return json{{"type", "event"}, {"at_ns", at_ns}, {"code", "write_failed"}, {"text", text}}; });
}

void EventLog::on_failure(Nanoseconds at_ns, const char* text) noexcept {
  const std::lock_guard lock(mutex_);
  if (failure_[0] == '\0') std::snprintf(failure_.data(), failure_.size(), "%s", text);
  add([&] {
    return json{{"type", "event"}, {"at_ns", at_ns}, {"code", "middleware_failed"}, {"text", text}};
  });
}

std::string EventLog::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_.data();
}

void EventLog::note(Nanoseconds at_ns, const std::string& code, const std::string& text) {
  const std::lock_guard lock(mutex_);
  add([&] { return json{{"type", "event"}, {"at_ns", at_ns}, {"code", code}, {"text", text}}; });
}

bool EventLog::make_room() noexcept {
  if (kept_ >= maximum_) {
    ++left_out_;
    return false;
  }
  ++kept_;
  return true;
}

template <typename Make>
void EventLog::add(Make make) noexcept {
  if (!make_room()) return;
  try {
    pending_.push_back(make());
  } catch (const std::bad_alloc&) {
    --kept_;
    ++left_out_;
  }
}

void EventLog::flush(RecordFile& file, measure::MessageEventQueue& messages) {
  std::vector<json> records;
  {
    const std::lock_guard lock(mutex_);
    records.swap(pending_);
  }
  for (const json& record : records) file.write(record);
  for (measure::MessageEvent event; messages.pop(event);) {
    const bool kept = [this] {
      const std::lock_guard lock(mutex_);
      return make_room();
    }();
    if (kept) file.write(message_record(event));
  }
}

void EventLog::finish(RecordFile& file, const measure::MessageEventQueue& messages, Nanoseconds at_ns) {
  const std::lock_guard lock(mutex_);
  const std::uint64_t left_out = left_out_ + messages.dropped();
  if (left_out == 0) return;
  file.write({{"type", "event"},
              {"at_ns", at_ns},
              {"code", "events_dropped"},
              {"text", "events of single messages that were counted but not kept"},
              {"count", left_out}});
}

std::size_t EventLog::participants_found() const {
  const std::lock_guard lock(mutex_);
  return participants_found_;
}
Nanoseconds EventLog::last_participant_at() const {
  const std::lock_guard lock(mutex_);
  return last_participant_at_;
}
Nanoseconds EventLog::last_match_at() const {
  const std::lock_guard lock(mutex_);
  return last_match_at_;
}
std::vector<std::string> EventLog::incompatibilities() const {
  const std::lock_guard lock(mutex_);
  return {incompatibilities_.begin(), incompatibilities_.end()};
}

}  // namespace perflab::node
