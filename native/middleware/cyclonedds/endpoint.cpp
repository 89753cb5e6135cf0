#include "middleware/cyclonedds/endpoint.h"

#include <dds/ddsc/dds_loan_api.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "middleware/cyclonedds/iceoryx.h"
#include "middleware/cyclonedds/message.h"
#include "middleware/policies.h"
#include "middleware/support/qos.h"
#include "middleware/support/status.h"

namespace perflab::middleware::cyclonedds {
namespace {

using support::set_error;
using Listener = std::unique_ptr<dds_listener_t, decltype(&dds_delete_listener)>;
using Qos = std::unique_ptr<dds_qos_t, decltype(&dds_delete_qos)>;

std::int32_t length_of(std::int32_t count) { return count == PERFLAB_COUNT_UNLIMITED ? DDS_LENGTH_UNLIMITED : count; }

// Policies that ROS 2 does not have. An endpoint with a partition or group data has its own publisher or
// subscriber, which these belong to.
void set_dds_policies(const perflab_qos& given, bool writer, dds_qos_t* qos) {
  if (given.partition.text[0] != '\0') {
    std::vector<std::string> names;
    rule::OneInCommon::each_name(given.partition, [&](std::string_view name) { names.emplace_back(name); });
    std::vector<const char*> texts;
    for (const std::string& name : names) texts.push_back(name.c_str());
    dds_qset_partition(qos, static_cast<std::uint32_t>(texts.size()), texts.data());
  }
  dds_qset_ownership(qos, given.ownership == PERFLAB_EXCLUSIVE ? DDS_OWNERSHIP_EXCLUSIVE : DDS_OWNERSHIP_SHARED);
  dds_qset_destination_order(qos, given.destination_order == PERFLAB_BY_SOURCE
                                      ? DDS_DESTINATIONORDER_BY_SOURCE_TIMESTAMP
                                      : DDS_DESTINATIONORDER_BY_RECEPTION_TIMESTAMP);
  dds_qset_latency_budget(qos, given.latency_budget_ns);
  dds_qset_resource_limits(qos, length_of(given.max_samples), length_of(given.max_instances),
                           length_of(given.max_samples_per_instance));
  if (writer) {
    dds_qset_ownership_strength(qos, given.ownership_strength);
    dds_qset_transport_priority(qos, given.transport_priority);
  }
  dds_qset_groupdata(qos, given.group_data.text, std::strlen(given.group_data.text));
}

Qos make_qos(const perflab_endpoint_settings& endpoint, const Settings& settings, bool writer) {
  const perflab_qos& given = endpoint.qos;
  Qos qos(dds_create_qos(), dds_delete_qos);
  const bool keep_all = given.history == PERFLAB_KEEP_ALL;
  const dds_history_kind_t history = keep_all ? DDS_HISTORY_KEEP_ALL : DDS_HISTORY_KEEP_LAST;
  const std::int32_t depth = keep_all ? DDS_LENGTH_UNLIMITED : given.depth;
  dds_qset_history(qos.get(), history, keep_all ? 1 : given.depth);
  dds_qset_reliability(
      qos.get(),
      given.reliability == PERFLAB_RELIABLE ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT,
      settings.max_blocking_time_ns);
  const bool transient = given.durability == PERFLAB_TRANSIENT_LOCAL;
  dds_qset_durability(qos.get(), transient ? DDS_DURABILITY_TRANSIENT_LOCAL : DDS_DURABILITY_VOLATILE);
  if (writer && transient) {
    // What a late joiner receives is determined by the durability service, not by the writer's history (as in
    // rmw_cyclonedds).
    dds_qset_durability_service(qos.get(), 0, history, depth, DDS_LENGTH_UNLIMITED, DDS_LENGTH_UNLIMITED,
                                DDS_LENGTH_UNLIMITED);
  }
  if (given.deadline_ns != PERFLAB_DURATION_INFINITE) dds_qset_deadline(qos.get(), given.deadline_ns);
  if (writer && given.lifespan_ns != PERFLAB_DURATION_INFINITE)
    dds_qset_lifespan(qos.get(), given.lifespan_ns);
  dds_qset_liveliness(
      qos.get(),
      given.liveliness == PERFLAB_MANUAL_BY_TOPIC ? DDS_LIVELINESS_MANUAL_BY_TOPIC : DDS_LIVELINESS_AUTOMATIC,
      given.lease_duration_ns);
  if (writer) dds_qset_writer_data_lifecycle(qos.get(), false);
  if (settings.ignore_local_endpoints) dds_qset_ignorelocal(qos.get(), DDS_IGNORELOCAL_PROCESS);
  set_dds_policies(given, writer, qos.get());
  const std::string user_data = support::user_data_of(endpoint);
  if (!user_data.empty()) dds_qset_userdata(qos.get(), user_data.data(), user_data.size());
  return qos;
}

// Hints have no observable effect, so the value that the library stored is read back.
void require_hints(dds_entity_t entity, const perflab_qos& given, bool writer, const std::string& topic) {
  const Qos took(dds_create_qos(), dds_delete_qos);
  std::int32_t priority = 0;
  dds_duration_t budget = 0;
  if (dds_get_qos(entity, took.get()) == DDS_RETCODE_OK) {
    dds_qget_transport_priority(took.get(), &priority);
    dds_qget_latency_budget(took.get(), &budget);
  }
  if (writer && priority != given.transport_priority)
    throw Failed("cyclonedds: topic '" + topic + "': the library did not take the transport_priority");
  if (budget != given.latency_budget_ns)
    throw Failed("cyclonedds: topic '" + topic + "': the library did not take the latency_budget");
}

// The library accepts a writer's limits but ignores them.
void require_no_limits(const perflab_qos& qos, const std::string& topic) {
  each_policy([&](const auto& row) {
    if (row.policy != std::string_view("resource_limits") || same_value(qos.*row.member, neutral(row))) return;
    throw Unsupported("cyclonedds: topic '" + topic + "': " + row.name + " " + value_text(row.form, qos.*row.member) +
                      " of a writer is refused, because Cyclone DDS ignores it; right would be " + row.name + " " +
                      value_text(row.form, neutral(row)) + ", or only at readers");
  });
}

// The size of each message in shared memory; 0 if the endpoint uses the network.
std::size_t shared_size(const Settings& settings, const perflab_endpoint_settings& endpoint) {
  const std::string topic = std::string("cyclonedds: topic '") + endpoint.topic + "'";
  if (endpoint.loans && (!settings.shared_memory || endpoint.fixed_size == 0)) {
    throw Unsupported(topic + " shall pass loaned messages, which needs " +
                      (endpoint.fixed_size == 0
                           ? "messages of a fixed size; right would be unique or shared"
                           : "shared memory; right would be --middleware-option cyclonedds.shared_memory=on"));
  }
  if (settings.credentials && endpoint.key != nullptr) {
    throw Unsupported(topic + " is keyed, but this plug-in does not compute the key digests that DDS "
                              "Security requires; right would be security=off, or a topic without keys");
  }
  if (!settings.shared_memory || endpoint.fixed_size == 0) return 0;
  const char* const unsuitable = iceoryx::unsuitable(endpoint.qos, settings.ignore_local_endpoints);
  if (unsuitable == nullptr) return endpoint.fixed_size;
  throw Unsupported(topic + ": iceoryx does not carry " + unsuitable + ", or shared_memory=off");
}

}  // namespace

Endpoint::Endpoint(Participant& participant, const perflab_endpoint_settings& settings,
                   const perflab_listener* listener)
    : participant_(participant),
      topic_name_(support::checked("cyclonedds", settings).topic),
      type_name_(settings.type),
      listener_(listener != nullptr ? *listener : perflab_listener{}),
      shared_size_(shared_size(participant.settings(), settings)) {
  ddsi_sertype* wanted = new_type(type_name_.c_str(), &participant.domain().host, settings.key, shared_size_);
  const Qos topic_qos(dds_create_qos(), dds_delete_qos);
  dds_qset_topicdata(topic_qos.get(), settings.qos.topic_data.text, std::strlen(settings.qos.topic_data.text));
  const dds_entity_t made = dds_create_topic_sertype(participant.handle(), topic_name_.c_str(), &wanted, topic_qos.get(),
                                                     nullptr, nullptr);
  if (made < 0) {
    ddsi_sertype_unref(wanted);
    fail(("cannot create topic '" + topic_name_ + "' with type '" + type_name_ + "'").c_str(), made);
  }
  topic_ = Entity(made, "cannot create a topic");
  type_ = wanted;  // the type known to Cyclone, which may be an older one of the same name
}

void Endpoint::require_shared(dds_entity_t entity) const {
  if (shared_size_ == 0 || dds_is_loan_available(entity)) return;
  throw Unsupported("cyclonedds: topic '" + topic_name_ +
                    "': the library gives it no shared memory; right would be shared_memory=off");
}

bool Endpoint::is_partner(dds_instance_handle_t handle) noexcept {
  const std::lock_guard lock(peers_mutex_);
  return partners_.find(handle) != nullptr;
}

perflab_identity Endpoint::peer(dds_instance_handle_t handle, Identify identify) noexcept {
  const std::lock_guard lock(peers_mutex_);
  if (const perflab_identity* const known = peers_.find(handle)) return *known;
  const perflab_identity found = (participant_.*identify)(handle);
  if (std::any_of(std::begin(found.bytes), std::end(found.bytes), [](std::uint8_t b) { return b != 0; })) {
    try {
      peers_.add(handle, found);
    } catch (const std::bad_alloc&) {  // looked up again next time
    }
  }
  return found;
}

void Endpoint::report(perflab_event_kind kind, std::int32_t count, const perflab_identity& peer,
                      const char* policy) {
  if (listener_.on_event == nullptr || count == 0) return;
  const perflab_event event{
      kind, participant_.now_ns(), peer, topic_name_.c_str(), type_name_.c_str(), policy, count};
  listener_.on_event(listener_.context, &event);
}

void Endpoint::report_matched(std::int32_t change, dds_instance_handle_t handle, Identify identify) {
  const perflab_identity who = peer(handle, identify);
  if (change > 0 && shared_size_ != 0) {
    const std::lock_guard lock(peers_mutex_);
    partners_.add(handle, true);
  }
  if (change > 0) report(PERFLAB_MATCHED, change, who);
  if (change >= 0) return;
  report(PERFLAB_UNMATCHED, -change, who);
  const std::lock_guard lock(peers_mutex_);
  peers_.left(handle);
  partners_.left(handle);
}

void Endpoint::report_incompatible(std::uint32_t policy) {
  report(PERFLAB_INCOMPATIBLE_QOS, 1, perflab_identity{}, support::policy_name(policy));
}

// ---- writer ----

Writer::Writer(Participant& participant, const perflab_endpoint_settings& settings,
               const perflab_listener* listener)
    : Endpoint(participant, settings, listener), loans_(settings.loans) {
  require_no_limits(settings.qos, topic_name_);
  const Qos dds_qos = make_qos(settings, participant.settings(), true);
  const Listener dds_listener(dds_create_listener(this), dds_delete_listener);
  dds_lset_publication_matched(
      dds_listener.get(), [](dds_entity_t, const dds_publication_matched_status_t status, void* context) {
        Writer& self = *static_cast<Writer*>(context);
        self.report_matched(status.current_count_change, status.last_subscription_handle,
                            &Participant::reader_identity);
      });
  dds_lset_offered_incompatible_qos(
      dds_listener.get(),
      [](dds_entity_t, const dds_offered_incompatible_qos_status_t status, void* context) {
        static_cast<Writer*>(context)->report_incompatible(status.last_policy_id);
      });
  dds_lset_offered_deadline_missed(
      dds_listener.get(), [](dds_entity_t, const dds_offered_deadline_missed_status_t status, void* context) {
        static_cast<Writer*>(context)->report(PERFLAB_DEADLINE_MISSED, status.total_count_change, {});
      });
  dds_lset_liveliness_lost(
      dds_listener.get(), [](dds_entity_t, const dds_liveliness_lost_status_t status, void* context) {
        static_cast<Writer*>(context)->report(PERFLAB_LIVELINESS_LOST, status.total_count_change, {});
      });
  writer_ = Entity(dds_create_writer(participant.handle(), topic_.get(), dds_qos.get(), dds_listener.get()),
                   "cannot create a writer");
  require_hints(writer_.get(), settings.qos, true, topic_name_);
  identity_ = identity_of(writer_.get());
  require_shared(writer_.get());
  record_ = participant.add_record(topic_name_, true);
  if (Batching* const batching = participant.batching()) {
    const std::int64_t budget_ns = settings.qos.latency_budget_ns;
    batching->add(batch_.emplace(writer_.get(), budget_ns > 0 ? budget_ns : *participant.settings().batching_delay_ns));
  }
}

// The library sends what is still waiting when it deletes a writer.
Writer::~Writer() {
  while (!outstanding_.empty()) discard_loan(outstanding_.back());
  if (batch_) participant_.batching()->remove(*batch_);
}

std::size_t Writer::matched() noexcept {
  const dds_return_t count = dds_get_matched_subscriptions(writer_.get(), nullptr, 0);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

perflab_status Writer::write(const perflab_bytes* parts, std::size_t part_count,
                             perflab_error* error) noexcept {
  if (shared_size_ != 0) return write_shared(parts, part_count, error);
  const std::int64_t stamp_ns = std::exchange(next_stamp_ns_, 0);
  Message* const message = new_message(type_, parts, part_count);
  if (message == nullptr) {
    set_error(error, "cyclonedds: no memory for a message, or it is larger than 4 GiB, or lacks its key");
    return PERFLAB_FAILED;
  }
  if (batch_) Batching::begin(*batch_);
  // Both calls take over the reference. The second keeps the given time stamp.
  dds_return_t code = DDS_RETCODE_OK;
  if (stamp_ns == 0) [[likely]] {
    code = dds_writecdr(writer_.get(), message);
  } else {
    message->statusinfo = 0;
    message->timestamp.v = stamp_ns;
    code = dds_forwardcdr(writer_.get(), message);
  }
  if (batch_) participant_.batching()->end(*batch_);
  if (record_) add_one(record_->samples);
  return answer(code, error);
}

perflab_status Writer::answer(dds_return_t code, perflab_error* error) noexcept {
  if (code == DDS_RETCODE_OK) [[likely]]
    return PERFLAB_OK;
  set_error(error,
            code == DDS_RETCODE_TIMEOUT
                ? "cyclonedds: not sent: a reliable reader did not acknowledge within max_blocking_time"
                : dds_strretcode(code));
  return PERFLAB_FAILED;
}

perflab_status Writer::loan(void** message, perflab_error* error) noexcept {
  if (!loans_) {
    set_error(error, "cyclonedds: this writer was not made for loans");
    return PERFLAB_FAILED;
  }
  const dds_return_t code = dds_loan_sample(writer_.get(), message);
  if (code != DDS_RETCODE_OK) {
    set_error(error, "cyclonedds: no room for a loan: too many messages are loaned, or the shared memory is full");
    return PERFLAB_FAILED;
  }
  try {
    outstanding_.push_back(*message);
  } catch (const std::bad_alloc&) {
    dds_return_loan(writer_.get(), message, 1);
    set_error(error, "cyclonedds: no memory for a loan");
    return PERFLAB_FAILED;
  }
  return PERFLAB_OK;
}

perflab_status Writer::write_loaned(void* message, perflab_error* error) noexcept {
  const auto at = std::ranges::find(outstanding_, message);
  if (at == outstanding_.end()) {
    next_stamp_ns_ = 0;
    set_error(error, "cyclonedds: not sent: the message is not a loan of this writer");
    return PERFLAB_FAILED;
  }
  outstanding_.erase(at);
  return write_chunk(message, error);
}

void Writer::discard_loan(void* message) noexcept {
  const auto at = std::ranges::find(outstanding_, message);
  if (at == outstanding_.end()) return;
  outstanding_.erase(at);
  dds_return_loan(writer_.get(), &message, 1);
}

perflab_status Writer::write_shared(const perflab_bytes* parts, std::size_t part_count, perflab_error* error) noexcept {
  void* chunk = nullptr;
  if (size_of(parts, part_count) != shared_size_) {
    next_stamp_ns_ = 0;
    set_error(error, "cyclonedds: not sent: the message has another size than its type's");
    return PERFLAB_FAILED;
  }
  if (dds_loan_sample(writer_.get(), &chunk) != DDS_RETCODE_OK) {
    next_stamp_ns_ = 0;
    set_error(error, "cyclonedds: not sent: the shared memory is full, its readers hold all of it");
    return PERFLAB_FAILED;
  }
  put_together(parts, part_count, static_cast<std::uint8_t*>(chunk));
  return write_chunk(chunk, error);
}

// The library does not keep the chunk, whether or not it was sent.
perflab_status Writer::write_chunk(void* chunk, perflab_error* error) noexcept {
  const std::int64_t stamp_ns = std::exchange(next_stamp_ns_, 0);
  if (batch_) Batching::begin(*batch_);
  const dds_return_t code = dds_write_ts(writer_.get(), chunk, stamp_ns != 0 ? stamp_ns : dds_time());
  if (batch_) participant_.batching()->end(*batch_);
  forget_written();
  add_one(record_->samples);
  add_one(record_->shared);
  return answer(code, error);
}

// ---- reader ----

Reader::Reader(Participant& participant, const perflab_endpoint_settings& settings,
               const perflab_listener* listener)
    : Endpoint(participant, settings, listener), Attachment("cyclonedds") {
  set_filter(settings);
  const Qos dds_qos = make_qos(settings, participant.settings(), false);
  const Listener dds_listener(dds_create_listener(this), dds_delete_listener);
  if (listener_.on_data != nullptr) {
    dds_lset_data_available(dds_listener.get(), [](dds_entity_t, void* context) {
      const perflab_listener& listener = static_cast<Reader*>(context)->listener_;
      listener.on_data(listener.context);
    });
  }
  dds_lset_subscription_matched(
      dds_listener.get(), [](dds_entity_t, const dds_subscription_matched_status_t status, void* context) {
        Reader& self = *static_cast<Reader*>(context);
        self.report_matched(status.current_count_change, status.last_publication_handle,
                            &Participant::writer_identity);
      });
  dds_lset_requested_incompatible_qos(
      dds_listener.get(),
      [](dds_entity_t, const dds_requested_incompatible_qos_status_t status, void* context) {
        static_cast<Reader*>(context)->report_incompatible(status.last_policy_id);
      });
  dds_lset_requested_deadline_missed(
      dds_listener.get(),
      [](dds_entity_t, const dds_requested_deadline_missed_status_t status, void* context) {
        static_cast<Reader*>(context)->report(PERFLAB_DEADLINE_MISSED, status.total_count_change, {});
      });
  dds_lset_liveliness_changed(
      dds_listener.get(), [](dds_entity_t, const dds_liveliness_changed_status_t status, void* context) {
        Reader& self = *static_cast<Reader*>(context);
        self.report(PERFLAB_LIVELINESS_CHANGED, status.alive_count_change,
                    self.peer(status.last_publication_handle, &Participant::writer_identity));
      });
  dds_lset_sample_lost(
      dds_listener.get(), [](dds_entity_t, const dds_sample_lost_status_t status, void* context) {
        static_cast<Reader*>(context)->report(PERFLAB_SAMPLE_LOST, status.total_count_change, {});
      });
  reader_ = Entity(dds_create_reader(participant.handle(), topic_.get(), dds_qos.get(), dds_listener.get()),
                   "cannot create a reader");
  require_hints(reader_.get(), settings.qos, false, topic_name_);
  identity_ = identity_of(reader_.get());
  require_shared(reader_.get());
  record_ = participant.add_record(topic_name_, false);
  if (shared_size_ != 0 && settings.qos.depth > iceoryx::kDeepestInPlace) copy_out_of_shared_memory(type_);
}

void Reader::set_filter(const perflab_endpoint_settings& settings) {
  if (settings.filter_count == 0) return;
  filter_ = settings.filters[0];
  const auto wants = [](const void* sample, void* context) {
    Reader& self = *static_cast<Reader*>(context);
    const Message& message = *message_of(sample);
    return self.participant_.filter_counts().wants(*self.filter_, message.bytes(), message.size);
  };
  const dds_return_t code = dds_set_topic_filter_and_arg(topic_.get(), wants, this);
  if (code != DDS_RETCODE_OK) fail(("cannot filter topic '" + topic_name_ + "'").c_str(), code);
}

dds_entity_t Reader::make_condition() {
  condition_ =
      Entity(dds_create_readcondition(reader_.get(), DDS_ANY_STATE), "cannot create a read condition");
  return condition_.get();
}

std::size_t Reader::matched() noexcept {
  const dds_return_t count = dds_get_matched_publications(reader_.get(), nullptr, 0);
  return count > 0 ? static_cast<std::size_t>(count) : 0;
}

std::int64_t Reader::lifespan(const perflab_identity& writer) const {
  std::vector<dds_instance_handle_t> handles(16);
  dds_return_t count = 0;
  while ((count = dds_get_matched_publications(reader_.get(), handles.data(), handles.size())) >
         static_cast<dds_return_t>(handles.size()))
    handles.resize(static_cast<std::size_t>(count));
  std::int64_t found_ns = PERFLAB_DURATION_INFINITE;
  for (dds_return_t i = 0; i < count; ++i) {
    dds_builtintopic_endpoint_t* const of =
        dds_get_matched_publication_data(reader_.get(), handles[static_cast<std::size_t>(i)]);
    if (of == nullptr) continue;
    if (std::memcmp(of->key.v, writer.bytes, sizeof writer.bytes) == 0) dds_qget_lifespan(of->qos, &found_ns);
    dds_builtintopic_free_endpoint(of);
  }
  return found_ns;
}

perflab_status Reader::take(perflab_sample* sample, perflab_error* error) noexcept {
  for (;;) {
    ddsi_serdata* data = nullptr;
    dds_sample_info_t info;
    const dds_return_t count = dds_takecdr(reader_.get(), &data, 1, &info, DDS_ANY_STATE);
    if (count == 0) return PERFLAB_NO_DATA;
    if (count < 0) [[unlikely]] {
      set_error(error, dds_strretcode(count));
      return PERFLAB_FAILED;
    }
    if (!info.valid_data) [[unlikely]] {  // only reports that a writer has left
      ddsi_serdata_unref(data);
      continue;
    }
    if (info.publication_handle != last_handle_) [[unlikely]] {
      last_writer_ = peer(info.publication_handle, &Participant::writer_identity);
      last_handle_ = info.publication_handle;
    }
    const Message* const message = static_cast<const Message*>(data);
    if (record_) {
      if (message->was_shared && info.publication_handle != last_partner_) [[unlikely]] {
        if (!is_partner(info.publication_handle)) {
          ddsi_serdata_unref(data);
          continue;
        }
        last_partner_ = info.publication_handle;
      }
      add_one(record_->samples);
      if (message->was_shared) add_one(record_->shared);
    }
    sample->data = message->bytes();
    sample->size = message->size;
    sample->writer = last_writer_;
    sample->sequence = 0;
    sample->related = {};
    sample->source_timestamp_ns = info.source_timestamp;
    sample->reception_ns = message->reception_ns;
    sample->loan = data;
    return PERFLAB_OK;
  }
}

void Reader::return_sample(perflab_sample* sample) noexcept {
  ddsi_serdata_unref(static_cast<ddsi_serdata*>(sample->loan));
  sample->loan = nullptr;
  sample->data = nullptr;
}

}  // namespace perflab::middleware::cyclonedds
