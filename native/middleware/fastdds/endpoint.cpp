#include "middleware/fastdds/endpoint.h"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "middleware/fastdds/library.h"
#include "middleware/fastdds/sharing.h"
#include "middleware/support/qos.h"
#include "middleware/support/status.h"
#include "middleware/types.h"

namespace perflab::middleware::fastdds {
namespace {

using support::set_error;

constexpr std::size_t kEncapsulation = 4;  // size of the CDR header

// Keep-all histories of writers have a limit, like the library's default.
constexpr std::int32_t kKeepAll = 5000;
// Shared memory is reserved for a whole history at once.
constexpr std::size_t kKeepAllShared = 64u << 20;
constexpr std::int32_t kLeastKeepAllShared = 16;
// Additional messages in a writer's shared memory beyond its history: for loans, and for messages that
// readers still access.
constexpr std::int32_t kSpareShared = 16;
constexpr std::int32_t kSpareSharedLarge = 4;
constexpr std::size_t kLarge = 1u << 20;

thread_local const Endpoint* endpoint_in_creation = nullptr;

dds::ReliabilityQosPolicyKind reliability_of(const perflab_qos& qos) {
  return qos.reliability == PERFLAB_RELIABLE ? dds::RELIABLE_RELIABILITY_QOS
                                             : dds::BEST_EFFORT_RELIABILITY_QOS;
}

dds::DurabilityQosPolicyKind durability_of(const perflab_qos& qos) {
  return qos.durability == PERFLAB_TRANSIENT_LOCAL ? dds::TRANSIENT_LOCAL_DURABILITY_QOS
                                                   : dds::VOLATILE_DURABILITY_QOS;
}

dds::LivelinessQosPolicyKind liveliness_of(const perflab_qos& qos) {
  return qos.liveliness == PERFLAB_MANUAL_BY_TOPIC ? dds::MANUAL_BY_TOPIC_LIVELINESS_QOS
                                                   : dds::AUTOMATIC_LIVELINESS_QOS;
}

bool keeps_all(const perflab_qos& qos) { return qos.history == PERFLAB_KEEP_ALL; }

// Settings common to writers and readers.
template <typename Qos>
void apply(const perflab_endpoint_settings& endpoint, const Settings& settings, std::size_t fixed_size,
           Qos& qos) {
  const perflab_qos& given = endpoint.qos;
  qos.history().kind = keeps_all(given) ? dds::KEEP_ALL_HISTORY_QOS : dds::KEEP_LAST_HISTORY_QOS;
  if (!keeps_all(given)) qos.history().depth = given.depth;
  qos.reliability().kind = reliability_of(given);
  qos.reliability().max_blocking_time = duration(settings.max_blocking_time_ns);
  qos.durability().kind = durability_of(given);
  qos.deadline().period = duration(given.deadline_ns);
  auto& liveliness = qos.liveliness();
  liveliness.kind = liveliness_of(given);
  liveliness.lease_duration = duration(given.lease_duration_ns);
  if (given.lease_duration_ns != PERFLAB_DURATION_INFINITE) {
    liveliness.announcement_period = duration(std::max<std::int64_t>(given.lease_duration_ns / 3 * 2, 1));
  }
  const std::string user_data = support::user_data_of(endpoint);
  if (!user_data.empty()) qos.user_data().setValue({user_data.begin(), user_data.end()});
  qos.ownership().kind =
      given.ownership == PERFLAB_EXCLUSIVE ? dds::EXCLUSIVE_OWNERSHIP_QOS : dds::SHARED_OWNERSHIP_QOS;
  qos.latency_budget().duration = duration(given.latency_budget_ns);
  // Memory: a payload is allocated on demand, grows to the size of the messages, and is reused.
  auto& limits = qos.resource_limits();
  limits.allocated_samples = 1;
  limits.extra_samples = 1;
  limits.max_instances = endpoint.key == nullptr ? 1 : 0;  // 0: no limit
  qos.endpoint().history_memory_policy = rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  if (fixed_size == 0) {
    qos.data_sharing().off();
  } else if (endpoint.loans) {
    qos.data_sharing().on("");  // otherwise the entity cannot be created
  } else {
    qos.data_sharing().automatic();
  }
}

// Resource limits requested by the endpoint. A topic without keys has one instance.
void limit(const perflab_endpoint_settings& endpoint, dds::ResourceLimitsQosPolicy& limits) {
  const perflab_qos& given = endpoint.qos;
  const auto set = [](std::int32_t count, std::int32_t& limit) {
    if (count != PERFLAB_COUNT_UNLIMITED) limit = count;
  };
  if (endpoint.key == nullptr) {
    const std::int32_t most = std::min(given.max_samples, given.max_samples_per_instance);
    set(most, limits.max_samples);
    set(most, limits.max_samples_per_instance);
    return;
  }
  set(given.max_samples, limits.max_samples);
  set(given.max_instances, limits.max_instances);
  set(given.max_samples_per_instance, limits.max_samples_per_instance);
}

dds::DataWriterQos writer_qos(const perflab_endpoint_settings& endpoint, const Settings& settings,
                              std::size_t fixed_size) {
  dds::DataWriterQos qos;
  apply(endpoint, settings, fixed_size, qos);
  qos.lifespan().duration = duration(endpoint.qos.lifespan_ns);
  qos.publish_mode().kind =
      settings.asynchronous ? dds::ASYNCHRONOUS_PUBLISH_MODE : dds::SYNCHRONOUS_PUBLISH_MODE;
  // If the host knows no filter, writers do not look for any: readers filter themselves.
  if (endpoint.filter_count == 0) qos.writer_resource_limits().reader_filters_allocation.maximum = 0;
  qos.writer_data_lifecycle().autodispose_unregistered_instances = false;
  auto& limits = qos.resource_limits();
  limits.max_samples = keeps_all(endpoint.qos) ? kKeepAll : endpoint.qos.depth;
  if (fixed_size != 0) {
    if (keeps_all(endpoint.qos)) {
      limits.max_samples = static_cast<std::int32_t>(std::clamp<std::size_t>(
          kKeepAllShared / fixed_size, kLeastKeepAllShared, static_cast<std::size_t>(kKeepAll)));
    }
    limits.extra_samples = fixed_size < kLarge ? kSpareShared : kSpareSharedLarge;
  }
  limits.max_samples_per_instance = limits.max_samples;
  // With keys the limit applies to each instance, and their number is unlimited.
  if (endpoint.key != nullptr) limits.max_samples = 0;
  limit(endpoint, limits);
  qos.ownership_strength().value = static_cast<std::uint32_t>(endpoint.qos.ownership_strength);
  qos.transport_priority().value = static_cast<std::uint32_t>(endpoint.qos.transport_priority);
  return qos;
}

dds::DataReaderQos reader_qos(const perflab_endpoint_settings& endpoint, const Settings& settings,
                              std::size_t fixed_size) {
  dds::DataReaderQos qos;
  apply(endpoint, settings, fixed_size, qos);
  // With keep-last the depth limits the history; taken samples not yet returned come on top. With keep-all
  // nothing is limited: a message rejected by a full history within the process is never delivered again.
  auto& limits = qos.resource_limits();
  limits.max_samples = limits.max_samples_per_instance = 0;
  limit(endpoint, limits);
  auto& reading = qos.reader_resource_limits();
  reading.max_samples_per_read = 1;
  reading.outstanding_reads_allocation.initial = 1;
  reading.sample_infos_allocation.initial = 1;
  return qos;
}

// Only one thread at a time writes, takes or returns, and others may read: a plain addition suffices.
void count(std::atomic<std::uint64_t>& counter) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

perflab_identity identity_of(const rtps::InstanceHandle_t& handle) {
  return fastdds::identity(rtps::iHandle2GUID(handle));
}

}  // namespace

Endpoint::Endpoint(Participant& participant, const perflab_endpoint_settings& settings,
                   const perflab_listener* listener, bool is_writer)
    : participant_(participant),
      is_writer_(is_writer),
      listener_(listener != nullptr ? *listener : perflab_listener{}),
      topic_name_(support::checked("fastdds", settings).topic),
      type_name_(settings.type),
      qos_(settings.qos) {
  if (settings.fixed_size > std::numeric_limits<std::int32_t>::max() ||
      (settings.fixed_size != 0 && settings.fixed_size <= kEncapsulation)) {
    throw BadInput("fastdds: topic '" + topic_name_ + "' has messages of " +
                   std::to_string(settings.fixed_size) + " bytes; right would be 5 bytes to 2 GiB");
  }
  if (settings.loans && settings.fixed_size == 0) {
    throw Unsupported("fastdds: topic '" + topic_name_ +
                      "' has messages of variable size, which cannot be loaned; right "
                      "would be a type of fixed size");
  }
  if (settings.loans && !participant.settings().data_sharing) {
    throw Unsupported("fastdds: topic '" + topic_name_ +
                      "' shall pass loaned messages, which needs shared memory; right would be "
                      "--middleware-option fastdds.data_sharing=on");
  }
  if (settings.loans && settings.key != nullptr) {
    throw Unsupported("fastdds: topic '" + topic_name_ +
                      "' is keyed, but the library cannot find keys in loaned messages; right would be "
                      "unique or shared, or a topic without keys");
  }
  topic_ = participant.use_topic(settings, !is_writer);
  if (settings.loans && topic_.type->fixed_size() == 0) {
    participant.leave_topic(topic_name_, topic_);
    throw Unsupported("fastdds: type '" + type_name_ +
                      "' is used with variable size by this participant, and so cannot be "
                      "loaned as well; right would be one size for all");
  }
  participant.add_local(this, {terms(), {}});
}

Terms Endpoint::terms() const {
  return {is_writer_,
          topic_name_,
          type_name_,
          durability_of(qos_),
          qos_.deadline_ns,
          liveliness_of(qos_),
          qos_.lease_duration_ns,
          reliability_of(qos_)};
}

Endpoint::~Endpoint() {
  participant_.remove_local(this);
  participant_.leave_topic(topic_name_, topic_);
}

void Endpoint::made(const rtps::GUID_t& guid) {
  identity_ = fastdds::identity(guid);
  participant_.add_local(this, {terms(), identity_});
}

void Endpoint::silence() noexcept {
  const std::lock_guard lock(calls_);
  silent_ = true;
}

Endpoint::Creating::Creating(Endpoint& endpoint) : before_(std::exchange(endpoint_in_creation, &endpoint)) {}
Endpoint::Creating::~Creating() { endpoint_in_creation = before_; }

void Endpoint::report(perflab_event_kind kind, std::int32_t count, const perflab_identity& peer,
                      const char* policy) noexcept {
  if (listener_.on_event == nullptr || count == 0) return;
  const perflab_event event{
      kind, participant_.now_ns(), peer, topic_name_.c_str(), type_name_.c_str(), policy, count};
  const std::lock_guard lock(calls_);
  if (!silent_) listener_.on_event(listener_.context, &event);
}

void Endpoint::count_matched(std::int32_t change, const perflab_identity& peer) noexcept {
  if (is_ignored(peer)) return;
  matched_ += change;
  if (change > 0) report(PERFLAB_MATCHED, change, peer);
  if (change < 0) report(PERFLAB_UNMATCHED, -change, peer);
}

void Endpoint::report_incompatible(std::uint32_t policy) {
  // Ignores those of this process, if requested.
  if (participant_.filters_local() && !participant_.is_incompatible_elsewhere(this, policy)) return;
  report(PERFLAB_INCOMPATIBLE_QOS, 1, perflab_identity{}, support::policy_name(policy));
}

// ---- writer ----

Writer::Writer(Participant& participant, const perflab_endpoint_settings& settings,
               const perflab_listener* listener)
    : Endpoint(participant, settings, listener, true), loans_(settings.loans) {
  const dds::DataWriterQos qos = writer_qos(settings, participant.settings(), topic_.type->fixed_size());
  const ThreadName name("fdds");
  const Creating creating(*this);
  group_ = participant.use_publisher(settings.qos);
  writer_ = group_->create_datawriter(topic_.topic, qos, this, dds::StatusMask::all());
  if (writer_ == nullptr) {
    participant.leave_publisher(group_);
    fail("cannot create a writer on topic '" + topic_name_ + "'");
  }
  made(writer_->guid());
  participant.note_lifespan(writer_->guid(), settings.qos.lifespan_ns);
  const auto& limits = qos.resource_limits();
  record_ = participant.add_record(topic_name_, true,
                                   topic_.type->fixed_size() == 0
                                       ? 0
                                       : static_cast<std::size_t>(limits.max_samples + limits.extra_samples));
  if (loans_) outstanding_.reserve(static_cast<std::size_t>(limits.max_samples + limits.extra_samples));
}

Writer::~Writer() {
  silence();
  while (!outstanding_.empty()) discard_loan(outstanding_.back());
  participant_.forget_lifespan(writer_->guid());
  group_->delete_datawriter(writer_);
  participant_.leave_publisher(group_);
}

perflab_status Writer::refused(const ReturnCode& code, perflab_error* error) const noexcept {
  if (is_timeout(code)) {
    set_error(error, "fastdds: not sent: a reliable reader did not acknowledge within max_blocking_time");
  } else {
    char text[128];
    std::snprintf(text, sizeof text, "fastdds: not sent: the library returned code %d",
                  number_of(code));
    set_error(error, text);
  }
  return PERFLAB_FAILED;
}

// A write with parameters does not report the reason of a failure.
perflab_status Writer::refused_with_parameters(perflab_error* error) noexcept {
  set_error(error,
            "fastdds: not sent: no room, or a reliable reader did not acknowledge within max_blocking_time");
  return PERFLAB_FAILED;
}

perflab_status Writer::write(const perflab_bytes* parts, std::size_t part_count,
                             const perflab_sample_identity* related, std::int64_t* sequence,
                             perflab_error* error) {
  const std::int64_t stamp_ns = std::exchange(next_stamp_ns_, 0);
  const std::size_t size = size_of(parts, part_count);
  const std::size_t most =
      topic_.type->fixed_size() != 0 ? topic_.type->fixed_size() : std::numeric_limits<std::int32_t>::max();
  if (size < kEncapsulation || size > most) [[unlikely]] {
    set_error(error, size < kEncapsulation
                         ? "fastdds: the message has no encapsulation header"
                         : "fastdds: the message is larger than its type's fixed size, or than 2 GiB");
    return PERFLAB_FAILED;
  }
  Outgoing message{{true}, parts, part_count, static_cast<std::uint32_t>(size)};
  if (related == nullptr && sequence == nullptr && stamp_ns == 0) {
    const ReturnCode code = writer_->write(&message, dds::HANDLE_NIL);
    if (succeeded(code)) [[likely]]
      return PERFLAB_OK;
    return refused(code, error);
  }
  rtps::WriteParams params;
  if (stamp_ns != 0) params.source_timestamp(source_time(stamp_ns));
  if (related != nullptr) {
    rtps::SampleIdentity identity;
    identity.writer_guid(to_guid(related->writer));
    identity.sequence_number(rtps::SequenceNumber_t(static_cast<std::uint64_t>(related->sequence)));
    params.related_sample_identity(identity);
  }
  if (!succeeded(writer_->write(&message, params))) [[unlikely]]
    return refused_with_parameters(error);
  if (sequence != nullptr) {
    *sequence = static_cast<std::int64_t>(params.sample_identity().sequence_number().to64long());
  }
  return PERFLAB_OK;
}

perflab_status Writer::loan(void** message, perflab_error* error) {
  void* body = nullptr;
  const ReturnCode code =
      loans_ ? writer_->loan_sample(body, dds::DataWriter::LoanInitializationKind::NO_LOAN_INITIALIZATION)
             : ReturnCode{};
  if (!loans_ || !succeeded(code) || body == nullptr) [[unlikely]] {
    set_error(error, loans_ ? "fastdds: no room for a loan: too many messages are loaned, or not acknowledged"
                            : "fastdds: this writer was not made for loans");
    return PERFLAB_FAILED;
  }
  void* const start = static_cast<std::uint8_t*>(body) - kEncapsulation;
  if (record_->samples.load(std::memory_order_relaxed) == 0) loans_shared_ = in_data_sharing(start);
  outstanding_.push_back(start);
  *message = start;
  return PERFLAB_OK;
}

bool Writer::forget_loan(const void* message) noexcept {
  const auto at = std::find(outstanding_.begin(), outstanding_.end(), message);
  if (at == outstanding_.end()) return false;
  outstanding_.erase(at);
  return true;
}

perflab_status Writer::write_loaned(void* message, perflab_error* error) {
  const std::int64_t stamp_ns = std::exchange(next_stamp_ns_, 0);
  if (!forget_loan(message)) [[unlikely]] {
    set_error(error, "fastdds: not sent: the message is not a loan of this writer");
    return PERFLAB_FAILED;
  }
  void* body = static_cast<std::uint8_t*>(message) + kEncapsulation;
  ReturnCode code{};
  bool written = false;
  if (stamp_ns == 0) [[likely]] {
    code = writer_->write(body, dds::HANDLE_NIL);
    written = succeeded(code);
  } else {
    rtps::WriteParams params;
    params.source_timestamp(source_time(stamp_ns));
    written = succeeded(writer_->write(body, params));
  }
  if (written) [[likely]] {
    count(record_->samples);
    if (loans_shared_) count(record_->from_data_sharing);
    return PERFLAB_OK;
  }
  writer_->discard_loan(body);  // the library keeps the loan when a write fails
  return stamp_ns == 0 ? refused(code, error) : refused_with_parameters(error);
}

void Writer::discard_loan(void* message) noexcept {
  if (!forget_loan(message)) return;
  void* body = static_cast<std::uint8_t*>(message) + kEncapsulation;
  writer_->discard_loan(body);
}

void Writer::on_publication_matched(dds::DataWriter*, const dds::PublicationMatchedStatus& status) {
  count_matched(status.current_count_change, identity_of(status.last_subscription_handle));
}
void Writer::on_offered_deadline_missed(dds::DataWriter*, const OfferedDeadlineMissed& status) {
  report(PERFLAB_DEADLINE_MISSED, static_cast<std::int32_t>(status.total_count_change), {});
}
void Writer::on_offered_incompatible_qos(dds::DataWriter*, const dds::OfferedIncompatibleQosStatus& status) {
  report_incompatible(status.last_policy_id);
}
void Writer::on_liveliness_lost(dds::DataWriter*, const LivelinessLost& status) {
  report(PERFLAB_LIVELINESS_LOST, status.total_count_change, {});
}

// ---- reader ----

Reader::Reader(Participant& participant, const perflab_endpoint_settings& settings,
               const perflab_listener* listener)
    : Endpoint(participant, settings, listener, false),
      Attachment("fastdds"),
      fixed_size_(topic_.type->fixed_size()),
      in_place_(settings.loans),
      relates_(settings.related_samples) {
  const dds::DataReaderQos qos = reader_qos(settings, participant.settings(), fixed_size_);
  record_ = participant.add_record(topic_name_, false, 0);
  // With data sharing a reader has its own thread.
  const ThreadName name("fdds.sharing");
  const Creating creating(*this);
  group_ = participant.use_subscriber(settings.qos);
  reader_ = group_->create_datareader(topic_.description, qos, this, dds::StatusMask::all());
  if (reader_ == nullptr) {
    participant.leave_subscriber(group_);
    fail("cannot create a reader on topic '" + topic_name_ + "'");
  }
  made(reader_->guid());
}

Reader::~Reader() {
  silence();
  group_->delete_datareader(reader_);
  participant_.leave_subscriber(group_);
}

Reader::Loan* Reader::new_loan() noexcept {
  try {
    return loans_.emplace_back(std::make_unique<Loan>()).get();
  } catch (const std::bad_alloc&) {
    return nullptr;
  }
}

bool Reader::Loan::take_over(const View& view) noexcept {
  try {
    copy.assign(view.data, view.data + view.size);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

void Reader::give_back(Loan* loan) noexcept {
  if (!loan->values.has_ownership()) reader_->return_loan(loan->values, loan->infos);
  loan->shared = false;
  keep(loan);
}

bool Reader::is_shared(const perflab_identity& writer, const void* data) noexcept {
  if (writers_left_.load(std::memory_order_relaxed)) [[unlikely]] {
    writers_left_ = false;
    known_writers_.clear();
  }
  for (const KnownWriter& known : known_writers_) {
    if (same(known.identity, writer)) return known.shared;
  }
  // The delivery path of a writer's messages does not change while they are matched.
  const bool shared = in_data_sharing(data);
  try {
    known_writers_.push_back({writer, shared});
  } catch (const std::bad_alloc&) {  // looked up again next time
  }
  return shared;
}

std::int64_t Reader::reception_of(const dds::SampleInfo& info, const perflab_identity& writer,
                                  std::size_t size, bool shared) noexcept {
  if (!shared && size > participant_.smallest_fragment()) {
    // The library stamps the first fragment of a message.
    const auto sequence = static_cast<std::int64_t>(info.sample_identity.sequence_number().to64long());
    const std::lock_guard lock(fragmented_mutex_);
    for (const Fragmented& one : fragmented_) {
      if (one.sequence == sequence && same(one.writer, writer)) return one.received_ns;
    }
    return PERFLAB_TIME_UNKNOWN;
  }
  const std::int64_t received = info.reception_timestamp.to_ns();
  timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  const std::int64_t age = std::int64_t{wall.tv_sec} * 1'000'000'000 + wall.tv_nsec - received;
  const std::int64_t now = participant_.now_ns();
  // Unless the wall clock was set meanwhile.
  return received <= 0 || age < 0 ? PERFLAB_TIME_UNKNOWN : now - age;
}

void Reader::tell_relation(const dds::SampleInfo& info, perflab_sample& sample) noexcept {
  sample.sequence = static_cast<std::int64_t>(info.sample_identity.sequence_number().to64long());
  const perflab_sample_identity related{
      fastdds::identity(info.related_sample_identity.writer_guid()),
      static_cast<std::int64_t>(info.related_sample_identity.sequence_number().to64long())};
  // Within the process a message without a related one carries its own identity.
  const bool own = related.sequence == sample.sequence && same(related.writer, sample.writer);
  if (!own && !same(related.writer, {})) sample.related = related;
}

perflab_status Reader::take(perflab_sample* sample, perflab_error* error) {
  for (;;) {
    Loan* const loan = free_loans_ != nullptr ? std::exchange(free_loans_, free_loans_->next) : new_loan();
    if (loan == nullptr) [[unlikely]] {
      set_error(error, "fastdds: cannot take: no memory");
      return PERFLAB_FAILED;
    }
    const ReturnCode code = [&] {
      try {
        return reader_->take(loan->values, loan->infos, 1);
      } catch (...) {
        keep(loan);
        throw;
      }
    }();
    if (!succeeded(code)) {
      keep(loan);
      if (is_no_data(code)) return PERFLAB_NO_DATA;
      char text[128];
      std::snprintf(text, sizeof text, "fastdds: cannot take: the library returned code %d",
                    number_of(code));
      set_error(error, text);
      return PERFLAB_FAILED;
    }
    const dds::SampleInfo& info = loan->infos[0];
    const perflab_identity writer = fastdds::identity(info.sample_identity.writer_guid());
    const std::int64_t source_ns = info.source_timestamp.to_ns();
    if (!info.valid_data || participant_.has_expired(info.sample_identity.writer_guid(), source_ns))
        [[unlikely]] {
      give_back(loan);  // only reports that a writer has left, or came too late
      continue;
    }
    const void* const value = loan->values.buffer()[0];
    View view;
    if (fixed_size_ != 0) {
      view = {{false}, static_cast<const std::uint8_t*>(value) - kEncapsulation, static_cast<std::uint32_t>(fixed_size_)};
    } else {
      view = *static_cast<const View*>(value);
    }
    loan->shared = fixed_size_ != 0 && is_shared(writer, view.data);
    if (loan->shared) {
      const bool copies = !in_place_;
      if (copies && !loan->take_over(view)) [[unlikely]] {
        give_back(loan);
        set_error(error, "fastdds: cannot take: no memory for a copy of the message");
        return PERFLAB_FAILED;
      }
      if (!reader_->is_sample_valid(value, &info)) [[unlikely]] {
        // The writer has already reused the memory: the message is lost.
        count(record_->overwritten);
        give_back(loan);
        continue;
      }
      count(record_->from_data_sharing);
      if (copies) {
        view.data = loan->copy.data();
        count(record_->copied);
      }
    }
    count(record_->samples);
    sample->data = view.data;
    sample->size = view.size;
    sample->writer = writer;
    sample->sequence = 0;
    sample->related = {};
    if (relates_) tell_relation(info, *sample);
    sample->source_timestamp_ns = source_ns > 0 ? source_ns : PERFLAB_TIME_UNKNOWN;
    sample->reception_ns = participant_.is_intraprocess(writer)
                               ? PERFLAB_TIME_UNKNOWN
                               : reception_of(info, writer, view.size, loan->shared);
    sample->loan = loan;
    return PERFLAB_OK;
  }
}

void Reader::return_sample(perflab_sample* sample) noexcept {
  Loan* const loan = static_cast<Loan*>(sample->loan);
  if (loan->shared && in_place_ && !reader_->is_sample_valid(loan->values.buffer()[0], &loan->infos[0]))
      [[unlikely]] {
    count(record_->overwritten);
  }
  give_back(loan);
  sample->loan = nullptr;
  sample->data = nullptr;
}

void Reader::note_fragmented() noexcept {
  const LastFragment& last = last_fragment();
  if (!last.valid) return;
  const std::lock_guard lock(fragmented_mutex_);
  fragmented_[next_fragmented_] = {last.writer, last.sequence, last.received_ns};
  next_fragmented_ = (next_fragmented_ + 1) % fragmented_.size();
}

bool Reader::is_always_alive(const perflab_identity& writer) const {
  if (qos_.lease_duration_ns == PERFLAB_DURATION_INFINITE) return false;
  // An endpoint that this thread is creating is not known by its identity yet.
  if (participant_.is_own(writer) && endpoint_in_creation != nullptr && endpoint_in_creation != this)
    return endpoint_in_creation->offers_automatic_liveliness();
  return participant_.is_always_alive(writer);
}

void Reader::on_data_available(dds::DataReader*) {
  if (participant_.smallest_fragment() != UINT32_MAX) [[unlikely]]  // messages have come in fragments
    note_fragmented();
  // A thread that attaches the reader after this check finds the message by querying the library.
  if (attached()) {
    const std::lock_guard lock(mutex_);
    ready();
  }
  if (listener_.on_data == nullptr) return;
  const std::lock_guard lock(calls_);
  if (!silent_) listener_.on_data(listener_.context);
}
std::int64_t Reader::lifespan(const perflab_identity& writer) const noexcept {
  return participant_.lifespan_of(to_guid(writer));
}

void Reader::on_subscription_matched(dds::DataReader*, const dds::SubscriptionMatchedStatus& status) {
  const perflab_identity writer = identity_of(status.last_publication_handle);
  count_matched(status.current_count_change, writer);
  if (status.current_count_change < 0) writers_left_ = true;
  if (!is_ignored(writer) && is_always_alive(writer))
    report(PERFLAB_LIVELINESS_CHANGED, status.current_count_change, writer);
}
void Reader::on_requested_deadline_missed(dds::DataReader*, const DeadlineMissed& status) {
  report(PERFLAB_DEADLINE_MISSED, static_cast<std::int32_t>(status.total_count_change), {});
}
void Reader::on_liveliness_changed(dds::DataReader*, const LivelinessChanged& status) {
  const perflab_identity writer = identity_of(status.last_publication_handle);
  if (!is_ignored(writer) && !is_always_alive(writer))
    report(PERFLAB_LIVELINESS_CHANGED, status.alive_count_change, writer);
}
void Reader::on_requested_incompatible_qos(dds::DataReader*,
                                           const dds::RequestedIncompatibleQosStatus& status) {
  report_incompatible(status.last_policy_id);
}
void Reader::on_sample_lost(dds::DataReader*, const dds::SampleLostStatus& status) {
  report(PERFLAB_SAMPLE_LOST, status.total_count_change, {});
}

}  // namespace perflab::middleware::fastdds
