#include "middleware/direct/endpoint.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <thread>

#include "base/time.h"
#include "middleware/support/qos.h"
#include "middleware/support/status.h"
#include "middleware/types.h"

namespace perflab::middleware::direct {
namespace {

using support::set_error;

// Capacity of a keep_all history before a reliable writer waits.
constexpr std::size_t kMostMessages = 16384;
constexpr std::size_t kMostBytes = std::size_t{512} << 20;
// Queues and packets up to this size are allocated in advance.
constexpr std::size_t kMostReserved = 1024;
constexpr std::size_t kMostBytesReserved = std::size_t{64} << 20;

bool finite(std::int64_t duration_ns) { return duration_ns != PERFLAB_DURATION_INFINITE; }

// Actions at a given time, without a call, would need a thread.
const perflab_qos& without_clock(const perflab_qos& qos) {
  if (qos.liveliness == PERFLAB_MANUAL_BY_TOPIC && finite(qos.lease_duration_ns)) {
    throw Unsupported(
        "direct: manual_by_topic liveliness with a lease is not monitored here; right would be "
        "automatic");
  }
  return qos;
}

std::size_t room_for(const perflab_qos& qos) {
  return qos.history == PERFLAB_KEEP_ALL ? 64 : std::min(static_cast<std::size_t>(qos.depth), kMostReserved);
}

bool has_expired(const Packet& packet) noexcept {
  return packet.expires_ns != INT64_MAX && read_clock(CLOCK_MONOTONIC) >= packet.expires_ns;
}

}  // namespace

// ---- common to both ----

Endpoint::Endpoint(Participant& participant, const perflab_endpoint_settings& settings,
                   const perflab_listener* listener)
    : participant_(participant),
      topic_(support::checked("direct", settings).topic),
      type_(settings.type),
      qos_(without_clock(settings.qos)),
      fixed_size_(settings.fixed_size),
      listener_(listener != nullptr ? *listener : perflab_listener{}),
      identity_(participant.next_identity()) {}

void Endpoint::report(perflab_event_kind kind, const perflab_identity& peer, std::int32_t count,
                      const char* policy) {
  if (listener_.on_event == nullptr) return;
  const perflab_event event{kind, participant_.host_now_ns(), peer, topic_.c_str(), type_.c_str(), policy,
                            count};
  {
    const std::lock_guard lock(events_mutex_);
    events_.push_back(event);
  }
  gate_.pass(kEvents, [this](Gate::Marks marks) { run_callbacks(marks); });
}

void Endpoint::run_callbacks(Gate::Marks marks) noexcept {
  if ((marks & kEvents) != 0) [[unlikely]] {
    std::vector<perflab_event> events;
    {
      const std::lock_guard lock(events_mutex_);
      events.swap(events_);
    }
    for (const perflab_event& event : events) listener_.on_event(listener_.context, &event);
  }
  if ((marks & kData) != 0) listener_.on_data(listener_.context);
}

// ---- reader ----

Reader::Reader(Participant& participant, const perflab_endpoint_settings& settings,
               const perflab_listener* listener)
    : Endpoint(participant, settings, listener), Attachment("direct"), relates_(settings.related_samples) {
  queue_.reserve(room_for(qos_));
  participant_.bus().enter(*this);
}

Reader::~Reader() {
  participant_.bus().leave(*this);
  while (!queue_.empty()) release(queue_.pop_front());
}

bool Reader::full() const noexcept { return queue_.size() >= kMostMessages || bytes_ >= kMostBytes; }

bool Reader::wait_for_room(std::int64_t until_ns) noexcept {
  if (qos_.reliability != PERFLAB_RELIABLE) return true;
  std::unique_lock lock(mutex_);
  if (!full()) [[likely]]
    return true;
  ++waiting_writers_;
  const bool room =
      room_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until_ns)),
                       [this] { return closed_ || !full(); });
  --waiting_writers_;
  return room;
}

