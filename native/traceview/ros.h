// From ros2:* events to ROS objects and what they did: callbacks that ran, messages published and taken,
// executors' phases.
//
// Rules (docs/tracing.md):
//   handles      keyed by (process, value) and valid from their initialisation to the next one of the same
//                value. References within initialisation may come in any order (a publisher before its node);
//                what only run-time events name becomes an object without an initialisation, and a later
//                initialisation of that handle is another object.
//   callbacks    start and end are matched per thread as a stack. An end closes the nearest start of the same
//                callback, and what began above it has no end. A start of the callback that is on top already
//                means that its end was not seen (an exception, or lost).
//   publications rclcpp_intra_publish, rclcpp_publish, rcl_publish and rmw_publish (or dds:write) of the same
//                message on one thread, each layer once and in this order, are one publication.
//   takes        rmw_take, rcl_take, rclcpp_take likewise; the next start of a callback of that subscription
//                on the thread handles the message. A publication is joined to a take by source time stamp
//                and topic.
//   delivery within a process: by ring buffer and index.
//   phases       of an executor end where the next phase of the thread begins. A callback that starts while
//                its thread gets the next executable begins the phase `dispatch`: execute is only emitted for
//                timers and subscriptions. Phases within a callback are those of an executor that it spins:
//                the phase around them goes on, and they end with it.
//   due          perflab:timer_due says when the timer was due whose callback starts next on the thread.
//   within       what a callback published and was given before a callback that begins within it goes on
//                where that ends (perflab's inline executor, which calls within a publication).
//   not ended    a callback without an end is nobody's parent, and what was published after the next phase of
//                its thread began is not published in it.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "ctf/event.h"
#include "ctf/merge.h"
#include "traceview/directory.h"
#include "traceview/flat_map.h"
#include "traceview/functions.h"
#include "traceview/schema.h"
#include "traceview/tables.h"

namespace perflab::traceview {

// What did not fit; see docs/tracing.md, data quality.
struct RosCounters {
  std::uint64_t callback_end_without_start = 0;
  std::uint64_t callback_start_without_end = 0;
  std::uint64_t publications_without_publisher = 0;
  std::uint64_t takes_of_unknown_subscriptions = 0;
  std::uint64_t enqueues_into_unknown_buffers = 0;
  std::uint64_t dequeues_without_enqueue = 0;
  std::uint64_t service_messages_of_unknown_clients = 0;
  std::uint64_t requests_taken_by_several_servers = 0;
  std::uint64_t writes_of_the_middleware = 0;  // dds:write of no known writer: discovery and the like
  std::uint64_t events_without_thread = 0;     // no vtid: nothing that needs a thread can be told
  std::uint64_t events_without_process = 0;
};

// Takes events of user space in the order of time; tables are complete after finish().
class Ros {
 public:
  explicit Ros(Directory& directory);

  // Facts about an event's trace that its events do not contain.
  struct Origin {
    const BoundEvent* bounds = nullptr;  // by class_index
    std::int32_t host = 0;
    std::optional<std::int32_t> pid{};  // where its events do not say (buffers per process)
    // Shift from the trace's clock to the time line: already added to event times, not yet to time stamps in fields.
    std::int64_t shift_ns = 0;
  };
  // `origins` of the traces, by Ordered::trace_index.
  void add(std::span<const ctf::Merger::Ordered> events, std::span<const Origin> origins);
  // Events of that host were lost about now: messages that its threads had half published or half taken are
  // not joined with what follows.
  void lost(std::int32_t host);
  void finish();
  // Of the tables of what happened keeps the columns alone that are wanted ("takes.match"; "takes.rmw_ns?": which rows of it
  // are null), and what it reads itself.
  // To be said before the first event.
  void keep(const std::set<std::string, std::less<>>& wanted);

  Nodes nodes;
  Endpoints publishers, subscriptions;
  ServiceEndpoints services, clients;
  Timers timers;
  Callbacks callbacks;
  MessageLinks links;
  CallbackInstances callback_instances;
  Publications publications;
  Takes takes;
  IntraDeliveries intra_deliveries;
  ServiceCalls service_calls;
  Phases phases;
  RosCounters counters;
  [[nodiscard]] const std::set<std::string>& versions() const noexcept { return versions_; }
  [[nodiscard]] const FunctionModel& functions() const noexcept { return functions_; }

 private:
  // An object while it is being put together; becomes a row in finish().
  struct Object {
    std::int32_t process = 0;
    std::optional<std::uint64_t> handle, rmw_handle;
    std::int32_t node = kNone;
    std::string name, gid, symbol;
    std::optional<std::int64_t> number;  // queue depth, or period
    std::optional<std::int64_t> from_ns, to_ns;
    bool initialised = false;  // its own initialisation was seen, or (callbacks) who owns it
    bool at_run_time = false;  // made by an event of run time: a later initialisation is of another object
    CallbackKind kind = CallbackKind::unknown;
    std::int32_t owner = kNone;   // of callbacks; see owner_of for those of subscriptions
    std::int32_t rclcpp = kNone;  // of callbacks of subscriptions: row of rclcpp_subscriptions_
    bool has_symbol = false;
  };
  using Objects = std::vector<Object>;

