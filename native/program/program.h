// The API for a process of a graph whose callbacks are C++ code of its own: perflab's own programs use it, and so do users'
// instrumented nodes. docs/programs.md explains how such a program is built and run.
//
// The graph file declares nodes, their publishers, subscriptions, services and actions with types and QoS, executors, and
// threads by name. The program implements the behaviour. perflab does the rest as for any process of a graph: middleware,
// discovery, the common start, records of every edge, CPUs and priorities, traces, conditions, the end.
//
// Example: a process with a node /talker that publishes /chatter and subscribes to /echo.
//
//   #include "messages/std_msgs/msg/int64.h"
//   #include "program/program.h"
//
//   using namespace perflab;
//   using messages::std_msgs::msg::Int64;
//
//   class Talker final : public program::Application {
//    public:
//     explicit Talker(program::Context& context)
//         : period_ns_(context.options().duration("period", 10'000'000, 1'000'000)),
//           chatter_(context.publisher<Int64>("/talker", "/chatter")),
//           turns_(context.times("turn")) {
//
//       context.on_message<Int64>("/talker", "/echo", [&](const Int64& echo, const program::Received& how) {
//         turns_.record(how.callback_ns - how.due_ns, how.callback_ns);
//         if (echo.data == 100) {
//           context.figure("turns", 100.0);
//           context.end();
//         }
//       });
//
//       context.timer("/talker", "talk", period_ns_, [this](Nanoseconds due_ns) {
//         chatter_.message().data += 1;
//         chatter_.publish(due_ns);
//       });
//     }
//
//    private:
//     Nanoseconds period_ns_;
//     program::Publisher<Int64> chatter_;
//     program::Times& turns_;
//   };
//
//   int main(int argc, char** argv) {
//     return program::run("my-talker", argc, argv,
//                         [](program::Context& context) { return std::make_unique<Talker>(context); });
//   }
//
// All times are CLOCK_MONOTONIC in nanoseconds.
//
// Life cycle: the endpoints are created, then the application is constructed; its constructor registers handlers, threads and
// timers. With --check the process ends here, so a constructor must leave nothing behind. Once all endpoints are matched,
// perflab announces the common start: threads are created, start() is called, then executors run. Handlers are called from
// then on until stop(). The measured part ends when a program calls end(), or after its duration or limit. After that nothing
// is published, but requests are still answered. When all messages have arrived, stop() is called, threads are joined, and
// records are written.
//
// Threads: handlers are called by the threads of executors, those of one node one after the other. The executor `inline` calls
// them at the same time; it is refused unless the program is reentrant(). A function below may be called by any thread unless
// its comment names one. A handler or thread that throws ends the process: exit 1, with what it threw as the reason.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"  // BadInput (exit 2), Unsupported (exit 3), Failed (exit 1): what an application may throw
#include "base/time.h"   // Nanoseconds, kUnknownTime

namespace perflab::graph {
class PublisherEnd;
class OpenRequest;
}  // namespace perflab::graph
namespace perflab::runtime {
class Span;
}

namespace perflab::program {

// The due time of a message that is published at once.
inline constexpr Nanoseconds kNow = std::numeric_limits<Nanoseconds>::max();

// ---- time ------------------------------------------------------------------------------------------------------------

class Clock {
 public:
  // CLOCK_MONOTONIC, ns.
  [[nodiscard]] Nanoseconds now() const noexcept { return read_clock(CLOCK_MONOTONIC); }
  // Returns at once if the instant has passed.
  static void sleep_until(Nanoseconds instant) noexcept;
};

// When all processes of the graph start, and when measuring starts, which is later by the warm-up.
struct Start {
  Nanoseconds at_ns = 0;
  Nanoseconds measured_from_ns = 0;
};

// ---- options ---------------------------------------------------------------------------------------------------------

// The process's `options` in the graph file: an object, of which each function reads one key. A value of the wrong type or
// out of range throws BadInput, in one line that says where, what, and what would be right; so does, once the application has
// been constructed, a key that it did not read. A key without a default is required.
class Options {
 public:
  Options(const nlohmann::json& object, std::string where);
  ~Options();
  Options(Options&&) noexcept;
  Options& operator=(Options&&) noexcept;

