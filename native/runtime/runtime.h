// The interface on which a graph runs: publishers, subscriptions, services, timers, waitables and the
// executors that run their callbacks.
//
// Three implementations: `dds` (perflab's own executors over a middleware plug-in), `virtual` (discrete
// events on a virtual clock) and `rclcpp` (nodes and executors of ROS 2 itself, in a library that is loaded
// on request, runtime/plugin.h). The measuring code is the same for all: handlers that a runtime calls, and
// the clock that it provides.
//
// Life cycle: create everything, wait until the matched counts are right, start(), and stop() after all
// messages have arrived.
//
// Threads: one controlling thread calls everything except publish(), clock() and work(). Handlers are called
// by the runtime's threads, never concurrently for one subscription, timer or waitable; whether two entities
// of a node may run concurrently depends on the executor (concurrent_callbacks()). A publisher or client,
// including its counts and passing(), is used by one thread at a time; a LateReply and the functions of
// action.h may be used by any thread.
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
  kInline,          // in the thread that delivers the message
  kSingleThreaded,  // one thread and a wait-set, like rclcpp's SingleThreadedExecutor
  kStaticSingleThreaded,  // only rclcpp's, in versions that still have it; perflab's kSingleThreaded is as
                          // static
  kEvents,          // one thread and a queue filled by data-ready callbacks, like iRobot's EventsExecutor
  kPolling,         // one thread that polls without sleeping
  kMultiThreaded,   // several threads; callbacks of one group exclude each other, like rclcpp's
                    // MultiThreadedExecutor
  kPriority,        // one thread; runs the ready callback of the highest priority first, like PiCAS
  kLet              // one thread; takes everything that is ready, then runs it in the order of creation, like
                    // rclc's executor with LET semantics
};

// True if callbacks of one group may run at the same time.
[[nodiscard]] constexpr bool concurrent_callbacks(ExecutorKind kind) noexcept {
  return kind == ExecutorKind::kInline;
}

struct ExecutorSettings {
  int process = 0;  // index in the graph; only `virtual` has several
  ExecutorKind kind = ExecutorKind::kSingleThreaded;
  std::string name;                   // also the name of its threads; the kernel keeps 15 bytes
  int threads = 0;                    // for kMultiThreaded; 0: one per CPU available to the process
  realtime::ThreadSettings thread{};  // for each of its threads; for kInline, for the timer thread
  Nanoseconds period_ns = 0;  // for kLet: it takes ready items at multiples of the period; 0: as soon as
                              // something is ready
};

// A message passed to a callback; the bytes are valid until the handler returns.
struct Delivery {
  // CDR with encapsulation header.
  std::span<const std::uint8_t> bytes;
  perflab_identity writer{};  // all zero if the runtime does not know it
  std::int64_t sequence = 0;              // the middleware's sequence number, or 0
  perflab_sample_identity related{};      // the message that this one answers, or zero
  Nanoseconds arrived_ns = kUnknownTime;  // in the receive thread (intra-process: in the publisher's thread)
  std::int64_t source_timestamp_ns = kUnknownTime;  // wall clock of the writer
  // The message as a struct, if it was delivered within the process without encoding, or the runtime decoded
  // it; `bytes` are then empty.
  const void* object = nullptr;
};

class MessageHandler {
 public:
  virtual ~MessageHandler() = default;
  virtual void on_message(const Delivery& delivery) noexcept = 0;
  // For traces: the client and call that a request or response belongs to. Sequence 0: none.
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
  // Ticks that a timer with `skip_missed` skips, starting at `first_due_ns`.
  virtual void on_skipped(Nanoseconds first_due_ns, std::uint64_t count) noexcept = 0;
};

// The arrival pattern of a timer's ticks.
enum class Arrivals {
  kPeriodic,    // one per period
  kPoisson,     // a Poisson process with this average rate: independent, exponentially distributed gaps
  kUnthrottled  // back to back, without a schedule: as fast as possible
};

