// A graph as data: the validated content of a workload file, with every default filled in.
//
// Durations are int64 nanoseconds, frequencies hertz. Indexes refer to the vectors of the same node.
// `perflab-graph resolve` writes this model as JSON (graph/resolved.h), and perflab-node reads that: it never
// parses a user's file.
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
  int threads = 0;                    // for kMultiThreaded; 0: one per CPU available to the process
  Nanoseconds period_ns = 0;          // for kLet; 0: it runs as soon as something is ready
  realtime::ThreadSettings thread{};  // for its threads, instead of the process's `executors`; empty: same as
                                      // those
};

// Scheduling of a process's threads; with empty settings a thread keeps what the process was started with.
struct Threads {
  realtime::ThreadSettings executors{};
  realtime::ThreadSettings middleware{};
  std::map<std::string, realtime::ThreadSettings> program{};  // threads of its program, by name
};

struct Publisher {
  std::string topic;             // fully qualified: "/amazon", "/robot/amazon"
  std::string type;              // like message::Format::name: "stamped9_float32", "sensor_msgs/msg/Image"
  std::uint32_t length = 0;      // number of bulk elements of a message of variable size (message/object.h);
                                 // otherwise equal to size_bytes
  std::uint32_t size_bytes = 0;  // payload without header, as counted by irobot_benchmark
  bool sized = true;             // false: a program publishes, and message sizes are not known in advance
  double frequency_hz = 0.0;     // of the publishing timer; 0 if it is unthrottled, or a reaction publishes
  PassBy pass_by = PassBy::kUnspecified;
  perflab_qos qos = default_qos();  // depth is PERFLAB_DEPTH_UNLIMITED with keep_all
  std::uint32_t instances = 1;      // number of keys, which its messages use in rotation
};

// A subscription acknowledges the messages of a node: for every `every`-th handled message another publisher
// of the process sends its due time.
struct Acknowledgement {
  std::string from;   // the node whose messages are acknowledged; both names are fully qualified
  std::string node;   // node of the acknowledging publisher, which serves only this subscription; nothing
                      // else drives it
  std::string topic;  // topic of that publisher
  std::uint32_t every = 1;
};

struct Subscription {
  std::string topic;
  std::string type;
  PassBy pass_by = PassBy::kUnspecified;
  perflab_qos qos = default_qos();  // lifespan is a writer policy: always infinite here
  std::string filter;               // selects the messages that it wants (message/filter.h); empty: all
  int number = 1;                   // index among the node's subscriptions of this topic: generated graphs
                                    // may have several
  int priority = 0;                 // of its callback, for kPriority: the largest runs first; likewise below
  std::vector<Acknowledgement> acknowledge{};
};

// Services are named and matched like topics, but in a separate name space. One server per service.
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

// Actions are also named and matched like services. One server per action.
struct ActionClient {
  std::string action;  // fully qualified
  std::string type;    // "stamped", "control_msgs/action/FollowJointTrajectory"
  double frequency_hz = 0.0;
  Nanoseconds cancel_after_ns = 0;  // from a goal's due time to its cancellation; 0: never
  int priority = 0;                 // of all its callbacks; likewise below
};

// Handles its active goals in steps: works, sends feedback, and ends goals whose duration is over.
struct ActionServer {
  static constexpr Nanoseconds kUsualStep = 10'000'000;

  std::string action;
  std::string type;
  Nanoseconds duration_ns = 0;  // from a goal's acceptance; it ends at the first step at or after that
  Nanoseconds step_ns = kUsualStep;
  Nanoseconds work_ns = 0;  // CPU time per goal and step
  bool feedback = false;    // at each step, including the last
  int reject_every = 0;     // one of this many goals is rejected, the last of them; 0: none
  int priority = 0;
};

// A guard condition with a callback. A waitable that no timer triggers is idle: executors only check it.
struct Waitable {
  std::string name;
  Nanoseconds work_ns = 0;  // CPU time per callback
  int priority = 0;
};

enum class Overrun {
  kCatchUp,  // every due tick runs, late if necessary
  kSkip      // missed ticks are skipped and counted as not_sent
};

// The phase of a timer: where in its period it ticks (graph/phase.h).
enum class Phase {
  kAligned,    // all at the same point
  kAsCreated,  // determined by the timer's creation time
  kStaggered,  // spread evenly
  kRandom      // drawn from the trial's seed
};

// Adapts a timer's rate to the readers' acknowledgements (graph/throttle.h).
struct Throttle {
  // A subscription of the process that receives acknowledgements.
  struct Source {
    std::string node;  // fully qualified
    std::string topic;
    std::uint32_t every = 1;  // messages per acknowledgement
    bool counted = true;      // they acknowledge this timer's messages; otherwise messages of others, of
                              // which only the age counts
  };
  std::vector<Source> sources;
  Nanoseconds target_ns = 0;    // an acknowledgement later than this after the message was due is late
  Nanoseconds interval_ns = 0;  // evaluation interval
  double accepted = 0.9;        // share of the sent messages that must be acknowledged
  double decrease = 0.5;        // factor applied to the rate
  double increase = 0.05;       // share of the full rate
  double lowest = 0.01;         // lowest share of the full rate
};

