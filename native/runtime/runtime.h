// What a graph needs to live: publishers, subscriptions, services, timers, waitables and the executors that
// run their callbacks.
//
// Three implementations stand behind it: `dds` (executors of our own over a middleware plug-in), `virtual`
// (discrete events on a virtual clock) and `rclcpp` (nodes and executors of ROS 2 itself, in a library that is
// loaded where it is asked for, runtime/plugin.h). The code that measures is the same in all of them: it is a
// handler that a runtime calls, and the clock that a runtime lends.
//
// Life: create everything, wait until the counts of matched endpoints are right, start(), and after the drain
// stop().
//
// Threads: everything but publish(), clock() and work() is called from one controlling thread. Handlers are
// called from the runtime's threads, never concurrently for one subscription, timer or waitable; whether two
// entities of a node may run concurrently depends on the executor (concurrent_callbacks()). One publisher or
// client is used by one thread at a time, its counts and passing() included; a LateReply and what action.h says may be used
// by any.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/error.h"
#include "measure/clock.h"
#include "message/codec.h"
#include "message/filter.h"
#include "message/key.h"
#include "message/object.h"
#include "middleware/middleware.h"
#include "realtime/scheduling.h"
#include "runtime/action.h"

namespace perflab::runtime {

enum class ExecutorKind {
  kInline,          // in the thread that brings the message
  kSingleThreaded,  // one thread and a wait-set, as rclcpp's SingleThreadedExecutor
  kStaticSingleThreaded,  // rclcpp's, where it still is; kSingleThreaded of perflab's own is as static
  kEvents,          // one thread and a queue that data-ready callbacks feed, as iRobot's EventsExecutor
  kPolling,         // one thread that looks again and again, without sleeping
  kMultiThreaded,   // several threads; callbacks of one group exclude each other, as rclcpp's
                    // MultiThreadedExecutor
  kPriority,        // one thread; of what is ready, the callback of the highest priority first, as PiCAS
  kLet              // one thread; takes all that is ready, then runs it in the order of creation, as rclc's
                    // executor with semantics LET
};

// True if callbacks of one group may run at the same time.
[[nodiscard]] constexpr bool concurrent_callbacks(ExecutorKind kind) noexcept {
  return kind == ExecutorKind::kInline;
}

struct ExecutorSettings {
  int process = 0;  // index in the graph; only `virtual` holds several
  ExecutorKind kind = ExecutorKind::kSingleThreaded;
  std::string name;                   // becomes the name of its threads; the kernel keeps 15 bytes
  int threads = 0;                    // of kMultiThreaded; 0: one per CPU that the process may use
  realtime::ThreadSettings thread{};  // of each of its threads; of kInline that of its timers
  Nanoseconds period_ns = 0;  // of kLet: it takes what is ready at multiples of it; 0: as soon as something is
};

// A message on its way to the callback; the bytes live until the handler returns.
struct Delivery {
  // CDR with encapsulation header.
  std::span<const std::uint8_t> bytes;
  perflab_identity writer{};  // all zero where the runtime cannot tell
  std::int64_t sequence = 0;              // the middleware's number of the message, or 0
  perflab_sample_identity related{};      // what it answers to, or zero
  Nanoseconds arrived_ns = kUnknownTime;  // in the receive thread (intra-process: in the publisher's)
  std::int64_t source_timestamp_ns = kUnknownTime;  // wall clock of the writer
  // The message as a struct of its type where it came without being encoded, from within the process, or was decoded by
  // the runtime; `bytes` are empty.
  const void* object = nullptr;
};

class MessageHandler {
 public:
  virtual ~MessageHandler() = default;
  virtual void on_message(const Delivery& delivery) noexcept = 0;
  // Of a request or a response, for traces: of which client it is, and which of its calls. Sequence 0: of none.
  [[nodiscard]] virtual perflab_sample_identity call_of(const Delivery& delivery) const noexcept {
    static_cast<void>(delivery);
    return {};
  }
};

class TimerHandler {
 public:
  virtual ~TimerHandler() = default;
  // One due tick. `due_ns` is its intended time.
  virtual void on_tick(Nanoseconds due_ns) noexcept = 0;
  // Ticks that a timer with `skip_missed` leaves out, from `first_due_ns` on.
  virtual void on_skipped(Nanoseconds first_due_ns, std::uint64_t count) noexcept = 0;
};

// How the ticks of a timer are spread.
enum class Arrivals {
  kPeriodic,    // one period after the other
  kPoisson,     // at random, independently of each other, so many on average: the gaps are distributed exponentially
  kUnthrottled  // each as soon as the one before has been served: as fast as it goes, without a schedule
};

// The end of what a timer shall do where that is said only while it runs, and how far the timer is. By its user, for one
// timer; it outlives the timer. All times since base, as in TimerSettings.
struct TimerEnd {
  static constexpr Nanoseconds kNone = INT64_MAX;