// An end that is set while the timer runs, and the timer's progress. Owned by the timer's user; one per
// timer, which it must outlive. Times are relative to the base, as in TimerSettings.
struct TimerEnd {
  static constexpr Nanoseconds kNone = INT64_MAX;

  std::atomic<Nanoseconds> until_ns{kNone};  // no tick is due later; may be lowered at any time
  std::atomic<Nanoseconds> next_ns{0};       // all ticks before this one have run; kNone: all

  // True if no tick is left or running.
  [[nodiscard]] bool passed() const noexcept {
    return next_ns.load(std::memory_order_acquire) > until_ns.load(std::memory_order_relaxed);
  }
};

// Ticks are due after base + from and no later than base + until, before `shift` is added; base is the
// instant passed to start(). Periodic ticks are due at multiples of the period.
struct TimerSettings {
  std::string name;
  std::size_t group = 0;  // callbacks of one group of an executor exclude each other; see
                          // concurrent_callbacks()
  Nanoseconds period_ns = 0;  // on average; unthrottled: 0
  Arrivals arrivals = Arrivals::kPeriodic;
  std::int64_t burst = 1;          // number of ticks due together; bursts are rarer by this factor
  std::uint64_t seed = 0;          // seed of the random arrivals
  Nanoseconds from_ns = 0;         // < 0 for ticks before the measured part
  Nanoseconds until_ns = 0;        // from_ns: never
  bool skip_missed = false;        // otherwise every missed tick runs late
  Nanoseconds made_up_for_ns = 0;  // with skip_missed: ticks late by at most this still run
  Nanoseconds shift_ns = 0;        // > -period and <= 0: moves ticks before the multiples of the period
  TimerEnd* end = nullptr;         // may stop the timer before until_ns
  int priority = 0;                // of its callback, for kPriority: the largest runs first

  // True for evenly spaced ticks.
  [[nodiscard]] bool regular() const noexcept { return arrivals == Arrivals::kPeriodic && burst == 1; }
};

// How a publisher passes a message on, or a subscription takes it.
enum class PassBy {
  kUnspecified,  // for a publisher like kShared
  kShared,       // the publisher keeps its message, like `publish(*message)`; subscriptions may share one
  kUnique,       // the publisher gives its message away; each subscription gets its own
  kLoaned        // the message is built in memory of the middleware
};

// Determines the wire name: "rt/<topic>", "rq/<service>Request", "rr/<service>Reply".
enum class TopicKind { kTopic, kRequest, kReply };

struct EndpointSettings {
  int process = 0;        // index in the graph; only `virtual` has several
  std::size_t participant = 0;  // index of its participant in the process
  std::size_t group = 0;  // group of a subscription's callback; in traces also that of a publisher
  TopicKind kind = TopicKind::kTopic;
  std::string topic;           // ROS name of the topic or service, fully qualified
  std::string ros_type;        // "perflab_msgs/msg/StampedInt64", "perflab_msgs/srv/Stamped10b_Request"
  const message::Type* type = nullptr;  // the type itself, which outlives the runtime; only `rclcpp` needs it
  std::size_t fixed_size = 0;  // encoded size of every message, or 0
  perflab_qos qos{};
  PassBy pass_by = PassBy::kUnspecified;
  std::string user_data{};  // visible to peers, see middleware.h
  std::string type_hash{};  // hash of `ros_type` (message/hash.h), sent to peers; empty: not sent
  // Messages carry no identification: the sender assigns each a source time stamp, which deliveries report,
  // also within the process.
  bool known_by_stamp = false;
  // The topic's key, if Capabilities::keys; it outlives the runtime. Null: the topic is not keyed.
  const message::Key* key = nullptr;
  // Content filters, if Capabilities::filters; they outlive the runtime. For a subscription at most one: only
  // messages that it accepts are delivered. For a publisher those of its topic's subscriptions, for a
  // middleware that can omit messages.
  std::vector<const message::Filter*> filters{};
  int priority = 0;  // of a subscription's callback, like TimerSettings::priority
  // A topic of an action. It is delivered within the process regardless of durability, because no
  // subscription there joins late.
  bool of_action = false;
};

