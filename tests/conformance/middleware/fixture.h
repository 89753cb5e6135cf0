// What the tests of the conformance suite share: the plug-in under test, a domain, recorders, bounded waits.
#pragma once

#include <gtest/gtest.h>
#include <time.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "domain_lock.h"
#include "eventually.h"
#include "messages.h"
#include "middleware/host/plugin.h"

namespace perflab::conformance {

using namespace std::chrono_literals;
using middleware::Participant;
using middleware::ParticipantSettings;
using middleware::Plugin;
using middleware::Reader;
using middleware::to_hex;
using middleware::WaitSet;
using middleware::Writer;

// From the command line.
struct Subject {
  std::string plugin;
  // What else it shall meet; of the interoperability test only.
  std::string other_plugin;
  // iceoryx's daemon, which runs beside the tests; or empty.
  std::string roudi;
  // Given to every participant.
  std::vector<std::pair<std::string, std::string>> options;
  // What of QoS and passing the plug-in may refuse, by name; anything else refused is a failure.
  std::vector<std::string> may_refuse;
  // The option by which a silent peer is given up sooner, if the plug-in needs one.
  std::vector<std::pair<std::string, std::string>> short_lease;
};
Subject& subject();

inline std::int64_t now_ns(void* = nullptr) {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

inline std::int64_t wall_ns() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

struct RecordedEvent {
  perflab_event_kind kind;
  perflab_identity peer;
  std::int64_t at_ns;
  std::string topic;
  std::string type;
  std::string policy;
  std::int32_t count;
};

// Records events of a host or of an entity; counts data callbacks.
class Recorder {
 public:
  perflab_listener listener() { return {.on_data = on_data, .on_event = on_event, .context = this}; }
  perflab_host host() { return {.now_ns = now_ns, .on_event = on_event, .context = this}; }

  std::vector<RecordedEvent> events() const {
    const std::lock_guard lock(mutex_);
    return events_;
  }
  std::optional<RecordedEvent> find(perflab_event_kind kind) const {
    const std::lock_guard lock(mutex_);
    for (const RecordedEvent& event : events_) {
      if (event.kind == kind) return event;
    }
    return std::nullopt;
  }
  bool has(perflab_event_kind kind) const { return find(kind).has_value(); }
  // The sum of the counts of all events of that kind.
  std::int32_t total(perflab_event_kind kind) const {
    const std::lock_guard lock(mutex_);
    std::int32_t sum = 0;
    for (const RecordedEvent& event : events_) sum += event.kind == kind ? event.count : 0;
    return sum;
  }
  std::uint64_t data_calls() const { return data_calls_; }
  bool ever_concurrent() const { return concurrent_; }

  // Called for each data callback, on its thread.
  std::function<void()> on_each_data;

 private:
  // Sets a mark while a callback runs.
  class Running {
   public:
    explicit Running(Recorder& recorder) : recorder_(recorder) {
      if (recorder_.running_.exchange(true)) recorder_.concurrent_ = true;
    }
    ~Running() { recorder_.running_ = false; }

   private:
    Recorder& recorder_;
  };

  static void on_data(void* context) {
    Recorder& self = *static_cast<Recorder*>(context);
    const Running running(self);
    ++self.data_calls_;
    if (self.on_each_data) self.on_each_data();
  }
  static void on_event(void* context, const perflab_event* event) {
    Recorder& self = *static_cast<Recorder*>(context);
    const auto text = [](const char* s) { return s != nullptr ? std::string(s) : std::string(); };
    const std::lock_guard lock(self.mutex_);
    self.events_.push_back({event->kind, event->peer, event->at_ns, text(event->topic), text(event->type),
                            text(event->policy), event->count});
  }

  mutable std::mutex mutex_;
  std::vector<RecordedEvent> events_;
  std::atomic<std::uint64_t> data_calls_{0};
  std::atomic<bool> running_{false};
  std::atomic<bool> concurrent_{false};
};

// A taken message, copied.
struct Taken {
  std::vector<std::uint8_t> bytes;
  perflab_identity writer;
  std::int64_t sequence;
  perflab_sample_identity related;
  std::int64_t source_timestamp_ns;
  std::int64_t reception_ns;
  std::int64_t taken_ns;

  std::uint64_t number() const { return number_of(bytes); }
};

inline std::optional<Taken> take(Reader& reader) {
  perflab_sample sample;
  perflab_error error{};
  const perflab_status status = reader.take(sample, error);
  EXPECT_GE(status, 0) << error.text;
  if (status != PERFLAB_OK) return std::nullopt;
  Taken taken{{sample.data, sample.data + sample.size},
              sample.writer,
              sample.sequence,
              sample.related,
              sample.source_timestamp_ns,
              sample.reception_ns,
              now_ns()};
  reader.return_sample(sample);
  return taken;
}

// Takes until there are `count`, or patience ends.
inline std::vector<Taken> take_until(Reader& reader, std::size_t count,
                                     std::chrono::milliseconds patience = kPatience) {
  std::vector<Taken> all;
  eventually(
      [&] {
        while (auto one = take(reader)) all.push_back(std::move(*one));
        return all.size() >= count;
      },
      patience);
  return all;
}

// Takes what comes until nothing has come for `quiet`.
inline std::vector<Taken> take_until_quiet(Reader& reader, std::chrono::milliseconds quiet = 300ms) {
  std::vector<Taken> all;
  auto last = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - last < quiet) {
    if (auto one = take(reader)) {
      all.push_back(std::move(*one));
      last = std::chrono::steady_clock::now();
    } else {
      std::this_thread::sleep_for(1ms);
    }
  }
  return all;
}

inline std::vector<std::uint64_t> numbers(const std::vector<Taken>& taken) {
  std::vector<std::uint64_t> out;
  for (const Taken& one : taken) out.push_back(one.number());
  return out;
}

inline std::vector<std::uint64_t> range(std::uint64_t first, std::uint64_t end) {
  std::vector<std::uint64_t> out;
  for (; first < end; ++first) out.push_back(first);
  return out;
}

inline perflab_status write(Writer& writer, const std::vector<std::uint8_t>& bytes) {
  const perflab_bytes part{bytes.data(), bytes.size()};
  perflab_error error{};
  const perflab_status status = writer.write({&part, 1}, error);
  EXPECT_EQ(status, PERFLAB_OK) << error.text;
  return status;
}

inline perflab_status write(Writer& writer, std::uint64_t number, std::size_t size = 36) {
  return write(writer, make_message(number, size));
}

// "writes|reads TYPE USER_DATA" of each endpoint elsewhere on the topic; sorted.
inline std::vector<std::string> elsewhere(Participant& participant, const std::string& topic) {
  std::vector<std::string> all;
  for (const middleware::RemoteEndpoint& one : participant.remote_endpoints())
    if (one.topic == topic) all.push_back((one.writes ? "writes " : "reads ") + one.type + " " + one.user_data);
  std::ranges::sort(all);
  return all;
}

inline bool may_refuse(const std::string& what) {
  const auto& known = subject().may_refuse;
  return std::find(known.begin(), known.end(), what) != known.end();
}

// What tests ask for that are not about QoS: the default of ROS 2, as far as the plug-in promises it.
inline perflab_qos usual_qos() {
  perflab_qos qos = middleware::default_qos();
  if (may_refuse("reliability")) qos.reliability = PERFLAB_BEST_EFFORT;
  return qos;
}
// The same as a word for the other process (peer.h).
inline std::string usual_reliability() { return may_refuse("reliability") ? "best_effort" : "reliable"; }

inline perflab_qos keep_all() {
  perflab_qos qos = usual_qos();
  qos.history = PERFLAB_KEEP_ALL;
  return qos;
}

// Of loans, which not every memory has room to keep all of.
inline perflab_qos keep_many() {
  perflab_qos qos = usual_qos();
  qos.depth = 150;
  return qos;
}

// False where the plug-in refuses messages of that size, in a line, and is known to refuse some.
inline bool written(Writer& writer, std::uint64_t number, std::size_t size) {
  const auto bytes = make_message(number, size);
  const perflab_bytes part{bytes.data(), bytes.size()};
  perflab_error error{};
  if (writer.write({&part, 1}, error) == PERFLAB_OK) return true;
  EXPECT_TRUE(may_refuse("size")) << error.text;
  EXPECT_NE(std::string(error.text).find(std::to_string(size)), std::string::npos) << error.text;
  return false;
}

inline perflab_qos reliable(perflab_qos qos) {
  qos.reliability = PERFLAB_RELIABLE;
  return qos;
}

inline const char* const kTopic = "rt/conformance";
inline const char* const kType = "perflab_msgs::msg::dds_::Conformance_";

// A participant in a domain of its own.
class Conformance : public testing::Test {
 protected:
  Conformance() : plugin_(Plugin::load(subject().plugin)) {}