  std::atomic<Nanoseconds> until_ns{kNone};  // nothing later ticks; may become earlier at any time
  std::atomic<Nanoseconds> next_ns{0};       // every tick before this one has been served; kNone: all

  // No tick is left to come, nor being served.
  [[nodiscard]] bool passed() const noexcept {
    return next_ns.load(std::memory_order_acquire) > until_ns.load(std::memory_order_relaxed);
  }
};

// Ticks are due later than base + from and no later than base + until, base being the instant given to start(), before
// `shift` is added: periodic ones at multiples of the period.
struct TimerSettings {
  std::string name;
  std::size_t group = 0;  // callbacks of one group of an executor exclude each other, see concurrent_callbacks()
  Nanoseconds period_ns = 0;  // on average; unthrottled: 0
  Arrivals arrivals = Arrivals::kPeriodic;
  std::int64_t burst = 1;          // so many ticks are due together, and bursts are that much rarer
  std::uint64_t seed = 0;          // of what is random
  Nanoseconds from_ns = 0;         // < 0 for ticks before the measured part
  Nanoseconds until_ns = 0;        // from_ns: never
  bool skip_missed = false;        // otherwise every missed tick is made up for, late
  Nanoseconds made_up_for_ns = 0;  // with skip_missed: ticks that are no later than that are made up for
  Nanoseconds shift_ns = 0;        // more than -period, at most 0: how much earlier than whole periods
  TimerEnd* end = nullptr;         // may come before until_ns
  int priority = 0;                // of its callback, for kPriority: the largest first

  // One period after the other.
  [[nodiscard]] bool regular() const noexcept { return arrivals == Arrivals::kPeriodic && burst == 1; }
};

// How a publisher hands over a message, or a subscription takes it.
enum class PassBy {
  kUnspecified,  // a publisher's as kShared
  kShared,       // the publisher keeps its message, as `publish(*message)`; subscriptions may share one
  kUnique,       // the publisher gives its message away; a subscription gets one of its own
  kLoaned        // the message is made in memory of the middleware
};

// The name on the wire: "rt/<topic>", "rq/<service>Request", "rr/<service>Reply".
enum class TopicKind { kTopic, kRequest, kReply };

struct EndpointSettings {
  int process = 0;        // index in the graph; only `virtual` holds several
  std::size_t participant = 0;  // which of the process's participants it belongs to
  std::size_t group = 0;  // of a subscription's callback; in traces also whose publisher it is
  TopicKind kind = TopicKind::kTopic;
  std::string topic;           // ROS name of the topic or service, fully qualified
  std::string ros_type;        // "perflab_msgs/msg/StampedInt64", "perflab_msgs/srv/Stamped10b_Request"
  const message::Type* type = nullptr;  // that type, which outlives the runtime; only `rclcpp` needs it
  std::size_t fixed_size = 0;  // encoded bytes of every message, or 0
  perflab_qos qos{};
  PassBy pass_by = PassBy::kUnspecified;
  std::string user_data{};  // for peers, see middleware.h
  std::string type_hash{};  // of `ros_type` (message/hash.h), which goes to peers; empty: none does
  // Messages say nothing of themselves: the sender gives each its source time stamp, which deliveries tell, also within
  // the process.
  bool known_by_stamp = false;
  // By which the topic has instances, where Capabilities::keys; it outlives the runtime. Null: the topic has no keys.
  const message::Key* key = nullptr;
  // Content filters, where Capabilities::filters; they outlive the runtime. Of a subscription at most one: only what it wants
  // is delivered. Of a publisher those of its topic's subscriptions, for a middleware that can leave messages out.
  std::vector<const message::Filter*> filters{};
  int priority = 0;  // of a subscription's callback, as TimerSettings::priority
  // A topic of an action. Within the process it is delivered whatever its durability: nobody there comes late.
  bool of_action = false;
};

// How the messages of a publisher really go, once everything is matched.
struct Passing {
  std::size_t intra_process = 0;  // subscriptions reached without the middleware
  std::size_t copies = 0;         // of each message, made for them
  std::size_t middleware = 0;     // readers reached through the middleware
  bool loaned = false;            // in memory lent by the middleware
};

// A message on its way out: encoded, in the three pieces that it is made of one behind the other. The stamp is what
// changes from one message to the next; `before` and `after` are known earlier and stay as they are.
struct Outgoing {
  std::span<const std::uint8_t> before;
  std::span<const std::uint8_t> stamp;
  std::span<const std::uint8_t> after;
  // The source time stamp with which it goes out, ns of the wall clock, where EndpointSettings::known_by_stamp; else 0.
  std::int64_t source_timestamp_ns = 0;