// How a publisher's messages are actually delivered, once everything is matched.
struct Passing {
  std::size_t intra_process = 0;  // subscriptions reached without the middleware
  std::size_t copies = 0;         // copies of each message made for them
  std::size_t middleware = 0;     // readers reached through the middleware
  bool loaned = false;            // in memory of the middleware
};

// An outgoing encoded message in three consecutive pieces. The stamp changes with each message; `before` and
// `after` are known earlier and stay the same.
struct Outgoing {
  std::span<const std::uint8_t> before;
  std::span<const std::uint8_t> stamp;
  std::span<const std::uint8_t> after;
  // The source time stamp, ns of the wall clock, if EndpointSettings::known_by_stamp; otherwise 0.
  std::int64_t source_timestamp_ns = 0;

  // The address of the piece that changes with each message.
  [[nodiscard]] const void* address() const noexcept { return stamp.empty() ? after.data() : stamp.data(); }
  [[nodiscard]] std::size_t size() const noexcept { return before.size() + stamp.size() + after.size(); }
};

class Publisher {
 public:
  Publisher() = default;
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  virtual ~Publisher() = default;
  // Prepares the carrier of the next message (a loan, or a message to be given away), complete except for its
  // stamp, before the message is stamped. Does nothing if no carrier is needed. False on failure; the reason
  // has been reported, and the message counts as not written.
  virtual bool prepare(const Outgoing& message) noexcept {
    static_cast<void>(message);
    return true;
  }
  // Sends the message; after prepare(), the same message with its stamp. False if it was not sent. May run
  // handlers of the `inline` executor.
  virtual bool publish(const Outgoing& message) noexcept = 0;
  // Like prepare(), for a message that is a struct, if Capabilities::structs. `own` belongs to the sender;
  // the returned struct, `own` itself or a copy to be given away, will be sent, and the caller stamps it.
  // Null if there is no memory, which has been reported.
  virtual void* prepare_object(message::Object& own) noexcept {
    static_cast<void>(own);
    return nullptr;
  }
  // Sends that struct, encoded for readers in other processes. Stores the encoding time in `serialize_ns`,
  // kUnknownTime if nothing was encoded. `source_timestamp_ns` as in Outgoing.
  virtual bool publish_object(const message::Codec& codec, void* object, std::int64_t source_timestamp_ns,
                              Nanoseconds& serialize_ns) noexcept {
    static_cast<void>(codec), static_cast<void>(object);
    static_cast<void>(source_timestamp_ns), static_cast<void>(serialize_ns);
    return false;
  }
  // For services. Sends the parts as one message, marked with the message that it answers (may be null).
  // Stores the middleware's sequence number in `sequence` (may be null; 0 if there is none).
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
  // For traces. A subscription of responses: sets its client, and reports that the client sends a request.
  // A subscription of requests: reports that its service sends the response to `call`.
  virtual void tell_client(const perflab_identity& client) noexcept { static_cast<void>(client); }
  virtual void tell_sent(const perflab_sample_identity& call) noexcept { static_cast<void>(call); }
};

// How services are framed, following ROS 2: a request and a reply topic (runtime/service.h).
enum class ServiceFraming {
  kRmwFastrtps,    // RTPS's related_sample_identity relates reply and request
  kRmwCyclonedds,  // ... 16 bytes before the body do: client identity and request number
};

struct ServiceSettings {
  int process = 0;
  std::size_t participant = 0;
  std::size_t group = 0;
  std::string service;   // ROS name, fully qualified
  std::string ros_type;  // "perflab_msgs/srv/Stamped10b"
  const message::Type* request = nullptr;   // types of both messages, like EndpointSettings::type
  const message::Type* response = nullptr;
  perflab_qos qos{};
  std::string request_hash{};  // hashes of both messages, like EndpointSettings::type_hash
  std::string response_hash{};
  int priority = 0;  // priority of the callback for requests or replies, like TimerSettings::priority
};

