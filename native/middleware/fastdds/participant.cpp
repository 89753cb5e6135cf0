#include "middleware/fastdds/participant.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "base/error.h"
#include "middleware/fastdds/library.h"
#include "middleware/fastdds/sharing.h"
#include "middleware/policies.h"
#include "middleware/support/fastdds.h"
#include "middleware/support/filters.h"
#include "middleware/types.h"

namespace perflab::middleware::fastdds {
namespace {

constexpr const char* kThreadName = "fdds";
constexpr std::size_t kPrefix = rtps::GuidPrefix_t::size;
// How long a leaving participant waits for others in its process, which need a few milliseconds; longer if a
// message was lost.
constexpr auto kFarewell = std::chrono::seconds(5);

// Participants of this plug-in in this process: global state of the library ends with the last.
struct Process {
  std::mutex mutex;
  std::vector<Participant*> participants;
  bool intraprocess = true;
  // The library's defaults, read before any configuration.
  std::optional<dds::DomainParticipantQos> defaults;
};

Process& process() {
  static Process instance;
  return instance;
}

constexpr std::array kComparedPolicies{dds::DURABILITY_QOS_POLICY_ID, dds::DEADLINE_QOS_POLICY_ID,
                                       dds::LIVELINESS_QOS_POLICY_ID, dds::RELIABILITY_QOS_POLICY_ID};

// The policy that the library reports for two endpoints that do not match (the highest), or 0; also for two
// unrelated endpoints. Only of kComparedPolicies: in others perflab's endpoints never differ.
std::uint32_t incompatible(const Terms& one, const Terms& other) {
  if (one.is_writer == other.is_writer || one.topic != other.topic || one.type != other.type) return 0;
  const Terms& offered = one.is_writer ? one : other;
  const Terms& requested = one.is_writer ? other : one;
  std::uint32_t policy = 0;
  const auto differs = [&](bool differ, std::uint32_t id) {
    if (differ) policy = std::max(policy, id);
  };
  differs(offered.durability < requested.durability, dds::DURABILITY_QOS_POLICY_ID);
  differs(offered.deadline_ns > requested.deadline_ns, dds::DEADLINE_QOS_POLICY_ID);
  differs(
      offered.liveliness < requested.liveliness || offered.lease_duration_ns > requested.lease_duration_ns,
      dds::LIVELINESS_QOS_POLICY_ID);
  differs(offered.reliability < requested.reliability, dds::RELIABILITY_QOS_POLICY_ID);
  return policy;
}

#if !PERFLAB_FASTDDS_3
template <typename Proxy>
Terms terms_of(const Proxy& proxy, bool is_writer) {
  const auto& qos = proxy.m_qos;
  return {is_writer,
          proxy.topicName().to_string(),
          proxy.typeName().to_string(),
          qos.m_durability.kind,
          nanoseconds(qos.m_deadline.period),
          qos.m_liveliness.kind,
          nanoseconds(qos.m_liveliness.lease_duration),
          qos.m_reliability.kind};
}
#endif

// Accepts only messages of other processes. Before 2.11 the library does not tell a reader-side filter who
// wrote a message (sample_identity is empty there), but its argument is always part of a CacheChange_t, which
// has the writer.
class NotOwn final : public dds::IContentFilter {
 public:
  bool evaluate(const SerializedPayload& payload, const FilterSampleInfo&,
                const GUID_t& reader) const override {
#if PERFLAB_FASTDDS_IGNORES_LOCAL
    static_cast<void>(payload);
    static_cast<void>(reader);
    return true;
#else
    const auto* const start = reinterpret_cast<const char*>(&payload) - kPayloadInChange;
    const rtps::GUID_t& writer = reinterpret_cast<const rtps::CacheChange_t*>(start)->writerGUID;
    return std::memcmp(writer.guidPrefix.value, reader.guidPrefix.value, kProcessPrefix) != 0;
#endif
  }

 private:
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Winvalid-offsetof"
  static constexpr std::size_t kPayloadInChange = offsetof(rtps::CacheChange_t, serializedPayload);
#pragma GCC diagnostic pop
};

class NotOwnFactory final : public dds::IContentFilterFactory {
 public:
  ReturnCode create_content_filter(const char*, const char*, const dds::TopicDataType*, const char*,
                                   const ParameterSeq&, dds::IContentFilter*& filter) override {
    filter = &filter_;
    return kOk;
  }
  ReturnCode delete_content_filter(const char*, dds::IContentFilter*) override { return kOk; }

