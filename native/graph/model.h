// A graph as data: what a workload file says, validated, with every default filled in.
//
// Durations are int64 nanoseconds, frequencies hertz. Indexes refer to the vectors of the same
// node. `perflab-graph resolve` writes this model as JSON (graph/resolved.h), which is what
// perflab-node reads: the node never parses a user's file.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "message/format.h"
#include "middleware/types.h"
#include "realtime/scheduling.h"
#include "runtime/runtime.h"

namespace perflab::graph {

using Nanoseconds = std::int64_t;

using middleware::default_qos;
using runtime::Arrivals;
using runtime::ExecutorKind;
using runtime::PassBy;

struct Executor {
  int id = 0;  // unique within its process
  ExecutorKind kind = ExecutorKind::kSingleThreaded;
  int threads = 0;                    // of kMultiThreaded; 0: one per CPU that the process may use
  Nanoseconds period_ns = 0;          // of kLet; 0: it runs as soon as something is ready
  realtime::ThreadSettings thread{};  // of its threads, instead of the process's `executors`; empty: as these
};

// How the threads of a process are scheduled; empty settings leave a thread as the process was started.
struct Threads {
  realtime::ThreadSettings executors{};
  realtime::ThreadSettings middleware{};
  std::map<std::string, realtime::ThreadSettings> program{};  // those that its program calls so
};

struct Publisher {
  std::string topic;             // fully qualified: "/amazon", "/robot/amazon"
  std::string type;              // as message::Format::name: "stamped9_float32", "sensor_msgs/msg/Image"
  std::uint32_t length = 0;      // elements of the bulk of a message of variable size (message/object.h); of others
                                 // as size_bytes
  std::uint32_t size_bytes = 0;  // payload without header, as irobot_benchmark counts it
  bool sized = true;             // false: a program publishes, and nobody knows before how long a message is
  double frequency_hz = 0.0;     // of the timer that publishes; 0 where that is unthrottled, or a reaction publishes
  PassBy pass_by = PassBy::kUnspecified;
  perflab_qos qos = default_qos();  // depth is PERFLAB_DEPTH_UNLIMITED with keep_all
  std::uint32_t instances = 1;      // its messages have so many keys in turn
};

// That the messages of a node are acknowledged by a subscription: of each `every`-th one that its node has handled another
// publisher of the process says when it was due.
struct Acknowledgement {
  std::string from;   // the node whose messages these are; it and the next one are qualified
  std::string node;   // whose publisher acknowledges, for this subscription alone; nothing else drives it
  std::string topic;  // of that publisher
  std::uint32_t every = 1;
};

struct Subscription {
  std::string topic;
  std::string type;
  PassBy pass_by = PassBy::kUnspecified;
  perflab_qos qos = default_qos();  // lifespan is a writer's policy: always infinite here
  std::string filter;               // which messages it wants (message/filter.h); empty: all
  int number = 1;                   // among the node's of this topic: generated graphs may have several
  int priority = 0;                 // of its callback, for kPriority: the largest first; likewise below
  std::vector<Acknowledgement> acknowledge{};
};

// Services are named and matched like topics, but in a space of their own. One server per service.
struct Client {
  std::string service;  // fully qualified
  std::string type;     // "stamped10b", "std_srvs/srv/SetBool"
  double frequency_hz = 0.0;
  perflab_qos qos = default_qos();
  int priority = 0;  // of the callback for replies
};

struct Server {
  std::string service;
  std::string type;
  perflab_qos qos = default_qos();
  Nanoseconds work_ns = 0;  // CPU time per request, before the reply
  int priority = 0;
};

// Actions are named and matched like services, too. One server per action.
struct ActionClient {
  std::string action;  // fully qualified
  std::string type;    // "stamped", "control_msgs/action/FollowJointTrajectory"
  double frequency_hz = 0.0;
  Nanoseconds cancel_after_ns = 0;  // from when a goal was due to when it is cancelled; 0: never
  int priority = 0;                 // of all its callbacks, likewise below
};

// It looks at the goals that it works on at every step: works, sends feedback, and ends those whose time has come.
struct ActionServer {
  static constexpr Nanoseconds kUsualStep = 10'000'000;