  [[nodiscard]] bool has(const std::string& key) const;

  double number(const std::string& key, std::optional<double> otherwise = {},
                double lowest = std::numeric_limits<double>::lowest(),
                double highest = std::numeric_limits<double>::max());
  std::int64_t integer(const std::string& key, std::optional<std::int64_t> otherwise = {},
                       std::int64_t lowest = std::numeric_limits<std::int64_t>::min(),
                       std::int64_t highest = std::numeric_limits<std::int64_t>::max());
  bool flag(const std::string& key, std::optional<bool> otherwise = {});
  std::string text(const std::string& key, std::optional<std::string> otherwise = {});
  // One of `words`.
  std::string word(const std::string& key, const std::vector<std::string>& words, std::optional<std::string> otherwise = {});
  // ns; written as in graphs: "10ms", "1.5s".
  Nanoseconds duration(const std::string& key, std::optional<Nanoseconds> otherwise = {}, Nanoseconds lowest = 0,
                       Nanoseconds highest = std::numeric_limits<Nanoseconds>::max());
  // A list of `count` numbers; 0 allows any length.
  std::vector<double> numbers(const std::string& key, std::size_t count = 0,
                              std::optional<std::vector<double>> otherwise = {},
                              double lowest = std::numeric_limits<double>::lowest(),
                              double highest = std::numeric_limits<double>::max());
  std::vector<std::string> texts(const std::string& key, std::optional<std::vector<std::string>> otherwise = {});
  // The object at the key, or an empty one. It reports errors and unread keys with its own place. Valid as long as this.
  Options& object(const std::string& key);
  // The objects of the list at the key; none if it is absent. Likewise.
  std::vector<Options*> objects(const std::string& key);
  // The value at the key, unchecked: the caller judges it, with refuse(). Null if it is absent.
  const nlohmann::json& any(const std::string& key);

  // Throws BadInput: "process simulator, options.scene: 'tabel' is unknown; right would be table or shelf".
  [[noreturn]] void refuse(const std::string& key, const std::string& what) const;
  // Throws BadInput if a key, here or in an object within, was not read. Called when the application has been constructed.
  void finish() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// ---- what is measured ------------------------------------------------------------------------------------------------

// A histogram of durations: 0 to 100 s with three significant digits (native/measure/histogram.h). One thread records into
// it. Several threads each have their own of the same name; these are merged.
class Times {
 public:
  // Records `took_ns` if `at_ns` is within the measured part. Neither allocates nor locks nor calls the kernel. Negative
  // durations are counted apart, and are in no quantile.
  void record(Nanoseconds took_ns, Nanoseconds at_ns) noexcept;

  class State;
  explicit Times(State& state) noexcept : state_(state) {}
  Times(const Times&) = delete;
  Times& operator=(const Times&) = delete;

 private:
  State& state_;
};

// Numbers over time, such as the positions of joints: rows of as many numbers as the series has columns. One thread records
// into it.
class Series {
 public:
  // Neither allocates nor locks nor calls the kernel. A row without room is dropped and counted: rows are
  // written down about once a second, 100,000 at most.
  void record(Nanoseconds at_ns, std::span<const double> row) noexcept;

  class State;
  explicit Series(State& state) noexcept : state_(state) {}
  Series(const Series&) = delete;
  Series& operator=(const Series&) = delete;