  // rclcpp's object of a subscription. Which rcl subscription it belongs to is said before its callback is
  // added, or, for the one of intra-process delivery, after.
  struct RclcppSubscription {
    std::int32_t subscription = kNone;  // row of subscriptions
    bool has_callback = false;
  };

  struct Process {
    std::int32_t row = 0;  // of processes
    FlatMap nodes, publishers, subscriptions, services, clients, timers, callbacks;
    FlatMap rmw_publishers, rmw_subscriptions, rmw_services, rmw_clients;  // rmw handle -> row
    FlatMap rclcpp_subscriptions;  // address -> row of rclcpp_subscriptions_
    FlatMap buffers;               // ring buffer -> row of buffers_
    std::unordered_map<std::uint64_t, std::uint64_t>
        subscription_of_ipb;  // intra-process buffer -> address of rclcpp's object
    FlatMap writers;          // dds writer -> row of publishers
    std::unordered_map<std::uint64_t, std::string>
        rmw_gids;  // rmw handle -> gid, until the rcl layer names it
    std::map<std::string, std::uint64_t, std::less<>> writer_by_gid;
  };
  struct Buffer {
    std::int32_t subscription = kNone;
    std::uint64_t handle = 0, ipb = 0;
    FlatMap by_index;  // index -> newest row of intra_deliveries that waits there, or has left
  };
  // The publication of a thread whose layers are being seen.
  struct Publishing {
    std::int32_t publication = kNone;
    std::uint64_t message = 0;
    int layer = -1;            // the last seen
    std::uint64_t writer = 0;  // of dds:write_pre
    std::int32_t intra_publication = kNone;
  };
  struct Open {
    std::uint64_t callback = 0;
    std::int32_t instance = 0;
    Publishing around{};  // what was being published when it began
  };
  struct Due {
    std::uint64_t timer = 0;
    std::int64_t ns = 0;
  };
  // An executor that spins on the thread; of several the last spins in a callback of the one before.
  struct Executor {
    std::size_t depth = 0;  // how many callbacks are open around it
    std::int32_t phase = kNone;
    PhaseKind kind = PhaseKind::get_next_ready;
    bool has_callback = false;
  };
  // What a thread took and has not handled: the last, and what it took before that in the same phase of its executor,
  // which may take all that is ready before it runs any (semantics LET).
  class Unhandled {
   public:
    // `in_phase`: phases tell when what was taken is done with; otherwise the last alone is known.
    void add(std::int32_t row, bool in_phase) {
      if (in_phase && last_ != kNone) earlier_.push_back(last_);
      last_ = row;
    }
    void forget_last() noexcept { last_ = kNone; }
    void clear() noexcept {
      last_ = kNone;
      earlier_.clear();
    }
    [[nodiscard]] std::int32_t last() const noexcept { return last_; }
    // The last one, or else the first of the earlier ones, that fits; it is handled then. kNone if none does.
    template <typename Fits>
    std::int32_t handle(Fits&& fits) {
      if (last_ != kNone && fits(last_)) return std::exchange(last_, kNone);
      const auto found = std::find_if(earlier_.begin(), earlier_.end(), fits);
      if (found == earlier_.end()) return kNone;
      const std::int32_t row = *found;
      earlier_.erase(found);
      return row;
    }

   private:
    std::int32_t last_ = kNone;
    std::vector<std::int32_t> earlier_;
  };
  struct Thread : Publishing {
    std::int32_t row = 0;
    std::int32_t process_row = 0;
    Process* process = nullptr;
    std::int64_t first_ns = 0, last_ns = 0;
    std::uint64_t events = 0;
    std::uint32_t losses = 0;  // of the host, when the thread was last seen
    std::vector<Open> stack;
    std::optional<Due> due;
    Unhandled takes;
    std::uint64_t taken_message = 0;  // of the last take
    Unhandled deliveries;
    Unhandled service_calls;
    std::vector<Executor> executors;

    [[nodiscard]] bool in_phase() const noexcept { return !executors.empty(); }
    void forget_unhandled() noexcept { takes.clear(), deliveries.clear(), service_calls.clear(); }
    // The callback instance that runs.
    [[nodiscard]] std::optional<std::int32_t> innermost() const {
      return stack.empty() ? std::nullopt : std::optional(stack.back().instance);
    }
  };
  enum Layer : int { kIntra, kRclcpp, kRcl, kRmw };

  // An event, and who emitted it.
  struct Emitted {
    const BoundEvent& bound;
    const ctf::Event& event;
    Process& process;
    Thread* thread;  // null where the event does not say

