#include "graph/resolved.h"

#include <fmt/format.h>

#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "graph/check.h"
#include "graph/text.h"
#include "graph/units.h"
#include "graph/vocabulary.h"

namespace perflab::graph {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

constexpr int kSchema = 1;
constexpr std::int64_t kMaxUnsigned = std::numeric_limits<std::uint32_t>::max();

// A JSON value and its path, for messages.
class Cursor {
 public:
  Cursor(const json& value, std::string path) : value_(value), path_(std::move(path)) {}

  [[noreturn]] void fail(std::string_view problem) const {
    throw InputError(fmt::format("{}: {}", path_, problem));
  }

  [[nodiscard]] bool is_null() const { return value_.is_null(); }
  [[nodiscard]] bool has(const char* key) const {
    if (!value_.is_object()) fail("must be an object");
    return value_.contains(key);
  }
  [[nodiscard]] Cursor at(const char* key) const {
    if (!has(key)) fail(fmt::format("lacks the key '{}'", key));
    return {value_.at(key), fmt::format("{}.{}", path_, key)};
  }
  // True if the key exists and is not null; for keys that files of older versions do not have.
  [[nodiscard]] bool gives(const char* key) const { return has(key) && !value_.at(key).is_null(); }
  [[nodiscard]] bool boolean() const {
    if (!value_.is_boolean()) fail("must be true or false");
    return value_.get<bool>();
  }
  [[nodiscard]] std::string text() const {
    if (!value_.is_string()) fail("must be a string");
    return value_.get<std::string>();
  }
  [[nodiscard]] std::int64_t integer(std::int64_t low, std::int64_t high) const {
    if (!value_.is_number_integer()) fail("must be a whole number");
    const bool fits =
        !value_.is_number_unsigned() ||
        value_.get<std::uint64_t>() <= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
    const std::int64_t value = fits ? value_.get<std::int64_t>() : 0;
    if (!fits || value < low || value > high) fail(fmt::format("must be from {} to {}", low, high));
    return value;
  }
  [[nodiscard]] double number() const {
    if (!value_.is_number()) fail("must be a number");
    return value_.get<double>();
  }
  template <typename Words>
  [[nodiscard]] auto word(const Words& words) const {
    const auto value = value_of(words, text());
    if (!value) fail(fmt::format("{} is unknown; use {}", quote(text()), list_of(texts_of(words))));
    return *value;
  }
  [[nodiscard]] bool is_object() const { return value_.is_object(); }
  // An object as it is.
  [[nodiscard]] std::string object_text() const {
    if (!is_object()) fail("must be an object");
    return value_.dump();
  }
  template <typename Visit>
  void each_key(Visit visit) const {
    for (const auto& [name, value] : value_.items()) visit(name, Cursor(value, fmt::format("{}.{}", path_, name)));
  }
  template <typename Visit>
  void each(Visit visit) const {
    if (!value_.is_array()) fail("must be a list");
    for (std::size_t i = 0; i < value_.size(); ++i) visit(Cursor(value_[i], fmt::format("{}[{}]", path_, i)));
  }