 private:
  State& state_;
};

// ---- messages --------------------------------------------------------------------------------------------------------

// When a received message passed which point; kUnknownTime if that is not known.
struct Received {
  Nanoseconds due_ns = kUnknownTime;        // by its publisher's schedule
  Nanoseconds published_ns = kUnknownTime;
  Nanoseconds arrived_ns = kUnknownTime;    // in the middleware's thread
  Nanoseconds callback_ns = kUnknownTime;   // when its callback began
  std::string_view from;                    // the node that published it, qualified
};

namespace detail {

using graph::PublisherEnd;
using ServerRequest = graph::OpenRequest;
class ClientEnd;
class ActionClientEnd;
class ActionServerGoal;

// A generated message type: the size of its struct, and the hash of its definition (RIHS01).
struct TypeInfo {
  const char* name;  // "sensor_msgs/msg/JointState"
  const char* hash;
  std::size_t size;
};
template <typename Message>
constexpr TypeInfo type_of() {
  return {Message::kTypeName, Message::kTypeHash, sizeof(Message)};
}

struct ActionInfo {
  const char* name;  // "control_msgs/action/FollowJointTrajectory"
  TypeInfo goal, result, feedback;
};
template <typename Action>
constexpr ActionInfo action_of() {
  return {Action::kTypeName, type_of<typename Action::Goal>(), type_of<typename Action::Result>(),
          type_of<typename Action::Feedback>()};
}

void* message_of(PublisherEnd& end) noexcept;
bool publish(PublisherEnd& end, Nanoseconds due_ns) noexcept;
bool publish(PublisherEnd& end, const void* message, Nanoseconds due_ns) noexcept;
std::size_t readers_of(PublisherEnd& end) noexcept;

}  // namespace detail

// One publisher of the graph. May be copied; only one thread at a time may use any of the copies.
template <typename Message>
class Publisher {
 public:
  Publisher() = default;  // must be assigned before it is used
  explicit Publisher(detail::PublisherEnd& end) noexcept : end_(&end) {}

  // The publisher's own message, to be filled in; it keeps its contents between calls of publish().
  [[nodiscard]] Message& message() const noexcept { return *static_cast<Message*>(detail::message_of(*end_)); }
  // Sends message(). Its response time counts from `due_ns`, which is now at the latest. False if it was not sent: out of
  // memory or refused by the middleware, which the records count, or the measured part is over. Allocates if the message is
  // longer than all before it.
  bool publish(Nanoseconds due_ns = kNow) const noexcept { return detail::publish(*end_, due_ns); }
  // The same for a copy of `message`.
  bool publish(const Message& message, Nanoseconds due_ns = kNow) const noexcept {
    return detail::publish(*end_, &message, due_ns);
  }
  // How many subscriptions there are at the moment, of the graph and beyond it. Asks the middleware, which may take a lock.
  [[nodiscard]] std::size_t readers() const noexcept { return detail::readers_of(*end_); }

 private:
  detail::PublisherEnd* end_ = nullptr;
};

// ---- services --------------------------------------------------------------------------------------------------------

// Of a reply, beside its struct.
struct Replied {
  Nanoseconds requested_ns = kUnknownTime;
  Nanoseconds callback_ns = kUnknownTime;
};

namespace detail {
using OnReply = std::function<void(const void* response, const Replied& how)>;
bool call(ClientEnd& end, const void* request, Nanoseconds due_ns, OnReply on_reply);
bool reply(ServerRequest& request, const void* response) noexcept;
}  // namespace detail

// One client of the graph; only one thread at a time may use it. Replies are handled in its executor's thread.
template <typename Service>
class Client {
 public:
  Client() = default;
  explicit Client(detail::ClientEnd& end) noexcept : end_(&end) {}

  // Sends a request; `on_reply` is called once, with the reply. If it was not sent: false, and `on_reply` is never called.
  bool call(const typename Service::Request& request,
            std::function<void(const typename Service::Response&, const Replied&)> on_reply, Nanoseconds due_ns = kNow) const {
    return detail::call(*end_, &request, due_ns, [then = std::move(on_reply)](const void* response, const Replied& how) {
      then(*static_cast<const typename Service::Response*>(response), how);
    });
  }

 private:
  detail::ClientEnd* end_ = nullptr;
};

// A request that waits for its reply, which any thread may send, also after the handler has returned. May be copied and kept;
// it is answered once.
template <typename Service>
class Request {
 public:
  explicit Request(std::shared_ptr<detail::ServerRequest> request) noexcept : request_(std::move(request)) {}
  // False if the reply was not sent, or the request has been answered before.
  bool reply(const typename Service::Response& response) const noexcept { return detail::reply(*request_, &response); }

