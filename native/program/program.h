// A process of a graph whose callbacks are C++ code of its own: what a program of perflab, and a user's own instrumented
// node, is written against. docs/programs.md says how such a program is built and run.
//
// The graph file says what there is: nodes, their publishers, subscriptions, services and actions with types and QoS,
// executors, threads by name. The program says what happens. perflab does the rest as for any process of a graph:
// middleware, discovery, the common start, records of every edge, CPUs and priorities, traces, conditions, the end.
//
// Example, of a process with a node /talker that publishes /chatter and subscribes to /echo:
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
//       context.on_message<Int64>("/talker", "/echo", [&](const Int64& echo, const program::Received& how) {
//         turns_.record(how.callback_ns - how.due_ns, how.callback_ns);
//         if (echo.data == 100) {
//           context.figure("turns", 100.0);
//           context.end();
//         }
//       });
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
// Time is CLOCK_MONOTONIC in nanoseconds, everywhere.
//
// Life: the endpoints are created, then the application is made, which says what it wants to hear, and which threads and
// timers it has. With --check the process ends here, so an application that is made leaves nothing behind. Once everybody
// is connected, perflab says when all begin: threads begin, start() is called, then executors run. From then on until
// stop() handlers are called. The measured part ends when somebody says end(), after its duration, or after its limit;
// nothing is published any more then, but requests are still answered. When all that was sent has arrived stop() is called,
// threads are joined, and records are written.
//
// Threads: handlers are called by the threads of executors, of one node one after the other unless its executor is
// `inline`. What is said below of no thread may be called by any. A handler or thread that throws ends the process: exit 1,
// with what it threw as the reason.
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

// Of a message that is published: due now.
inline constexpr Nanoseconds kNow = std::numeric_limits<Nanoseconds>::max();

// ---- time ------------------------------------------------------------------------------------------------------------

class Clock {
 public:
  // CLOCK_MONOTONIC, ns.
  [[nodiscard]] Nanoseconds now() const noexcept { return read_clock(CLOCK_MONOTONIC); }
  // Returns at once where the instant has passed.
  static void sleep_until(Nanoseconds instant) noexcept;
};

// When all processes of the graph begin, and from when on what is due counts: later by the warm-up.
struct Start {
  Nanoseconds at_ns = 0;
  Nanoseconds measured_from_ns = 0;
};

// ---- options ---------------------------------------------------------------------------------------------------------

// What `options` of the process says in the graph file: an object, of which each function reads one key. What is of
// another kind or outside of its range is refused in one line that says where, what, and what would be right; so is, once
// the application has been made, a key that nobody has read. Each throws BadInput. Without a default a key must be there.
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
  // A list of so many numbers; `count` 0: of any length.
  std::vector<double> numbers(const std::string& key, std::size_t count = 0,
                              std::optional<std::vector<double>> otherwise = {},
                              double lowest = std::numeric_limits<double>::lowest(),
                              double highest = std::numeric_limits<double>::max());
  std::vector<std::string> texts(const std::string& key, std::optional<std::vector<std::string>> otherwise = {});
  // The object at the key, which says for itself where it is and what nobody has read; an empty one where it is absent.
  // Valid as long as this.
  Options& object(const std::string& key);
  // The objects of the list at the key; none where it is absent. Likewise.
  std::vector<Options*> objects(const std::string& key);
  // What stands at the key, as it is: what is right of it is for the caller to say (refuse()). Null where it is absent.
  const nlohmann::json& any(const std::string& key);

  // Throws BadInput: "process simulator, options.scene: 'tabel' is unknown; right would be table or shelf".
  [[noreturn]] void refuse(const std::string& key, const std::string& what) const;
  // Throws BadInput where a key, here or within, was not read. Called when the application has been made.
  void finish() const;

 private:
  class State;
  std::unique_ptr<State> state_;
};

// ---- what is measured ------------------------------------------------------------------------------------------------

// Times by one name, as a histogram: 0 to 100 s with three significant digits (native/measure/histogram.h). One thread
// records; each thread that does has one of its own by the same name, which are merged.
class Times {
 public:
  // `took_ns`, seen at `at_ns`; counts where that is within the measured part. Neither allocates nor locks nor calls the
  // kernel. Negative times are counted as such, and are in no quantile.
  void record(Nanoseconds took_ns, Nanoseconds at_ns) noexcept;

  class State;
  explicit Times(State& state) noexcept : state_(state) {}
  Times(const Times&) = delete;
  Times& operator=(const Times&) = delete;

 private:
  State& state_;
};

// ---- messages --------------------------------------------------------------------------------------------------------

// Of a message that has come, beside its struct. kUnknownTime where it is not known.
struct Received {
  Nanoseconds due_ns = kUnknownTime;        // by its publisher
  Nanoseconds published_ns = kUnknownTime;  // when it was
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

// The type of a message as it was generated: its struct's size, and the hash of its definition (RIHS01).
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

}  // namespace detail