 private:
  const json& value_;
  std::string path_;
};

// Each part of a graph has one table of its keys, keys_of(), used both for writing and for reading.

template <typename Record>
struct Tag {};  // selects an overload of keys_of()

enum class Absent {
  kRefused,      // the key is required
  kDefault,      // without the key the member has its default; files of older versions lack it
  kNullDefault,  // like kDefault, also if the key is null
  kOmitted,      // like kDefault; not written if the member has its default
  kNullOmitted   // like kNullDefault; not written if the member has its default
};

// `form` converts a member to and from JSON: write(value), read(cursor, value).
template <typename Record, typename Member, typename Form>
struct Key {
  const char* name;
  Member Record::* member;
  Form form;
  Absent absent;
  bool (*belongs_to)(const Record&);  // if false, the key is neither written nor read; null: always
};

template <typename Record, typename Member, typename Form>
constexpr Key<Record, Member, Form> key(const char* name, Member Record::* member, Form form,
                                        Absent absent = Absent::kRefused,
                                        bool (*belongs_to)(const Record&) = nullptr) {
  return {name, member, form, absent, belongs_to};
}

template <typename Record>
constexpr Record make_default() {
  return {};
}
template <typename Record>
ordered_json write_part(const Record& record) {
  ordered_json json = ordered_json::object();
  const auto write = [&](const auto& key) {
    if (key.belongs_to != nullptr && !key.belongs_to(record)) return;
    ordered_json value = key.form.write(record.*key.member);
    const bool omits = key.absent == Absent::kOmitted || key.absent == Absent::kNullOmitted;
    if (omits && value == key.form.write(make_default<Record>().*key.member)) return;
    json[key.name] = std::move(value);
  };
  std::apply([&](const auto&... keys) { (write(keys), ...); }, keys_of(Tag<Record>{}));
  return json;
}

template <typename Record>
Record read_part(const Cursor& json) {
  Record record = make_default<Record>();
  const auto read = [&](const auto& key) {
    if (key.belongs_to != nullptr && !key.belongs_to(record)) return;
    const bool may_be_null = key.absent == Absent::kNullDefault || key.absent == Absent::kNullOmitted;
    if (key.absent != Absent::kRefused && !(may_be_null ? json.gives(key.name) : json.has(key.name))) return;
    key.form.read(json.at(key.name), record.*key.member);
  };
  std::apply([&](const auto&... keys) { (read(keys), ...); }, keys_of(Tag<Record>{}));
  return record;
}

struct Text {
  static ordered_json write(const std::string& text) { return text; }
  static void read(const Cursor& json, std::string& text) { text = json.text(); }
};

struct FixedText {
  static ordered_json write(const perflab_text& text) { return text.text; }
  static void read(const Cursor& json, perflab_text& text) {
    const std::string given = json.text();
    if (const std::string problem = text_problem("it", given); !problem.empty()) json.fail(problem);
    text = {};
    given.copy(text.text, sizeof text.text - 1);
  }
};

struct Number {
  static ordered_json write(double number) { return number; }
  static void read(const Cursor& json, double& number) { number = json.number(); }
};

struct Boolean {
  static ordered_json write(bool value) { return value; }
  static void read(const Cursor& json, bool& value) { value = json.boolean(); }
};

template <std::int64_t low, std::int64_t high>
struct Whole {
  static ordered_json write(auto number) { return number; }
  template <typename Integer>
  static void read(const Cursor& json, Integer& number) {
    number = static_cast<Integer>(json.integer(low, high));
  }
};
using Duration = Whole<0, kLongestDuration>;
using Period = Whole<kShortestPeriod, kLongestDuration>;
using Priority = Whole<-kMaxInt, kMaxInt>;

template <const auto& words>
struct OneOf {
  static ordered_json write(auto value) { return word_of(words, value); }
  template <typename Enumerator>
  static void read(const Cursor& json, Enumerator& value) {
    value = json.word(words);
  }
};

// null stands for one particular value.
template <typename Form, auto none>
struct OrNull {
  template <typename Value>
  static ordered_json write(const Value& value) {
    return value == static_cast<Value>(none) ? ordered_json(nullptr) : Form::write(value);
  }
  template <typename Value>
  static void read(const Cursor& json, Value& value) {
    if (json.is_null()) {
      value = static_cast<Value>(none);
    } else {
      Form::read(json, value);
    }
  }
};
using Limit = OrNull<Whole<1, kLongestDuration>, PERFLAB_DURATION_INFINITE>;

template <typename Form>
struct Optional {
  static ordered_json write(const auto& value) { return value ? Form::write(*value) : ordered_json(nullptr); }
  template <typename Value>
  static void read(const Cursor& json, std::optional<Value>& value) {
    if (!json.is_null()) Form::read(json, value.emplace());
  }
};

struct Object {
  static ordered_json write(const auto& record) { return write_part(record); }
  template <typename Record>
  static void read(const Cursor& json, Record& record) {
    record = read_part<Record>(json);
  }
};

template <typename Form>
struct List {
  static ordered_json write(const auto& items) {
    ordered_json list = ordered_json::array();
    for (const auto& item : items) list.push_back(Form::write(item));
    return list;
  }
  static void read(const Cursor& json, auto& items) {
    json.each([&](const Cursor& item) { Form::read(item, items.emplace_back()); });
  }
};
using Indexes = List<Whole<0, kMaxInt>>;

// Writes and reads the value of a policy.
struct JsonForm {
  template <const auto& words>
  static OneOf<words> of(middleware::form::Words<words>);
  static OrNull<Whole<1, kMaxInt>, PERFLAB_DEPTH_UNLIMITED> of(middleware::form::Depth);
  static Limit of(middleware::form::Limit);
  static Duration of(middleware::form::Duration);
  static Whole<0, kMaxInt> of(middleware::form::Number);
  static OrNull<Whole<1, kMaxInt>, PERFLAB_COUNT_UNLIMITED> of(middleware::form::Most);
  static Boolean of(middleware::form::Flag);
  static FixedText of(middleware::form::Text);
  static FixedText of(middleware::form::Names);
};

// Uses the table of policies. Policies of ROS 2 are always written; others only if they differ from the DDS
// default, and files of older versions lack them.
struct QosObject {
  static ordered_json write(const perflab_qos& qos) {
    ordered_json json = ordered_json::object();
    middleware::each_policy([&](const auto& row) {
      using Form = decltype(JsonForm::of(row.form));
      const auto& value = qos.*row.member;
      if (row.origin == middleware::Origin::kDds && middleware::same_value(value, default_qos().*row.member)) return;
      json[row.resolved] = Form::write(value);
    });
    return json;
  }
  static void read(const Cursor& json, perflab_qos& qos) {
    qos = default_qos();
    middleware::each_policy([&](const auto& row) {
      using Form = decltype(JsonForm::of(row.form));
      if (json.has(row.resolved)) Form::read(json.at(row.resolved), qos.*row.member);
    });
  }
};

using PassByWord = OrNull<OneOf<kPassByWords>, PassBy::kUnspecified>;

constexpr auto keys_of(Tag<Publisher> /*of*/) {
  return std::tuple{key("topic", &Publisher::topic, Text{}),
                    key("type", &Publisher::type, Text{}),
                    key("size_bytes", &Publisher::size_bytes, OrNull<Whole<0, kMaxUnsigned>, -1>{}),
                    key("frequency_hz", &Publisher::frequency_hz, Number{}),
                    key("pass_by", &Publisher::pass_by, PassByWord{}),
                    key("qos", &Publisher::qos, QosObject{}),
                    key("instances", &Publisher::instances, Whole<1, kMaxUnsigned>{}, Absent::kOmitted)};
}

// A length equal to the size is omitted. An unknown size is null.
struct PublisherObject : Object {
  static ordered_json write(const Publisher& publisher) {
    ordered_json json = Object::write(publisher);
    if (!publisher.sized) json["size_bytes"] = nullptr;
    if (publisher.length != publisher.size_bytes) json["length"] = publisher.length;
    return json;
  }
  static void read(const Cursor& json, Publisher& publisher) {
    Object::read(json, publisher);
    publisher.sized = json.gives("size_bytes");
    if (!publisher.sized) publisher.size_bytes = 0;
    publisher.length = publisher.size_bytes;
    if (json.gives("length"))
      publisher.length = static_cast<std::uint32_t>(json.at("length").integer(0, kMaxUnsigned));
  }
};

constexpr auto keys_of(Tag<Acknowledgement> /*of*/) {
  return std::tuple{key("from", &Acknowledgement::from, Text{}), key("node", &Acknowledgement::node, Text{}),
                    key("topic", &Acknowledgement::topic, Text{}),
                    key("every", &Acknowledgement::every, Whole<1, kMaxInt>{})};
}

constexpr auto keys_of(Tag<Subscription> /*of*/) {
  return std::tuple{key("topic", &Subscription::topic, Text{}), key("type", &Subscription::type, Text{}),
                    key("pass_by", &Subscription::pass_by, PassByWord{}),
                    key("qos", &Subscription::qos, QosObject{}),
                    key("filter", &Subscription::filter, Text{}, Absent::kOmitted),
                    key("number", &Subscription::number, Whole<1, kMaxInt>{}, Absent::kOmitted),
                    key("priority", &Subscription::priority, Priority{}, Absent::kOmitted),
                    key("acknowledge", &Subscription::acknowledge, List<Object>{}, Absent::kNullOmitted)};
}

constexpr auto keys_of(Tag<Client> /*of*/) {
  return std::tuple{key("service", &Client::service, Text{}), key("type", &Client::type, Text{}),
                    key("frequency_hz", &Client::frequency_hz, Number{}), key("qos", &Client::qos, QosObject{}),
                    key("priority", &Client::priority, Priority{}, Absent::kOmitted)};
}

constexpr auto keys_of(Tag<Server> /*of*/) {
  return std::tuple{key("service", &Server::service, Text{}), key("type", &Server::type, Text{}),
                    key("qos", &Server::qos, QosObject{}), key("work_ns", &Server::work_ns, Duration{}),
                    key("priority", &Server::priority, Priority{}, Absent::kOmitted)};
}

constexpr auto keys_of(Tag<ActionClient> /*of*/) {
  return std::tuple{key("action", &ActionClient::action, Text{}), key("type", &ActionClient::type, Text{}),
                    key("frequency_hz", &ActionClient::frequency_hz, Number{}),
                    key("cancel_after_ns", &ActionClient::cancel_after_ns, Duration{}, Absent::kOmitted),
                    key("priority", &ActionClient::priority, Priority{}, Absent::kOmitted)};
}

constexpr auto keys_of(Tag<ActionServer> /*of*/) {
  return std::tuple{key("action", &ActionServer::action, Text{}),
                    key("type", &ActionServer::type, Text{}),
                    key("duration_ns", &ActionServer::duration_ns, Duration{}),
                    key("step_ns", &ActionServer::step_ns, Period{}),
                    key("work_ns", &ActionServer::work_ns, Duration{}),
                    key("feedback", &ActionServer::feedback, Boolean{}),
                    key("reject_every", &ActionServer::reject_every, Whole<0, kMaxInt>{}, Absent::kOmitted),
                    key("priority", &ActionServer::priority, Priority{}, Absent::kOmitted)};
}

constexpr auto keys_of(Tag<Waitable> /*of*/) {
  return std::tuple{key("name", &Waitable::name, Text{}), key("work_ns", &Waitable::work_ns, Duration{}),
                    key("priority", &Waitable::priority, Priority{}, Absent::kOmitted)};
}

constexpr auto keys_of(Tag<Throttle::Source> /*of*/) {
  using Source = Throttle::Source;
  return std::tuple{key("node", &Source::node, Text{}), key("topic", &Source::topic, Text{}),
                    key("every", &Source::every, Whole<1, kMaxInt>{}), key("counted", &Source::counted, Boolean{})};
}

// A number in (0, 1].
struct Share : Number {
  static void read(const Cursor& json, double& share) {
    share = json.number();
    if (!(share > 0 && share <= 1)) json.fail("must be more than 0 and at most 1");
  }
};

constexpr auto keys_of(Tag<Throttle> /*of*/) {
  return std::tuple{key("sources", &Throttle::sources, List<Object>{}),  key("target_ns", &Throttle::target_ns, Period{}),
                    key("interval_ns", &Throttle::interval_ns, Period{}), key("accepted", &Throttle::accepted, Share{}),
                    key("decrease", &Throttle::decrease, Share{}),        key("increase", &Throttle::increase, Share{}),
                    key("lowest", &Throttle::lowest, Share{})};
}

constexpr auto keys_of(Tag<Timer> /*of*/) {
  return std::tuple{key("name", &Timer::name, Text{}),
                    key("period_ns", &Timer::period_ns, OrNull<Period, 0>{}),
                    key("arrivals", &Timer::arrivals, OneOf<kArrivalsWords>{}, Absent::kOmitted),
                    key("burst", &Timer::burst, Whole<1, kLargestBurst>{}, Absent::kOmitted),
                    key("publish", &Timer::publish, Indexes{}),
                    key("request", &Timer::request, Indexes{}, Absent::kDefault),
                    key("trigger", &Timer::trigger, Indexes{}, Absent::kNullOmitted),
                    key("goal", &Timer::goal, Indexes{}, Absent::kNullOmitted),
                    key("work_ns", &Timer::work_ns, Duration{}),
                    key("overrun", &Timer::overrun, OneOf<kOverrunWords>{}),
                    key("phase", &Timer::phase, OneOf<kPhaseWords>{}, Absent::kNullDefault),
                    key("priority", &Timer::priority, Priority{}, Absent::kOmitted),
                    key("throttle", &Timer::throttle, Optional<Object>{}, Absent::kNullOmitted)};
}

bool is_cyclic(const Reaction& reaction) { return reaction.kind == ReactionKind::kCyclic; }

constexpr auto keys_of(Tag<Reaction> /*of*/) {
  return std::tuple{key("kind", &Reaction::kind, OneOf<kReactionWords>{}),
                    key("on", &Reaction::on, Indexes{}),
                    key("publish", &Reaction::publish, Indexes{}),
                    key("work_ns", &Reaction::work_ns, Duration{}),
                    key("period_ns", &Reaction::period_ns, OrNull<Period, 0>{}),
                    key("phase", &Reaction::phase, OneOf<kPhaseWords>{}, Absent::kNullDefault, is_cyclic),
                    key("priority", &Reaction::priority, Priority{}, Absent::kOmitted, is_cyclic)};
}

constexpr auto keys_of(Tag<realtime::ThreadSettings> /*of*/) {
  using Settings = realtime::ThreadSettings;
  return std::tuple{key("policy", &Settings::policy, Optional<OneOf<kPolicyWords>>{}),
                    key("priority", &Settings::priority, Whole<0, realtime::kHighestPriority>{}),
                    key("cpus", &Settings::cpus, List<Whole<0, kHighestCpu>>{}),
                    key("runtime_ns", &Settings::runtime_ns, Duration{}, Absent::kOmitted),
                    key("deadline_ns", &Settings::deadline_ns, Duration{}, Absent::kOmitted),
                    key("period_ns", &Settings::period_ns, Duration{}, Absent::kOmitted)};
}

// Empty settings are null.
struct ThreadOrNull : Object {
  static ordered_json write(const realtime::ThreadSettings& settings) {
    return settings.empty() ? ordered_json(nullptr) : Object::write(settings);
  }
};

constexpr auto keys_of(Tag<Threads> /*of*/) {
  return std::tuple{key(kExecutorThreads.data(), &Threads::executors, ThreadOrNull{}, Absent::kNullDefault),
                    key(kMiddlewareThreads.data(), &Threads::middleware, ThreadOrNull{}, Absent::kNullDefault)};
}

// The threads of a program by name, besides those that every process has.
struct ThreadsObject : Object {
  static ordered_json write(const Threads& threads) {
    ordered_json json = Object::write(threads);
    for (const auto& [name, settings] : threads.program) json[name] = ThreadOrNull::write(settings);
    return json;
  }
  static void read(const Cursor& json, Threads& threads) {
    Object::read(json, threads);
    json.each_key([&](const std::string& name, const Cursor& settings) {
      if (name == kExecutorThreads || name == kMiddlewareThreads) return;
      realtime::ThreadSettings& own = threads.program[name];
      if (!settings.is_null()) ThreadOrNull::read(settings, own);
    });
  }
};

// An arbitrary object.
struct AnyObject {
  static ordered_json write(const std::string& text) { return ordered_json::parse(text); }
  static void read(const Cursor& json, std::string& text) { text = json.object_text(); }
};

constexpr auto keys_of(Tag<Executor> /*of*/) {
  return std::tuple{
      key("id", &Executor::id, Whole<0, kMaxInt>{}), key("kind", &Executor::kind, OneOf<kExecutorWords>{}),
      key("threads", &Executor::threads, OrNull<Whole<1, kMaxExecutorThreads>, 0>{}, Absent::kNullDefault),
      key("period_ns", &Executor::period_ns, OrNull<Period, 0>{}, Absent::kNullOmitted),
      key("thread", &Executor::thread, ThreadOrNull{}, Absent::kNullDefault)};
}

struct Condition : Text {
  static void read(const Cursor& json, std::string& label) {
    label = json.text();
    if (label.empty()) json.fail("must be the label of a condition, or null");
  }
};

constexpr auto keys_of(Tag<Node> /*of*/) {
  return std::tuple{key("name", &Node::name, Text{}),
                    key("namespace", &Node::node_namespace, Text{}),
                    key("executor", &Node::executor, Whole<0, kMaxInt>{}),
                    key("publishers", &Node::publishers, List<PublisherObject>{}),
                    key("subscriptions", &Node::subscriptions, List<Object>{}),
                    key("clients", &Node::clients, List<Object>{}, Absent::kDefault),
                    key("servers", &Node::servers, List<Object>{}, Absent::kDefault),
                    key("action_clients", &Node::action_clients, List<Object>{}, Absent::kNullOmitted),
                    key("action_servers", &Node::action_servers, List<Object>{}, Absent::kNullOmitted),
                    key("waitables", &Node::waitables, List<Object>{}, Absent::kNullOmitted),
                    key("timers", &Node::timers, List<Object>{}),
                    key("reactions", &Node::reactions, List<Object>{}),
                    key("condition", &Node::condition, Condition{}, Absent::kNullOmitted),
                    key("stands_for", &Node::stands_for, Text{}, Absent::kNullOmitted)};
}

struct NodeObject : Object {
  // A late condition skips missed ticks: catching up would prolong the workload's run.
  static void read(const Cursor& json, Node& node) {
    Object::read(json, node);
    if (node.condition.empty()) return;
    json.at("timers").each([](const Cursor& timer) {
      const Cursor overrun = timer.at("overrun");
      if (overrun.word(kOverrunWords) != Overrun::kSkip)
        overrun.fail("must be skip in a node of a condition");
    });
  }
};

constexpr auto keys_of(Tag<Process> /*of*/) {
  return std::tuple{
      key("name", &Process::name, Text{}),
      key("executors", &Process::executors, List<Object>{}),
      key("participants", &Process::participants, Whole<1, kMaxParticipants>{}, Absent::kDefault),
      key("threads", &Process::threads, ThreadsObject{}, Absent::kDefault),
      key("lock_memory", &Process::lock_memory, Boolean{}, Absent::kDefault),
      key("program", &Process::program, Text{}, Absent::kNullOmitted),
      key("options", &Process::options, AnyObject{}, Absent::kNullOmitted),
      key("ends", &Process::ends, Boolean{}, Absent::kOmitted),
      key("nodes", &Process::nodes, List<NodeObject>{})};
}

// An edge is [publisher, topic, subscription].
struct EdgeList {
  static ordered_json write(const KeyFigure::Edge& edge) {
    return {edge.publisher, edge.topic, edge.subscription};
  }
  static void read(const Cursor& json, KeyFigure::Edge& edge) {
    std::vector<std::string> ends;
    List<Text>::read(json, ends);
    if (ends.size() != 3) json.fail("must be publisher, topic and subscription");
    edge = {ends[0], ends[1], ends[2]};
  }
};

constexpr auto keys_of(Tag<KeyFigure::Source> /*of*/) {
  using Source = KeyFigure::Source;
  return std::tuple{key("node", &Source::node, Text{}), key("topic", &Source::topic, Text{}),
                    key("period_ns", &Source::period_ns, Period{})};
}

struct TopicsOrNull : List<Text> {
  static ordered_json write(const std::vector<std::string>& topics) {
    return topics.empty() ? ordered_json(nullptr) : List<Text>::write(topics);
  }
};

template <KeyFigureKind kind>
bool is_kind(const KeyFigure& figure) {
  return figure.kind == kind;
}

constexpr auto keys_of(Tag<KeyFigure> /*of*/) {
  constexpr auto is_path = is_kind<KeyFigureKind::kPath>;
  return std::tuple{
      key("name", &KeyFigure::name, Text{}),
      key("kind", &KeyFigure::kind, OneOf<kKeyFigureWords>{}),
      key("from", &KeyFigure::from, List<Text>{}, Absent::kRefused, is_path),
      key("to", &KeyFigure::to, Text{}, Absent::kRefused, is_path),
      key("edges", &KeyFigure::edges, List<EdgeList>{}, Absent::kRefused, is_path),
      key("topics", &KeyFigure::topics, TopicsOrNull{}, Absent::kNullDefault, is_kind<KeyFigureKind::kLost>),
      key("publishers", &KeyFigure::publishers, List<Object>{}, Absent::kRefused,
          is_kind<KeyFigureKind::kJitter>)};
}

constexpr auto keys_of(Tag<Graph> /*of*/) {
  return std::tuple{key("name", &Graph::name, Text{}),
                    key("serialization", &Graph::serialization,
                        OrNull<OneOf<kSerializationWords>, Serialization::kUnspecified>{}, Absent::kNullOmitted),
                    key("keyed", &Graph::keyed, Boolean{}, Absent::kOmitted),
                    key("limit_ns", &Graph::limit_ns, Duration{}, Absent::kOmitted),
                    key("processes", &Graph::processes, List<Object>{}),
                    key("key_figures", &Graph::key_figures, List<Object>{}, Absent::kNullOmitted),
                    key("own_figures", &Graph::own_figures, AnyObject{}, Absent::kNullOmitted),
                    key("own_outcomes", &Graph::own_outcomes, AnyObject{}, Absent::kNullOmitted)};
}

std::string path_of(const Item& item) {
  if (item.part == Part::kGraph) return "graph";
  const std::string process = fmt::format("graph.processes[{}]", item.process);
  if (item.part == Part::kProcess) return process;
  if (item.part == Part::kExecutor) return fmt::format("{}.executors[{}]", process, item.index);
  const std::string node = fmt::format("{}.nodes[{}]", process, item.node);
  if (item.part == Part::kNode) return node;
  return fmt::format("{}.{}[{}]", node, list_name(item.part), item.index);
}

// The definitions of the graph's types that are not perflab's own, by full name.
std::map<std::string, std::string> interfaces_of(const Graph& graph) {
  std::map<std::string, std::string> texts;
  std::set<std::string> seen;
  const auto add = [&](const std::string& interface_name) {
    if (seen.insert(interface_name).second) texts.merge(graph.messages->texts_of(interface_name));
  };
  for_each_node(graph, [&](const Node& node, const Item& /*item*/) {
    for (const Publisher& publisher : node.publishers) add(graph.messages->find(publisher.type)->type->name);
    for (const Subscription& subscription : node.subscriptions)
      add(graph.messages->find(subscription.type)->type->name);
    for (const Client& client : node.clients) add(*graph.messages->full_service_name(client.type));
    for (const Server& server : node.servers) add(*graph.messages->full_service_name(server.type));
    for (const ActionClient& client : node.action_clients) add(*graph.messages->full_action_name(client.type));
    for (const ActionServer& server : node.action_servers) add(*graph.messages->full_action_name(server.type));
  });
  return texts;
}

std::map<std::string, std::string> read_interfaces(const Cursor& json) {
  if (!json.is_object()) json.fail("must be an object of texts");
  std::map<std::string, std::string> texts;
  json.each_key([&](const std::string& name, const Cursor& text) { texts[name] = text.text(); });
  return texts;
}

}  // namespace