  // Of the piece that is made anew for each message, where there is one.
  [[nodiscard]] const void* address() const noexcept { return stamp.empty() ? after.data() : stamp.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return before.size() + stamp.size() + after.size(); }
};

class Publisher {
 public:
  Publisher() = default;
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  virtual ~Publisher() = default;
  // Gets ready what will carry the next message, all but its stamp in place, before the message is stamped: a
  // loan, or the message that will be given away. Does nothing where there is no such thing. False if it
  // cannot be had; the reason has been reported, and the message counts as not written.
  virtual bool prepare(const Outgoing& message) noexcept {
    static_cast<void>(message);
    return true;
  }
  // Sends it; with prepare() before it, the same message but for its stamp. False if it was not sent. May run
  // handlers of the `inline` executor.
  virtual bool publish(const Outgoing& message) noexcept = 0;
  // The same for a message that is a struct, where Capabilities::structs. `own` is the sender's; what is returned will go
  // out, and the caller stamps it: `own` itself, or a copy that will be given away. Null if there is no memory, which has
  // been reported.
  virtual void* prepare_object(message::Object& own) noexcept {
    static_cast<void>(own);
    return nullptr;
  }
  // Sends that struct, encoded for readers in other processes; how long that took goes into `serialize_ns`, kUnknownTime
  // where nothing was encoded. `source_timestamp_ns` as in Outgoing.
  virtual bool publish_object(const message::Codec& codec, void* object, std::int64_t source_timestamp_ns,
                              Nanoseconds& serialize_ns) noexcept {
    static_cast<void>(codec), static_cast<void>(object);
    static_cast<void>(source_timestamp_ns), static_cast<void>(serialize_ns);
    return false;
  }
  // For services. Sends any parts as one message, which says what it answers to (may be null). Puts the
  // middleware's number of the message into `sequence` (may be null; 0 where there is none).
  virtual bool publish_related(std::span<const perflab_bytes> parts, const perflab_sample_identity* related,
                               std::int64_t* sequence) noexcept = 0;
  [[nodiscard]] virtual Passing passing() noexcept = 0;
  [[nodiscard]] virtual perflab_identity identity() const noexcept = 0;
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;
};

class Subscription {
 public:
  Subscription() = default;
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  virtual ~Subscription() = default;
  [[nodiscard]] virtual perflab_identity identity() const noexcept = 0;
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;
  // For traces. Of one that takes responses: the client that it is of, and that this sends a request. Of one that takes
  // requests: that their service sends the response to this one.
  virtual void tell_client(const perflab_identity& client) noexcept { static_cast<void>(client); }
  virtual void tell_sent(const perflab_sample_identity& call) noexcept { static_cast<void>(call); }
};

// Services, after the manner of ROS 2: a request and a reply topic (runtime/service.h).
enum class ServiceFraming {
  kRmwFastrtps,    // request and reply are tied together by RTPS's related_sample_identity
  kRmwCyclonedds,  // ... by 16 bytes before the body: client identity and request number
};

struct ServiceSettings {
  int process = 0;
  std::size_t participant = 0;
  std::size_t group = 0;
  std::string service;   // ROS name, fully qualified
  std::string ros_type;  // "perflab_msgs/srv/Stamped10b"
  const message::Type* request = nullptr;   // both of its messages, as EndpointSettings::type
  const message::Type* response = nullptr;
  perflab_qos qos{};
  std::string request_hash{};  // as EndpointSettings::type_hash, of both messages
  std::string response_hash{};
  int priority = 0;  // of the callback for requests or for replies, as TimerSettings::priority
};

class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;
  // Sends a request. False if it was not sent; the reason has been reported.
  virtual bool request(const Outgoing& message) noexcept = 0;
  // The same for a struct, as Publisher::publish_object().
  virtual bool request_object(const message::Codec& codec, const void* object, Nanoseconds& serialize_ns) noexcept {
    static_cast<void>(codec), static_cast<void>(object), static_cast<void>(serialize_ns);
    return false;
  }
  // By which number Delivery::related of its reply names the next request; after request() has sent one, one more than
  // that really got. 0 where replies do not name them (Capabilities::request_numbers).
  [[nodiscard]] virtual std::int64_t next_number() const noexcept { return 0; }
  [[nodiscard]] virtual perflab_identity identity() const noexcept = 0;  // of the request writer
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;              // servers that have both of our ends
};