class Client {
 public:
  Client() = default;
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;
  virtual ~Client() = default;
  // Sends a request. False if it was not sent; the reason has been reported.
  virtual bool request(const Outgoing& message) noexcept = 0;
  // Like request(), for a struct; see Publisher::publish_object().
  virtual bool request_object(const message::Codec& codec, const void* object, Nanoseconds& serialize_ns) noexcept {
    static_cast<void>(codec), static_cast<void>(object), static_cast<void>(serialize_ns);
    return false;
  }
  // The request number that Delivery::related of the next request's reply will contain; after request() has
  // sent one, one more than the number it got. 0 if replies carry no request number
  // (Capabilities::request_numbers).
  [[nodiscard]] virtual std::int64_t next_number() const noexcept { return 0; }
  [[nodiscard]] virtual perflab_identity identity() const noexcept = 0;  // identity of the request writer
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;              // servers that match both of our
                                                                         // endpoints
};

// A request that will be answered after its handler has returned, from any thread; in virtual time from any
// handler. Destroying it unanswered while the runtime runs calls Forgotten. After stop() nothing is sent; the
// object may outlive the runtime, but no call may be in progress while the runtime is destroyed.
class LateReply {
 public:
  LateReply() = default;
  LateReply(const LateReply&) = delete;
  LateReply& operator=(const LateReply&) = delete;
  virtual ~LateReply() = default;
  // Once only: false if already answered, or if sending failed, which has been reported.
  virtual bool send(const Outgoing& message) noexcept = 0;
  // Like send(), for a struct.
  virtual bool send_object(const message::Codec& codec, const void* object) noexcept = 0;
};

// Notified of requests that will never be answered, by the thread that dropped them. Outlives the runtime's
// stop().
class Forgotten {
 public:
  virtual ~Forgotten() = default;
  virtual void on_forgotten(Nanoseconds at_ns) noexcept = 0;
};

// A request being handled; valid until the handler returns.
class Reply {
 public:
  virtual bool send(const Outgoing& message) noexcept = 0;
  // Like send(), for a struct.
  virtual bool send_object(const message::Codec& codec, const void* object) noexcept {
    static_cast<void>(codec), static_cast<void>(object);
    return false;
  }
  // Defers the answer: this object becomes empty, and the returned one holds the request. Null if there is no
  // memory, or if this is empty.
  virtual std::unique_ptr<LateReply> later(Forgotten& told) noexcept = 0;

 protected:
  ~Reply() = default;
};

class RequestHandler {
 public:
  virtual ~RequestHandler() = default;
  // Requests passed as bytes are CDR with encapsulation header, without framing.
  virtual void on_request(const Delivery& request, Reply& reply) noexcept = 0;
};

class Server {
 public:
  Server() = default;
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  virtual ~Server() = default;
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;  // clients that match both of our endpoints
};

struct WaitableSettings {
  std::string name;
  std::size_t group = 0;
  int priority = 0;  // like TimerSettings::priority
};

class WaitableHandler {
 public:
  virtual ~WaitableHandler() = default;
  // The callback: answers all triggers before its start that have not been answered yet. `due_ns` is the
  // argument of the first of them.
  virtual void on_triggered(Nanoseconds due_ns) noexcept = 0;
  // A trigger came while an earlier one was unanswered, and is answered together with it. Called by the
  // triggering thread or another one, possibly while the callback runs. Every trigger is reported once: here
  // or by on_triggered().
  virtual void on_coalesced(Nanoseconds due_ns) noexcept = 0;
};

// A guard condition with a callback that an executor runs when it is triggered, like rclcpp::Waitable.
class Waitable {
 public:
  Waitable() = default;
  Waitable(const Waitable&) = delete;
  Waitable& operator=(const Waitable&) = delete;
  virtual ~Waitable() = default;
  // From any thread, also from its own callback. `due_ns` is passed to the handler.
  virtual void trigger(Nanoseconds due_ns) noexcept = 0;
};

