// What a graph needs to live: publishers, subscriptions, timers and the executors that run their callbacks.
//
// Three implementations stand behind it: `dds` (executors of our own over a middleware plug-in), `virtual`
// (discrete events on a virtual clock) and `rclcpp`. The code that measures is the same in all of them: it is
// a handler that a runtime calls, and the clock that a runtime lends.
//
// Life: create everything, wait until the counts of matched endpoints are right, start(), and after the drain
// stop().
//
// Threads: everything but publish(), clock() and work() is called from one controlling thread. Handlers are
// called from the runtime's threads, never concurrently for one subscription or timer; whether two entities
// of a node may run concurrently depends on the executor (concurrent_callbacks()).
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "measure/clock.h"
#include "middleware/middleware.h"

namespace perflab::runtime {

// A request that this runtime or its middleware cannot meet; one line. `kind` decides the exit code.
class Error : public std::runtime_error {
 public:
  enum class Kind { kBadInput, kUnsupported, kFailed };
  Error(Kind kind, const std::string& text) : std::runtime_error(text), kind_(kind) {}
  [[nodiscard]] Kind kind() const noexcept { return kind_; }

 private:
  Kind kind_;
};

enum class ExecutorKind { kInline, kSingleThreaded };

// True if callbacks of different entities of one executor may run at the same time.
[[nodiscard]] constexpr bool concurrent_callbacks(ExecutorKind kind) noexcept {
  return kind == ExecutorKind::kInline;
}

// A message on its way to the callback; the bytes live until the handler returns.
struct Delivery {
  std::span<const std::uint8_t> bytes;  // CDR with encapsulation header
  perflab_identity writer;
  Nanoseconds arrived_ns = kUnknownTime;            // in the receive thread, where it can be seen
  std::int64_t source_timestamp_ns = kUnknownTime;  // wall clock of the writer
};

class MessageHandler {
 public:
  virtual ~MessageHandler() = default;
  virtual void on_message(const Delivery& delivery) noexcept = 0;
};

class TimerHandler {
 public:
  virtual ~TimerHandler() = default;
  // One due tick. `due_ns` is its intended time.
  virtual void on_tick(Nanoseconds due_ns) noexcept = 0;
  // Ticks that a timer with `skip_missed` leaves out, from `first_due_ns` on.
  virtual void on_skipped(Nanoseconds first_due_ns, std::uint64_t count) noexcept = 0;
};

// Ticks are due at base + k * period for k = first_tick ... last_tick, base being the instant given to
// start().
struct TimerSettings {
  std::string name;
  Nanoseconds period_ns = 0;
  std::int64_t first_tick = 1;  // <= 0 for ticks before the measured part
  std::int64_t last_tick = 0;   // fewer than first_tick: never
  bool skip_missed = false;     // otherwise every missed tick is made up for, late
};

struct EndpointSettings {
  int process = 0;             // index in the graph; only `virtual` holds several
  std::string topic;           // ROS name, fully qualified
  std::string ros_type;        // "perflab_msgs/msg/StampedInt64"
  std::size_t fixed_size = 0;  // encoded bytes of every message, or 0
  perflab_qos qos{};
};

class Publisher {
 public:
  Publisher() = default;
  Publisher(const Publisher&) = delete;
  Publisher& operator=(const Publisher&) = delete;
  virtual ~Publisher() = default;
  // Sends the parts as one message. False if it was not sent. May run handlers of the `inline` executor.
  virtual bool publish(std::span<const perflab_bytes> parts) noexcept = 0;
  [[nodiscard]] virtual perflab_identity identity() const noexcept = 0;
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;
};

class Subscription {
 public:
  Subscription() = default;
  Subscription(const Subscription&) = delete;
  Subscription& operator=(const Subscription&) = delete;
  virtual ~Subscription() = default;
  [[nodiscard]] virtual std::size_t matched() noexcept = 0;
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

class Runtime {
 public:
  Runtime() = default;
  Runtime(const Runtime&) = delete;
  Runtime& operator=(const Runtime&) = delete;
  virtual ~Runtime() = default;

  // The clock that handlers measure with. Inside a handler it shows that handler's time.
  [[nodiscard]] virtual const measure::Clock& clock() const noexcept = 0;

  // Returns the handle for the functions below. `name` becomes the name of its threads.
  virtual std::size_t add_executor(int process, ExecutorKind kind, const std::string& name) = 0;
  // Each throws Error. What they return lives as long as the runtime; handlers outlive the runtime's stop().
  virtual Publisher& create_publisher(const EndpointSettings& settings) = 0;
  virtual Subscription& create_subscription(std::size_t executor, const EndpointSettings& settings,
                                            MessageHandler& handler) = 0;
  virtual void create_timer(std::size_t executor, const TimerSettings& settings, TimerHandler& handler) = 0;

  // Spends CPU time of the calling callback, real or virtual.
  virtual void work(Nanoseconds amount) noexcept = 0;

  // Executors begin to run; timers count from `base_ns`. Until then no handler is called.
  virtual void start(Nanoseconds base_ns) = 0;
  // True once every timer has had its last tick.
  [[nodiscard]] virtual bool timers_done() const noexcept = 0;
  // Ends all executors and readers: after it no handler runs. Idempotent. The clock stays readable.
  virtual void stop() noexcept = 0;

  // What carries the messages, for the records: {"name", "version", "effective"} as JSON text.
  [[nodiscard]] virtual std::string describe() = 0;
};

}  // namespace perflab::runtime