bool Reader::push(Packet* packet) {
  Packet* overwritten = nullptr;
  {
    const std::lock_guard lock(mutex_);
    if (keeps_all()) {
      // A reliable writer has waited, but another one may have taken the last place.
      if (full() && qos_.reliability != PERFLAB_RELIABLE) return false;
      queue_.push_back(packet);
      bytes_ += packet->size;
    } else {
      if (queue_.size() == static_cast<std::size_t>(qos_.depth)) overwritten = queue_.pop_front();
      queue_.push_back(packet);
    }
    available_.store(queue_.size(), std::memory_order_release);
    if (queue_.size() == 1) ready();
  }
  if (overwritten != nullptr) release(overwritten);
  return true;
}

// Requires the mutex; null if empty.
Packet* Reader::pop() noexcept {
  if (queue_.empty()) return nullptr;
  Packet* const packet = queue_.pop_front();
  available_.store(queue_.size(), std::memory_order_release);
  if (keeps_all()) {
    bytes_ -= packet->size;
    if (waiting_writers_ > 0) room_.notify_all();
  }
  return packet;
}

std::int64_t Reader::lifespan(const perflab_identity& writer) const {
  return participant().bus().lifespan_of(writer);
}

perflab_status Reader::take(perflab_sample* sample, perflab_error*) noexcept {
  // A thread that is called or woken sees the message that caused it.
  if (!has_data()) return PERFLAB_NO_DATA;
  Packet* packet = nullptr;
  {
    const std::lock_guard lock(mutex_);
    packet = pop();
    while (packet != nullptr && has_expired(*packet)) {
      release(packet);
      packet = pop();
    }
  }
  if (packet == nullptr) return PERFLAB_NO_DATA;
  sample->data = packet->bytes();
  sample->size = packet->size;
  sample->writer = packet->writer;
  sample->sequence = relates_ ? packet->sequence : 0;
  sample->related = relates_ ? packet->related : perflab_sample_identity{};
  sample->source_timestamp_ns = packet->source_ns;
  sample->reception_ns = PERFLAB_TIME_UNKNOWN;  // there is no receive thread
  sample->loan = packet;
  return PERFLAB_OK;
}

void Reader::return_sample(perflab_sample* sample) noexcept {
  release(static_cast<Packet*>(sample->loan));
  sample->loan = nullptr;
  sample->data = nullptr;
}

void Reader::close() noexcept {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  room_.notify_all();
}

// ---- writer ----

namespace {

const perflab_endpoint_settings& checked(const perflab_endpoint_settings& settings) {
  if (settings.loans && settings.fixed_size == 0) {
    throw Unsupported(std::string("direct: topic '") + settings.topic +
                      "' has messages of variable size, which cannot be loaned; right would be a type of "
                      "fixed size");
  }
  return settings;
}

}  // namespace

Writer::Writer(Participant& participant, const perflab_endpoint_settings& settings,
               const perflab_listener* listener)
    : Endpoint(participant, checked(settings), listener),
      pool_(participant.bus().lend_pool()),
      lends_(settings.loans),
      current_(std::make_unique<const Targets>()) {
  targets_.store(current_.get(), std::memory_order_relaxed);
  loans_.reserve(4);
  participant_.bus().enter(*this);
}

Writer::~Writer() {
  participant_.bus().leave(*this);
  while (!loans_.empty()) discard_loan(loans_.back()->bytes());
  while (!history_.empty()) release(history_.pop_front());
  participant_.bus().return_pool(pool_);
}

perflab_status Writer::write(const perflab_bytes* parts, std::size_t part_count,
                             const perflab_sample_identity* related, std::int64_t* sequence,
                             perflab_error* error) noexcept {
  const std::int64_t stamp_ns = std::exchange(next_stamp_ns_, 0);
  if (matched() == 0 && !keeps_history()) {
    ++sequence_;
    if (sequence != nullptr) *sequence = sequence_;
    return PERFLAB_OK;
  }
  const std::size_t size = size_of(parts, part_count);
  Packet* packet = nullptr;
  try {
    packet = pool_.get(size);
  } catch (const std::exception&) {
    set_error(error, "direct: no memory for a message");
    return PERFLAB_FAILED;
  }
  packet->size = size;
  put_together(parts, part_count, packet->bytes());
  return send(packet, related, sequence, stamp_ns, error);
}