// Receives discovery events, QoS events and failures; may be called from any thread and may allocate.
class EventSink {
 public:
  virtual ~EventSink() = default;
  virtual void on_event(const perflab_event& event) noexcept = 0;
  // A message could not be written; one line. It counts as a write error of its publisher.
  virtual void on_write_failed(Nanoseconds at_ns, const char* text) noexcept = 0;
  // Messages can no longer be received; one line. Measurements from here on are meaningless.
  virtual void on_failure(Nanoseconds at_ns, const char* text) noexcept = 0;
};

// A type as announced to peers.
struct TypeName {
  std::string ros_type;  // the wire name, if the peer is not a ROS 2 endpoint
  std::string hash;      // empty: not announced

  // An announced hash differs from a missing one.
  [[nodiscard]] bool differs(const TypeName& other) const noexcept {
    return ros_type != other.ros_type || (!hash.empty() && !other.hash.empty() && hash != other.hash);
  }
  auto operator<=>(const TypeName&) const = default;
};

// A remote endpoint of one of our topics has another type.
struct TypeDifference {
  TopicKind kind = TopicKind::kTopic;
  std::string topic;     // ROS name of the topic or service
  bool publishes = false;  // the remote endpoint is a publisher
  TypeName ours;
  TypeName theirs;

  auto operator<=>(const TypeDifference&) const = default;
};

// A node's name in the graph.
struct NodeName {
  std::string node_namespace;  // "/" or "/one/two"
  std::string name;
  std::size_t participant = 0;
  std::size_t executor = 0;  // executor of its callbacks
};

// Work in threads that belongs to no executor, shown as a callback in traces. Usable by any thread; nested
// spans end in reverse order.
class Span {
 public:
  virtual ~Span() = default;
  // `due_ns`: scheduled time; kUnknownTime if there is none.
  virtual void begin(Nanoseconds due_ns) noexcept = 0;
  virtual void end() noexcept = 0;
};

class Runtime {
 public:
  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  virtual ~Runtime() = default;

  // The clock for measuring. Inside a handler it shows that handler's time.
  [[nodiscard]] virtual const measure::Clock& clock() const noexcept = 0;

  // Assigns the endpoints, services, timers and waitables of a group to a node; call it before the first of
  // them is created. `rclcpp` then creates the node; other runtimes record it in traces.
  virtual void name_group(std::size_t group, const NodeName& node) {
    static_cast<void>(group), static_cast<void>(node);
  }
  // Returns a handle for the functions below. Throws Error.
  virtual std::size_t add_executor(const ExecutorSettings& settings) = 0;
  // Each throws Error. The returned objects live as long as the runtime; handlers must outlive the runtime's
  // stop().
  virtual Publisher& create_publisher(const EndpointSettings& settings) = 0;
  virtual Subscription& create_subscription(std::size_t executor, const EndpointSettings& settings,
                                            MessageHandler& handler) = 0;
  // Replies to the client's own requests are delivered as messages: CDR with encapsulation header, without
  // framing.
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

  // A span of a group's node; `period_ns` 0: no schedule. Null if nothing is traced, or if the runtime does
  // not trace itself.
  virtual Span* create_span(std::size_t group, const std::string& name, Nanoseconds period_ns) {
    static_cast<void>(group), static_cast<void>(name), static_cast<void>(period_ns);
    return nullptr;
  }

  // Each difference is reported once. Empty if the runtime does not know remote endpoints. Throws Error.
  [[nodiscard]] virtual std::vector<TypeDifference> type_differences() { return {}; }

  // Uses CPU time of the calling callback, real or virtual.
  virtual void work(Nanoseconds amount) noexcept = 0;

  // Starts the executors; timers count from `base_ns`. No handler is called before. Throws Error
  // (kUnsupported) if the kernel refuses the settings of a thread; then no callback has run, and none will.
  virtual void start(Nanoseconds base_ns) = 0;
  // True once every timer has run its last tick.
  [[nodiscard]] virtual bool timers_done() const noexcept = 0;
  // Stops all executors and readers: no handler runs afterwards. Idempotent. The clock stays readable.
  virtual void stop() noexcept = 0;

  // The transport of messages, for the records: {"name", "version", "effective"} as JSON text.
  [[nodiscard]] virtual std::string describe() = 0;
};

}  // namespace perflab::runtime