 private:
  std::shared_ptr<detail::ServerRequest> request_;
};

// ---- actions ---------------------------------------------------------------------------------------------------------

using GoalId = std::array<std::uint8_t, 16>;

// How a goal ended, with the numbers of action_msgs/msg/GoalStatus; kUnknown also if the server does not know the goal.
enum class GoalStatus : std::int8_t { kUnknown = 0, kSucceeded = 4, kCanceled = 5, kAborted = 6 };

// How a server answers a goal.
enum class GoalResponse {
  kReject,
  kAcceptAndExecute,  // it is executing when on_accepted is called
  kAcceptAndDefer     // it is accepted until Goal::execute()
};

template <typename Action>
struct GoalHandlers {
  // The server's answer, and when it accepted by its own clock (wall time, ns).
  std::function<void(bool accepted, std::int64_t stamp_ns)> on_response;
  std::function<void(const typename Action::Feedback&)> on_feedback;
  std::function<void(GoalStatus, const typename Action::Result&)> on_result;
  // The answer to cancel(): the return code of action_msgs/srv/CancelGoal, 0 if the goal will be cancelled.
  std::function<void(std::int8_t return_code)> on_cancel;
};

namespace detail {

struct GoalCallbacks {
  std::function<void(bool, std::int64_t)> on_response;
  std::function<void(const void*)> on_feedback;
  std::function<void(GoalStatus, const void*)> on_result;
  std::function<void(std::int8_t)> on_cancel;
};
std::optional<GoalId> send_goal(ActionClientEnd& end, const void* goal, Nanoseconds due_ns, GoalCallbacks callbacks);
bool cancel_goal(ActionClientEnd& end, const GoalId& goal);

struct ServerCallbacks {
  std::function<GoalResponse(const GoalId&, const void*)> on_goal;
  std::function<void(std::shared_ptr<ActionServerGoal>)> on_accepted;
  std::function<bool(const GoalId&)> on_cancel;
};
const GoalId& id_of(const ActionServerGoal& goal) noexcept;
const void* goal_of(const ActionServerGoal& goal) noexcept;
bool canceling(const ActionServerGoal& goal) noexcept;
bool execute(ActionServerGoal& goal) noexcept;
bool feedback(ActionServerGoal& goal, const void* feedback) noexcept;
bool finish(ActionServerGoal& goal, GoalStatus status, const void* result) noexcept;

}  // namespace detail

// One action client of the graph; only one thread at a time may use it. Handlers are called in its executor's thread. The
// result is requested as soon as a goal is accepted.
template <typename Action>
class ActionClient {
 public:
  ActionClient() = default;
  explicit ActionClient(detail::ActionClientEnd& end) noexcept : end_(&end) {}

  // Sends a goal and returns its id; nothing if it was not sent, and then no handler is called.
  std::optional<GoalId> send(const typename Action::Goal& goal, GoalHandlers<Action> handlers,
                             Nanoseconds due_ns = kNow) const {
    detail::GoalCallbacks callbacks;
    callbacks.on_response = std::move(handlers.on_response);
    callbacks.on_cancel = std::move(handlers.on_cancel);
    if (handlers.on_feedback)
      callbacks.on_feedback = [then = std::move(handlers.on_feedback)](const void* feedback) {
        then(*static_cast<const typename Action::Feedback*>(feedback));
      };
    if (handlers.on_result)
      callbacks.on_result = [then = std::move(handlers.on_result)](GoalStatus status, const void* result) {
        then(status, *static_cast<const typename Action::Result*>(result));
      };
    return detail::send_goal(*end_, &goal, due_ns, std::move(callbacks));
  }
  // Asks the server to cancel a goal; `on_cancel` of its handlers gets the answer. False if the request was not sent.
  bool cancel(const GoalId& goal) const { return detail::cancel_goal(*end_, goal); }

 private:
  detail::ActionClientEnd* end_ = nullptr;
};

// A goal that a server has accepted. May be copied and kept, and used by any thread, one at a time. A call that is no valid
// transition between ROS 2's goal states does nothing and returns false.
template <typename Action>
class Goal {
 public:
  explicit Goal(std::shared_ptr<detail::ActionServerGoal> goal) noexcept : goal_(std::move(goal)) {}