  ParticipantSettings settings() const {
    ParticipantSettings settings;
    settings.domain = domain_.id();
    settings.participants_expected = 4;
    settings.options = subject().options;
    return settings;
  }
  Participant& participant() {
    if (!participant_) participant_.emplace(plugin_.open(discovery_.host(), settings()));
    return *participant_;
  }
  Participant& open_with(const std::vector<std::pair<std::string, std::string>>& options) {
    ParticipantSettings given = settings();
    given.options.insert(given.options.end(), options.begin(), options.end());
    return open_with(given);
  }
  Participant& open_with(const ParticipantSettings& given) {
    participant_.emplace(plugin_.open(discovery_.host(), given));
    return *participant_;
  }
  void keep(Participant opened) { participant_.emplace(std::move(opened)); }
  void close_participant() { participant_.reset(); }

  Writer writer(const perflab_qos& qos = keep_all(), const perflab_listener& listener = {},
                const char* topic = kTopic, const char* type = kType) {
    return participant().create_writer({.topic = topic, .type = type, .qos = qos}, listener);
  }
  Reader reader(const perflab_qos& qos = keep_all(), const perflab_listener& listener = {},
                const char* topic = kTopic, const char* type = kType) {
    return participant().create_reader({.topic = topic, .type = type, .related_samples = true, .qos = qos},
                                       listener);
  }

