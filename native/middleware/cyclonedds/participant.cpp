#include "middleware/cyclonedds/participant.h"

#include <dds/ddsc/dds_statistics.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "base/error.h"
#include "middleware/cyclonedds/library.h"
#include "middleware/support/cyclonedds.h"
#include "middleware/types.h"

namespace perflab::middleware::cyclonedds {
namespace {

perflab_identity identity(const dds_guid_t& guid) {
  perflab_identity out;
  static_assert(sizeof out.bytes == sizeof guid.v);
  std::memcpy(out.bytes, guid.v, sizeof out.bytes);
  return out;
}

// Cyclone identifies samples of built-in topics by the instance handle of the entity they describe.
perflab_identity endpoint_identity(dds_entity_t builtin_reader, dds_instance_handle_t handle) noexcept {
  dds_builtintopic_endpoint_t endpoint{};
  if (dds_instance_get_key(builtin_reader, handle, &endpoint) != DDS_RETCODE_OK) return {};
  dds_free(endpoint.topic_name);
  dds_free(endpoint.type_name);
  if (endpoint.qos != nullptr) dds_delete_qos(endpoint.qos);
  return identity(endpoint.key);
}

// Calls function(sample, alive) for each available sample.
template <typename Sample, typename Function>
void take_all(dds_entity_t reader, Function&& function) {
  for (;;) {
    void* loan = nullptr;
    dds_sample_info_t info;
    if (dds_take(reader, &loan, &info, 1, 1) != 1) return;
    function(*static_cast<const Sample*>(loan), info.instance_state == DDS_ALIVE_INSTANCE_STATE);
    dds_return_loan(reader, &loan, 1);
  }
}

// Created for its first participant in this process, destroyed with the last.
std::shared_ptr<const Domain> use_domain(const perflab_host& host, const Settings& settings) {
  static std::mutex mutex;
  static std::map<std::uint32_t, std::weak_ptr<const Domain>> domains;
  const std::lock_guard lock(mutex);
  std::weak_ptr<const Domain>& known = domains[settings.domain];
  if (const std::shared_ptr<const Domain> domain = known.lock()) {
    if (domain->xml == settings.xml) return domain;
    throw Unsupported("cyclonedds: another participant of this process uses domain " +
                      std::to_string(settings.domain) +
                      " with other options; right would be the same for all");
  }
  // An explicitly created domain uses only this configuration: CYCLONEDDS_URI is only read for a domain that
  // a participant creates implicitly.
  try {
    auto domain = std::make_shared<const Domain>(
        host, settings.xml,
        Entity(dds_create_domain(settings.domain, settings.xml.c_str()), "cannot create the domain"));
    known = domain;
    return domain;
  } catch (const Error& error) {
    // If the user gave a configuration, that is what is wrong.
    if (!settings.has_user_configuration) throw;
    throw BadInput(error.what());
  }
}

}  // namespace

void fail(const char* what, dds_return_t code) {
  std::string text = std::string("cyclonedds: ") + what + ": " + dds_strretcode(code);
  const auto lines = library_log().lines();
  if (!lines.empty()) text += "; " + lines.back();
  throw Failed(text);
}

Entity::Entity(dds_entity_t handle, const char* what) : handle_(handle) {
  if (handle < 0) {
    handle_ = 0;
    fail(what, handle);
  }
}

Entity& Entity::operator=(Entity&& other) noexcept {
  if (this != &other) {
    reset();
    handle_ = std::exchange(other.handle_, 0);
  }
  return *this;
}

void Entity::reset() noexcept {
  if (handle_ > 0) dds_delete(handle_);
  handle_ = 0;
}

perflab_identity identity_of(dds_entity_t entity) {
  dds_guid_t guid;
  const dds_return_t code = dds_get_guid(entity, &guid);
  if (code != DDS_RETCODE_OK) fail("cannot read a GUID", code);
  return identity(guid);
}

Participant::Participant(const perflab_host& host, Settings settings)
    : host_(host), settings_(std::move(settings)) {
  library_log().clear();
  domain_ = use_domain(host, settings_);
  participant_ =
      Entity(dds_create_participant(settings_.domain, nullptr, nullptr), "cannot create a participant");
  identity_ = identity_of(participant_.get());
  watch(DDS_BUILTIN_TOPIC_DCPSPARTICIPANT, participants_);
  watch(DDS_BUILTIN_TOPIC_DCPSPUBLICATION, writers_);
  watch(DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION, readers_);
  if (settings_.batching_delay_ns) batching_ = std::make_unique<Batching>();
}

Participant::~Participant() {
  // Their callbacks use this object.
  readers_.reset();
  writers_.reset();
  participants_.reset();
}

void Participant::watch(dds_entity_t topic, Entity& reader) {
  const std::unique_ptr<dds_listener_t, decltype(&dds_delete_listener)> listener(dds_create_listener(this),
                                                                                 dds_delete_listener);
  const dds_on_data_available_fn callback = topic == DDS_BUILTIN_TOPIC_DCPSPARTICIPANT   ? on_participants
                                            : topic == DDS_BUILTIN_TOPIC_DCPSPUBLICATION ? on_writers
                                                                                         : on_readers;
  dds_lset_data_available(listener.get(), callback);
  reader = Entity(dds_create_reader(participant_.get(), topic, nullptr, listener.get()),
                  "cannot read a built-in topic");
}

void Participant::on_participants(dds_entity_t reader, void* self) {
  static_cast<Participant*>(self)->take_participants(reader);
}
void Participant::on_writers(dds_entity_t reader, void* self) {
  static_cast<Participant*>(self)->take_endpoints(reader, PERFLAB_WRITER_FOUND, PERFLAB_WRITER_LOST);
}
void Participant::on_readers(dds_entity_t reader, void* self) {
  static_cast<Participant*>(self)->take_endpoints(reader, PERFLAB_READER_FOUND, PERFLAB_READER_LOST);
}

void Participant::take_participants(dds_entity_t reader) {
  take_all<dds_builtintopic_participant_t>(reader, [this](const auto& sample, bool alive) {
    report(alive ? PERFLAB_PARTICIPANT_FOUND : PERFLAB_PARTICIPANT_LOST, sample.key, nullptr, nullptr);
  });
}

void Participant::take_endpoints(dds_entity_t reader, perflab_event_kind found, perflab_event_kind lost) {
  take_all<dds_builtintopic_endpoint_t>(reader, [&](const auto& sample, bool alive) {
    if (same(identity(sample.participant_key), identity_)) return;
    report(alive ? found : lost, sample.key, alive ? sample.topic_name : nullptr,
           alive ? sample.type_name : nullptr);
  });
}

// Newly created readers of built-in topics get everything that exists now, and do not disturb existing ones.
void Participant::remote_endpoints(const std::function<void(const perflab_remote_endpoint&)>& each) const {
  for (const bool writes : {true, false}) {
    const dds_entity_t of = writes ? DDS_BUILTIN_TOPIC_DCPSPUBLICATION : DDS_BUILTIN_TOPIC_DCPSSUBSCRIPTION;
    const Entity reader(dds_create_reader(participant_.get(), of, nullptr, nullptr),
                        "cannot read a built-in topic");
    take_all<dds_builtintopic_endpoint_t>(reader.get(), [&](const auto& sample, bool alive) {
      if (!alive || same(identity(sample.participant_key), identity_)) return;
      struct Data {
        using Get = bool (*)(const dds_qos_t*, void**, std::size_t*);
        Data(const dds_qos_t* qos, Get get) {
          if (qos != nullptr) get(qos, &data, &size);
        }
        Data(const Data&) = delete;
        Data& operator=(const Data&) = delete;
        ~Data() { dds_free(data); }
        void* data = nullptr;
        std::size_t size = 0;
      };
      const Data user(sample.qos, dds_qget_userdata);
      const Data topic(sample.qos, dds_qget_topicdata);
      const Data group(sample.qos, dds_qget_groupdata);
      each({identity(sample.key), writes, sample.topic_name, sample.type_name, {user.data, user.size},
            {topic.data, topic.size}, {group.data, group.size}});
    });
  }
}

void Participant::report(perflab_event_kind kind, const dds_guid_t& peer, const char* topic,
                         const char* type) {
  if (host_.on_event == nullptr) return;
  const perflab_event event{kind, now_ns(), identity(peer), topic, type, nullptr, 1};
  if (same(event.peer, identity_)) return;
  const std::lock_guard lock(report_mutex_);
  host_.on_event(host_.context, &event);
}

perflab_identity Participant::writer_identity(dds_instance_handle_t handle) const noexcept {
  return endpoint_identity(writers_.get(), handle);
}

perflab_identity Participant::reader_identity(dds_instance_handle_t handle) const noexcept {
  return endpoint_identity(readers_.get(), handle);
}

std::uint64_t Participant::retransmitted_bytes() const {
  std::uint64_t total = 0;
  std::vector<dds_entity_t> below{participant_.get()};
  while (!below.empty()) {
    const dds_entity_t entity = below.back();
    below.pop_back();
    std::vector<dds_entity_t> children(static_cast<std::size_t>(std::max(0, dds_get_children(entity, nullptr, 0))));
    const dds_return_t found = dds_get_children(entity, children.data(), children.size());
    if (found > 0) below.insert(below.end(), children.begin(), children.begin() + std::min<std::ptrdiff_t>(found, std::ssize(children)));
    const std::unique_ptr<dds_statistics, decltype(&dds_delete_statistics)> statistics(dds_create_statistics(entity),
                                                                                       dds_delete_statistics);
    if (!statistics) continue;  // neither a writer nor a reader
    const dds_stat_keyvalue* const sent_again = dds_lookup_statistic(statistics.get(), "rexmit_bytes");
    if (sent_again != nullptr && sent_again->kind == DDS_STAT_KIND_UINT64) total += sent_again->u.u64;
  }
  return total;
}

std::shared_ptr<Record> Participant::add_record(const std::string& topic, bool is_writer) {
  if (!settings_.shared_memory) return nullptr;
  auto record = std::make_shared<Record>(topic, is_writer);
  const std::lock_guard lock(records_mutex_);
  records_.push_back(record);
  return record;
}

const char* Participant::describe() {
  nlohmann::json json = support::describe(settings_);
  json["library"] = "Cyclone DDS";
  json["version"] = library_version();
  json["max_message_size"] = support::cyclonedds_message_size(settings_);
  json["transport"] = settings_.shared_memory ? "udp+iceoryx" : "udp";
  json["shared_memory"] = settings_.shared_memory;
  json["readers"] = json["writers"] = nlohmann::json::array();
  {
    const std::lock_guard lock(records_mutex_);
    for (const auto& record : records_) {
      json[record->is_writer ? "writers" : "readers"].push_back(
          {{"topic", record->topic},
           {"samples", record->samples.load(std::memory_order_relaxed)},
           {"samples_in_shared_memory", record->shared.load(std::memory_order_relaxed)}});
    }
  }
  json["batching"] = nullptr;
  if (batching_) json["batching"] = {{"delay_ns", *settings_.batching_delay_ns}, {"flushes", batching_->flushes()}};
  json["content_filters"] = {{"at_readers", filter_counts_.json()}};
  json["configuration"] = settings_.xml;
  const char* const uri = std::getenv("CYCLONEDDS_URI");
  json["ignored_environment"] = nlohmann::json::object();
  if (uri != nullptr) json["ignored_environment"]["CYCLONEDDS_URI"] = uri;
  json["retransmitted_bytes"] = retransmitted_bytes();
  json["log"] = library_log().lines();
  description_ = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return description_.c_str();
}

}  // namespace perflab::middleware::cyclonedds