nlohmann::ordered_json graph_to_json(const Graph& graph) {
  ordered_json json;
  json["schema"] = kSchema;
  json.update(write_part(graph));
  if (const auto interfaces = interfaces_of(graph); !interfaces.empty()) json["interfaces"] = interfaces;
  return json;
}

Graph graph_from_json(const nlohmann::json& value) {
  const Cursor root(value, "graph");
  const Cursor schema = root.at("schema");
  if (schema.integer(0, kMaxInt) != kSchema) schema.fail(fmt::format("must be {} for this version", kSchema));
  Graph graph = read_part<Graph>(root);
  if (root.gives("interfaces"))
    graph.messages = std::make_shared<message::Formats>(read_interfaces(root.at("interfaces")));
  check(graph, path_of);
  return graph;
}

namespace {

namespace form = middleware::form;
template <const auto& words>
ordered_json form_of(form::Words<words> /*form*/) {
  ordered_json texts;
  for (const auto& word : words) texts.push_back(word.text);
  return texts;
}
ordered_json form_of(form::Depth /*form*/) { return "depth"; }
ordered_json form_of(form::Limit /*form*/) { return "limit"; }
ordered_json form_of(form::Duration /*form*/) { return "duration"; }
ordered_json form_of(form::Number /*form*/) { return "number"; }
ordered_json form_of(form::Most /*form*/) { return "most"; }
ordered_json form_of(form::Flag /*form*/) { return "flag"; }
ordered_json form_of(form::Text /*form*/) { return "text"; }
ordered_json form_of(form::Names /*form*/) { return "names"; }

}  // namespace

