// Derives ROS objects and their activity from ros2:* events: callback instances, publications, takes, phases of
// executors.
//
// Rules (docs/tracing.md):
//   handles      are keyed by (process, value) and valid from their initialisation to the next initialisation of
//                the same value. References between initialisations may come in any order (a publisher before its
//                node). A handle that only run-time events name becomes an object without an initialisation; a
//                later initialisation of the handle creates another object.
//   callbacks    Starts and ends form a stack per thread. An end closes the nearest start of the same callback;
//                callbacks above it have no end. If the callback on top starts again, its end is missing (an
//                exception, or a lost event).
//   publications rclcpp_intra_publish, rclcpp_publish, rcl_publish and rmw_publish (or dds:write) of the same
//                message on one thread, each layer at most once and in this order, are one publication.
//   takes        rmw_take, rcl_take and rclcpp_take are combined in the same way. The next callback of the
//                subscription that starts on the thread handles the message. A take is matched to its publication
//                by source time stamp and topic.
//   delivery within a process is matched by ring buffer and index.
//   phases       A phase of an executor ends when the next phase of the thread begins. A callback that starts
//                during get_next_ready begins the phase `dispatch`, because execute is only emitted for timers and
//                subscriptions. Phases within a callback belong to an executor that the callback spins: they end
//                with the callback, and the outer phase continues.
//   due          perflab:timer_due has the due time of the timer whose callback starts next on the thread.
//   nesting      If a callback starts within another one, the outer callback's open publication and unhandled takes
//                continue when the inner one ends (perflab's inline executor calls within a publication).
//   not ended    A callback without an end is never a parent, and publications after the next phase of its thread
//                do not belong to it.
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

// Numbers of events that could not be assigned; see docs/tracing.md, data quality.
struct RosCounters {
  std::uint64_t callback_end_without_start = 0;
  std::uint64_t callback_start_without_end = 0;
  std::uint64_t publications_without_publisher = 0;
  std::uint64_t takes_of_unknown_subscriptions = 0;
  std::uint64_t enqueues_into_unknown_buffers = 0;
  std::uint64_t dequeues_without_enqueue = 0;
  std::uint64_t service_messages_of_unknown_clients = 0;
  std::uint64_t requests_taken_by_several_servers = 0;
  std::uint64_t writes_of_the_middleware = 0;  // dds:write of an unknown writer, e.g. of discovery
  std::uint64_t events_without_thread = 0;     // no vtid
  std::uint64_t events_without_process = 0;
};

// Takes user-space events in time order; the tables are complete after finish().
class Ros {
 public:
  explicit Ros(Directory& directory);

  // Facts about an event's trace that its events do not contain.
  struct Origin {
    const BoundEvent* bounds = nullptr;  // by class_index
    std::int32_t host = 0;
    std::optional<std::int32_t> pid{};  // if its events have none (buffers per process)
    // Shift from the trace's clock to the time line: already added to event times, not yet to time stamps in fields.
    std::int64_t shift_ns = 0;
  };
  // `origins`: one per trace, by Ordered::trace_index.
  void add(std::span<const ctf::Merger::Ordered> events, std::span<const Origin> origins);
  // Events of the host were lost about now: publications and takes in progress are not continued by later events.
  void lost(std::int32_t host);
  void finish();
  // In the tables of instances, messages and phases, keeps only the wanted columns ("takes.match"; "takes.rmw_ns?":
  // only which rows are null) and those that this class reads itself. Must be called before the first event.
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
  // An object under construction; finish() makes a row of it.
  struct Object {
    std::int32_t process = 0;
    std::optional<std::uint64_t> handle, rmw_handle;
    std::int32_t node = kNone;
    std::string name, gid, symbol;
    std::optional<std::int64_t> number;  // queue depth, or period
    std::optional<std::int64_t> from_ns, to_ns;
    bool initialised = false;  // the trace has its initialisation or, for a callback, its owner
    bool at_run_time = false;  // created by a run-time event: a later initialisation creates another object
    CallbackKind kind = CallbackKind::unknown;
    std::int32_t owner = kNone;   // of callbacks; for callbacks of subscriptions see owner_of()
    std::int32_t rclcpp = kNone;  // of callbacks of subscriptions: row of rclcpp_subscriptions_
    bool has_symbol = false;
  };
  using Objects = std::vector<Object>;

