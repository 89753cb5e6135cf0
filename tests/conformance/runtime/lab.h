// What the tests of runtimes and executors share: a runtime in a domain of its own, nodes, handlers that
// record, bounded waits. Everything that a test makes on a runtime it makes here, whichever suite it is of:
// this one, ../executor or tests/native/tracing_ros.
//
// Messages are sent by timers and by other callbacks, as graphs do, so that a test reads the same in real and
// in virtual time:
//   const Node on = node(ExecutorKind::kEvents);
//   Inbox& inbox = subscribe(on, "/a", kSmall);
//   Publisher& writer = publisher("/a", kSmall);
//   at(10ms, [&] { EXPECT_TRUE(send(writer, kSmall, 0)); });
//   ASSERT_TRUE(matched());
//   start();
//   EXPECT_TRUE(eventually([&] { return inbox.count() == 1; }));
//   runtime().stop();
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstring>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../middleware/domain_lock.h"
#include "../middleware/eventually.h"
#include "../middleware/messages.h"
#include "message/format.h"
#include "message/object.h"
#include "middleware/host/plugin.h"
#include "middleware/types.h"
#include "subject.h"

namespace perflab::runtime::conformance {

using namespace std::chrono_literals;
using perflab::conformance::DomainLock;
using perflab::conformance::eventually;
using perflab::conformance::kPatience;

// ---- messages that can be recognised ----

// Types of a user's own, beside those that perflab brings.
inline message::Formats& formats() {
  static message::Formats all({
      {"conformance_msgs/msg/Part", "string name\nfloat64[] values\nuint16[<=5] few\nstring[] words\n"},
      // Nested sequences of any length before the stamp, which stands at another place in each message.
      {"conformance_msgs/msg/Scan", "bool good\nPart[] parts\nuint8[] data\nint64 time\nuint64 id\nint8 last\n"},
      {"conformance_msgs/msg/Framed", "uint8 kind\nperflab_msgs/Header header\nwstring text\nPart[] parts\n"},
      {"conformance_msgs/msg/Within", "int16 before\nperflab_msgs/Header header\nfloat64[3] behind\n"},
      {"conformance_msgs/srv/Ask",
       "string question\nint64 time\nuint64 id\n---\nbool known\nfloat32[] answers\nint64 time\nuint64 id\n"},
      {"conformance_msgs/srv/Mixed",
       "perflab_msgs/Header header\nstring question\n---\nint64 time\nuint64 id\nuint8[] answer\n"},
  });
  return all;
}

// A type, and the length of its messages where that can be chosen. The other process of the middleware's tests
// makes and checks messages of its own (../middleware/messages.h), which have no type; `format` is null for them.
// They have no stamp, so no runtime that decodes messages can carry them.
struct Kind {
  const message::Format* format;
  std::uint32_t length = 0;