 private:
  NotOwn filter_;
};

// A filter of the host. The library creates one for its reader, and one in each participant with a writer of
// the topic.
class HostFilter final : public dds::IContentFilter {
 public:
  HostFilter(const perflab_filter& filter, support::FilterCounts& counts) : filter_(filter), counts_(counts) {}
  bool evaluate(const SerializedPayload& payload, const FilterSampleInfo&, const GUID_t&) const override {
    return counts_.wants(filter_, payload.data, payload.length);
  }

 private:
  const perflab_filter filter_;
  support::FilterCounts& counts_;
};

// Outlives the participants that use it.
NotOwnFactory& not_own_factory() {
  static NotOwnFactory instance;
  return instance;
}
constexpr const char* kNotOwn = "PERFLAB_NOT_OWN";
constexpr const char* kHostFilter = "PERFLAB";
thread_local bool makes_reader_filter = false;
// Appended to the name of the filtered topic; names in ROS 2 contain no blanks.
constexpr const char* kFiltered = " not_own";
constexpr const char* kWithFilter = " filter ";

// Port 0: the library inserts that of the domain.
rtps::Locator_t udp_locator(const std::string& address, std::uint32_t port = 0) {
  rtps::Locator_t locator;
  locator.kind = LOCATOR_KIND_UDPv4;
  locator.port = port;
  IpLocator::setIPv4(locator, address);
  return locator;
}

nlohmann::json as_json(const Direction& direction) {
  return {{"user_messages", direction.user_messages.load()},
          {"user_bytes", direction.user_bytes.load()},
          {"discovery_messages", direction.other_messages.load()},
          {"discovery_bytes", direction.other_bytes.load()}};
}

nlohmann::json as_json(const Traffic& traffic) {
  return {{"sent", as_json(traffic.sent)},
          {"received", as_json(traffic.received)},
          {"failed_sends", traffic.failed_sends.load()}};
}

// The threads of this process named like the library's.
nlohmann::json threads() {
  nlohmann::json out = nlohmann::json::array();
  std::error_code code;
  for (std::filesystem::directory_iterator at("/proc/self/task", code), end; !code && at != end;
       at.increment(code)) {
    std::ifstream file(at->path() / "comm");
    std::string name;
    if (std::getline(file, name) && (name.starts_with(kThreadName) || name.starts_with("dds.")))
      out.push_back({{"tid", std::stoi(at->path().filename())}, {"name", name}});
  }
  std::sort(out.begin(), out.end());
  return out;
}

}  // namespace

// A writer whose host does not give it the filter leaves filtering to the reader.
class Participant::FilterFactory final : public dds::IContentFilterFactory {
 public:
  ReturnCode create_content_filter(const char*, const char*, const dds::TopicDataType* type, const char* expression,
                                   const ParameterSeq&, dds::IContentFilter*& filter) override {
    const auto* const own = dynamic_cast<const MessageType*>(type);
    if (own == nullptr || expression == nullptr) return kBadParameter;
    const std::optional<perflab_filter> known = own->filter(expression);
    if (!known) return kBadParameter;
    filter = new HostFilter(*known, makes_reader_filter ? at_readers : at_writers);
    return kOk;
  }
  ReturnCode delete_content_filter(const char*, dds::IContentFilter* filter) override {
    delete static_cast<HostFilter*>(filter);
    return kOk;
  }