  std::string action;
  std::string type;
  Nanoseconds duration_ns = 0;  // from when a goal was accepted; it ends at the first step that is no earlier
  Nanoseconds step_ns = kUsualStep;
  Nanoseconds work_ns = 0;  // CPU time for each goal at each step
  bool feedback = false;    // at each step, the last included
  int reject_every = 0;     // of so many goals one is rejected, the last of them; 0: none
  int priority = 0;
};

// A guard condition with a callback. One that no timer triggers is idle: executors only look at it.
struct Waitable {
  std::string name;
  Nanoseconds work_ns = 0;  // CPU time of each callback
  int priority = 0;
};

enum class Overrun {
  kCatchUp,  // every due tick is sent, late if need be
  kSkip      // ticks that were missed are counted as not_sent
};

// Where in its period a timer ticks (graph/phase.h).
enum class Phase {
  kAligned,    // all at the same place
  kAsCreated,  // where it was when the timer was created
  kStaggered,  // spread evenly
  kRandom      // drawn from the trial's seed
};

// A timer's rate falls and rises by what readers acknowledge (graph/throttle.h).
struct Throttle {
  // A subscription of the process that acknowledgements come to.
  struct Source {
    std::string node;  // qualified
    std::string topic;
    std::uint32_t every = 1;  // messages that one of them stands for
    bool counted = true;      // they are this timer's; else of messages of others, whose age alone counts
  };
  std::vector<Source> sources;
  Nanoseconds target_ns = 0;    // a message that is acknowledged later than this after it was due is late
  Nanoseconds interval_ns = 0;  // that is judged
  double accepted = 0.9;        // share of what was sent that must be acknowledged
  double decrease = 0.5;        // factor of the rate
  double increase = 0.05;       // share of the full rate
  double lowest = 0.01;         // likewise
};

struct Timer {
  std::string name;
  Nanoseconds period_ns = 0;  // from one tick to the next, on average; 0: kUnthrottled
  Arrivals arrivals = Arrivals::kPeriodic;
  std::int64_t burst = 1;  // ticks that are due together
  Phase phase = Phase::kAligned;
  std::vector<std::size_t> publish;  // indexes of publishers
  std::vector<std::size_t> request;  // indexes of clients, each of which sends one request
  std::vector<std::size_t> trigger;  // indexes of waitables
  std::vector<std::size_t> goal{};     // indexes of action clients, each of which sends one goal
  Nanoseconds work_ns = 0;           // CPU time spent before publishing
  Overrun overrun = Overrun::kCatchUp;
  int priority = 0;
  std::optional<Throttle> throttle{};

  [[nodiscard]] double frequency_hz() const { return period_ns == 0 ? 0.0 : 1e9 / static_cast<double>(period_ns); }
  // True if one tick follows the other after a period, so that jitter can be told.
  [[nodiscard]] bool regular() const { return arrivals == Arrivals::kPeriodic && burst == 1; }
};

enum class ReactionKind {
  kRelay,      // each message on an input is forwarded; same type in and out
  kTransform,  // each message on an input: work, then one new message per output
  kFusion,     // two inputs or more; once every input has a new message: work, then one message per output
  kCyclic,     // every period: consume all messages since the last cycle, work, one message per output
               // (an output is not required)
  kSink        // consume, work; publishes nothing
};

struct Reaction {
  ReactionKind kind = ReactionKind::kSink;
  std::vector<std::size_t> on;       // indexes of subscriptions
  std::vector<std::size_t> publish;  // indexes of publishers
  Nanoseconds work_ns = 0;           // CPU time per reaction
  Nanoseconds period_ns = 0;         // kCyclic only
  Phase phase = Phase::kAligned;     // likewise
  int priority = 0;                  // likewise: the others run in their subscriptions' callbacks
};

struct Node {
  std::string name;                  // without namespace
  std::string node_namespace = "/";  // "/" or "/robot"
  int executor = 0;                  // id of an executor of the process
  std::vector<Publisher> publishers;
  std::vector<Subscription> subscriptions;
  std::vector<Client> clients;
  std::vector<Server> servers;
  std::vector<ActionClient> action_clients{};
  std::vector<ActionServer> action_servers{};
  std::vector<Waitable> waitables;
  std::vector<Timer> timers;        // a publisher has one timer, or else one or more reactions, or a program
  std::vector<Reaction> reactions;  // a subscription has at most one; without, it is a sink without work
  std::string condition;            // label of the condition that added the node; empty: the workload's own
  std::string stands_for{};         // of a second instance: the name by which its program asks for the node