  [[nodiscard]] const GoalId& id() const noexcept { return detail::id_of(*goal_); }
  // The goal as it was sent; valid as long as this or a copy of it.
  [[nodiscard]] const typename Action::Goal& operator*() const noexcept {
    return *static_cast<const typename Action::Goal*>(detail::goal_of(*goal_));
  }
  [[nodiscard]] const typename Action::Goal* operator->() const noexcept { return &**this; }
  // A client has asked to cancel it, and the server has agreed.
  [[nodiscard]] bool canceling() const noexcept { return detail::canceling(*goal_); }

  // Starts a goal that was deferred.
  bool execute() const noexcept { return detail::execute(*goal_); }
  bool feedback(const typename Action::Feedback& feedback) const noexcept { return detail::feedback(*goal_, &feedback); }
  bool succeed(const typename Action::Result& result) const noexcept {
    return detail::finish(*goal_, GoalStatus::kSucceeded, &result);
  }
  bool abort(const typename Action::Result& result) const noexcept {
    return detail::finish(*goal_, GoalStatus::kAborted, &result);
  }
  bool canceled(const typename Action::Result& result) const noexcept {
    return detail::finish(*goal_, GoalStatus::kCanceled, &result);
  }

 private:
  std::shared_ptr<detail::ActionServerGoal> goal_;
};

template <typename Action>
struct ActionServerHandlers {
  std::function<GoalResponse(const GoalId&, const typename Action::Goal&)> on_goal;
  // The goal was accepted, and the client has been told. It may be executed here or in another thread; a goal whose last copy
  // is destroyed before it has ended is cancelled.
  std::function<void(Goal<Action>)> on_accepted;
  // Whether the goal may be cancelled; without this handler none may.
  std::function<bool(const GoalId&)> on_cancel;
};

// ---- the process -----------------------------------------------------------------------------------------------------

// A program: constructed after all endpoints of its graph, destroyed after the records are written.
class Application {
 public:
  Application() = default;
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  virtual ~Application() = default;

  // All endpoints are matched. `start` is soon, and the same in all processes; no handler has been called yet.
  virtual void start(const Start& start) { static_cast<void>(start); }
  // The measured part ends at `at_ns`, which is soon: nothing that is due later is published. Handlers and threads still run.
  virtual void end(Nanoseconds at_ns) { static_cast<void>(at_ns); }
  // The process ends: handlers and threads still run, then threads are asked to stop. Figures that are reported here still
  // count.
  virtual void stop() {}
};

// ---- traces ----------------------------------------------------------------------------------------------------------

namespace detail {
void begin_span(runtime::Span& span, Nanoseconds due_ns) noexcept;
void end_span(runtime::Span& span) noexcept;
}  // namespace detail

// A part of what a thread of the program does, a cycle of a loop or the work on a request, as a trace shows it: a callback of
// its node, with a period like that of a timer. What the thread publishes meanwhile comes from it. Where nothing is traced it
// costs a branch.
class Span {
 public:
  // Ends where it goes out of scope. One that is begun within another ends before that.
  class Open {
   public:
    explicit Open(runtime::Span* span) noexcept : span_(span) {}
    ~Open() {
      if (span_ != nullptr) detail::end_span(*span_);
    }
    Open(const Open&) = delete;
    Open& operator=(const Open&) = delete;

   private:
    runtime::Span* span_;
  };

  Span() = default;  // of nothing; to be assigned
  explicit Span(runtime::Span* span) noexcept : span_(span) {}

  // `due_ns`: when it was due, of one with a period.
  [[nodiscard]] Open begin(Nanoseconds due_ns = kUnknownTime) const noexcept {
    if (span_ != nullptr) detail::begin_span(*span_, due_ns);
    return Open(span_);
  }