    [[nodiscard]] Kind kind() const noexcept { return bound.kind; }
    [[nodiscard]] std::int64_t now() const noexcept { return event.time_ns; }
    [[nodiscard]] bool has(std::size_t field) const noexcept { return bound.has(field); }
    [[nodiscard, gnu::always_inline]] std::uint64_t value(std::size_t field) const noexcept {
      return bound.value(event, field);
    }
    [[nodiscard]] std::int64_t number(std::size_t field) const noexcept {
      return static_cast<std::int64_t>(value(field));
    }
    [[nodiscard]] std::string text(std::size_t field) const;  // "" where the event lacks it
    [[nodiscard]] std::span<const std::uint8_t> bytes(std::size_t field) const;  // none likewise
    [[nodiscard]] std::span<const std::uint64_t> integers(std::size_t field) const;
    [[nodiscard]] std::string hex(std::size_t field) const;  // of bytes
  };

  [[nodiscard]] Process& process(std::int32_t host, std::int32_t pid);
  // The thread that emitted the event; made where it is new.
  [[nodiscard]] Thread& thread(std::int32_t host, std::int32_t pid, std::int32_t tid, const BoundEvent& bound,
                               const ctf::Event& event);

  [[nodiscard]] Thread& known_or_new_thread(std::int32_t host, std::int32_t pid, std::int32_t tid,
                                            const BoundEvent& bound, const ctf::Event& event);

  // The object of that handle to be initialised now: the one that other initialisations referred to, or a new
  // one.
  static std::int32_t initialise(Objects& objects, FlatMap& map, const Process& process, std::uint64_t handle,
                                 std::int64_t time_ns);
  // The object of that handle, made where there is none.
  static std::int32_t refer(Objects& objects, FlatMap& map, const Process& process, std::uint64_t handle,
                            bool at_run_time);
  [[nodiscard]] std::int32_t owner_of(const Object& callback) const;
  std::int32_t rclcpp_subscription(Process& process, std::uint64_t address,
                                   bool is_known(const RclcppSubscription&));
  Object& callback_to_fill(Process& process, std::uint64_t handle, std::int64_t time_ns, bool owner);

  void add_one(const BoundEvent& bound, const ctf::Event& event, const Origin& origin);
  void add_initialisation(const Emitted& e);
  void add_endpoint(const Emitted& e, Objects& objects, FlatMap& map, FlatMap& by_rmw);
  void add_gid(const Emitted& e, Objects& objects, const FlatMap& by_rmw);
  void name_by_symbol(Object& callback) const;
  void add_owner(const Emitted& e, CallbackKind kind, std::int32_t owner);
  void add_links(const Emitted& e);
  void add_ring_buffer(const Emitted& e);
  void add_take(const Emitted& e);
  void add_run_time(const Emitted& e);
  void add_service_message(const Emitted& e);

  void publish(Thread& thread, Layer layer, std::uint64_t message, std::int32_t publisher,
               std::int64_t time_ns);
  std::int32_t new_publication(Thread& thread, std::uint64_t message);
  void dds_write(const Emitted& e);
  void start_callback(Process& process, Thread& thread, std::uint64_t handle, bool intra_process,
                      std::int64_t time_ns);
  void end_callback(Thread& thread, std::uint64_t handle, std::int64_t time_ns);
  void begin_phase(Thread& thread, PhaseKind phase, std::int64_t time_ns);
  void enqueue(const Emitted& e);
  void dequeue(const Emitted& e);
  void clear(const Emitted& e);
  std::int32_t buffer_of(Process& process, std::uint64_t handle);
  std::int32_t service_call(std::string_view gid, std::int64_t sequence_number);

  void new_phase(Thread& thread, Executor& executor, PhaseKind phase, std::int64_t time_ns);
  void forget_callback(Thread& thread, std::size_t place);
  void match_takes();
  void leave_callbacks_that_do_not_end();
  void write_objects();

  Directory& directory_;
  FunctionModel functions_;
  std::deque<Process> processes_;
  std::deque<Thread> threads_;
  std::unordered_map<std::uint64_t, std::int32_t> process_of_;  // (host, pid) -> processes_
  std::vector<FlatMap> thread_of_;                              // per host: (pid, tid) -> threads_
  struct Recent {
    std::uint64_t number = 0;  // pid and tid
    std::int32_t host = 0;
    Thread* thread = nullptr;
  };
  std::array<Recent, 256> recent_{};  // by tid; nearly every event is of one of these

  Objects node_objects_, publisher_objects_, subscription_objects_, service_objects_, client_objects_,
      timer_objects_, callback_objects_;
  std::vector<RclcppSubscription> rclcpp_subscriptions_;
  std::deque<Buffer> buffers_;
  std::unordered_map<std::int32_t, std::int64_t>
      interrupted_ns_;  // callback instance -> first phase of its thread within it
  std::map<std::string, FlatMap, std::less<>> calls_by_client_;  // client gid -> sequence number -> row
  std::vector<std::uint32_t> losses_;                            // per host, how often lost() was called
  std::set<std::string> versions_;
};

}  // namespace perflab::traceview