  support::FilterCounts at_readers;
  support::FilterCounts at_writers;
};

Participant::Participant(const perflab_host& host, Settings settings)
    : host_(host), settings_(std::move(settings)), filters_(std::make_unique<FilterFactory>()) {
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  if (all.participants.empty()) {
    capture_log();
    all.intraprocess = settings_.intraprocess;
  } else if (all.intraprocess != settings_.intraprocess) {
    throw Unsupported(
        "fastdds: intraprocess is one setting for the whole process, but another participant has "
        "the other value; right would be the same for both");
  }
#if PERFLAB_FASTDDS_IGNORES_LOCAL && !PERFLAB_FASTDDS_3
  // The property only affects one participant, and others cannot be ignored on discovery.
  if (settings_.ignore_local_endpoints &&
      std::ranges::any_of(all.participants, [&](const Participant* one) { return one->settings_.domain == settings_.domain; })) {
    throw Unsupported(
        "fastdds: this version cannot keep several participants of one process apart; right would "
        "be one participant, or no intra-process delivery");
  }
#endif
  clear_log();
  const EnvironmentGuard guard;
  const ThreadName name(kThreadName);
  const std::set<std::string> locks_before = held_locks();
  auto* const factory = dds::DomainParticipantFactory::get_instance();
  factory->load_profiles();  // loads no profile: the environment is hidden
  if (!all.defaults) all.defaults = default_qos();
  if (all.participants.empty()) set_intraprocess(settings_.intraprocess);
  const dds::DomainParticipantQos qos = make_qos();
  intraprocess_ = intraprocess();
  participant_ = factory->create_participant(settings_.domain, qos, this, dds::StatusMask::none());
  if (participant_ == nullptr) {
    // If the user gave a configuration, that is what is wrong.
    fail("cannot create a participant", settings_.profiles.empty() ? PERFLAB_FAILED : PERFLAB_BAD_OPTION);
  }
  identity_ = fastdds::identity(participant_->guid());
  publisher_ = participant_->create_publisher(dds::PUBLISHER_QOS_DEFAULT);
  subscriber_ = participant_->create_subscriber(dds::SUBSCRIBER_QOS_DEFAULT);
  const auto knows = [&](const char* name, dds::IContentFilterFactory& of) {
    return succeeded(participant_->register_content_filter_factory(name, &of));
  };
  const bool can_filter = knows(kHostFilter, *filters_) && (!filters_local() || knows(kNotOwn, not_own_factory()));
  if (publisher_ == nullptr || subscriber_ == nullptr || !can_filter) {
    close();
    if (all.participants.empty()) stop_log();
    fail("cannot create a publisher or subscriber");
  }
  all.participants.push_back(this);
  const std::set<std::string> locks = held_locks();
  std::set_difference(locks.begin(), locks.end(), locks_before.begin(), locks_before.end(),
                      std::inserter(locks_, locks_.end()));
}

Participant::~Participant() {
  Process& all = process();
  const std::lock_guard lock(all.mutex);
  std::erase(all.participants, this);
  close();
  if (all.participants.empty()) stop_log();
}

void Participant::close() noexcept {
  if (subscriber_ != nullptr) participant_->delete_subscriber(subscriber_);
  if (publisher_ != nullptr) participant_->delete_publisher(publisher_);
  participant_->unregister_content_filter_factory(kHostFilter);
  if (filters_local()) participant_->unregister_content_filter_factory(kNotOwn);
  // A participant's last message announces that it leaves. Until other participants of this process have read
  // it, they call objects that the library deletes next, by plain pointers (before 2.14.4 and 3.1.1). The
  // message is sent to known participants first.
  std::vector<Participant*> others;
  if (intraprocess_) {
    std::ranges::copy_if(process().participants, std::back_inserter(others),
                         [&](const Participant* one) { return one->settings_.domain == settings_.domain; });
  }
  const auto until = std::chrono::steady_clock::now() + kFarewell;
  for (Participant* const other : others) {
    if (other->knows(*this)) wait_until_known(*other, true, until);
  }
  const AfterDiscovery said([&] {
    for (Participant* const other : others) {
      if (knows(*other)) other->wait_until_known(*this, false, until);
    }
  });
  dds::DomainParticipantFactory::get_instance()->delete_participant(participant_);
}

dds::DomainParticipantQos Participant::make_qos() {
  dds::DomainParticipantQos qos;
  qos.name("perflab");
  auto& builtin = qos.wire_protocol().builtin;
  auto& discovery = builtin.discovery_config;
  const support::Announcements announced = support::announcements(settings_);
  discovery.leaseDuration = duration(settings_.lease_duration_ns);
  discovery.leaseDuration_announcementperiod = duration(announced.period_ns);
  discovery.initial_announcements.count = announced.count;
  discovery.initial_announcements.period = duration(announced.first_period_ns);
  const std::string& address = settings_.interface.address;
  if (settings_.udp && !settings_.interface.multicast) {
    // Without multicast each participant announces itself to every port that another might have. Its own port
    // is the first free one from here on. By default 2.9 starts at the number of participants that the
    // process ever had, and soon exceeds those ports.
    const std::uint32_t first_port = qos.wire_protocol().port.getUnicastPort(settings_.domain, 0);
    builtin.metatrafficUnicastLocatorList.push_back(udp_locator(address, first_port));
    builtin.initialPeersList.push_back(udp_locator(address));
  }
#if PERFLAB_FASTDDS_IGNORES_LOCAL
  if (settings_.ignore_local_endpoints) {
    qos.properties().properties().emplace_back("fastdds.ignore_local_endpoints", "true");
  }
#endif

  if (settings_.credentials) secure(qos);
  auto& transport = qos.transport();
  transport.use_builtin_transports = false;
  if (settings_.udp) {
    auto udp = std::make_shared<network::UDPv4TransportDescriptor>();
    udp->receiveBufferSize = static_cast<std::uint32_t>(settings_.receive_buffer.requested);
    udp->sendBufferSize = static_cast<std::uint32_t>(settings_.send_buffer.requested);
    udp->maxMessageSize = settings_.message_size();
    udp->maxInitialPeersRange = settings_.last_index + 1;
    udp->interfaceWhiteList.push_back(address);
    transport.user_transports.push_back(std::move(udp));
  }
  if (settings_.shm) {
    auto shm = std::make_shared<network::SharedMemTransportDescriptor>();
    shm->max_message_size(settings_.message_size());
    if (settings_.shm_segment_size != 0) shm->segment_size(settings_.shm_segment_size);
    transport.user_transports.push_back(std::move(shm));
  }
  if (!settings_.profiles.empty()) apply_profiles(qos);
  count_transports(qos);
  return qos;
}

void Participant::secure(dds::DomainParticipantQos& qos) const {
  const auto set = [&](const char* name, const std::string& value) {
    qos.properties().properties().emplace_back(name, value);
  };
  const auto file = [&](const char* name) { return "file://" + settings_.credentials.file(name); };
  set("dds.sec.auth.plugin", "builtin.PKI-DH");
  set("dds.sec.auth.builtin.PKI-DH.identity_ca", file(support::kIdentityCa));
  set("dds.sec.auth.builtin.PKI-DH.identity_certificate", file(support::kIdentityCertificate));
  set("dds.sec.auth.builtin.PKI-DH.private_key", file(support::kIdentityKey));
  set("dds.sec.access.plugin", "builtin.Access-Permissions");
  set("dds.sec.access.builtin.Access-Permissions.permissions_ca", file(support::kPermissionsCa));
  set("dds.sec.access.builtin.Access-Permissions.governance", file(support::kGovernance));
  set("dds.sec.access.builtin.Access-Permissions.permissions", file(support::kPermissions));
  set("dds.sec.crypto.plugin", "builtin.AES-GCM-GMAC");
}

void Participant::apply_profiles(dds::DomainParticipantQos& qos) {
  const dds::DomainParticipantQos& before = *process().defaults;
  if (!load_profiles(settings_.profiles)) fail("option 'config' cannot be read", PERFLAB_BAD_OPTION);
  const dds::DomainParticipantQos given = default_qos();
  // A profile does not distinguish an omitted part from one set to the default, so each part that differs
  // from the default is applied.
  const auto take = [&](const char* part, auto get) {
    if (get(given) == get(before)) return;
    get(qos) = get(given);
    overridden_.push_back(part);
  };
  take(
      "transport", [](auto& q) -> auto& { return q.transport(); });
  take(
      "wire_protocol", [](auto& q) -> auto& { return q.wire_protocol(); });
  take(
      "allocation", [](auto& q) -> auto& { return q.allocation(); });
  take(
      "properties", [](auto& q) -> auto& { return q.properties(); });
  take(
      "user_data", [](auto& q) -> auto& { return q.user_data(); });
  take(
      "name", [](auto& q) -> auto& { return q.name(); });
  // Descriptors are pointers: two with the same content may differ.
}

void Participant::count_transports(dds::DomainParticipantQos& qos) {
  if (qos.transport().use_builtin_transports) counted_ = false;
  for (auto& descriptor : qos.transport().user_transports) {
    if (const auto* const udp = dynamic_cast<const network::UDPv4TransportDescriptor*>(descriptor.get())) {
      descriptor = counting_udp(*udp, udp_, host_);
    } else if (const auto* const shm =
                   dynamic_cast<const network::SharedMemTransportDescriptor*>(descriptor.get())) {
      descriptor = counting_shm(*shm, shm_, host_);
    } else {
      counted_ = false;
    }
  }
}

// ---- identities ----

bool Participant::is_own(const perflab_identity& entity) const noexcept {
  return std::memcmp(entity.bytes, identity_.bytes, kPrefix) == 0;
}

// ---- topics and types ----

MessageType* Participant::use_type(const std::string& name, const TypeTraits& traits) {
  // Without data sharing a plain type has no advantage.
  const std::size_t size = settings_.data_sharing && traits.key == nullptr ? traits.fixed_size : 0;
  const auto known = types_.find(name);
  if (known != types_.end()) {
    MessageType* const type = known->second.second;
    if (type->key() != traits.key) {
      throw Unsupported("fastdds: type '" + name +
                        "' is used with different keys, or with and without a key, in one participant; right "
                        "would be one key for all");
    }
    if (type->fixed_size() != 0 && type->fixed_size() != size) {
      throw Unsupported("fastdds: type '" + name + "' is used with a fixed size of " +
                        std::to_string(type->fixed_size()) + " bytes and with " +
                        (size == 0 ? "any" : std::to_string(size)) +
                        " in one participant; right would be one for all");
    }
    return type;
  }
  auto* const type = new MessageType(name, size, traits.key);
  dds::TypeSupport support(type);  // takes ownership
  if (!succeeded(support.register_type(participant_))) fail("cannot register type '" + name + "'");
  types_.emplace(name, std::pair(support, type));
  return type;
}

Participant::Topic Participant::use_topic(const perflab_endpoint_settings& endpoint, bool reader) {
  const std::string name = endpoint.topic;
  const std::string type_name = endpoint.type;
  const TypeTraits traits{endpoint.fixed_size, endpoint.key, endpoint.qos.topic_data.text};
  const std::lock_guard lock(mutex_);
  const auto known = topics_.find(name);
  if (known != topics_.end() && known->second.type != type_name) {
    throw Unsupported("fastdds: topic '" + name + "' has type '" + known->second.type +
                      "' in this participant, and cannot have '" + type_name +
                      "' as well; right would be one type");
  }
  if (known != topics_.end() && known->second.data != traits.data) {
    throw Unsupported("fastdds: topic '" + name + "' has topic_data '" + known->second.data +
                      "' in this participant, and cannot have '" + traits.data + "' as well; right would be one for all");
  }
  MessageType* const type = use_type(type_name, traits);
  type->add_filters(endpoint);
  if (known == topics_.end()) {
    dds::TopicQos qos = dds::TOPIC_QOS_DEFAULT;
    if (!traits.data.empty()) qos.topic_data().setValue({traits.data.begin(), traits.data.end()});
    dds::Topic* const made = participant_->create_topic(name, type_name, qos);
    if (made == nullptr) fail("cannot create topic '" + name + "' with type '" + type_name + "'");
    topics_[name] = {type_name, traits.data, made, nullptr, 0};
  }
  KnownTopic& topic = topics_[name];
  ++topic.users;
  if (reader && filters_local() && topic.without_own == nullptr) {
    topic.without_own =
        participant_->create_contentfilteredtopic(name + kFiltered, topic.topic, "not own", {}, kNotOwn);
    if (topic.without_own == nullptr) {
      drop_topic(name);  // otherwise the library would keep the participant because of it
      fail("cannot filter topic '" + name + "'");
    }
  }
  dds::TopicDescription* description = topic.topic;
  if (reader && topic.without_own != nullptr) description = topic.without_own;
  if (!reader || endpoint.filter_count == 0) return {topic.topic, description, type, nullptr};
  if (filters_local()) {
    drop_topic(name);
    throw Unsupported("fastdds: topic '" + name + "' has a content filter, but this version separates local "
                      "endpoints by one of its own; right would be no delivery within the process, or no "
                      "filter");
  }
  makes_reader_filter = true;
  dds::ContentFilteredTopic* const filtered = participant_->create_contentfilteredtopic(
      name + kWithFilter + std::to_string(filtered_topics_++), topic.topic, endpoint.filters[0].expression, {}, kHostFilter);
  makes_reader_filter = false;
  if (filtered == nullptr) {
    drop_topic(name);
    fail("cannot filter topic '" + name + "'");
  }
  return {topic.topic, filtered, type, filtered};
}

void Participant::leave_topic(const std::string& name, const Topic& topic) noexcept {
  const std::lock_guard lock(mutex_);
  if (topic.filtered != nullptr) participant_->delete_contentfilteredtopic(topic.filtered);
  drop_topic(name);
}

void Participant::drop_topic(const std::string& name) noexcept {
  const auto known = topics_.find(name);
  if (known == topics_.end() || --known->second.users > 0) return;
  if (known->second.without_own != nullptr)
    participant_->delete_contentfilteredtopic(known->second.without_own);
  participant_->delete_topic(known->second.topic);
  topics_.erase(known);
}

// ---- groups ----

namespace {

// True if it needs its own publisher or subscriber.
template <typename Qos>
bool group_qos(const perflab_qos& given, Qos& qos) {
  if (given.partition.text[0] == '\0' && given.group_data.text[0] == '\0') return false;
  if (given.partition.text[0] != '\0') {
    rule::OneInCommon::each_name(given.partition,
                                 [&](std::string_view name) { qos.partition().push_back(std::string(name).c_str()); });
  }
  const std::string_view data = given.group_data.text;
  if (!data.empty()) qos.group_data().setValue({data.begin(), data.end()});
  return true;
}

}  // namespace

dds::Publisher* Participant::use_publisher(const perflab_qos& given) {
  dds::PublisherQos qos = dds::PUBLISHER_QOS_DEFAULT;
  if (!group_qos(given, qos)) return publisher_;
  dds::Publisher* const made = participant_->create_publisher(qos);
  if (made == nullptr) fail("cannot create a publisher with a partition or group data");
  return made;
}

dds::Subscriber* Participant::use_subscriber(const perflab_qos& given) {
  dds::SubscriberQos qos = dds::SUBSCRIBER_QOS_DEFAULT;
  if (!group_qos(given, qos)) return subscriber_;
  dds::Subscriber* const made = participant_->create_subscriber(qos);
  if (made == nullptr) fail("cannot create a subscriber with a partition or group data");
  return made;
}

void Participant::leave_publisher(dds::Publisher* publisher) noexcept {
  if (publisher != publisher_) participant_->delete_publisher(publisher);
}

void Participant::leave_subscriber(dds::Subscriber* subscriber) noexcept {
  if (subscriber != subscriber_) participant_->delete_subscriber(subscriber);
}

// ---- endpoints of this participant ----

std::shared_ptr<Record> Participant::add_record(const std::string& topic, bool is_writer,
                                                std::size_t depth_of_pool) {
  auto record = std::make_shared<Record>();
  record->topic = topic;
  record->is_writer = is_writer;
  record->depth_of_pool = depth_of_pool;
  const std::lock_guard lock(mutex_);
  records_.push_back(record);
  return record;
}

void Participant::add_local(const void* endpoint, LocalEndpoint local) {
  const std::lock_guard lock(local_mutex_);
  local_[endpoint] = std::move(local);
}

void Participant::remove_local(const void* endpoint) noexcept {
  const std::lock_guard lock(local_mutex_);
  local_.erase(endpoint);
  for (RemoteEndpoint& remote : remote_) std::erase(remote.reported_to, endpoint);
}

bool Participant::is_always_alive(const perflab_identity& writer) const {
  if (!is_own(writer)) return false;
  const std::lock_guard lock(local_mutex_);
  for (const auto& [endpoint, other] : local_) {
    if (same(other.identity, writer)) return other.terms.liveliness == dds::AUTOMATIC_LIVELINESS_QOS;
  }
  return false;
}

void Participant::note_remote(const perflab_identity& identity, Terms terms) {
  if (!filters_local() || is_of_process(identity)) return;
  const std::lock_guard lock(local_mutex_);
  const auto known = std::find_if(remote_.begin(), remote_.end(),
                                  [&](const RemoteEndpoint& one) { return same(one.identity, identity); });
  if (known == remote_.end()) {
    remote_.push_back({identity, std::move(terms), {}});
  } else if (!(known->terms == terms)) {
    *known = {identity, std::move(terms), {}};  // new mismatches are reported again
  }
}

void Participant::forget_remote(const perflab_identity& identity) noexcept {
  const std::lock_guard lock(local_mutex_);
  std::erase_if(remote_, [&](const RemoteEndpoint& one) { return same(one.identity, identity); });
}

bool Participant::is_incompatible_elsewhere(const void* endpoint, std::uint32_t policy) {
  if (std::ranges::find(kComparedPolicies, policy) == kComparedPolicies.end()) return true;
  const std::lock_guard lock(local_mutex_);
  const auto local = local_.find(endpoint);
  if (local == local_.end()) return false;
  for (RemoteEndpoint& remote : remote_) {
    if (incompatible(local->second.terms, remote.terms) != policy) continue;
    if (std::ranges::find(remote.reported_to, endpoint) != remote.reported_to.end()) continue;
    remote.reported_to.push_back(endpoint);
    return true;
  }
  return false;
}

void Participant::note_lifespan(const rtps::GUID_t& writer, std::int64_t lifespan_ns) {
  if (lifespan_ns == PERFLAB_DURATION_INFINITE) return;
  const std::lock_guard lock(lifespans_mutex_);
  if (lifespans_.find(writer) == nullptr) lifespans_.add(writer, lifespan_ns);
  any_lifespan_ = true;
}

void Participant::forget_lifespan(const rtps::GUID_t& writer) noexcept {
  const std::lock_guard lock(lifespans_mutex_);
  lifespans_.left(writer);
}

std::int64_t Participant::lifespan_of(const rtps::GUID_t& writer) const noexcept {
  const std::lock_guard lock(lifespans_mutex_);
  const std::int64_t* const known = lifespans_.find(writer);
  return known != nullptr ? *known : PERFLAB_DURATION_INFINITE;
}

bool Participant::is_over(const rtps::GUID_t& writer, std::int64_t source_timestamp_ns) const noexcept {
  const std::int64_t lifespan_ns = lifespan_of(writer);
  if (lifespan_ns == PERFLAB_DURATION_INFINITE) return false;
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return std::int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec - source_timestamp_ns >= lifespan_ns;
}

// ---- discovery ----

void Participant::report(perflab_event_kind kind, const perflab_identity& peer, const char* topic,
                         const char* type) {
  if (host_.on_event == nullptr || is_own(peer)) return;
  const perflab_event event{kind, now_ns(), peer, topic, type, nullptr, 1};
  const std::lock_guard lock(report_mutex_);
  host_.on_event(host_.context, &event);
}

void Participant::report_participant(ParticipantStatus status, const rtps::GUID_t& guid) {
  const bool found = status == ParticipantStatus::DISCOVERED_PARTICIPANT;
  const bool lost = status == ParticipantStatus::REMOVED_PARTICIPANT || status == ParticipantStatus::DROPPED_PARTICIPANT;
  if (!found && !lost) return;
  const perflab_identity peer = fastdds::identity(guid);
  report(found ? PERFLAB_PARTICIPANT_FOUND : PERFLAB_PARTICIPANT_LOST, peer);
  {
    const std::lock_guard lock(found_mutex_);
    if (found) peers_.insert(peer);
    if (lost) peers_.erase(peer);
  }
  peers_changed_.notify_all();
}

bool Participant::knows(const Participant& peer) {
  const std::lock_guard lock(found_mutex_);
  return peers_.contains(peer.identity_);
}

void Participant::wait_until_known(const Participant& peer, bool known, std::chrono::steady_clock::time_point until) {
  std::unique_lock lock(found_mutex_);
  peers_changed_.wait_until(lock, until, [&] { return peers_.contains(peer.identity_) == known; });
}

void Participant::note_found(const perflab_identity& endpoint, Found found) {
  if (is_own(endpoint)) return;
  const std::lock_guard lock(found_mutex_);
  found_.insert_or_assign(endpoint, std::move(found));
}

void Participant::forget_found(const perflab_identity& endpoint) noexcept {
  const std::lock_guard lock(found_mutex_);
  found_.erase(endpoint);
}

void Participant::report_reader(ReaderStatus status, const rtps::GUID_t& guid, Found found) {
  const perflab_identity reader = fastdds::identity(guid);
  if (status == ReaderStatus::REMOVED_READER) {
    forget_found(reader);
    report(PERFLAB_READER_LOST, reader);
    return;
  }
  note_found(reader, found);
  if (status == ReaderStatus::DISCOVERED_READER)
    report(PERFLAB_READER_FOUND, reader, found.topic.c_str(), found.type.c_str());
}

void Participant::report_writer(WriterStatus status, const rtps::GUID_t& guid, Found found,
                                const Duration& lifespan) {
  const perflab_identity writer = fastdds::identity(guid);
  if (status == WriterStatus::REMOVED_WRITER) {
    forget_lifespan(guid);
    forget_found(writer);
    report(PERFLAB_WRITER_LOST, writer);
    return;
  }
  note_found(writer, found);
  if (status != WriterStatus::DISCOVERED_WRITER) return;
  // Writers of this participant report it themselves.
  if (!is_own(writer)) note_lifespan(guid, nanoseconds(lifespan));
  report(PERFLAB_WRITER_FOUND, writer, found.topic.c_str(), found.type.c_str());
}

#if PERFLAB_FASTDDS_3
void Participant::on_participant_discovery(dds::DomainParticipant*, ParticipantStatus status,
                                           const ParticipantData& data, bool& ignore) {
  ignore = ignores_local() && is_of_process(fastdds::identity(data.guid));
  if (ignore) return;
  report_participant(status, data.guid);
}
void Participant::on_data_reader_discovery(dds::DomainParticipant*, ReaderStatus status,
                                           const ReaderData& data, bool& ignore) {
  ignore = false;
  report_reader(status, data.guid, {false, data.topic_name.to_string(), data.type_name.to_string(), data.user_data, data.topic_data, data.group_data});
}
void Participant::on_data_writer_discovery(dds::DomainParticipant*, WriterStatus status,
                                           const WriterData& data, bool& ignore) {
  ignore = false;
  report_writer(status, data.guid, {true, data.topic_name.to_string(), data.type_name.to_string(), data.user_data, data.topic_data, data.group_data},
                data.lifespan.duration);
}
#else
void Participant::on_participant_discovery(dds::DomainParticipant*, rtps::ParticipantDiscoveryInfo&& info) {
  report_participant(info.status, info.info.m_guid);
}
void Participant::on_subscriber_discovery(dds::DomainParticipant*, rtps::ReaderDiscoveryInfo&& info) {
  if (info.status == ReaderStatus::REMOVED_READER) {
    forget_remote(fastdds::identity(info.info.guid()));
  } else {
    note_remote(fastdds::identity(info.info.guid()), terms_of(info.info, false));
  }
  report_reader(info.status, info.info.guid(),
                {false, info.info.topicName().to_string(), info.info.typeName().to_string(),
                 info.info.m_qos.m_userData.getValue(), info.info.m_qos.m_topicData.getValue(),
                 info.info.m_qos.m_groupData.getValue()});
}
void Participant::on_publisher_discovery(dds::DomainParticipant*, rtps::WriterDiscoveryInfo&& info) {
  if (info.status == WriterStatus::REMOVED_WRITER) {
    forget_remote(fastdds::identity(info.info.guid()));
  } else {
    note_remote(fastdds::identity(info.info.guid()), terms_of(info.info, true));
  }
  report_writer(info.status, info.info.guid(),
                {true, info.info.topicName().to_string(), info.info.typeName().to_string(),
                 info.info.m_qos.m_userData.getValue(), info.info.m_qos.m_topicData.getValue(),
                 info.info.m_qos.m_groupData.getValue()},
                info.info.m_qos.m_lifespan.duration);
}
#endif

// ---- description ----

const char* Participant::describe() {
  nlohmann::json json = support::describe(settings_);
  json["library"] = "Fast DDS";
  json["version"] = library_version();
  json["multicast"] = settings_.udp && settings_.interface.multicast;
  json["transport"] = {{"requested", settings_.udp ? (settings_.shm ? "udp+shm" : "udp") : "shm"}};
  json["transport"]["udp"] = counted_ ? as_json(udp_) : nlohmann::json();
  json["transport"]["shm"] = counted_ ? as_json(shm_) : nlohmann::json();
  json["data_sharing"] = {{"requested", settings_.data_sharing}};
  json["intraprocess"] = intraprocess_;
  json["publish_mode"] = settings_.asynchronous ? "async" : "sync";
  json["ignores_local_endpoints_by"] = !settings_.ignore_local_endpoints ? nlohmann::json()
                                       : filters_local()                 ? nlohmann::json("filter")
                                                                         : nlohmann::json("library");
  json["content_filters"] = {{"at_writers", filters_->at_writers.json()}, {"at_readers", filters_->at_readers.json()}};
  json["configuration"] = settings_.profiles.empty() ? nlohmann::json() : nlohmann::json(settings_.profiles);
  json["configuration_replaces"] = overridden_;
  json["ignored_environment"] = nlohmann::json::object();
  for (const auto& [name, value] : ignored_environment()) json["ignored_environment"][name] = value;

  json["readers"] = nlohmann::json::array();
  json["writers"] = nlohmann::json::array();
  std::uint64_t shared = 0;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& record : records_) {
      nlohmann::json one{{"topic", record->topic},
                         {"samples_in_shared_memory", record->from_data_sharing.load()}};
      one[record->is_writer ? "loans_written" : "samples"] = record->samples.load();
      if (record->is_writer) {
        one["shared_memory_samples"] = record->depth_of_pool;
      } else {
        one["copied_from_shared_memory"] = record->copied.load();
        one["overwritten"] = record->overwritten.load();
        shared += record->from_data_sharing.load();
      }
      json[record->is_writer ? "writers" : "readers"].push_back(std::move(one));
    }
  }
  json["data_sharing"]["samples"] = shared;

  std::set<std::string> files = files_of_locks(locks_);
  files.merge(data_sharing_files(identity_));
  json["shared_memory_files"] = files;
  json["threads"] = threads();
  json["log"] = log_lines();
  description_ = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return description_.c_str();
}

}  // namespace perflab::middleware::fastdds