// A request that somebody will answer after its handler has returned, from any thread; in virtual time from any handler.
// Whoever destroys it unanswered while the runtime runs has forgotten it, and Forgotten is told. From stop() on nothing is
// sent any more; it may be kept for longer than the runtime, but no call may be under way while that is destroyed.
class LateReply {
 public:
  LateReply() = default;
  LateReply(const LateReply&) = delete;
  LateReply& operator=(const LateReply&) = delete;
  virtual ~LateReply() = default;
  // Once: false if it was answered already, or was not sent, which has been reported.
  virtual bool send(const Outgoing& message) noexcept = 0;
  // The same for a struct.
  virtual bool send_object(const message::Codec& codec, const void* object) noexcept = 0;
};

// Told of requests that nobody will answer, from the thread that forgot them. Outlives the runtime's stop().
class Forgotten {
 public:
  virtual ~Forgotten() = default;
  virtual void on_forgotten(Nanoseconds at_ns) noexcept = 0;
};

// A request that is being handled; valid until the handler returns.
class Reply {
 public:
  virtual bool send(const Outgoing& message) noexcept = 0;
  // The same for a struct.
  virtual bool send_object(const message::Codec& codec, const void* object) noexcept {
    static_cast<void>(codec), static_cast<void>(object);
    return false;
  }
  // Answers later: from here on this one is empty, and what is returned has the request. Null if there is no memory, or it is
  // empty.
  virtual std::unique_ptr<LateReply> later(Forgotten& told) noexcept = 0;

 protected:
  ~Reply() = default;
};

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // A request that comes as bytes is CDR with encapsulation header; no framing.
  virtual void on_request(const Delivery& request, Reply& reply) noexcept = 0;
};

class Server {
 public:
  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;  // clients that have both of our ends
};

struct WaitableSettings {
  std::string name;
  std::size_t group = 0;
  int priority = 0;  // as TimerSettings::priority
};

class WaitableHandler {
 public:
  virtual ~WaitableHandler() = default;
  // The callback: answers every trigger that came before it began and that none has answered yet. `due_ns` is
  // what the first of these was given.
  virtual void on_triggered(Nanoseconds due_ns) noexcept = 0;
  // A trigger found one before it unanswered, and is answered together with that. From the thread that
  // triggers, or another, while the callback runs, too. Every trigger is reported once: here or above.
  virtual void on_coalesced(Nanoseconds due_ns) noexcept = 0;
};

// A guard condition and what an executor runs when it finds it triggered, as rclcpp::Waitable.
class Waitable {
 public:
  Waitable() = default;
  Waitable(const Waitable&) = delete;
  Waitable& operator=(const Waitable&) = delete;
  virtual ~Waitable() = default;
  // From any thread; a callback of its own included. `due_ns` is for the handler.
  virtual void trigger(Nanoseconds due_ns) noexcept = 0;
};

// Told of discovery and QoS events and of failures; may be called from any thread, allocates at will.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const perflab_event& event) noexcept = 0;
  // One message could not be written; one line. It counts as a write error of its publisher.
  virtual void on_write_failed(Nanoseconds at_ns, const char* text) noexcept = 0;
  // Messages can no longer be received; one line. What is measured from here on means nothing.
  virtual void on_failure(Nanoseconds at_ns, const char* text) noexcept = 0;
};

// A type as it is announced to peers.
struct TypeName {
  std::string ros_type;  // or, of somebody who is not of ROS 2, the name on the wire
  std::string hash;      // empty: not told