perflab_status Writer::send(Packet* packet, const perflab_sample_identity* related, std::int64_t* sequence,
                            std::int64_t stamp_ns, perflab_error* error) noexcept {
  // From here on a thread that removes a reader waits, so the list just read stays valid.
  if (depth_++ == 0) {
    passes_.store(passes_.load(std::memory_order_relaxed) + 1, std::memory_order_seq_cst);
  }
  const Targets& targets = *targets_.load(std::memory_order_seq_cst);
  perflab_status status = PERFLAB_FAILED;
  packet->writer = identity_;
  packet->related = related != nullptr ? *related : perflab_sample_identity{};
  packet->source_ns = stamp_ns != 0 ? stamp_ns : read_clock(CLOCK_REALTIME);
  packet->expires_ns = finite(qos_.lifespan_ns) ? read_clock(CLOCK_MONOTONIC) + qos_.lifespan_ns : INT64_MAX;
  try {
    distribute(packet, targets);
    status = PERFLAB_OK;
    if (sequence != nullptr) *sequence = sequence_;
  } catch (const std::exception& failure) {
    set_error(error, failure.what());
  }
  // All readers have the message before the first callback, which may write the next one.
  if (status == PERFLAB_OK) [[likely]] {
    for (Reader* const reader : targets.called) reader->call();
  }
  if (--depth_ == 0) {
    passes_.store(passes_.load(std::memory_order_relaxed) + 1, std::memory_order_release);
  }
  return status;
}

// Takes ownership of the packet. Throws if it was not sent, or not to all.
void Writer::distribute(Packet* packet, const Targets& targets) {
  if (targets.bounded.empty() && !keeps_history()) [[likely]] {
    push_all(packet, targets.readers, 0);
    return;
  }
  try {
    wait_for_room(targets);
  } catch (...) {
    pool_.put(packet);
    throw;
  }
  if (!keeps_history()) {
    push_all(packet, targets.readers, 0);
    return;
  }
  const std::lock_guard lock(history_mutex_);
  const bool keeps_all = qos_.history == PERFLAB_KEEP_ALL;
  try {
    if (keeps_all && history_.size() >= kMostMessages)
      throw Failed("direct: not sent: a history of 16384 messages is full");
    history_.push_back(packet);
  } catch (...) {
    pool_.put(packet);
    throw;
  }
  // Readers added meanwhile have not had this message.
  push_all(packet, targets_.load(std::memory_order_seq_cst)->readers, 1);
  if (!keeps_all && history_.size() > static_cast<std::size_t>(qos_.depth)) release(history_.pop_front());
}

// Throws if a reliable reader's history has been full for too long.
void Writer::wait_for_room(const Targets& targets) const {
  if (targets.bounded.empty()) return;
  const std::int64_t until_ns = read_clock(CLOCK_MONOTONIC) + participant_.settings().max_blocking_time_ns;
  for (Reader* const reader : targets.bounded) {
    if (!reader->wait_for_room(until_ns)) {
      throw Failed("direct: not sent: a reliable reader took nothing within max_blocking_time");
    }
  }
}

// `kept`: references besides the readers'.
void Writer::push_all(Packet* packet, const std::vector<Reader*>& readers, std::uint32_t kept) {
  packet->sequence = ++sequence_;
  const auto count = static_cast<std::uint32_t>(readers.size());
  packet->references.store(count + kept, std::memory_order_relaxed);
  if (count + kept == 0) pool_.put(packet);
  for (std::size_t i = 0; i < readers.size(); ++i) {
    bool taken = false;
    try {
      taken = readers[i]->push(packet);
    } catch (...) {
      for (; i < readers.size(); ++i) release(packet);
      throw;
    }
    if (taken) [[likely]]
      continue;
    release(packet);
    readers[i]->report(PERFLAB_SAMPLE_LOST, identity_, 1);
  }
}