struct Timer {
  std::string name;
  Nanoseconds period_ns = 0;  // average tick period; 0: kUnthrottled
  Arrivals arrivals = Arrivals::kPeriodic;
  std::int64_t burst = 1;  // number of ticks due together
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
  // True if ticks are evenly spaced, so that jitter is defined.
  [[nodiscard]] bool regular() const { return arrivals == Arrivals::kPeriodic && burst == 1; }
};

enum class ReactionKind {
  kRelay,      // each message on an input is forwarded; same type in and out
  kTransform,  // each message on an input: work, then one new message per output
  kFusion,     // two inputs or more; once every input has a new message: work, then one message per output
  kCyclic,     // every period: consume all messages since the last cycle, work, send one message per output
               // (outputs are optional)
  kSink        // consume, work; publishes nothing
};

struct Reaction {
  ReactionKind kind = ReactionKind::kSink;
  std::vector<std::size_t> on;       // indexes of subscriptions
  std::vector<std::size_t> publish;  // indexes of publishers
  Nanoseconds work_ns = 0;           // CPU time per reaction
  Nanoseconds period_ns = 0;         // kCyclic only
  Phase phase = Phase::kAligned;     // kCyclic only
  int priority = 0;                  // kCyclic only: the others run in their subscriptions' callbacks
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
  std::vector<Timer> timers;        // a publisher has one timer, or one or more reactions, or a program
  std::vector<Reaction> reactions;  // a subscription has at most one; without one it is a sink without work
  std::string condition;            // label of the condition that added the node; empty: the workload
  std::string stands_for{};         // for a second instance: the name under which its program looks the node
                                    // up

  [[nodiscard]] std::string qualified_name() const {
    return node_namespace == "/" ? node_namespace + name : node_namespace + "/" + name;
  }
  [[nodiscard]] std::string name_in_program() const { return stands_for.empty() ? qualified_name() : stands_for; }
  // The period of the regular timer or cyclic reaction that drives the publisher; 0 if something else or
  // several drive it.
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
  // The name of a subscription in records: the node, with the number of a further one ("/sink#2").
  [[nodiscard]] std::string name_of(const Subscription& subscription) const {
    return subscription.number == 1 ? qualified_name()
                                    : qualified_name() + "#" + std::to_string(subscription.number);
  }
};

// A figure that judges a trial of the graph: it has a name and is computed from the records of edges and
// publishers.
enum class KeyFigureKind {
  kPath,   // response at `edges`: from the due time of the oldest message it depends on to the callback of
           // `to`
  kLost,   // messages lost on `topics`
  kJitter  // deviation of the intervals between publications from the period
};

struct KeyFigure {
  struct Edge {
    std::string publisher, topic, subscription;  // names as in the records
  };
  struct Source {
    std::string node, topic;
    Nanoseconds period_ns = 0;
  };
  std::string name;
  KeyFigureKind kind = KeyFigureKind::kPath;
  std::vector<std::string> from;    // kPath: qualified names of nodes
  std::string to;                   // kPath
  std::vector<Edge> edges;          // kPath: edges that end at `to` and carry messages from `from`
  std::vector<std::string> topics;  // kLost; empty: all
  std::vector<Source> publishers;   // kJitter
};

struct Process {
  std::string name;
  std::vector<Executor> executors;
  int participants = 1;  // DDS participants; node i belongs to participant i modulo this number
  Threads threads{};
  bool lock_memory = false;  // mlockall: no page of the process is ever swapped out or reread from disk
  std::vector<Node> nodes;
  std::string program{};          // runs in place of perflab-node and may drive its nodes; empty:
                                  // perflab-node
  std::string options = "{}";   // options of the program: a JSON object
  bool ends = false;            // the process determines when the measured part ends

  // `program` of a process outside of perflab: a command line starts it (`options`), or it runs already. It
  // is expected to have the ends that its nodes declare; it reports nothing about its messages.
  static constexpr std::string_view kOutside = "outside";
  [[nodiscard]] bool outside() const noexcept { return program == kOutside; }
};

// How often a message is encoded.
enum class Serialization {
  kUnspecified,  // the runtime's default
  kOnce,         // before the start; then the same bytes are sent with a new stamp: the middleware without an
                 // application
  kEvery         // each message is encoded from a struct and decoded into one, as in an application
};

struct Graph {
  std::string name;
  Serialization serialization = Serialization::kUnspecified;
  bool keyed = false;  // topics whose types declare keys are keyed; otherwise, as in ROS 2, no topic is
  Nanoseconds limit_ns = 0;  // latest end of a measured part that a process ends; 0: no process does
  std::vector<Process> processes;
  std::vector<KeyFigure> key_figures;
  // Figures and outcomes that its programs report, by name, as JSON objects (graph/programs.h).
  std::string own_figures = "{}";
  std::string own_outcomes = "{}";
  // Never null. The types that the graph may use: perflab's own, unless its reader got more.
  std::shared_ptr<message::Formats> messages = std::make_shared<message::Formats>();
};

}  // namespace perflab::graph