 private:
  runtime::Span* span_ = nullptr;
};

// What a thread of the program gets.
class Running {
 public:
  explicit Running(const std::atomic<bool>& stopped, Start start) noexcept : start_(start), stopped_(stopped) {}
  // The process is ending, and waits for the thread to return.
  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }
  [[nodiscard]] const Start& start() const noexcept { return start_; }

 private:
  const Start start_;
  const std::atomic<bool>& stopped_;
};

// The process of the graph, as its program sees it. Outlives the application.
//
// Names of nodes, topics, services and actions are fully qualified ("/move_group"). A name that the graph does not have in this
// process, or has with another type, throws BadInput, which lists the names that there are. Functions may be called only in the
// application's constructor, unless their comment says otherwise.
class Context {
 public:
  virtual ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // `options` of the process.
  [[nodiscard]] virtual Options& options() noexcept = 0;
  // The trial's seed, for all random numbers. It is the same in all treatments of a block, and differs between blocks.
  [[nodiscard]] virtual std::uint64_t seed() const noexcept = 0;
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  // The process's name in the graph.
  [[nodiscard]] virtual const std::string& process() const noexcept = 0;
  // The DDS domain of the trial, which nothing else on this machine uses meanwhile.
  [[nodiscard]] virtual std::uint32_t domain() const noexcept = 0;

  template <typename Message>
  [[nodiscard]] Publisher<Message> publisher(const std::string& node, const std::string& topic) {
    return Publisher<Message>(publisher_end(node, topic, detail::type_of<Message>()));
  }
  // `handler` gets each message of the subscription, including those of the warm-up. A subscription has one handler; without
  // one, its messages are only received and recorded. The message is valid until the handler returns.
  template <typename Message>
  void on_message(const std::string& node, const std::string& topic,
                  std::function<void(const Message&, const Received&)> handler) {
    set_message_handler(node, topic, detail::type_of<Message>(),
                        [then = std::move(handler)](const void* message, const Received& how) {
                          then(*static_cast<const Message*>(message), how);
                        });
  }
  template <typename Service>
  [[nodiscard]] Client<Service> client(const std::string& node, const std::string& service) {
    return Client<Service>(client_end(node, service, detail::type_of<typename Service::Request>(),
                                      detail::type_of<typename Service::Response>()));
  }
  // A server has one handler; without one it answers at once, as perflab-node's do.
  template <typename Service>
  void on_request(const std::string& node, const std::string& service,
                  std::function<void(const typename Service::Request&, Request<Service>)> handler) {
    set_request_handler(node, service, detail::type_of<typename Service::Request>(),
                        detail::type_of<typename Service::Response>(),
                        [then = std::move(handler)](const void* request, std::shared_ptr<detail::ServerRequest> open) {
                          then(*static_cast<const typename Service::Request*>(request), Request<Service>(std::move(open)));
                        });
  }
  template <typename Action>
  [[nodiscard]] ActionClient<Action> action_client(const std::string& node, const std::string& action) {
    return ActionClient<Action>(action_client_end(node, action, detail::action_of<Action>()));
  }
  // Every action server of the process must have handlers.
  template <typename Action>
  void on_goals(const std::string& node, const std::string& action, ActionServerHandlers<Action> handlers) {
    detail::ServerCallbacks callbacks;
    callbacks.on_goal = [then = std::move(handlers.on_goal)](const GoalId& id, const void* goal) {
      return then(id, *static_cast<const typename Action::Goal*>(goal));
    };
    callbacks.on_accepted = [then = std::move(handlers.on_accepted)](std::shared_ptr<detail::ActionServerGoal> goal) {
      then(Goal<Action>(std::move(goal)));
    };
    callbacks.on_cancel = std::move(handlers.on_cancel);
    set_action_handlers(node, action, detail::action_of<Action>(), std::move(callbacks));
  }

  // Allows handlers of one node to run at the same time. Without it executors that do so are refused once the application has
  // been constructed.
  virtual void reentrant() = 0;

  // Calls `handler` every `period_ns` in the node's executor, from the start until the measured part ends, with the due time of
  // the call. Missed calls are made up for, late, unless `skip_missed`.
  virtual void timer(const std::string& node, const std::string& name, Nanoseconds period_ns,
                     std::function<void(Nanoseconds due_ns)> handler, bool skip_missed = false) = 0;