  // What is not told differs from nothing.
  [[nodiscard]] bool differs(const TypeName& other) const noexcept {
    return ros_type != other.ros_type || (!hash.empty() && !other.hash.empty() && hash != other.hash);
  }
  auto operator<=>(const TypeName&) const = default;
};

// Somebody elsewhere has the other end of a topic of ours, with another type.
struct TypeDifference {
  TopicKind kind = TopicKind::kTopic;
  std::string topic;     // ROS name of the topic or service
  bool publishes = false;  // somebody elsewhere does
  TypeName ours;
  TypeName theirs;

  auto operator<=>(const TypeDifference&) const = default;
};

// A node as a graph names it.
struct NodeName {
  std::string node_namespace;  // "/" or "/one/two"
  std::string name;
  std::size_t participant = 0;
  std::size_t executor = 0;  // which runs its callbacks
};

// A part of what threads do that no executor knows of, as traces show it: a callback. Any thread; one that is within several
// ends the last one first.
class Span {
 public:
  virtual ~Span() = default;
  // `due_ns`: by its schedule; kUnknownTime where there is none.
  virtual void begin(Nanoseconds due_ns) noexcept = 0;
  virtual void end() noexcept = 0;
};

class Runtime {
 public:
  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  virtual ~Runtime() = default;

  // The clock that handlers measure with. Inside a handler it shows that handler's time.
  [[nodiscard]] virtual const measure::Clock& clock() const noexcept = 0;

  // Says to which node the endpoints, services, timers and waitables of a group belong, before the first of
  // them is created. `rclcpp` makes the node then; others tell it in traces.
  virtual void name_group(std::size_t group, const NodeName& node) {
    static_cast<void>(group), static_cast<void>(node);
  }
  // Returns the handle for the functions below. Throws Error.
  virtual std::size_t add_executor(const ExecutorSettings& settings) = 0;
  // Each throws Error. What they return lives as long as the runtime; handlers outlive the runtime's stop().
  virtual Publisher& create_publisher(const EndpointSettings& settings) = 0;
  virtual Subscription& create_subscription(std::size_t executor, const EndpointSettings& settings,
                                            MessageHandler& handler) = 0;
  // Replies to the client's own requests come as messages: CDR with encapsulation header, no framing.
  virtual Client& create_client(std::size_t executor, const ServiceSettings& settings,
                                MessageHandler& handler) = 0;
  virtual Server& create_server(std::size_t executor, const ServiceSettings& settings,
                                RequestHandler& handler) = 0;
  virtual ActionClient& create_action_client(std::size_t executor, const ActionSettings& settings,
                                             ActionClientHandler& handler) = 0;
  virtual ActionServer& create_action_server(std::size_t executor, const ActionSettings& settings,
                                             ActionServerHandler& handler) = 0;
  [[nodiscard]] virtual ServiceFraming service_framing() const noexcept = 0;
  virtual void create_timer(std::size_t executor, const TimerSettings& settings, TimerHandler& handler) = 0;
  virtual Waitable& create_waitable(std::size_t executor, const WaitableSettings& settings,
                                    WaitableHandler& handler) = 0;

  // A span of a group's node; `period_ns` 0: it comes without a schedule. Null where nothing is traced, and of runtimes
  // that leave tracing to others.
  virtual Span* create_span(std::size_t group, const std::string& name, Nanoseconds period_ns) {
    static_cast<void>(group), static_cast<void>(name), static_cast<void>(period_ns);
    return nullptr;
  }

  // Each once. None where the runtime does not know of others. Throws Error.
  [[nodiscard]] virtual std::vector<TypeDifference> type_differences() { return {}; }

  // Spends CPU time of the calling callback, real or virtual.
  virtual void work(Nanoseconds amount) noexcept = 0;

  // Executors begin to run; timers count from `base_ns`. Until then no handler is called. Throws Error
  // (kUnsupported) where the kernel refuses the settings of a thread; then nothing has run, nor will.
  virtual void start(Nanoseconds base_ns) = 0;
  // True once every timer has had its last tick.
  [[nodiscard]] virtual bool timers_done() const noexcept = 0;
  // Ends all executors and readers: after it no handler runs. Idempotent. The clock stays readable.
  virtual void stop() noexcept = 0;

  // What carries the messages, for the records: {"name", "version", "effective"} as JSON text.
  [[nodiscard]] virtual std::string describe() = 0;
};

}  // namespace perflab::runtime