  static testing::AssertionResult matched(Writer& writer, Reader& reader, std::size_t readers = 1,
                                          std::size_t writers = 1) {
    if (eventually(
            [&] { return writer.matched_readers() == readers && reader.matched_writers() == writers; })) {
      return testing::AssertionSuccess();
    }
    return testing::AssertionFailure() << "the writer sees " << writer.matched_readers()
                                       << " readers, the reader " << reader.matched_writers() << " writers";
  }

  // Returns when a writer that asserts its liveliness by messages, and sends none, has lost this lease: so
  // long others have had the time to. Where the plug-in watches no such lease there is nothing to wait for.
  static void wait_for_a_lost_lease(Participant& participant, std::int64_t lease_ns) {
    if (may_refuse("liveliness")) return;
    perflab_qos qos = keep_all();
    qos.liveliness = PERFLAB_MANUAL_BY_TOPIC;
    qos.lease_duration_ns = lease_ns;
    Recorder silent;
    Writer w =
        participant.create_writer({.topic = "rt/silent", .type = kType, .qos = qos}, silent.listener());
    Reader r = participant.create_reader({.topic = "rt/silent", .type = kType, .qos = qos});
    ASSERT_TRUE(matched(w, r));
    write(w, 1);
    EXPECT_TRUE(eventually([&] { return silent.has(PERFLAB_LIVELINESS_LOST); }));
  }

  DomainLock domain_;
  Plugin plugin_;
  Recorder discovery_;

 private:
  std::optional<Participant> participant_;
};

// For what a plug-in may refuse, but not ignore: the test ends here if it is refused in the right way, by a
// plug-in that says beforehand that it does.
#define PERFLAB_CREATE_OR_REFUSE(variable, expression, policy)                                \
  std::optional<decltype(expression)> variable##_made;                                        \
  try {                                                                                       \
    variable##_made.emplace(expression);                                                      \
  } catch (const ::perflab::Error& refusal) {                                                 \
    ASSERT_EQ(refusal.kind(), ::perflab::Error::Kind::kUnsupported) << refusal.what();        \
    ASSERT_NE(std::string(refusal.what()).find(policy), std::string::npos) << refusal.what(); \
    ASSERT_TRUE(::perflab::conformance::may_refuse(policy))                                   \
        << "the plug-in is not known to refuse " << (policy) << ": " << refusal.what();       \
    GTEST_SKIP() << "the plug-in refuses " << (policy) << ": " << refusal.what();             \
  }                                                                                           \
  auto& variable = *variable##_made

}  // namespace perflab::conformance