  // Creates a thread of the program. `name` must be one of the process's `threads` in the graph, which say how it is scheduled
  // (the kernel shows 15 characters of it). The scheduling is read back before anything is measured; if the kernel refuses it,
  // the process ends with exit 3. `function` is called shortly before the start, and must return soon after
  // Running::stopped().
  virtual void thread(const std::string& name, std::function<void(const Running&)> function) = 0;
  // Declares threads that the program or a library starts itself; they must call enter_thread().
  virtual void thread_name(const std::string& name) = 0;
  // At any time, by such a thread: names it and schedules it as the graph says. Throws Unsupported if the kernel refuses.
  virtual void enter_thread(const std::string& name) = 0;

  // What threads of the program do under a name, as traces show it; `period_ns` of what comes again and again, else 0.
  [[nodiscard]] virtual Span span(const std::string& node, const std::string& name, Nanoseconds period_ns = 0) = 0;

  // A new recorder for the caller, under a name that the workload declares; see Times.
  [[nodiscard]] virtual Times& times(const std::string& name) = 0;
  // At any time: reports one value of a figure that the workload declares. All values are kept. Takes a lock and allocates.
  virtual void figure(const std::string& name, double value) = 0;

  // What a report shows as a film of the trial (docs/programs.md#a-film-of-a-trial).
  //
  // New numbers over time for the caller. The name says what they are, unique in the graph; a film knows `joints`, `planned`
  // and others.
  [[nodiscard]] virtual Series& series(const std::string& name, const std::vector<std::string>& columns) = 0;
  // At any time: what begins now, in a few words. Takes a lock and allocates.
  virtual void moment(const std::string& words) = 0;
  // Bodies, what they look like and how they move, or marks among them. What several processes say is put together.
  virtual void scene(const nlohmann::json& scene) = 0;

  // At any time: reports the outcome of the trial, one of those that the workload declares, and the reason in one line. The
  // first one counts.
  virtual void outcome(const std::string& name, const std::string& reason) = 0;
  // At any time after the start: ends the measured part in all processes of the graph. The graph must say `ends: true` of this
  // process; otherwise it ends with exit 1. Further calls do nothing.
  virtual void end() = 0;
  // At any time: the process has failed, and ends with exit 1 and this one line. Returns, so the caller must stop its work.
  virtual void fail(const std::string& reason) noexcept = 0;

 protected:
  Context() = default;

 private:
  using MessageHandler = std::function<void(const void*, const Received&)>;
  using RequestHandler = std::function<void(const void*, std::shared_ptr<detail::ServerRequest>)>;
  virtual detail::PublisherEnd& publisher_end(const std::string& node, const std::string& topic,
                                              const detail::TypeInfo& type) = 0;
  virtual void set_message_handler(const std::string& node, const std::string& topic, const detail::TypeInfo& type,
                                   MessageHandler handler) = 0;
  virtual detail::ClientEnd& client_end(const std::string& node, const std::string& service,
                                        const detail::TypeInfo& request, const detail::TypeInfo& response) = 0;
  virtual void set_request_handler(const std::string& node, const std::string& service, const detail::TypeInfo& request,
                                   const detail::TypeInfo& response, RequestHandler handler) = 0;
  virtual detail::ActionClientEnd& action_client_end(const std::string& node, const std::string& action,
                                                     const detail::ActionInfo& type) = 0;
  virtual void set_action_handlers(const std::string& node, const std::string& action, const detail::ActionInfo& type,
                                   detail::ServerCallbacks handlers) = 0;

  Clock clock_;
};

// Runs the program and returns the exit code for main(). `name` stands before its error messages; options are those of
// perflab-node: --config FILE [--control-fd N] [--check]. `make` constructs the application, and may throw BadInput,
// Unsupported and Failed.
using Make = std::function<std::unique_ptr<Application>(Context&)>;
int run(const std::string& name, int argc, char** argv, const Make& make);

}  // namespace perflab::program