  // rclcpp's object of a subscription. The event that links it to the rcl subscription comes before its callback is
  // added or, for intra-process delivery, after.
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
    FlatMap by_index;  // index -> newest row of intra_deliveries at that index, waiting or taken
  };
  // The publication of a thread that is passing through the layers.
  struct Publishing {
    std::int32_t publication = kNone;
    std::uint64_t message = 0;
    int layer = -1;            // the latest
    std::uint64_t writer = 0;  // of dds:write_pre
    std::int32_t intra_publication = kNone;
  };
  struct Open {
    std::uint64_t callback = 0;
    std::int32_t instance = 0;
    Publishing around{};  // publication in progress when the callback began
  };
  struct Due {
    std::uint64_t timer = 0;
    std::int64_t ns = 0;
  };
  // An executor that spins on the thread. If there are several, each spins in a callback of its predecessor.
  struct Executor {
    std::size_t depth = 0;  // number of open callbacks around it
    std::int32_t phase = kNone;
    PhaseKind kind = PhaseKind::get_next_ready;
    bool has_callback = false;
  };
  // Rows that a thread took and has not handled yet: the last one, and earlier ones of the same phase, as an executor
  // may take everything that is ready before it runs any callback (LET semantics).
  class Unhandled {
   public:
    // `in_phase`: the thread has phases, whose ends clear the earlier rows; without phases only the last row is kept.
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
    // Removes and returns the last row if it fits, otherwise the first earlier row that fits; kNone if none fits.
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
    std::uint32_t losses = 0;  // of the host at the thread's last event
    std::vector<Open> stack;
    std::optional<Due> due;
    Unhandled takes;
    std::uint64_t taken_message = 0;  // of the last take
    Unhandled deliveries;
    Unhandled service_calls;
    std::vector<Executor> executors;

    [[nodiscard]] bool in_phase() const noexcept { return !executors.empty(); }
    void forget_unhandled() noexcept { takes.clear(), deliveries.clear(), service_calls.clear(); }
    // The innermost open callback instance.
    [[nodiscard]] std::optional<std::int32_t> innermost() const {
      return stack.empty() ? std::nullopt : std::optional(stack.back().instance);
    }
  };
  enum Layer : int { kIntra, kRclcpp, kRcl, kRmw };

  // An event with its process and thread.
  struct Emitted {
    const BoundEvent& bound;
    const ctf::Event& event;
    Process& process;
    Thread* thread;  // null if the event has no thread

    [[nodiscard]] Kind kind() const noexcept { return bound.kind; }
    [[nodiscard]] std::int64_t now() const noexcept { return event.time_ns; }
    [[nodiscard]] bool has(std::size_t field) const noexcept { return bound.has(field); }
    [[nodiscard, gnu::always_inline]] std::uint64_t value(std::size_t field) const noexcept {
      return bound.value(event, field);
    }
    [[nodiscard]] std::int64_t number(std::size_t field) const noexcept {
      return static_cast<std::int64_t>(value(field));
    }
    [[nodiscard]] std::string text(std::size_t field) const;  // "" if the event lacks it
    [[nodiscard]] std::span<const std::uint8_t> bytes(std::size_t field) const;  // empty if the event lacks it
    [[nodiscard]] std::span<const std::uint64_t> integers(std::size_t field) const;
    [[nodiscard]] std::string hex(std::size_t field) const;  // of bytes
  };

  [[nodiscard]] Process& process(std::int32_t host, std::int32_t pid);
  // The thread that emitted the event; created if it is new.
  [[nodiscard]] Thread& thread(std::int32_t host, std::int32_t pid, std::int32_t tid, const BoundEvent& bound,
                               const ctf::Event& event);

  [[nodiscard]] Thread& known_or_new_thread(std::int32_t host, std::int32_t pid, std::int32_t tid,
                                            const BoundEvent& bound, const ctf::Event& event);

  // Returns the object for the initialisation of the handle: the one that earlier initialisations referred to, or a
  // new one.
  static std::int32_t initialise(Objects& objects, FlatMap& map, const Process& process, std::uint64_t handle,
                                 std::int64_t time_ns);
  // The current object of the handle; created if there is none.
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
  std::array<Recent, 256> recent_{};  // cache by tid; it contains the thread of nearly every event

  Objects node_objects_, publisher_objects_, subscription_objects_, service_objects_, client_objects_,
      timer_objects_, callback_objects_;
  std::vector<RclcppSubscription> rclcpp_subscriptions_;
  std::deque<Buffer> buffers_;
  std::unordered_map<std::int32_t, std::int64_t>
      interrupted_ns_;  // callback instance -> first phase of its thread within it
  std::map<std::string, FlatMap, std::less<>> calls_by_client_;  // client gid -> sequence number -> row
  std::vector<std::uint32_t> losses_;                            // per host: number of calls of lost()
  std::set<std::string> versions_;
};

}  // namespace perflab::traceview