  [[nodiscard]] std::string ros_type() const {
    return format == nullptr ? "perflab_msgs/msg/Conformance" : format->type->name;
  }
  // Bytes of every message with its encapsulation, or 0.
  [[nodiscard]] std::size_t fixed_size() const { return format == nullptr ? 100 : format->codec.fixed_size(); }
  [[nodiscard]] std::size_t bytes() const {
    return format == nullptr ? fixed_size() - message::kEncapsulationBytes : format->payload_bytes(length);
  }
  // Its messages say nothing of themselves: a source time stamp has their number.
  [[nodiscard]] bool known_by_stamp() const { return format != nullptr && format->stamp == message::Stamp::kNone; }
  [[nodiscard]] bool of_a_user() const { return ros_type().starts_with("conformance_msgs/"); }
  [[nodiscard]] std::string name() const { return format == nullptr ? "of peers" : format->name; }
};
inline Kind kind_of(const char* name, std::uint32_t length = 0) { return {formats().find(name), length}; }
inline Kind fixed(const char* name) { return kind_of(name); }
inline Kind variable(std::uint32_t bytes) { return kind_of("stamped_vector", bytes); }
inline const Kind kSmall = fixed("stamped100b");
inline const Kind kLarge = fixed("stamped1mb");
inline const Kind kOfPeers{nullptr};

// Some of each family, and of users, where the runtime takes these; some as long as their sender likes.
inline std::vector<Kind> kinds() {
  std::vector<Kind> all{kSmall,
                        fixed("stamped10b"),
                        fixed("stamped_int64"),
                        fixed("stamped9_float32"),
                        fixed("stamped4_int32"),
                        fixed("stamped10kb"),
                        fixed("array1k"),
                        fixed("radar_track"),
                        fixed("struct4k"),
                        fixed("nav_sat_fix"),
                        kind_of("stamped_vector", 77),
                        kind_of("bounded_sequence1k", 301),
                        kind_of("unbounded_sequence", 5'000),
                        kind_of("unbounded_string", 30)};
  if (subject().abilities().known_by_stamp) {
    all.insert(all.end(), {fixed("geometry_msgs/msg/Twist"),
                           kind_of("sensor_msgs/msg/Image", 1'003),
                           kind_of("std_msgs/msg/String", 40)});
  }
  if (subject().abilities().types_of_users) {
    all.insert(all.end(), {fixed("conformance_msgs/msg/Within"),
                           kind_of("conformance_msgs/msg/Framed", 9),
                           kind_of("conformance_msgs/msg/Scan", 1'003)});
  }
  return all;
}

// Both messages of a service.
struct ServiceKind {
  std::string ros_type;
  Kind request;
  Kind reply;
};
inline ServiceKind service_kind(const char* name, std::uint32_t length = message::kServiceLength) {
  return {formats().full_service_name(name).value(),
          {formats().find_request(name), length},
          {formats().find_response(name), length}};
}

// The source time stamp of the message with number 0, where that is how it is known.
inline constexpr std::int64_t kFirstStamp = 1'700'000'000'000'000'000;

inline message::Header header_of(const Kind& kind, std::uint64_t number) {
  message::Header header;
  header.intended_ns = static_cast<std::int64_t>(number) * 1'000'003 + 17;
  header.published_ns = header.intended_ns + 5;
  header.sequence = message::with_source(number, 3);
  header.size_bytes = static_cast<std::uint32_t>(kind.bytes());
  header.frequency_hz = 12.5F;
  return header;
}

// A message whose content differs from number to number. A variable type's length goes with what is behind the
// stamp or, with `length_in_stamp`, with the stamp, as one that was decoded is relayed.
struct Parts {
  Parts(const Kind& kind, std::uint64_t number, bool length_in_stamp = false) {
    if (kind.format == nullptr) {
      bytes = perflab::conformance::make_message(number, kind.fixed_size());
      stamp_end = perflab::conformance::kSmallest;
      return;
    }
    const message::Format& format = *kind.format;
    message::Object object(*format.type);
    message::fill(object, kind.length, number + 1);
    bytes.resize(format.codec.encoded_size(object.data()));
    format.codec.encode(object.data(), bytes);
    if (kind.known_by_stamp()) {
      source_timestamp_ns = kFirstStamp + static_cast<std::int64_t>(number);
      return;
    }
    stamp_begin = format.codec.position_of(object.data(), format.stamp_offset);
    format.write_stamp(header_of(kind, number), false, bytes.data() + stamp_begin);
    stamp_end = stamp_begin + format.stamp_bytes + (length_in_stamp ? sizeof(std::uint32_t) : 0);
    if (stamp_begin == message::kEncapsulationBytes) stamp_begin = 0;
  }
  // Of these bytes, or of others of the same length.
  [[nodiscard]] Outgoing outgoing(std::span<const std::uint8_t> of) const {
    return {of.first(stamp_begin), of.subspan(stamp_begin, stamp_end - stamp_begin), of.subspan(stamp_end),
            source_timestamp_ns};
  }
  [[nodiscard]] Outgoing outgoing() const { return outgoing(bytes); }

  std::vector<std::uint8_t> bytes;
  std::size_t stamp_begin = 0;
  std::size_t stamp_end = 0;
  std::int64_t source_timestamp_ns = 0;
};

inline bool send(Publisher& publisher, const Kind& kind, std::uint64_t number) {
  return publisher.publish(Parts(kind, number).outgoing());
}
inline bool send_prepared(Publisher& publisher, const Parts& parts) {
  return publisher.prepare(parts.outgoing()) && publisher.publish(parts.outgoing());
}
inline bool send_prepared(Publisher& publisher, const Kind& kind, std::uint64_t number) {
  return send_prepared(publisher, Parts(kind, number));
}
// The messages 0, 1, ... that stay where they are.
inline std::vector<Parts> make_all(const Kind& kind, std::uint64_t count) {
  std::vector<Parts> all;
  for (std::uint64_t i = 0; i < count; ++i) all.emplace_back(kind, i);
  return all;
}
inline bool request(Client& client, const ServiceKind& kind, std::uint64_t number) {
  return client.request(Parts(kind.request, number).outgoing());
}

inline bool is_none(const perflab_identity& identity) { return middleware::same(identity, {}); }

// A message as a handler got it.
struct Received {
  std::uint64_t number = 0;
  bool intact = false;    // every byte
  std::size_t bytes = 0;  // of the payload
  const std::uint8_t* place = nullptr;  // where the message was; it is there no more
  perflab_identity writer{};
  std::int64_t sequence = 0;
  perflab_sample_identity related{};
  Nanoseconds arrived_ns = kUnknownTime;
  std::int64_t source_timestamp_ns = kUnknownTime;
  Nanoseconds begin_ns = 0;  // of the callback, by the runtime's clock
  Nanoseconds end_ns = 0;
};

// Whether bytes are the message, and nothing but RTPS's padding to 4 bytes behind it.
inline bool is_message(std::span<const std::uint8_t> bytes, const Parts& sent) {
  const std::size_t size = sent.bytes.size();
  return bytes.size() >= size && bytes.size() <= size + 3 && std::ranges::equal(bytes.first(size), sent.bytes);
}

inline Received read(const Delivery& delivery, const Kind& kind) {
  Received received;
  received.place = delivery.bytes.data();
  received.writer = delivery.writer;
  received.sequence = delivery.sequence;
  received.related = delivery.related;
  received.arrived_ns = delivery.arrived_ns;
  received.source_timestamp_ns = delivery.source_timestamp_ns;
  if (kind.format == nullptr) {
    received.number = perflab::conformance::number_of(delivery.bytes);
    received.bytes = kind.bytes();
    received.intact = perflab::conformance::intact(delivery.bytes, kind.fixed_size());
    return received;
  }
  const message::Format& format = *kind.format;
  message::Header header;
  if (kind.known_by_stamp()) {
    header.sequence = static_cast<std::uint64_t>(delivery.source_timestamp_ns - kFirstStamp);
  } else if (!format.read_stamp(delivery.bytes, header)) {
    ADD_FAILURE() << "no stamp in " << delivery.bytes.size() << " bytes of " << format.name;
    return received;
  }
  received.number = message::sequence_of(header);
  // Messages of one topic may differ in their length; then their headers say it.
  const bool says_length = format.variable && format.stamp == message::Stamp::kHeader && format.unit() == "byte";
  const Parts sent({kind.format, says_length ? header.size_bytes : kind.length}, received.number);
  const std::size_t behind_header = message::kHeaderBytes + (format.variable ? sizeof(std::uint32_t) : 0);
  received.bytes = format.codec.extent(delivery.bytes) - message::kEncapsulationBytes -
                   (format.stamp == message::Stamp::kHeader ? behind_header : 0);
  received.intact = is_message(delivery.bytes, sent);
  return received;
}

// ---- handlers ----

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

// Opened once; a thread that calls pass() before that waits, with a time limit. Not for virtual time, in which
// nothing else runs while a callback waits: see Lab::hold().
class Gate {
 public:
  void open() { open_ = true; }
  void pass() const {
    EXPECT_TRUE(eventually([this] { return open_.load(); })) << "nobody opened the gate";
  }

 private:
  std::atomic<bool> open_{false};
};

inline std::vector<std::uint64_t> range(std::uint64_t first, std::uint64_t end) {
  std::vector<std::uint64_t> out;
  for (; first < end; ++first) out.push_back(first);
  return out;
}

// Records messages in the order of their callbacks.
class Inbox final : public MessageHandler {
 public:
  Inbox(const measure::Clock& clock, const Kind& kind) : clock_(clock), kind_(kind) {}

  void on_message(const Delivery& delivery) noexcept override {
    const Alone alone(running_);
    const Nanoseconds begin = clock_.now();
    Received received = read(delivery, kind_);
    received.begin_ns = begin;
    entered_.fetch_add(1);
    if (on_each) on_each(received);
    received.end_ns = clock_.now();
    {
      const std::lock_guard lock(mutex_);
      messages_.push_back(received);
    }
    count_.fetch_add(1);
  }

  std::size_t count() const { return count_; }      // callbacks that have returned
  std::size_t entered() const { return entered_; }  // ... that have begun
  std::vector<Received> messages() const {
    const std::lock_guard lock(mutex_);
    return messages_;
  }
  std::vector<std::uint64_t> numbers() const {
    std::vector<std::uint64_t> numbers;
    for (const Received& one : messages()) numbers.push_back(one.number);
    return numbers;
  }
  bool all_intact() const {
    return std::ranges::all_of(messages(), [](const Received& one) { return one.intact; });
  }

  // In the callback.
  std::function<void(const Received&)> on_each;

 private:
  const measure::Clock& clock_;
  const Kind kind_;
  mutable std::mutex mutex_;
  std::vector<Received> messages_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> entered_{0};
  std::atomic<bool> running_{false};
};

// Ticks and skipped ticks, in the order of the handler's calls.
class Ticks final : public TimerHandler {
 public:
  struct Tick {
    Nanoseconds due_ns;
    std::uint64_t skipped;  // 0: one that was given
    Nanoseconds begin_ns;
    Nanoseconds end_ns;
  };
  explicit Ticks(const measure::Clock& clock) : clock_(clock) {}

  void on_tick(Nanoseconds due_ns) noexcept override {
    const Alone alone(running_);
    const Nanoseconds begin = clock_.now();
    EXPECT_LE(due_ns, begin) << "a tick before its time";
    if (on_each) on_each(due_ns);
    note({due_ns, 0, begin, clock_.now()});
    count_.fetch_add(1);
  }
  void on_skipped(Nanoseconds first_due_ns, std::uint64_t count) noexcept override {
    EXPECT_GT(count, 0u);
    note({first_due_ns, count, clock_.now(), clock_.now()});
    skipped_.fetch_add(count);
  }

  std::size_t count() const { return count_; }
  std::uint64_t skipped() const { return skipped_; }
  std::vector<Tick> all() const {
    const std::lock_guard lock(mutex_);
    return ticks_;
  }

  std::function<void(Nanoseconds due_ns)> on_each;

 private:
  void note(const Tick& tick) {
    const std::lock_guard lock(mutex_);
    ticks_.push_back(tick);
  }

  const measure::Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<Tick> ticks_;
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> skipped_{0};
  std::atomic<bool> running_{false};
};

// Answers each request; the reply has its number.
class Echo final : public RequestHandler {
 public:
  Echo(const measure::Clock& clock, const ServiceKind& kind) : clock_(clock), kind_(kind) {}

  void on_request(const Delivery& delivery, Reply& reply) noexcept override {
    const Alone alone(running_);
    Received received = read(delivery, kind_.request);
    received.begin_ns = clock_.now();
    EXPECT_TRUE(received.intact) << "request " << received.number;
    if (on_each) on_each();
    EXPECT_TRUE(reply.send(Parts(kind_.reply, received.number).outgoing()));
    received.end_ns = clock_.now();
    {
      const std::lock_guard lock(mutex_);
      requests_.push_back(received);
    }
    count_.fetch_add(1);
  }
  std::size_t count() const { return count_; }
  std::vector<Received> requests() const {
    const std::lock_guard lock(mutex_);
    return requests_;
  }

  std::function<void()> on_each;

 private:
  const measure::Clock& clock_;
  const ServiceKind kind_;
  mutable std::mutex mutex_;
  std::vector<Received> requests_;
  std::atomic<std::size_t> count_{0};
  std::atomic<bool> running_{false};
};

inline std::vector<Nanoseconds> dues(Nanoseconds first, Nanoseconds end) {
  std::vector<Nanoseconds> out;
  for (; first < end; ++first) out.push_back(first);
  return out;
}

// What came of the triggers of a waitable.
class Answers final : public WaitableHandler {
 public:
  explicit Answers(const measure::Clock& clock) : clock_(clock) {}

  struct Span {
    Nanoseconds begin_ns;
    Nanoseconds end_ns;
  };

  void on_triggered(Nanoseconds due_ns) noexcept override {
    const Alone alone(running_);
    const Nanoseconds begin = clock_.now();
    entered_.fetch_add(1);
    if (on_each) on_each(due_ns);
    {
      const std::lock_guard lock(mutex_);
      dues_.push_back(due_ns);
      spans_.push_back({begin, clock_.now()});
    }
    executed_.fetch_add(1);
    answered_.fetch_add(1);
  }
  void on_coalesced(Nanoseconds due_ns) noexcept override {
    {
      const std::lock_guard lock(mutex_);
      coalesced_.push_back(due_ns);
    }
    answered_.fetch_add(1);
  }

  std::size_t entered() const { return entered_; }    // callbacks that have begun
  std::size_t executed() const { return executed_; }  // ... that have returned
  std::size_t answered() const { return answered_; }  // triggers
  std::vector<Nanoseconds> dues() const { return copy(dues_); }
  std::vector<Nanoseconds> coalesced() const { return copy(coalesced_); }
  std::vector<Span> all() const { return copy(spans_); }

  // In the callback.
  std::function<void(Nanoseconds due_ns)> on_each;

 private:
  template <typename List>
  List copy(const List& list) const {
    const std::lock_guard lock(mutex_);
    return list;
  }

  const measure::Clock& clock_;
  mutable std::mutex mutex_;
  std::vector<Nanoseconds> dues_;
  std::vector<Nanoseconds> coalesced_;
  std::vector<Span> spans_;
  std::atomic<std::size_t> entered_{0};
  std::atomic<std::size_t> executed_{0};
  std::atomic<std::size_t> answered_{0};
  std::atomic<bool> running_{false};
};

// What no test expects is a failure of the test.
class Sink final : public EventSink {
 public:
  void on_event(const perflab_event& event) noexcept override {
    const std::lock_guard lock(mutex_);
    events_.emplace_back(event.kind, event.policy != nullptr ? event.policy : "");
  }
  void on_write_failed(Nanoseconds, const char* text) noexcept override {
    const std::lock_guard lock(mutex_);
    write_failures_.emplace_back(text);
  }
  void on_failure(Nanoseconds, const char* text) noexcept override { ADD_FAILURE() << text; }

  bool has(perflab_event_kind kind, const std::string& policy = {}) const {
    const std::lock_guard lock(mutex_);
    return std::ranges::any_of(events_, [&](const auto& event) {
      return event.first == kind && event.second.find(policy) != std::string::npos;
    });
  }
  std::size_t count(perflab_event_kind kind) const {
    const std::lock_guard lock(mutex_);
    return static_cast<std::size_t>(
        std::ranges::count(events_, kind, &std::pair<perflab_event_kind, std::string>::first));
  }
  // Since the last call. What nobody asks for is a failure of the test, see ~Lab().
  std::vector<std::string> take_write_failures() {
    const std::lock_guard lock(mutex_);
    return std::exchange(write_failures_, {});
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::pair<perflab_event_kind, std::string>> events_;
  std::vector<std::string> write_failures_;
};

// ---- the runtime ----

// The default of ROS 2, as far as the subject promises it.
inline perflab_qos usual_qos() {
  perflab_qos qos = middleware::default_qos();
  if (!subject().abilities().reliable) qos.reliability = PERFLAB_BEST_EFFORT;
  return qos;
}
// The same as a word for another process (../middleware/peer.h).
inline std::string usual_reliability() { return subject().abilities().reliable ? "reliable" : "best_effort"; }

inline perflab_qos keep_last(int depth) {
  perflab_qos qos = usual_qos();
  qos.depth = depth;
  return qos;
}

inline perflab_qos keep_all() {
  perflab_qos qos = usual_qos();
  qos.history = PERFLAB_KEEP_ALL;
  return qos;
}

inline const char* to_text(ExecutorKind kind) {
  switch (kind) {
    case ExecutorKind::kInline:
      return "inline";
    case ExecutorKind::kSingleThreaded:
      return "single_threaded";
    case ExecutorKind::kStaticSingleThreaded:
      return "static_single_threaded";
    case ExecutorKind::kEvents:
      return "events";
    case ExecutorKind::kPolling:
      return "polling";
    case ExecutorKind::kMultiThreaded:
      return "multi_threaded";
    case ExecutorKind::kPriority:
      return "priority";
    case ExecutorKind::kLet:
      return "let";
  }
  return "?";
}

// Runs the function, which has to throw; one line that has all the words.
template <typename Function>
void expect_error(Function&& function, Error::Kind kind, const std::vector<std::string>& words) {
  try {
    function();
    ADD_FAILURE() << "not refused";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), kind) << text;
    EXPECT_FALSE(text.empty());
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
  }
}

struct Node {
  std::size_t executor = 0;
  std::size_t group = 0;
  std::size_t participant = 0;
  int priority = 0;  // of what is made on it
};

struct Guarded {
  Waitable* endpoint;
  Answers* answers;
};

class Lab : public testing::Test {
 protected:
  ~Lab() override {
    if (runtime_) runtime_->stop();
    for (const std::string& text : sink_.take_write_failures()) ADD_FAILURE() << text;
  }

  Runtime& open(const Asked& asked = {}) {
    close();
    runtime_ = subject().open(asked, domain_.id(), monotonic_, sink_);
    return *runtime_;
  }
  // Before handlers that it refers to are gone.
  void close() {
    if (runtime_) runtime_->stop();
    runtime_.reset();
    groups_ = executors_ = 0;
    source_.reset();
    subscriptions_.clear();
  }
  // The caller ends it.
  std::unique_ptr<Runtime> release() { return std::move(runtime_); }
  Runtime& runtime() { return *runtime_; }
  std::uint32_t domain() const { return domain_.id(); }
  const Abilities& abilities() const { return abilities_; }
  bool real_time() const { return !abilities_.virtual_time; }
  Nanoseconds now() const { return runtime_->clock().now(); }

  std::size_t executor(ExecutorKind kind, int threads = 2, const std::string& name = {},
                       const realtime::ThreadSettings& thread = {}, Nanoseconds period_ns = 0) {
    const std::string given = name.empty() ? "executor_" + std::to_string(executors_) : name;
    ++executors_;
    return runtime_->add_executor(
        {.kind = kind, .name = given, .threads = threads, .thread = thread, .period_ns = period_ns});
  }
  // One more on that executor.
  Node node_on(std::size_t executor, std::size_t participant = 0) {
    const std::size_t group = groups_++;
    runtime_->name_group(group, {.node_namespace = "/conformance",
                                 .name = "node_" + std::to_string(group),
                                 .participant = participant,
                                 .executor = executor});
    return {executor, group, participant, 0};
  }
  Node node(ExecutorKind kind, int threads = 2) { return node_on(executor(kind, threads)); }
  // Whose timers and publishers begin everything.
  Node source() {
    if (!source_) source_ = node(ExecutorKind::kSingleThreaded);
    return *source_;
  }

  static EndpointSettings endpoint(const Node& on, const std::string& topic, const Kind& kind,
                                   const perflab_qos& qos, PassBy pass_by = PassBy::kUnspecified) {
    EndpointSettings settings;
    settings.participant = on.participant;
    settings.group = on.group;
    settings.topic = topic;
    settings.ros_type = kind.ros_type();
    settings.type = kind.format == nullptr ? nullptr : kind.format->type;
    settings.fixed_size = kind.fixed_size();
    settings.qos = qos;
    settings.pass_by = pass_by;
    settings.known_by_stamp = kind.known_by_stamp();
    settings.priority = on.priority;
    return settings;
  }
  // A handler that nothing calls yet.
  Inbox& inbox(const Kind& kind) { return inboxes_.emplace_back(runtime_->clock(), kind); }
  Inbox& subscribe(const Node& on, const std::string& topic, const Kind& kind,
                   const perflab_qos& qos = keep_last(1'000), PassBy pass_by = PassBy::kUnspecified) {
    Inbox& made = inbox(kind);
    subscriptions_.push_back(
        &runtime_->create_subscription(on.executor, endpoint(on, topic, kind, qos, pass_by), made));
    return made;
  }
  Publisher& publisher_of(const Node& on, const std::string& topic, const Kind& kind,
                          const perflab_qos& qos = keep_last(1'000), PassBy pass_by = PassBy::kUnspecified) {
    return runtime_->create_publisher(endpoint(on, topic, kind, qos, pass_by));
  }
  Publisher& publisher(const std::string& topic, const Kind& kind, const perflab_qos& qos = keep_last(1'000),
                       PassBy pass_by = PassBy::kUnspecified) {
    return publisher_of(source(), topic, kind, qos, pass_by);
  }
  static ServiceSettings service(const Node& on, const std::string& name, const ServiceKind& kind) {
    ServiceSettings settings;
    settings.participant = on.participant;
    settings.group = on.group;
    settings.service = name;
    settings.ros_type = kind.ros_type;
    settings.request = kind.request.format->type;
    settings.response = kind.reply.format->type;
    settings.qos = keep_last(1'000);
    settings.priority = on.priority;
    return settings;
  }
  Echo& serve(const Node& on, const std::string& name, const ServiceKind& kind, Server** server = nullptr) {
    Echo& echo = echoes_.emplace_back(runtime_->clock(), kind);
    Server& made = runtime_->create_server(on.executor, service(on, name, kind), echo);
    if (server != nullptr) *server = &made;
    return echo;
  }
  Client& client(const Node& on, const std::string& name, const ServiceKind& kind, Inbox& replies) {
    return runtime_->create_client(on.executor, service(on, name, kind), replies);
  }
  Ticks& timer(const Node& on, std::chrono::nanoseconds period, std::int64_t first, std::int64_t last,
               bool skip_missed = false, std::chrono::nanoseconds made_up_for = {},
               std::chrono::nanoseconds shift = {}) {
    Ticks& ticks = ticks_.emplace_back(runtime_->clock());
    runtime_->create_timer(on.executor,
                           {.name = "timer_" + std::to_string(ticks_.size()),
                            .group = on.group,
                            .period_ns = period.count(),
                            .from_ns = (first - 1) * period.count(),
                            .until_ns = last * period.count(),
                            .skip_missed = skip_missed,
                            .made_up_for_ns = made_up_for.count(),
                            .shift_ns = shift.count(),
                            .priority = on.priority},
                           ticks);
    return ticks;
  }
  Guarded waitable(const Node& on) {
    Answers& answers = answers_.emplace_back(runtime_->clock());
    const std::string name = "waitable_" + std::to_string(answers_.size());
    return {&runtime_->create_waitable(on.executor, {.name = name, .group = on.group, .priority = on.priority}, answers),
            &answers};
  }
  // Once, so long after the base, in a callback of the source. By a timer with a long period, that no stall of
  // the machine makes leave out its only tick.
  void at(std::chrono::nanoseconds after, std::function<void()> what) {
    Ticks& once = timer(source(), 1h, 1, 1, false, {}, after - 1h);
    once.on_each = [what = std::move(what)](Nanoseconds) { what(); };
  }

  // Every subscription so far has that many publishers.
  bool matched(std::size_t publishers = 1) {
    return eventually([&] {
      return std::ranges::all_of(subscriptions_, [&](auto* one) { return one->matched() == publishers; });
    });
  }
  // Timers count from an instant that lies ahead, or behind: then they are late from the beginning.
  void start(std::chrono::nanoseconds ahead = 50ms) {
    base_ = now() + ahead.count();
    runtime_->start(base_);
  }
  Nanoseconds base() const { return base_; }
  bool timers_done() {
    return eventually([&] { return runtime_->timers_done(); });
  }
  // Holds up the calling callback until the condition is true; in virtual time, where nothing else goes on,
  // for so long.
  template <typename Condition>
  void hold(std::chrono::nanoseconds in_virtual_time, Condition&& condition) {
    if (!real_time()) {
      runtime_->work(in_virtual_time.count());
    } else {
      EXPECT_TRUE(eventually(condition)) << "what a callback waited for did not come";
    }
  }

  bool lacks_delivery_within_the_process(bool asked);

  Sink sink_;

 private:
  const DomainLock domain_;
  const Abilities abilities_ = subject().abilities();
  const measure::MonotonicClock monotonic_;
  std::deque<Inbox> inboxes_;
  std::deque<Ticks> ticks_;
  std::deque<Echo> echoes_;
  std::deque<Answers> answers_;
  std::vector<Subscription*> subscriptions_;
  std::size_t groups_ = 0;
  std::size_t executors_ = 0;
  std::optional<Node> source_;
  Nanoseconds base_ = 0;
  std::unique_ptr<Runtime> runtime_;  // last: it goes before the handlers
};

// ---- for every executor that the runtime has, with and without intra-process delivery ----

struct Case {
  ExecutorKind kind;
  bool intra_process;
};
inline std::vector<Case> cases(bool with_inline) {
  std::vector<Case> cases;
  const bool intra_process = subject().abilities().intra_process;
  for (const ExecutorKind kind : subject().executors()) {
    if (kind == ExecutorKind::kInline && !with_inline) continue;
    cases.push_back({kind, false});
    if (intra_process) cases.push_back({kind, true});
  }
  return cases;
}
inline std::vector<Case> all_executors() { return cases(true); }
// Those that have a queue: what holds up a callback holds up what comes after it, and not who sent it.
inline std::vector<Case> queueing_executors() { return cases(false); }
inline std::string case_name(const testing::TestParamInfo<Case>& info) {
  return std::string(to_text(info.param.kind)) + (info.param.intra_process ? "_intra_process" : "");
}

// True where a runtime that may have it has it not in the way that this program was asked for; then it is refused.
inline bool Lab::lacks_delivery_within_the_process(bool asked) {
  if (!asked || abilities().intra_process) return false;
  expect_error([this] { open({.intra_process = true}); }, Error::Kind::kUnsupported, {"--ipc off"});
  return true;
}

class AnyExecutor : public Lab, public testing::WithParamInterface<Case> {
 protected:
  void SetUp() override {
    if (lacks_delivery_within_the_process(GetParam().intra_process)) GTEST_SKIP() << "refused, as it should be";
    if (subject().may_lack(GetParam().kind)) {
      open();
      try {
        executor(GetParam().kind);
      } catch (const Error& error) {
        GTEST_SKIP() << error.what();
      }
    }
    open({.intra_process = GetParam().intra_process});
  }
  Node node(int threads = 2) { return Lab::node(GetParam().kind, threads); }
  bool intra_process() const { return GetParam().intra_process; }
};

// ---- ... and in each framing of services ----

struct ServiceCase {
  Case executor;
  ServiceFraming framing;
};
inline std::vector<ServiceCase> service_cases() {
  std::vector<ServiceCase> cases;
  for (const Case& one : all_executors()) {
    for (const ServiceFraming framing : subject().abilities().framings) cases.push_back({one, framing});
  }
  return cases;
}
// Of these one for each way of taking what comes, and for delivery within the process.
inline std::vector<ServiceCase> differing_service_cases() {
  std::vector<ServiceCase> cases;
  for (const ServiceCase& one : service_cases()) {
    const ExecutorKind kind = one.executor.kind;
    const bool differs = kind == ExecutorKind::kInline || kind == ExecutorKind::kSingleThreaded ||
                         kind == ExecutorKind::kEvents || kind == ExecutorKind::kMultiThreaded;
    const bool taken = one.executor.intra_process ? kind == ExecutorKind::kInline || kind == ExecutorKind::kMultiThreaded
                                                  : differs;
    if (taken) cases.push_back(one);
  }
  return cases;
}

inline const char* to_text(ServiceFraming framing) {
  return framing == ServiceFraming::kRmwFastrtps ? "rmw_fastrtps" : "rmw_cyclonedds";
}
inline std::string service_case_name(const testing::TestParamInfo<ServiceCase>& info) {
  return case_name({info.param.executor, info.index}) + "_" + to_text(info.param.framing);
}

class AnyService : public Lab, public testing::WithParamInterface<ServiceCase> {
 protected:
  // A framing that this middleware cannot have is refused; then there is nothing to test.
  void SetUp() override {
    if (lacks_delivery_within_the_process(GetParam().executor.intra_process)) GTEST_SKIP() << "refused, as it should be";
    const Asked asked{.intra_process = GetParam().executor.intra_process, .framing = GetParam().framing};
    const std::vector<ServiceFraming>& framings = abilities().framings;
    if (std::ranges::count(framings, GetParam().framing) == 0) {
      expect_error([&] { open(asked); }, Error::Kind::kUnsupported,
                   {std::string("--service-framing ") + to_text(framings.front())});
      GTEST_SKIP() << "not a framing of this runtime";
    }
    open(asked);
    if (!subject().may_lack(GetParam().executor.kind)) return;
    try {
      executor(GetParam().executor.kind);
    } catch (const Error& error) {
      GTEST_SKIP() << error.what();
    }
    open(asked);
  }
  Node node() { return Lab::node(GetParam().executor.kind); }
};

}  // namespace perflab::runtime::conformance