  [[nodiscard]] std::string qualified_name() const {
    return node_namespace == "/" ? node_namespace + name : node_namespace + "/" + name;
  }
  [[nodiscard]] std::string name_in_program() const { return stands_for.empty() ? qualified_name() : stands_for; }
  // Of the regular timer or cyclic reaction by which one of its publishers sends; 0 where something else or several make
  // it send.
  [[nodiscard]] Nanoseconds period_of(const Publisher& publisher) const {
    const auto index = static_cast<std::size_t>(&publisher - publishers.data());
    Nanoseconds period_ns = 0;
    std::size_t drivers = 0;
    const auto driven_by = [&](const std::vector<std::size_t>& publish, Nanoseconds of_driver) {
      if (std::find(publish.begin(), publish.end(), index) == publish.end()) return;
      period_ns = of_driver;
      ++drivers;
    };
    for (const Timer& timer : timers) driven_by(timer.publish, timer.regular() ? timer.period_ns : 0);
    for (const Reaction& reaction : reactions) driven_by(reaction.publish, reaction.period_ns);
    return drivers == 1 ? period_ns : 0;
  }
  // What records call one of its subscriptions: the node, with the number of a further one ("/sink#2").
  [[nodiscard]] std::string name_of(const Subscription& subscription) const {
    return subscription.number == 1 ? qualified_name()
                                    : qualified_name() + "#" + std::to_string(subscription.number);
  }
};

// What a graph is judged by: a figure with a name, made from what its edges and publishers record.
enum class KeyFigureKind {
  kPath,   // response at `edges`: from when the oldest message was due on which it depends to the callback of
           // `to`
  kLost,   // messages lost on `topics`
  kJitter  // how far the intervals between publications are from the period
};

struct KeyFigure {
  struct Edge {
    std::string publisher, topic, subscription;  // as records name them
  };
  struct Source {
    std::string node, topic;
    Nanoseconds period_ns = 0;
  };
  std::string name;
  KeyFigureKind kind = KeyFigureKind::kPath;
  std::vector<std::string> from;    // kPath: qualified names of nodes
  std::string to;                   // kPath
  std::vector<Edge> edges;          // kPath: those that end at `to` and carry what began at `from`
  std::vector<std::string> topics;  // kLost; empty: all
  std::vector<Source> publishers;   // kJitter
};

struct Process {
  std::string name;
  std::vector<Executor> executors;
  int participants = 1;  // DDS participants; node i belongs to participant i modulo this
  Threads threads{};
  bool lock_memory = false;  // mlockall: no page of the process is ever fetched from disk
  std::vector<Node> nodes;
  std::string program{};          // what runs in the place of perflab-node, and may drive its nodes; empty: perflab-node does
  std::string options = "{}";   // of the program: an object as JSON
  bool ends = false;            // it says when the measured part ends

  // `program` of a process that is none of perflab's: a command line starts it (`options`), or it runs already. It is expected
  // to have the ends that its nodes declare, and says nothing of its messages.
  static constexpr std::string_view kOutside = "outside";
  [[nodiscard]] bool outside() const noexcept { return program == kOutside; }
};

// How often a message is encoded.
enum class Serialization {
  kUnspecified,  // as the runtime does by itself
  kOnce,         // before the start; then the same bytes are sent, whose stamp alone changes: the middleware without an
                 // application
  kEvery         // each message is encoded from a struct and decoded into one, as an application does
};

struct Graph {
  std::string name;
  Serialization serialization = Serialization::kUnspecified;
  bool keyed = false;  // topics whose types declare keys have them; otherwise, as in ROS 2, none has
  Nanoseconds limit_ns = 0;  // within which a process ends the measured part; 0: none does
  std::vector<Process> processes;
  std::vector<KeyFigure> key_figures;
  // What its programs say of a trial, by name, as JSON objects (graph/programs.h).
  std::string own_figures = "{}";
  std::string own_outcomes = "{}";
  // Never null. The types that the graph may use: what perflab brings, unless its reader was given more.
  std::shared_ptr<message::Formats> messages = std::make_shared<message::Formats>();
};

}  // namespace perflab::graph