// One publisher of the graph. To be copied at will; one thread at a time uses any of its copies.
template <typename Message>
class Publisher {
 public:
  Publisher() = default;  // of nothing; to be assigned
  explicit Publisher(detail::PublisherEnd& end) noexcept : end_(&end) {}

  // The publisher's own message, to be written to; it stays as it is from one time to the next.
  [[nodiscard]] Message& message() const noexcept { return *static_cast<Message*>(detail::message_of(*end_)); }
  // Sends message(). It was due then, at the latest now; what it took from then on is its response. False if it was not
  // sent: there is no memory, or the middleware refused it, which its records count; or the measured part is over. Allocates
  // where the message outgrows the memory of those before it.
  bool publish(Nanoseconds due_ns = kNow) const noexcept { return detail::publish(*end_, due_ns); }
  // The same for a copy of `message`.
  bool publish(const Message& message, Nanoseconds due_ns = kNow) const noexcept {
    return detail::publish(*end_, &message, due_ns);
  }

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

// One client of the graph; one thread at a time, and its replies come in its executor's thread.
template <typename Service>
class Client {
 public:
  Client() = default;
  explicit Client(detail::ClientEnd& end) noexcept : end_(&end) {}

  // Sends a request; `on_reply` is called once, with the reply. False if it was not sent; then it never is.
  bool call(const typename Service::Request& request,
            std::function<void(const typename Service::Response&, const Replied&)> on_reply, Nanoseconds due_ns = kNow) const {
    return detail::call(*end_, &request, due_ns, [then = std::move(on_reply)](const void* response, const Replied& how) {
      then(*static_cast<const typename Service::Response*>(response), how);
    });
  }

 private:
  detail::ClientEnd* end_ = nullptr;
};

// A request that waits for its reply, which may come later than its handler returns, from any thread. To be copied and kept;
// it is answered once.
template <typename Service>
class Request {
 public:
  explicit Request(std::shared_ptr<detail::ServerRequest> request) noexcept : request_(std::move(request)) {}
  // False if it was not sent, or has been answered before.
  bool reply(const typename Service::Response& response) const noexcept { return detail::reply(*request_, &response); }

 private:
  std::shared_ptr<detail::ServerRequest> request_;
};

// ---- actions ---------------------------------------------------------------------------------------------------------

using GoalId = std::array<std::uint8_t, 16>;

// How a goal ended, as action_msgs/msg/GoalStatus says it; kUnknown also: the server does not know the goal.
enum class GoalStatus : std::int8_t { kUnknown = 0, kSucceeded = 4, kCanceled = 5, kAborted = 6 };

// What a server says of a goal that it is given.
enum class GoalResponse {
  kReject,
  kAcceptAndExecute,  // it is executing when on_accepted is called
  kAcceptAndDefer     // it is accepted until Goal::execute()
};

template <typename Action>
struct GoalHandlers {
  // The answer of the server, and when it accepted by its own clock (wall time, ns).
  std::function<void(bool accepted, std::int64_t stamp_ns)> on_response;
  std::function<void(const typename Action::Feedback&)> on_feedback;
  std::function<void(GoalStatus, const typename Action::Result&)> on_result;
  // Of cancel(): action_msgs/srv/CancelGoal's return code, 0 where it will be cancelled.
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

// One action client of the graph; one thread at a time, and handlers are called in its executor's thread. The result is asked
// for as soon as a goal is accepted.
template <typename Action>
class ActionClient {
 public:
  ActionClient() = default;
  explicit ActionClient(detail::ActionClientEnd& end) noexcept : end_(&end) {}

  // Sends a goal, and returns its name; nothing if it was not sent: then no handler is called.
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
  // Asks for the end of a goal; `on_cancel` of its handlers has the answer. False if it was not sent.
  bool cancel(const GoalId& goal) const { return detail::cancel_goal(*end_, goal); }

 private:
  detail::ActionClientEnd* end_ = nullptr;
};

// A goal that a server has accepted. To be copied and kept; any thread, one at a time. What would be no transition of ROS 2's
// states of a goal is refused: false.
template <typename Action>
class Goal {
 public:
  explicit Goal(std::shared_ptr<detail::ActionServerGoal> goal) noexcept : goal_(std::move(goal)) {}

  [[nodiscard]] const GoalId& id() const noexcept { return detail::id_of(*goal_); }
  // As it was sent; as long as this, or a copy of it, lives.
  [[nodiscard]] const typename Action::Goal& operator*() const noexcept {
    return *static_cast<const typename Action::Goal*>(detail::goal_of(*goal_));
  }
  [[nodiscard]] const typename Action::Goal* operator->() const noexcept { return &**this; }
  // Somebody has asked for its end, and the server has agreed.
  [[nodiscard]] bool canceling() const noexcept { return detail::canceling(*goal_); }

  // Of one that was deferred.
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
  // It was accepted, and the client has been told. To be worked on here or elsewhere; a goal that nobody keeps before it has
  // ended is cancelled.
  std::function<void(Goal<Action>)> on_accepted;
  // Whether it may be cancelled; absent: no.
  std::function<bool(const GoalId&)> on_cancel;
};

// ---- the process -----------------------------------------------------------------------------------------------------

// What a program is: made once everything that the graph says exists, destroyed after the records were written.
class Application {
 public:
  Application() = default;
  Application(const Application&) = delete;
  Application& operator=(const Application&) = delete;
  virtual ~Application() = default;

