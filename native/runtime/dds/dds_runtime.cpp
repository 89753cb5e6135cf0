#include "runtime/dds/dds_runtime.h"

#include <algorithm>
#include <array>
#include <new>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "message/names.h"
#include "middleware/policies.h"
#include "middleware/types.h"
#include "realtime/thread.h"
#include "runtime/action_client.h"
#include "runtime/action_server.h"
#include "runtime/dds/executor.h"
#include "runtime/dds/publisher.h"
#include "runtime/dds/subscription.h"
#include "runtime/dds/tracing.h"
#include "runtime/dds/waitable.h"
#include "runtime/names.h"
#include "runtime/service.h"

namespace perflab::runtime {
namespace {

std::int64_t host_now(void* context) { return static_cast<DdsRuntime*>(context)->clock().now(); }

ServiceFraming choose_framing(const middleware::Plugin& plugin, const DdsSettings& settings) {
  const bool can_relate = plugin.capabilities().related_samples;
  if (settings.service_framing == ServiceFraming::kRmwFastrtps && !can_relate) {
    throw Unsupported(std::string(plugin.name()) +
                      ": has no related_sample_identity, by which rmw_fastrtps ties replies to requests; "
                      "right would be --service-framing rmw_cyclonedds");
  }
  return settings.service_framing.value_or(can_relate ? ServiceFraming::kRmwFastrtps
                                                      : ServiceFraming::kRmwCyclonedds);
}

// Calls `use(pieces)`; returns a default value if there is no memory.
template <typename Use>
auto with_pieces(const perflab_bytes* parts, std::size_t count, const Use& use) noexcept
    -> decltype(use(message::Pieces{})) {
  constexpr std::size_t kUsual = 8;  // more than an ordinary message has
  std::array<std::span<const std::uint8_t>, kUsual> usual;
  std::vector<std::span<const std::uint8_t>> more;
  std::span<std::span<const std::uint8_t>> pieces(usual);
  if (count > kUsual) {
    try {
      more.resize(count);
    } catch (const std::bad_alloc&) {
      return {};
    }
    pieces = more;
  }
  pieces = pieces.first(count);
  for (std::size_t i = 0; i < count; ++i) pieces[i] = {static_cast<const std::uint8_t*>(parts[i].data), parts[i].size};
  return use(pieces);
}

// Like the above, for `use(key, form, pieces)`.
template <typename Use>
auto with_key(const void* context, perflab_form form, const perflab_bytes* parts, std::size_t count, const Use& use) noexcept {
  return with_pieces(parts, count, [&](message::Pieces pieces) {
    return use(*static_cast<const message::Key*>(context),
               form == PERFLAB_KEY ? message::Key::In::kKey : message::Key::In::kMessage, pieces);
  });
}

perflab_filter as_c(const message::Filter& filter) {
  return {.wants =
              [](const void* context, const perflab_bytes* parts, std::size_t count) {
                const auto& of = *static_cast<const message::Filter*>(context);
                return !with_pieces(parts, count,
                                    [&](message::Pieces pieces) { return of.match(pieces) == message::Filter::Match::kNo; });
              },
          .context = &filter,
          .expression = filter.expression().c_str()};
}

perflab_key as_c(const message::Key& key) {
  return {.extract =
              [](const void* context, perflab_form form, const perflab_bytes* parts, std::size_t count, std::uint8_t* to,
                 std::size_t capacity) {
                return with_key(context, form, parts, count, [&](const message::Key& of, auto in, auto pieces) {
                  return of.extract(pieces, in, {to, capacity});
                });
              },
          .hash =
              [](const void* context, perflab_form form, const perflab_bytes* parts, std::size_t count,
                 std::uint8_t hash[16]) {
                return with_key(context, form, parts, count, [&](const message::Key& of, auto in, auto pieces) {
                  message::KeyHash found;
                  const bool known = of.hash(pieces, in, found);
                  if (known) std::ranges::copy(found, hash);
                  return known;
                });
              },
          .context = &key};
}

// Unique among all processes of the domain.
ServiceId random_service_id() {
  std::random_device random;
  ServiceId id;
  for (std::uint8_t& byte : id) byte = static_cast<std::uint8_t>(random());
  return id;
}

}  // namespace

DdsRuntime::DdsRuntime(middleware::Plugin plugin, const middleware::ParticipantSettings& participant,
                       const DdsSettings& settings, const measure::Clock& clock, EventSink& sink)
    : plugin_(std::move(plugin)),
      settings_(settings),
      framing_(choose_framing(plugin_, settings)),
      clock_(clock),
      sink_(sink) {
  perflab_host host{};
  host.now_ns = &host_now;
  host.on_event = [](void* context, const perflab_event* event) {
    static_cast<DdsRuntime*>(context)->sink_.on_event(*event);
  };
  host.context = this;
  middleware::ParticipantSettings given = participant;
  given.ignore_local_endpoints = settings.intra_process;
  for (std::size_t i = 0; i < settings.participants; ++i) participants_.push_back(plugin_.open(host, given));
  if (settings_.trace != nullptr) tracer_ = std::make_unique<Tracer>(*settings_.trace, this);
}

DdsRuntime::~DdsRuntime() { DdsRuntime::stop(); }

middleware::EndpointSettings DdsRuntime::endpoint_settings(const EndpointSettings& settings) {
  const perflab_key* key = nullptr;
  if (settings.key != nullptr) key = &keys_.try_emplace(settings.key, as_c(*settings.key)).first->second;
  std::vector<perflab_filter> filters;
  for (const message::Filter* const filter : settings.filters) filters.push_back(as_c(*filter));
  return {.topic = wire_name(settings),
          .type = message::dds_type_name(settings.ros_type),
          .fixed_size = settings.fixed_size,
          .loans = settings.pass_by == PassBy::kLoaned,
          .related_samples = settings.kind != TopicKind::kTopic,
          .qos = settings.qos,
          .user_data = user_data_of(settings),
          .key = key,
          .filters = std::move(filters)};
}

void DdsRuntime::name_group(std::size_t group, const NodeName& node) {
  if (tracer_) tracer_->name_group(group, node.node_namespace, node.name);
}

std::unique_ptr<DdsRuntime::DdsExecutor> DdsRuntime::make_executor(const ExecutorSettings& settings) {
  switch (settings.kind) {
    case ExecutorKind::kInline:
      return Executors::make_inline(clock_, settings);
    case ExecutorKind::kEvents:
      return Executors::make_events(clock_, settings, settings_.trace);
    case ExecutorKind::kPolling:
      return Executors::make_polling(clock_, settings, settings_.trace);
    case ExecutorKind::kMultiThreaded:
      return Executors::make_multi_threaded(clock_, settings, settings_.trace);
    case ExecutorKind::kPriority:
      return Executors::make_priority(clock_, settings, settings_.trace);
    case ExecutorKind::kLet:
      return Executors::make_let(clock_, settings, participants_.front().create_waitset(), sink_, settings_.trace);
    case ExecutorKind::kStaticSingleThreaded:  // was refused before
    case ExecutorKind::kSingleThreaded:
      break;
  }
  return Executors::make_single_threaded(clock_, settings, participants_.front().create_waitset(), sink_,
                                         settings_.trace);
}

std::size_t DdsRuntime::add_executor(const ExecutorSettings& settings) {
  if (settings.kind == ExecutorKind::kStaticSingleThreaded) {
    throw Unsupported(
        settings.name + ": " + std::string(plugin_.name()) +
        ": static_single_threaded is an executor of rclcpp; right would be single_threaded, whose "
        "entities never change here");
  }
  const bool told = settings.kind == ExecutorKind::kEvents || settings.kind == ExecutorKind::kMultiThreaded ||
                    settings.kind == ExecutorKind::kPriority;
  if (told && !plugin_.capabilities().data_ready_callbacks) {
    throw Unsupported(settings.name + ": " + std::string(plugin_.name()) +
                      " has no data-ready callbacks, which this executor needs; "
                      "right would be single_threaded");
  }
  executors_.push_back(make_executor(settings));
  return executors_.size() - 1;
}

Publisher& DdsRuntime::create_publisher(const EndpointSettings& settings) {
  if (settings.known_by_stamp && !plugin_.capabilities().source_timestamps) {
    throw Unsupported(settings.topic + ": " + std::string(plugin_.name()) +
                      " has no source time stamps, by which messages of " + settings.ros_type +
                      " are identified; right would be a type with a perflab_msgs/Header, or time and id");
  }
  publishers_.push_back(
      std::make_unique<DdsPublisher>(clock_, sink_, settings, plugin_.capabilities(), settings_.trace));
  DdsPublisher& publisher = *publishers_.back();
  publisher.set_writer(
      participant_of(settings).create_writer(endpoint_settings(settings), publisher.listener()));
  if (tracer_) tracer_->made(publisher);
  if (settings_.intra_process) {
    LocalTopic& topic = local_topic(settings);
    for (DdsSubscription* const subscription : topic.subscriptions) connect(publisher, *subscription);
    topic.publishers.push_back(&publisher);
  }
  return publisher;
}

Subscription& DdsRuntime::create_subscription(std::size_t executor, const EndpointSettings& settings,
                                              MessageHandler& handler) {
  if (settings_.intra_process && !settings.filters.empty()) {
    throw Unsupported(settings.topic + ": a subscription has a content filter, which delivery within the "
                                       "process does not support; right would be --ipc off, or no filter");
  }
  DdsExecutor& runner = *executors_.at(executor);
  // Delivery within the process needs a bounded history; connect() reports it if delivery is needed.
  const bool bounded = settings.qos.history == PERFLAB_KEEP_LAST && settings.qos.depth > 0;
  const std::size_t ring =
      settings_.intra_process && bounded ? static_cast<std::size_t>(settings.qos.depth) : 0;
  subscriptions_.push_back(
      std::make_unique<DdsSubscription>(clock_, handler, sink_, runner, settings, ring, settings_.trace));
  DdsSubscription& subscription = *subscriptions_.back();
  runner.add_subscription(subscription);
  subscription.set_reader(participant_of(settings).create_reader(
      endpoint_settings(settings), subscription.listener(runner.needs_data_callbacks())));
  runner.attach(subscription);
  if (tracer_) tracer_->made(subscription);
  if (settings_.intra_process) {
    LocalTopic& topic = local_topic(settings);
    for (DdsPublisher* const publisher : topic.publishers) connect(*publisher, subscription);
    topic.subscriptions.push_back(&subscription);
  }
  return subscription;
}

middleware::Participant& DdsRuntime::participant_of(const EndpointSettings& settings) {
  return participants_.at(settings.participant);
}

DdsRuntime::LocalTopic& DdsRuntime::local_topic(const EndpointSettings& settings) {
  return local_topics_[{wire_name(settings), settings.ros_type}];
}

void DdsRuntime::connect(DdsPublisher& publisher, DdsSubscription& subscription) {
  const std::string topic = wire_name(publisher.settings());
  const std::string type = message::dds_type_name(publisher.settings().ros_type);
  perflab_event event{};
  event.at_ns = clock_.now();
  event.topic = topic.c_str();
  event.type = type.c_str();
  event.count = 1;
  event.policy = middleware::incompatible_policy(publisher.settings().qos, subscription.settings().qos);
  if (event.policy == nullptr) {
    require_intra_process(publisher.settings(), subscription.settings());
    publisher.add_taker(subscription.taker(), subscription.settings().pass_by == PassBy::kUnique);
    subscription.add_local_writer();
  }
  // The middleware ignores local endpoints and reports nothing about them.
  event.kind = event.policy == nullptr ? PERFLAB_MATCHED : PERFLAB_INCOMPATIBLE_QOS;
  event.peer = subscription.identity();
  sink_.on_event(event);
  event.peer = publisher.identity();
  sink_.on_event(event);
}

Client& DdsRuntime::create_client(std::size_t executor, const ServiceSettings& settings,
                                  MessageHandler& handler) {
  clients_.push_back(
      std::make_unique<ServiceClient>(*this, executor, settings, framing_, random_service_id(), handler));
  return *clients_.back();
}

Server& DdsRuntime::create_server(std::size_t executor, const ServiceSettings& settings,
                                  RequestHandler& handler) {
  servers_.push_back(
      std::make_unique<ServiceServer>(*this, executor, settings, framing_, random_service_id(), handler));
  return *servers_.back();
}

ActionClient& DdsRuntime::create_action_client(std::size_t executor, const ActionSettings& settings,
                                               ActionClientHandler& handler) {
  action_clients_.push_back(std::make_unique<ServiceActionClient>(*this, executor, settings, handler));
  return *action_clients_.back();
}

ActionServer& DdsRuntime::create_action_server(std::size_t executor, const ActionSettings& settings,
                                               ActionServerHandler& handler) {
  action_servers_.push_back(
      std::make_unique<ServiceActionServer>(*this, executor, settings, ServiceActionServer::Time::kWall, handler));
  return *action_servers_.back();
}

void DdsRuntime::create_timer(std::size_t executor, const TimerSettings& settings, TimerHandler& handler) {
  DdsExecutor& runner = *executors_.at(executor);
  const ExecutorKind kind = runner.settings().kind;
  const TracedTimer::Phases phases = kind == ExecutorKind::kInline ? TracedTimer::Phases::kNone
                                     : kind == ExecutorKind::kLet  ? TracedTimer::Phases::kExecute
                                                                   : TracedTimer::Phases::kBoth;
  runner.add_timer(settings, tracer_ ? tracer_->make_timer(settings, handler, phases) : handler);
}

Waitable& DdsRuntime::create_waitable(std::size_t executor, const WaitableSettings& settings,
                                      WaitableHandler& handler) {
  DdsExecutor& runner = *executors_.at(executor);
  waitables_.push_back(std::make_unique<DdsWaitable>(handler, runner, settings, settings_.trace));
  DdsWaitable& waitable = *waitables_.back();
  runner.add_waitable(waitable);
  if (tracer_) tracer_->made(waitable);
  return waitable;
}

Span* DdsRuntime::create_span(std::size_t group, const std::string& name, Nanoseconds period_ns) {
  return tracer_ ? &tracer_->make_span(group, name, period_ns) : nullptr;
}

std::vector<TypeDifference> DdsRuntime::type_differences() {
  // Each participant knows all others; these are their endpoints on a topic, by wire name.
  std::map<std::string, std::vector<middleware::RemoteEndpoint>> of_topic;
  for (middleware::RemoteEndpoint& other : participants_.front().remote_endpoints())
    of_topic[other.topic].push_back(std::move(other));
  std::set<TypeDifference> differences;
  const auto compare = [&](const EndpointSettings& ours, bool publishes) {
    const auto others = of_topic.find(wire_name(ours));
    if (others == of_topic.end()) return;
    const TypeName type{ours.ros_type, ours.type_hash};
    for (const middleware::RemoteEndpoint& other : others->second) {
      const TypeName theirs{message::ros_type_name(other.type), type_hash_in(other.user_data)};
      if (other.writes != publishes && type.differs(theirs))
        differences.insert({ours.kind, ours.topic, other.writes, type, theirs});
    }
  };
  for (const auto& publisher : publishers_) compare(publisher->settings(), true);
  for (const auto& subscription : subscriptions_) compare(subscription->settings(), false);
  return {differences.begin(), differences.end()};
}

void DdsRuntime::work(Nanoseconds amount) noexcept { realtime::spend_cpu_time(amount); }

void DdsRuntime::start(Nanoseconds base_ns) {
  for (const auto& executor : executors_) executor->set_base(base_ns);
  try {
    for (const auto& executor : executors_) executor->create_threads();
  } catch (const Error&) {
    for (const auto& executor : executors_) executor->stop();
    throw;
  }
  for (const auto& executor : executors_) executor->run();
}

bool DdsRuntime::timers_done() const noexcept {
  return std::ranges::all_of(executors_, [](const auto& executor) { return executor->timers_done(); });
}

void DdsRuntime::stop() noexcept {
  for (const auto& server : action_servers_) server->close();
  for (const auto& server : servers_) server->close();
  for (const auto& executor : executors_) executor->stop();
  // A closed reader runs no callback any more. The executors stay: a publisher may still notify them of a
  // message.
  for (const auto& subscription : subscriptions_) subscription->close();
}

std::string DdsRuntime::describe() {
  // The effective settings of the first participant apply to all; counters are per participant.
  nlohmann::json effective = nlohmann::json::parse(participants_.front().describe());
  if (participants_.size() > 1) {
    nlohmann::json each = nlohmann::json::array();
    for (middleware::Participant& participant : participants_)
      each.push_back(nlohmann::json::parse(participant.describe()));
    effective["participants"] = std::move(each);
  }
  const nlohmann::json description = {
      {"name", plugin_.name()}, {"version", plugin_.version()}, {"effective", std::move(effective)}};
  return description.dump();
}

}  // namespace perflab::runtime