// ---- loans ----

perflab_status Writer::loan(void** message, perflab_error* error) noexcept {
  if (!lends_) {
    set_error(error, "direct: this writer was made without loans");
    return PERFLAB_UNSUPPORTED;
  }
  try {
    loans_.reserve(loans_.size() + 1);
    Packet* const packet = pool_.get(fixed_size_);
    packet->size = fixed_size_;
    packet->references.store(1, std::memory_order_relaxed);
    loans_.push_back(packet);
    *message = packet->bytes();
    return PERFLAB_OK;
  } catch (const std::exception&) {
    set_error(error, "direct: no memory for a message");
    return PERFLAB_FAILED;
  }
}

// Null if it is not a loan of this writer.
Packet* Writer::end_loan(const void* message) noexcept {
  const auto at =
      std::ranges::find(loans_, message, [](Packet* packet) -> const void* { return packet->bytes(); });
  if (at == loans_.end()) return nullptr;
  Packet* const packet = *at;
  loans_.erase(at);
  return packet;
}

perflab_status Writer::write_loaned(void* message, perflab_error* error) noexcept {
  const std::int64_t stamp_ns = std::exchange(next_stamp_ns_, 0);
  Packet* const packet = end_loan(message);
  if (packet == nullptr) {
    set_error(error, "direct: not sent: this is not a loan of this writer");
    return PERFLAB_FAILED;
  }
  return send(packet, nullptr, nullptr, stamp_ns, error);
}

void Writer::discard_loan(void* message) noexcept {
  Packet* const packet = end_loan(message);
  if (packet != nullptr) release(packet);
}

// ---- readers are added and removed ----

void Writer::add(Reader& reader) {
  auto targets = std::make_unique<Targets>(*current_);
  targets->readers.push_back(&reader);
  if (reader.wants_call()) targets->called.push_back(&reader);
  if (reader.keeps_all()) targets->bounded.push_back(&reader);
  reserve(targets->readers);
  const std::lock_guard lock(history_mutex_);
  if (keeps_history() && reader.qos().durability == PERFLAB_TRANSIENT_LOCAL) {
    for (std::size_t i = 0; i < history_.size(); ++i) {
      if (has_expired(*history_[i])) continue;
      history_[i]->references.fetch_add(1, std::memory_order_relaxed);
      if (!reader.push(history_[i])) release(history_[i]);
    }
  }
  publish(std::move(targets));
  reader.gain_writer();
}

bool Writer::remove(Reader& reader) {
  auto targets = std::make_unique<Targets>(*current_);
  if (std::erase(targets->readers, &reader) == 0) return false;
  std::erase(targets->called, &reader);
  std::erase(targets->bounded, &reader);
  const std::lock_guard lock(history_mutex_);
  publish(std::move(targets));
  return true;
}

void Writer::publish(std::unique_ptr<const Targets> targets) {
  retired_.push_back(std::move(current_));
  current_ = std::move(targets);
  targets_.store(current_.get(), std::memory_order_seq_cst);
  matched_.store(current_->readers.size(), std::memory_order_release);
  if (passes_.load(std::memory_order_seq_cst) % 2 == 0) retired_.clear();
}

void Writer::wait_until_left() const noexcept {
  const std::uint64_t seen = passes_.load(std::memory_order_seq_cst);
  if (seen % 2 == 0) return;
  while (passes_.load(std::memory_order_acquire) == seen) {
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

// A reader's queue holds the last messages, it may hold one taken message, and the writer fills another.
void Writer::reserve(const std::vector<Reader*>& readers) {
  if (fixed_size_ == 0) return;
  std::size_t longest = keeps_history() ? room_for(qos_) : 0;
  for (const Reader* const reader : readers) longest = std::max(longest, room_for(reader->qos()));
  const std::size_t count = longest + readers.size() + 2;
  pool_.reserve(std::min(count, kMostBytesReserved / fixed_size_), fixed_size_);
}

}  // namespace perflab::middleware::direct