  // Everybody is connected. `start` is soon, and the same for all processes; nothing has been handled yet.
  virtual void start(const Start& start) { static_cast<void>(start); }
  // The measured part ends at that instant, which is soon: nothing that is due later is published. Handlers and threads still
  // run.
  virtual void end(Nanoseconds at_ns) { static_cast<void>(at_ns); }
  // The process ends. Handlers and threads still run, and threads are asked to stop; what is said here still counts.
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

// What a thread of the program is told.
class Running {
 public:
  explicit Running(const std::atomic<bool>& stopped, Start start) noexcept : start_(start), stopped_(stopped) {}
  // The process ends, and waits for the thread to return.
  [[nodiscard]] bool stopped() const noexcept { return stopped_.load(std::memory_order_acquire); }
  [[nodiscard]] const Start& start() const noexcept { return start_; }

 private:
  const Start start_;
  const std::atomic<bool>& stopped_;
};

// The process of the graph, as its program sees it. Lives from before the application is made until after it is destroyed.
//
// Nodes are named in full ("/move_group"), as are topics, services and actions. Each throws BadInput where the graph has none
// of that name in this process, or with another type, and then says which there are. While the application is made, and not
// later, unless said otherwise.
class Context {
 public:
  virtual ~Context() = default;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;

  // `options` of the process.
  [[nodiscard]] virtual Options& options() noexcept = 0;
  // That of the trial: by what is random shall be drawn. The same in every treatment of a block, another one in each block.
  [[nodiscard]] virtual std::uint64_t seed() const noexcept = 0;
  [[nodiscard]] const Clock& clock() const noexcept { return clock_; }
  // The process's name in the graph.
  [[nodiscard]] virtual const std::string& process() const noexcept = 0;
  // The DDS domain of the trial: nobody else on this machine has it meanwhile.
  [[nodiscard]] virtual std::uint32_t domain() const noexcept = 0;

  template <typename Message>
  [[nodiscard]] Publisher<Message> publisher(const std::string& node, const std::string& topic) {
    return Publisher<Message>(publisher_end(node, topic, detail::type_of<Message>()));
  }
  // `handler` gets each message of the subscription, those of the warm-up too. One handler each; a subscription without one
  // is received and recorded, and nothing comes of it. The message lives until the handler returns.
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
  // One handler each; a server without one answers at once, as those of perflab-node do.
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
  // Every action server of the process has handlers.
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

  // `handler` is called every `period_ns` from the start on in the executor of the node, with when that was due; what was
  // missed is made up for, late, unless `skip_missed`. Until the measured part ends.
  virtual void timer(const std::string& node, const std::string& name, Nanoseconds period_ns,
                     std::function<void(Nanoseconds due_ns)> handler, bool skip_missed = false) = 0;

  // A thread of the program: called `name` (15 characters are shown), which the process's `threads` in the graph have, and
  // scheduled as these say, read back from the kernel before anything is measured; where the kernel refuses, the process ends
  // with exit 3. `function` is called shortly before the start, and returns soon once Running::stopped().
  virtual void thread(const std::string& name, std::function<void(const Running&)> function) = 0;
  // Likewise of threads that the program or a library of its will start itself, and that call enter_thread().
  virtual void thread_name(const std::string& name) = 0;
  // At any time, by such a thread: from now on it is called so and scheduled as `threads` say. Throws Unsupported where the
  // kernel refuses.
  virtual void enter_thread(const std::string& name) = 0;

  // What threads of the program do under a name, as traces show it; `period_ns` of what comes again and again, else 0.
  [[nodiscard]] virtual Span span(const std::string& node, const std::string& name, Nanoseconds period_ns = 0) = 0;

  // A recorder of its own for the caller, under a name that the workload has declared; see Times.
  [[nodiscard]] virtual Times& times(const std::string& name) = 0;
  // At any time: one value of a figure that the workload has declared, in its unit. All are kept. Takes a lock and allocates.
  virtual void figure(const std::string& name, double value) = 0;
  // At any time: how the trial went, as one of the outcomes that the workload has declared, and why, in one line. The first
  // one counts.
  virtual void outcome(const std::string& name, const std::string& reason) = 0;
  // At any time after the start: the measured part ends, in all processes of the graph. For processes of which the graph says
  // `ends: true`; of others the process ends with exit 1. What is said twice is said once.
  virtual void end() = 0;
  // At any time: the process has failed, and ends with exit 1 and this one line. Returns; the caller shall end what it does.
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

// What main() returns. `name` is the program's, for its errors; options are those of perflab-node: --config FILE
// [--control-fd N] [--check]. `make` makes the application, and may throw BadInput, Unsupported and Failed.
using Make = std::function<std::unique_ptr<Application>(Context&)>;
int run(const std::string& name, int argc, char** argv, const Make& make);

}  // namespace perflab::program