ordered_json policies_to_json() {
  using middleware::Ends;
  ordered_json all = ordered_json::array();
  middleware::each_policy([&](const auto& row) {
    all.push_back({{"name", row.name},
                   {"resolved", row.resolved},
                   {"policy", row.policy},
                   {"form", form_of(row.form)},
                   {"ends", row.ends == Ends::kBoth ? "both" : row.ends == Ends::kWriters ? "publishers" : "subscriptions"},
                   {"ros2", row.origin == middleware::Origin::kRos2}});
  });
  return all;
}

ordered_json thread_settings_to_json(const realtime::ThreadSettings& settings) {
  return ThreadOrNull::write(settings);
}

realtime::ThreadSettings thread_settings_from_json(const nlohmann::json& value, std::string_view path) {
  const Cursor json(value, std::string(path));
  if (json.is_null()) return {};
  auto settings = read_part<realtime::ThreadSettings>(json);
  if (const std::string problem = thread_problem(settings); !problem.empty()) json.fail(problem);
  return settings;
}

Graph read_resolved(std::string_view text) {
  try {
    return graph_from_json(json::parse(text));
  } catch (const json::exception& error) {
    throw InputError(fmt::format("graph: is not valid JSON: {}", error.what()));
  }
}

}  // namespace perflab::graph
