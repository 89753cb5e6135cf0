// The parts of a LiveGraph: publishers, subscriptions, reactions, clients, servers and waitables. Actions and
// timers have headers of their own.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <new>
#include <set>

#include "graph/ends.h"
#include "graph/live.h"
#include "graph/schedule.h"
#include "message/format.h"
#include "middleware/types.h"

namespace perflab::graph {

// A mutex that exists only if threads must exclude each other. With the inline executor a write may run
// callbacks of local readers while the mutex is held; the locking order then follows the data flow, which has
// no loop (refuse_inline_loops).
class Guard {
 public:
  explicit Guard(bool needed) : mutex_(needed ? std::make_unique<std::mutex>() : nullptr) {}
  [[nodiscard]] std::unique_lock<std::mutex> lock() const {
    return mutex_ ? std::unique_lock(*mutex_) : std::unique_lock<std::mutex>();
  }

 private:
  std::unique_ptr<std::mutex> mutex_;
};

// Publishers and subscribers of a topic in all processes.
struct TopicEnds {
  struct End {
    const Node* node;
    const Publisher* publisher;
    bool outside = false;  // belongs to a process that is not perflab's
  };
  // Subscriptions that count received messages, and how many of them are the workload's.
  struct Receivers {
    std::size_t all = 0;
    std::size_t own = 0;
  };
  std::vector<End> publishers;
  std::size_t subscriptions = 0;
  // An outside process subscribes to the topic; it may do so with several nodes (each node of MoveIt reads /clock).
  bool read_outside = false;
  std::map<std::string, Receivers> by_filter;  // "": subscriptions without a filter

  // The publisher's index within its topic, which its messages carry.
  [[nodiscard]] std::size_t source_of(const Publisher& publisher) const {
    return static_cast<std::size_t>(std::ranges::find(publishers, &publisher, &End::publisher) -
                                    publishers.begin());
  }
};

// The server of a service, and its number of clients, in all processes.
struct ServiceEnds {
  const Node* server = nullptr;  // the workload's server; conditions may have further ones
  std::size_t servers = 0;
  std::size_t clients = 0;
};

// The server of an action and its clients, in all processes.
struct ActionEnds {
  const Node* server = nullptr;  // as in ServiceEnds
  std::size_t servers = 0;
  const ActionServer* settings = nullptr;
  bool feedback = false;  // feedback is recorded
  std::vector<const Node*> clients;

  [[nodiscard]] std::uint16_t number_of(const Node& client) const {
    return static_cast<std::uint16_t>(std::ranges::find(clients, &client) - clients.begin());
  }
};

// The ends of all topics, services and actions, and how many recorders the processes of this LiveGraph need.
struct GraphIndex {
  GraphIndex(const Graph& graph, std::optional<std::size_t> process);

  // The schedule entry of a publisher whose messages do not carry their due time; empty for others.
  [[nodiscard]] std::optional<std::size_t> schedule_of(const Publisher& publisher) const {
    const auto found = scheduled.find(&publisher);
    return found == scheduled.end() ? std::nullopt : std::optional(found->second);
  }

  // The filters of a publisher's subscriptions.
  [[nodiscard]] std::vector<std::string> filters_of(const Publisher& publisher) const {
    std::vector<std::string> filters;
    for (const auto& [filter, receivers] : topics.at(publisher.topic).by_filter) {
      if (!filter.empty()) filters.push_back(filter);
    }
    return filters;
  }

  std::map<std::string, TopicEnds> topics;
  std::map<std::string, ServiceEnds> services;
  std::map<std::string, ActionEnds> actions;
  std::set<std::string> conditions;
  std::set<std::pair<std::string, std::string>> acknowledging;  // node and topic of each acknowledging
                                                                // publisher
  std::map<const Publisher*, std::size_t> scheduled;  // of all processes, numbered identically in each
  // Schedule entries in which a publisher stores which of its messages a filter wants, numbered after
  // `scheduled`.
  std::map<std::pair<const Publisher*, std::string>, std::size_t> filtered;
  std::size_t edges = 0;
  std::size_t publishers = 0;
  std::size_t clients = 0;
  std::size_t feedback_edges = 0;
  std::size_t feedback_publishers = 0;
  std::size_t action_clients = 0;

  static constexpr std::size_t kActionParts = 3;  // maximum per client
};

// What an edge or service between two nodes records.
inline measure::EdgeFigures figures_of(const LiveSettings& settings, const Node& from, const Node& to,
                                       bool work) {
  return {.dispatch = settings.measure_dispatch,
          .work = settings.measure_work && work,
          .deserialize = settings.structs && settings.times_encoding,
          .events = condition_between(from, to).empty()};
}

struct LiveGraph::Shared {
  Shared(const Graph& graph, std::optional<std::size_t> process, const measure::Clock& the_clock,
         measure::MessageEventQueue& event_queue, const LiveSettings& settings, measure::MessageRing* message_ring)
      : messages(*graph.messages),
        structs(settings.structs),
        keyed(graph.keyed),
        times_encoding(settings.structs && settings.times_encoding),
        source_timestamps(settings.source_timestamps),
        index(graph, process),
        schedule(index.scheduled.size() + index.filtered.size(), settings.schedule_descriptor),
        memory(index.edges + index.feedback_edges + index.clients + GraphIndex::kActionParts * index.action_clients,
               index.publishers + index.feedback_publishers + index.clients + GraphIndex::kActionParts * index.action_clients),
        clock(the_clock),
        events(event_queue),
        ring(settings.recording ? message_ring : nullptr),
        recording(settings.recording.value_or(LiveSettings::Recording{})),
        feedback_edges(static_cast<std::uint32_t>(index.edges)),
        clients(static_cast<std::uint32_t>(index.edges + index.feedback_edges)),
        action_parts(static_cast<std::uint32_t>(index.edges + index.feedback_edges + index.clients)) {}

  // The ring for messages of the workload on this topic or service; null: not recorded.
  [[nodiscard]] measure::MessageRing* ring_of(const std::string& topic, bool own) const {
    const bool chosen = recording.topics.empty() || std::ranges::find(recording.topics, topic) != recording.topics.end();
    return own && chosen ? ring : nullptr;
  }

  // False, and counted, if the bytes are not a message of this type.
  [[nodiscard]] bool read(const message::Format& format, const runtime::Delivery& delivery,
                          message::Header& header) noexcept {
    const bool is_one = format.stamp == message::Stamp::kNone ? format.is_message(delivery.bytes)
                                                              : format.read_stamp(delivery.bytes, header);
    if (is_one) return true;
    malformed.fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  // Completes a partial header. False, and counted, if the missing data are no longer known: the publisher
  // has sent more messages meanwhile than are remembered. `source_timestamp_ns` is that of the delivery.
  [[nodiscard]] bool look_up(const message::Format& format, const Schedule& kept, std::optional<std::size_t> where,
                             std::int64_t source_timestamp_ns, Schedule::Cursor& cursor,
                             message::Header& header) noexcept {
    // A reply repeats the request's header, so it may be empty although replies have one.
    if (format.stamp == message::Stamp::kHeader && header.intended_ns != kUnknownTime) return true;
    return look_up_elsewhere(format, kept, where, source_timestamp_ns, cursor, header);
  }
  [[nodiscard]] bool look_up_elsewhere(const message::Format& format, const Schedule& kept,
                                       std::optional<std::size_t> where, std::int64_t source_timestamp_ns,
                                       Schedule::Cursor& cursor, message::Header& header) noexcept {
    if (where && format.stamp != message::Stamp::kNone) {
      header.intended_ns = kept.find(*where, message::sequence_of(header)).due_ns;
      header.sequence &= ~message::kWarmUpBit;
    } else if (where) {
      Schedule::Entry entry = kept.find(*where, static_cast<std::uint64_t>(source_timestamp_ns));
      if (entry.due_ns == kUnknownTime) entry = kept.find_before(*where, source_timestamp_ns, cursor);
      header.intended_ns = entry.due_ns;
      header.published_ns = entry.published_ns;
      header.sequence = entry.sequence;
    }
    if (where && header.intended_ns != kUnknownTime) return true;
    forgotten.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // Puts the message of a delivery into `object`; a delivered struct is used directly. False, and counted, if
  // the bytes are not a message of this type. `deserialize_ns`: decoding time, kUnknownTime for a struct.
  [[nodiscard]] bool decode(const message::Format& format, message::Object& object, runtime::Delivery& delivery,
                            Nanoseconds& deserialize_ns) noexcept {
    deserialize_ns = kUnknownTime;
    if (delivery.object != nullptr) return true;
    const Nanoseconds begin = clock.now();
    if (!format.codec.decode(delivery.bytes, object.data())) {
      malformed.fetch_add(1, std::memory_order_relaxed);
      return false;
    }
    deserialize_ns = clock.now() - begin;
    delivery.object = object.data();
    return true;
  }

  message::Formats& messages;
  bool structs;
  bool keyed;
  bool times_encoding;  // encoding and decoding times of structs are known
  bool source_timestamps;
  GraphIndex index;
  Schedule schedule;
  measure::RecorderMemory memory;
  measure::HistogramMemory merged_memory{1};
  measure::Histogram merged{merged_memory};
  const measure::Clock& clock;
  measure::MessageEventQueue& events;
  measure::MessageRing* ring;
  LiveSettings::Recording recording;
  // Consecutive numbers.
  std::uint32_t edges = 0;
  std::uint32_t feedback_edges;
  std::uint32_t clients;
  std::uint32_t action_parts;
  std::atomic<std::uint64_t> foreign{0};
  std::atomic<std::uint64_t> malformed{0};
  std::atomic<std::uint64_t> forgotten{0};
  std::atomic<std::uint64_t> unwanted{0};

  // True if a program may send: from measure_from() on, and due no later than the end of the measured part. A
  // due time in the future becomes now.
  [[nodiscard]] bool may_send(Nanoseconds& due_ns) const noexcept {
    due_ns = std::min(due_ns, clock.now());
    return due_ns <= sent_until.load(std::memory_order_acquire);
  }
  std::atomic<Nanoseconds> sent_until{kUnknownTime};
};

// The bytes of a message that change each time: the stamp and, if it is at the front, what comes before it.
struct StampRegion {
  static constexpr std::size_t kMaxBytes = message::kEncapsulationBytes + message::kHeaderBytes;

  StampRegion(const message::Format& format, std::size_t stamp_at) noexcept
      : begin(stamp_at == message::kEncapsulationBytes ? 0 : stamp_at), end(stamp_at + format.stamp_bytes) {}

  [[nodiscard]] runtime::Outgoing split(std::span<const std::uint8_t> bytes) const noexcept {
    return {bytes.first(begin), bytes.subspan(begin, end - begin), bytes.subspan(end)};
  }

  std::size_t begin;
  std::size_t end;
};

// Tracks which messages of one publisher a content filter wants. Wanted messages are numbered separately for
// the filter, warm-up and measured part each from 0: a gap in these numbers is a lost message. The numbers
// are stored in the schedule under the message's own number.
class Wanted {
 public:
  Wanted(const message::Filter& filter, Schedule& schedule, std::size_t where) noexcept
      : filter_(filter), schedule_(schedule), where_(where) {}

  // The key of a message's filter number.
  static constexpr std::uint64_t key(std::uint64_t sequence, bool measured) noexcept {
    return measured ? sequence : sequence | message::kWarmUpBit;
  }

  // Call before sending.
  void ask(message::Pieces pieces, Nanoseconds intended_ns, std::uint64_t sequence, bool measured) noexcept {
    note(filter_.match(pieces) != message::Filter::Match::kNo, intended_ns, sequence, measured);
  }
  void ask(const void* object, Nanoseconds intended_ns, std::uint64_t sequence, bool measured) noexcept {
    note(filter_.match_object(object), intended_ns, sequence, measured);
  }
  // Call once the message was sent.
  void sent(bool measured) noexcept {
    if (wants_) measure::detail::add<std::uint64_t>(measured ? count_ : warmup_count_, 1);
  }

  [[nodiscard]] const std::string& expression() const noexcept { return filter_.expression(); }
  // Number of measured messages.
  [[nodiscard]] std::uint64_t count() const noexcept { return measure::detail::load(count_); }

 private:
  void note(bool wants, Nanoseconds intended_ns, std::uint64_t sequence, bool measured) noexcept {
    wants_ = wants;
    if (!wants) return;
    schedule_.put(where_, key(sequence, measured), {.due_ns = intended_ns, .sequence = measured ? count_ : warmup_count_});
  }

  const message::Filter& filter_;
  Schedule& schedule_;
  std::size_t where_;
  bool wants_ = false;
  std::uint64_t count_ = 0;
  std::uint64_t warmup_count_ = 0;
};

// Stamps and numbers the messages of one publisher or client, and records the sending.
class Sender {
 public:
  struct Settings {
    std::uint32_t length = 0;  // for a message of variable size
    std::uint32_t instances = 1;
    std::uint32_t size_bytes = 0;
    double frequency_hz = 0.0;
    bool concurrent = false;
    std::size_t source = 0;  // index of the publisher within its topic
    Nanoseconds period_ns = 0;
    bool structs = false;
    bool times_encoding = false;
    bool source_timestamps = true;
    Schedule* schedule = nullptr;  // where due times are stored; null: messages carry them
    std::size_t scheduled = 0;     // index in the schedule
    bool tells_current = false;    // current() is valid while `publish` runs
    bool filled = true;            // the sender's own message has content; a program's is still empty
  };

  Sender(measure::RecorderMemory& memory, const measure::Clock& clock, const message::Format& format,
         const Settings& settings)
      : clock_(clock),
        format_(format),
        settings_(settings),
        recorder_(memory, settings.period_ns, settings.times_encoding),
        message_(message::encode_filled(format, settings.length)),
        region_(format, message_.stamp_at),
        guard_(settings.concurrent) {
    if (settings.instances > 1) {
      message::Object filled(*format.type);
      message::fill(filled, settings.length);
      key_at_ = format.codec.position_of(filled.data(), format.key->number()->offset);
    }
    if (!settings.structs) return;
    object_.emplace(*format.type);
    if (settings.filled) message::fill(*object_, settings.length);
  }

  // Sends the sender's own message, encoded. `prepare(message)` and `publish(message)` are those of the
  // endpoint.
  template <typename Prepare, typename Publish>
  void send(Nanoseconds intended_ns, const Prepare& prepare, const Publish& publish) noexcept {
    const auto lock = guard_.lock();
    if (key_at_ > 0) [[unlikely]] format_.key->number()->write(next_instance(), message_.bytes.data() + key_at_);
    send_stamped(intended_ns, settings_.size_bytes, region_.split(message_.bytes), false,
                 message_.bytes.data() + message_.stamp_at, prepare, publish);
  }

  // Sends the sender's own message as a struct. `prepare(object)` and `publish(codec, object,
  // source_timestamp_ns, serialize_ns)` are those of the endpoint.
  template <typename Prepare, typename Publish>
  bool send_object(Nanoseconds intended_ns, const Prepare& prepare, const Publish& publish) noexcept {
    const auto lock = guard_.lock();
    if (key_at_ > 0) [[unlikely]] {
      const message::Key::Number& number = *format_.key->number();
      number.write(next_instance(), static_cast<std::byte*>(object_->data()) + number.offset);
    }
    return send_prepared(intended_ns, prepare, publish);
  }

  // Forwards a received struct of this type. False if there is no memory for a copy, or it was not sent.
  template <typename Prepare, typename Publish>
  bool relay_object(const message::Header& header, const void* received, const Prepare& prepare,
                    const Publish& publish) noexcept {
    const auto lock = guard_.lock();
    if (!message::assign(*format_.type, received, object_->data())) {
      recorder_.record_write_error(header.intended_ns);
      return false;
    }
    return send_prepared(header.intended_ns, prepare, publish);
  }

  // Forwards a received encoded message of this type with a new stamp. False if the bytes are not such a
  // message.
  template <typename Prepare, typename Publish>
  bool relay(const message::Header& header, std::span<const std::uint8_t> bytes, const Prepare& prepare,
             const Publish& publish) noexcept {
    const std::size_t fixed = format_.codec.fixed_size();
    // The bytes may end with padding.
    const std::size_t size = fixed > 0 ? fixed : format_.codec.extent(bytes);
    if (size == 0 || size > bytes.size()) return false;
    const std::size_t stamp_at = format_.stamp_at(bytes);
    const StampRegion region(format_, stamp_at);
    std::array<std::uint8_t, StampRegion::kMaxBytes> stamp;
    runtime::Outgoing message = region.split(bytes.first(size));
    std::ranges::copy(message.stamp, stamp.begin());
    message.stamp = std::span(stamp).first(message.stamp.size());
    const auto lock = guard_.lock();
    send_stamped(header.intended_ns, header.size_bytes, message, message::is_swapped(bytes),
                 stamp.data() + (stamp_at - region.begin), prepare, publish);
    return true;
  }

  // Call before the first message.
  void add_filter(const message::Filter& filter, Schedule& schedule, std::size_t where) {
    wanted_.emplace_back(filter, schedule, where);
  }
  [[nodiscard]] const std::vector<Wanted>& wanted() const noexcept { return wanted_; }
  [[nodiscard]] measure::PublisherRecorder& recorder() noexcept { return recorder_; }
  [[nodiscard]] const measure::PublisherRecorder& recorder() const noexcept { return recorder_; }
  // The sender's own message as a struct.
  [[nodiscard]] void* object() noexcept { return object_->data(); }
  void record_loops(measure::LoopRecorder& loops) noexcept { loops_ = &loops; }
  // Also writes every sent message to the ring, with this publisher number.
  void write_down(measure::MessageRing& ring, std::uint32_t number, bool contents) noexcept {
    ring_ = &ring;
    number_ = number;
    contents_ = contents;
  }
  // The schedule entry of the message being sent.
  [[nodiscard]] const Schedule::Entry& current() const noexcept { return current_; }

 private:
  // The instance of its next own message, in rotation.
  std::uint64_t next_instance() noexcept { return own_messages_++ % settings_.instances; }

  template <typename Prepare, typename Publish>
  void send_stamped(Nanoseconds intended_ns, std::uint32_t size_bytes, runtime::Outgoing message, bool swapped,
                    std::uint8_t* stamp, const Prepare& prepare, const Publish& publish) noexcept {
    const std::uint64_t sequence = recorder_.next_sequence(intended_ns);
    message::Header header = next_header(intended_ns, size_bytes, sequence);
    if (!prepare(message)) {
      recorder_.record_write_error(intended_ns);
      return;
    }
    if (!wanted_.empty()) [[unlikely]] {
      format_.write_stamp(header, swapped, stamp);
      const std::span<const std::uint8_t> pieces[] = {message.before, message.stamp, message.after};
      ask_filters(message::Pieces(pieces), intended_ns, sequence);
    }
    header.published_ns = clock_.now();
    format_.write_stamp(header, swapped, stamp);
    message.source_timestamp_ns = leave_behind(header, sequence);
    if (!publish(message)) {
      recorder_.record_write_error(intended_ns);
      return;
    }
    const Nanoseconds returned_ns = clock_.now();
    recorder_.record_sent({intended_ns, header.published_ns, sequence}, returned_ns);
    count_wanted(intended_ns);
    if (loops_ != nullptr) loops_->record_sent(intended_ns, header.published_ns, returned_ns);
    if (ring_ == nullptr) return;
    // The sender's own memory still has the message, even if a loan has been returned.
    ring_->put(row_of(intended_ns, header, sequence, returned_ns, kUnknownTime), contents_ ? message.size() : 0,
               [&message](std::span<std::uint8_t> to) {
                 for (const auto& piece : {message.before, message.stamp, message.after}) {
                   std::ranges::copy(piece, to.begin());
                   to = to.subspan(piece.size());
                 }
               });
  }

  template <typename Prepare, typename Publish>
  bool send_prepared(Nanoseconds intended_ns, const Prepare& prepare, const Publish& publish) noexcept {
    const std::uint64_t sequence = recorder_.next_sequence(intended_ns);
    message::Header header = next_header(intended_ns, settings_.size_bytes, sequence);
    void* const object = prepare(*object_);
    if (object == nullptr) {
      recorder_.record_write_error(intended_ns);
      return false;
    }
    if (!wanted_.empty()) [[unlikely]] {
      format_.stamp_object(header, object);
      ask_filters(static_cast<const void*>(object), intended_ns, sequence);
    }
    header.published_ns = clock_.now();
    format_.stamp_object(header, object);
    const std::int64_t source_timestamp_ns = leave_behind(header, sequence);
    Nanoseconds serialize_ns = kUnknownTime;
    if (!publish(format_.codec, object, source_timestamp_ns, serialize_ns)) {
      recorder_.record_write_error(intended_ns);
      return false;
    }
    const Nanoseconds returned_ns = clock_.now();
    recorder_.record_sent({intended_ns, header.published_ns, sequence}, returned_ns, serialize_ns);
    count_wanted(intended_ns);
    if (loops_ != nullptr) loops_->record_sent(intended_ns, header.published_ns, returned_ns);
    if (ring_ == nullptr) return true;
    // The struct that was sent may have been given away; the sender's own has the same content except for the
    // stamp.
    format_.stamp_object(header, object_->data());
    ring_->put(row_of(intended_ns, header, sequence, returned_ns, serialize_ns),
               contents_ ? format_.codec.encoded_size(object_->data()) : 0,
               [this](std::span<std::uint8_t> to) { static_cast<void>(format_.codec.encode(object_->data(), to)); });
    return true;
  }

  [[nodiscard]] measure::PublicationRow row_of(Nanoseconds intended_ns, const message::Header& header, std::uint64_t sequence,
                                               Nanoseconds returned_ns, Nanoseconds serialize_ns) const noexcept {
    return {.publisher = number_,
            .flags = recorder_.measures(intended_ns) ? 0 : measure::kWarmUpRow,
            .sequence = sequence,
            .intended_ns = intended_ns,
            .published_ns = header.published_ns,
            .returned_ns = returned_ns,
            .serialize_ns = serialize_ns};
  }

  // Before the publication instant is taken, so that filtering does not count in any latency.
  void ask_filters(const auto& message, Nanoseconds intended_ns, std::uint64_t sequence) noexcept {
    for (Wanted& one : wanted_) one.ask(message, intended_ns, sequence, recorder_.measures(intended_ns));
  }
  void count_wanted(Nanoseconds intended_ns) noexcept {
    for (Wanted& one : wanted_) one.sent(recorder_.measures(intended_ns));
  }

  // For a message that carries no identification: stores all of it in the schedule and returns the source
  // time stamp that identifies it. Otherwise 0.
  std::int64_t leave_behind(const message::Header& header, std::uint64_t sequence) noexcept {
    if (settings_.tells_current) current_ = {header.intended_ns, header.published_ns, sequence};
    if (format_.stamp != message::Stamp::kNone || settings_.schedule == nullptr) return 0;
    return leave_all_behind(header, sequence);
  }
  std::int64_t leave_all_behind(const message::Header& header, std::uint64_t sequence) noexcept {
    const Schedule::Entry entry{header.intended_ns, header.published_ns, sequence};
    const std::int64_t now_ns = read_clock(CLOCK_REALTIME);
    const std::uint64_t number = stamps_++;
    if (!settings_.source_timestamps) {
      settings_.schedule->put_before(settings_.scheduled, number, now_ns, entry);
      return now_ns;
    }
    const std::int64_t stamp_ns = Schedule::stamp_for(now_ns, number);
    settings_.schedule->put(settings_.scheduled, static_cast<std::uint64_t>(stamp_ns), entry);
    return stamp_ns;
  }

  // The header of the message with this number, without the publication instant; its schedule entry is
  // stored.
  message::Header next_header(Nanoseconds intended_ns, std::uint32_t size_bytes, std::uint64_t sequence) noexcept {
    std::uint64_t number = sequence;
    if (settings_.schedule != nullptr && format_.stamp != message::Stamp::kNone) {
      if (!recorder_.measures(intended_ns)) number |= message::kWarmUpBit;
      settings_.schedule->put(settings_.scheduled, number, {.due_ns = intended_ns});
    }
    return {.intended_ns = intended_ns,
            .sequence = message::with_source(number, settings_.source),
            .size_bytes = size_bytes,
            .frequency_hz = static_cast<float>(settings_.frequency_hz)};
  }

  const measure::Clock& clock_;
  const message::Format& format_;
  const Settings settings_;
  measure::PublisherRecorder recorder_;
  measure::LoopRecorder* loops_ = nullptr;  // of the publishing timer
  message::Encoded message_;
  StampRegion region_;
  std::optional<message::Object> object_;
  std::size_t key_at_ = 0;  // position of the key in its own message, if there are several instances;
                            // otherwise 0
  std::uint64_t own_messages_ = 0;
  std::uint64_t stamps_ = 0;  // number of source time stamps assigned
  Schedule::Entry current_;
  std::vector<Wanted> wanted_;
  measure::MessageRing* ring_ = nullptr;  // receives messages as they are sent
  std::uint32_t number_ = 0;
  bool contents_ = false;
  Guard guard_;
};

class LiveGraph::LivePublisher final : public PublisherEnd {
  // Calls the endpoint's functions with a message of the sender.
  auto prepare() noexcept {
    return [this](const runtime::Outgoing& message) { return endpoint_.prepare(message); };
  }
  auto send() noexcept {
    return [this](const runtime::Outgoing& message) { return endpoint_.publish(message); };
  }
  auto prepare_object() noexcept {
    return [this](message::Object& own) { return endpoint_.prepare_object(own); };
  }
  auto send_object() noexcept {
    return [this](const message::Codec& codec, void* object, std::int64_t source_timestamp_ns,
                  Nanoseconds& serialize_ns) {
      return endpoint_.publish_object(codec, object, source_timestamp_ns, serialize_ns);
    };
  }

 public:
  // `driven`: by a timer or reaction of the graph; otherwise by a program.
  LivePublisher(Shared& shared, const Node& node, const Publisher& publisher, PassBy asked,
                runtime::Publisher& endpoint, bool driven, bool concurrent, std::uint32_t number)
      : driven_(driven),
        shared_(shared),
        node_(node),
        publisher_(publisher),
        format_(*shared.messages.find(publisher.type)),
        asked_(asked),
        endpoint_(endpoint),
        sender_(shared.memory, shared.clock, format_,
                {.length = publisher.length,
                 .instances = publisher.instances,
                 .size_bytes = publisher.size_bytes,
                 .frequency_hz = publisher.frequency_hz,
                 .concurrent = concurrent,
                 .source = shared.index.topics.at(publisher.topic).source_of(publisher),
                 .period_ns = node.condition.empty() ? node.period_of(publisher) : 0,
                 .structs = shared.structs,
                 .times_encoding = shared.times_encoding,
                 .source_timestamps = shared.source_timestamps,
                 .schedule = shared.index.schedule_of(publisher) ? &shared.schedule : nullptr,
                 .scheduled = shared.index.schedule_of(publisher).value_or(0),
                 .filled = driven}) {
    for (const std::string& filter : shared.index.filters_of(publisher))
      sender_.add_filter(shared.messages.filter(format_, filter), shared.schedule,
                         shared.index.filtered.at({&publisher, filter}));
    measure::MessageRing* const ring = shared.ring_of(publisher.topic, node.condition.empty());
    if (ring != nullptr) sender_.write_down(*ring, number, shared.recording.contents);
  }

  // Sends the publisher's own message.
  void publish(Nanoseconds intended_ns) noexcept {
    if (shared_.structs) {
      sender_.send_object(intended_ns, prepare_object(), send_object());
    } else {
      sender_.send(intended_ns, prepare(), send());
    }
  }

  // Forwards another message of the same type.
  void relay(const message::Header& header, const runtime::Delivery& delivery) noexcept {
    if (shared_.structs) {
      static_cast<void>(sender_.relay_object(header, delivery.object, prepare_object(), send_object()));
    } else if (!sender_.relay(header, delivery.bytes, prepare(), send())) {
      shared_.malformed.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // For a program, which only uses structs.
  [[nodiscard]] void* message() noexcept override { return sender_.object(); }
  bool publish_due(Nanoseconds due_ns) noexcept override {
    return shared_.may_send(due_ns) && sender_.send_object(due_ns, prepare_object(), send_object());
  }
  bool publish_copy(const void* message, Nanoseconds due_ns) noexcept override {
    return shared_.may_send(due_ns) &&
           sender_.relay_object({.intended_ns = due_ns}, message, prepare_object(), send_object());
  }
  [[nodiscard]] const message::Format& format() const noexcept override { return format_; }
  [[nodiscard]] bool driven() const noexcept { return driven_; }

  [[nodiscard]] WriterName name() const {
    return {node_.qualified_name(), publisher_.topic, endpoint_.identity()};
  }
  [[nodiscard]] const std::string& end_name() const noexcept { return publisher_.topic; }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const TopicEnds& ends() const { return shared_.index.topics.at(publisher_.topic); }
  [[nodiscard]] std::size_t expected() const { return ends().subscriptions; }
  [[nodiscard]] bool may_have_more() const { return ends().read_outside; }
  [[nodiscard]] std::size_t matched() noexcept override { return endpoint_.matched(); }
  // Deliveries of what was sent so far: all messages to subscriptions without a filter, the wanted ones to
  // others.
  [[nodiscard]] std::uint64_t deliveries(std::size_t TopicEnds::Receivers::* receivers) const noexcept {
    const auto& by_filter = ends().by_filter;
    const auto count = [&](const std::string& filter) -> std::uint64_t {
      const auto found = by_filter.find(filter);
      return found == by_filter.end() ? 0 : found->second.*receivers;
    };
    static const std::string kNone;
    std::uint64_t sum = sender_.recorder().sent() * count(kNone);
    for (const Wanted& wanted : sender_.wanted()) sum += wanted.count() * count(wanted.expression());
    return sum;
  }
  [[nodiscard]] PublisherView view() const {
    PublisherView view{&node_, &publisher_, &sender_.recorder(), {}};
    for (const Wanted& wanted : sender_.wanted()) view.wanted.push_back({wanted.expression(), wanted.count()});
    return view;
  }
  [[nodiscard]] PassingView passing() { return {&node_, &publisher_, asked_, endpoint_.passing()}; }
  measure::PublisherRecorder& recorder() noexcept { return sender_.recorder(); }
  void record_loops(measure::LoopRecorder& loops) noexcept { sender_.record_loops(loops); }

 private:
  const bool driven_;
  Shared& shared_;
  const Node& node_;
  const Publisher& publisher_;
  const message::Format& format_;
  PassBy asked_;
  runtime::Publisher& endpoint_;
  Sender sender_;
};

// What a node does with a message or, for a cyclic reaction, in its period.
class LiveGraph::LiveReaction final : public runtime::TimerHandler {
 public:
  LiveReaction(const Reaction& reaction, std::vector<LivePublisher*> publishers, runtime::Runtime& runtime,
               bool concurrent)
      : reaction_(reaction),
        publishers_(std::move(publishers)),
        runtime_(runtime),
        oldest_(reaction.on.size()),
        guard_(concurrent && reaction.on.size() > 1) {}

  void on_input(std::size_t input, const message::Header& header,
                const runtime::Delivery& delivery) noexcept {
    switch (reaction_.kind) {
      case ReactionKind::kRelay:
        runtime_.work(reaction_.work_ns);
        for (LivePublisher* publisher : publishers_) {
          publisher->relay(header, delivery);
        }
        break;
      case ReactionKind::kTransform:
      case ReactionKind::kSink:
        react(header.intended_ns);
        break;
      case ReactionKind::kFusion:
        if (const std::optional<Nanoseconds> oldest = fuse(input, header.intended_ns)) react(*oldest);
        break;
      case ReactionKind::kCyclic:
        break;  // the message is consumed; the period publishes
    }
  }

  void on_tick(Nanoseconds due_ns) noexcept override { react(due_ns); }
  void on_skipped(Nanoseconds /*first_due_ns*/, std::uint64_t /*count*/) noexcept override {}

 private:
  void react(Nanoseconds intended_ns) noexcept {
    runtime_.work(reaction_.work_ns);
    for (LivePublisher* publisher : publishers_) publisher->publish(intended_ns);
  }

  // Returns the oldest input's intended time once every input has a message that no earlier fusion used; a
  // newer message of an input replaces the older one.
  std::optional<Nanoseconds> fuse(std::size_t input, Nanoseconds intended_ns) noexcept {
    const auto lock = guard_.lock();
    if (!oldest_[input]) ++inputs_ready_;
    oldest_[input] = intended_ns;
    if (inputs_ready_ < oldest_.size()) return std::nullopt;
    Nanoseconds oldest = intended_ns;
    for (std::optional<Nanoseconds>& value : oldest_) {
      oldest = std::min(oldest, *value);
      value.reset();
    }
    inputs_ready_ = 0;
    return oldest;
  }

  const Reaction& reaction_;
  std::vector<LivePublisher*> publishers_;
  runtime::Runtime& runtime_;
  std::vector<std::optional<Nanoseconds>> oldest_;
  std::size_t inputs_ready_ = 0;
  Guard guard_;
};

class LiveGraph::LiveSubscription final : public runtime::MessageHandler, public SubscriptionEnd {
 public:
  LiveSubscription(Shared& shared, const Node& node, const Subscription& subscription,
                   const LiveSettings& settings)
      : shared_(shared), node_(node), subscription_(subscription), format_(*shared.messages.find(subscription.type)) {
    const std::string& filter = subscription.filter;
    if (!filter.empty()) filter_ = &shared.messages.filter(format_, filter);
    for (const TopicEnds::End& end : shared.index.topics.at(subscription.topic).publishers) {
      const bool own = condition_between(*end.node, node).empty();
      const std::uint32_t number = shared.edges++;
      edges_.push_back(std::make_unique<Edge>(Edge{
          end, own, number, shared.ring_of(subscription.topic, own), shared.index.schedule_of(*end.publisher), {},
          filter_ == nullptr ? 0 : shared.index.filtered.at({end.publisher, filter}),
          measure::EdgeRecorder(shared.memory, shared.events, number, settings.thresholds, end.publisher->frequency_hz,
                                figures_of(settings, *end.node, node, true)),
          end.node->qualified_name()}));
      if (end.outside && from_outside_ == nullptr) from_outside_ = edges_.back().get();
    }
    if (shared.structs) object_.emplace(*format_.type);
  }

  void attach(runtime::Subscription& endpoint) noexcept { endpoint_ = &endpoint; }
  // Messages received here end a loop of that timer.
  void close_loops(measure::LoopRecorder& loops) { loops_.push_back(&loops); }
  void add_reaction(LiveReaction& reaction, std::size_t input) { reactions_.push_back({&reaction, input}); }
  [[nodiscard]] const std::vector<Acknowledgement>& acknowledgements() const noexcept { return subscription_.acknowledge; }
  // For every `every`-th handled message of that node, `publisher` sends its due time; nothing else drives
  // `publisher`.
  void acknowledge(const std::string& from, LivePublisher& publisher, std::uint32_t every) {
    for (const auto& edge : edges_) {
      if (edge->from == from) edge->acknowledges = {&publisher, every};
    }
  }
  // Called with each message, warm-up included, once the start is set; must not throw.
  void add_listener(std::function<void(const Received& how)> listener) { listeners_.push_back(std::move(listener)); }

  void set_writers(std::span<const WriterName> writers) {
    by_writer_.clear();
    for (const auto& edge : edges_) {
      const std::string node = edge->end.node->qualified_name();
      for (const WriterName& writer : writers) {
        if (writer.topic == subscription_.topic && writer.node == node)
          by_writer_.push_back({writer.identity, edge.get()});
      }
    }
    std::ranges::sort(by_writer_, middleware::IdentityLess{}, &Known::writer);
    last_ = by_writer_.empty() ? nullptr : &by_writer_.front();
  }

  void measure_from(Nanoseconds instant) noexcept {
    for (const auto& edge : edges_) edge->recorder.measure_from(instant);
  }

  void on_message(const runtime::Delivery& delivery) noexcept override {
    if (object_) {
      // An application's callback begins when its message is available.
      runtime::Delivery decoded = delivery;
      Nanoseconds deserialize_ns = kUnknownTime;
      if (!shared_.decode(format_, *object_, decoded, deserialize_ns)) return;
      message::Header header = format_.stamp_in(decoded.object);
      on_header(header, decoded, shared_.clock.now(), deserialize_ns);
      return;
    }
    const Nanoseconds callback_ns = shared_.clock.now();
    message::Header header;
    if (shared_.read(format_, delivery, header)) on_header(header, delivery, callback_ns, kUnknownTime);
  }

  void set_handler(OnMessage on_message) override { handler_ = std::move(on_message); }
  [[nodiscard]] const message::Format& format() const noexcept override { return format_; }
  // The graph handles its messages.
  [[nodiscard]] bool driven() const noexcept { return !reactions_.empty(); }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const std::string& end_name() const noexcept { return subscription_.topic; }

  [[nodiscard]] std::size_t expected() const { return edges_.size(); }
  [[nodiscard]] std::size_t matched() { return endpoint_->matched(); }
  [[nodiscard]] std::string name() const {
    return node_.name_of(subscription_) + " subscription " + subscription_.topic;
  }
  [[nodiscard]] std::uint64_t completed() const noexcept { return measure::detail::load(completed_); }
  void append_views(std::vector<EdgeView>& views) const {
    for (const auto& edge : edges_) {
      if (edge->end.outside) continue;
      views.push_back({edge->end.node, &node_, edge->end.publisher, &subscription_, &edge->recorder});
    }
  }

 private:
  void on_header(message::Header& header, const runtime::Delivery& delivery, Nanoseconds callback_ns,
                 Nanoseconds deserialize_ns) noexcept {
    Edge* const edge = find(delivery.writer, header);
    if (edge == nullptr) {
      shared_.foreign.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    if (edge->end.outside) {
      take_from_outside(*edge, delivery, callback_ns);
      return;
    }
    if (!shared_.look_up(format_, shared_.schedule, edge->scheduled, delivery.source_timestamp_ns, edge->cursor, header)) {
      hand_over(*edge, nullptr, delivery, callback_ns);  // a program also gets messages that cannot be
                                                         // recorded
      return;
    }
    const std::uint64_t number = message::sequence_of(header);
    std::uint64_t sequence = number;
    if (filter_ != nullptr && !find_wanted(*edge, header.intended_ns, delivery, sequence)) return;
    const bool recorded = edge->recorder.record_callback({header.intended_ns, header.published_ns, sequence}, callback_ns,
                                                         delivery.arrived_ns);
    if (recorded && deserialize_ns != kUnknownTime) edge->recorder.record_deserialized(deserialize_ns, callback_ns);
    if (recorded) {
      for (measure::LoopRecorder* loops : loops_) loops->record_back(header.intended_ns, header.published_ns, callback_ns);
    }
    for (const Input& input : reactions_) input.reaction->on_input(input.index, header, delivery);
    hand_over(*edge, &header, delivery, callback_ns);
    edge->acknowledges.handled(header.intended_ns);
    if (recorded && edge->recorder.wants_done()) edge->recorder.record_done(callback_ns, shared_.clock.now());
    if (recorded && edge->own) measure::detail::add<std::uint64_t>(completed_, 1);
    if (edge->ring == nullptr) return;
    const bool warm_up = !edge->recorder.measures(header.intended_ns);
    edge->ring->put({.edge = edge->number,
                     .flags = (warm_up ? measure::kWarmUpRow : 0) | (recorded ? measure::kCountedRow : 0),
                     .sequence = number,
                     .intended_ns = header.intended_ns,
                     .published_ns = header.published_ns,
                     .arrived_ns = delivery.arrived_ns,
                     .callback_ns = callback_ns,
                     .ended_ns = shared_.clock.now(),
                     .deserialize_ns = deserialize_ns});
  }

  // Counts handled messages of one publisher.
  struct Acknowledging {
    LivePublisher* publisher = nullptr;  // null: no acknowledgement
    std::uint32_t every = 1;
    std::uint32_t since = 0;  // since the last acknowledgement

    void handled(Nanoseconds due_ns) noexcept {
      if (publisher == nullptr || ++since < every) return;
      since = 0;
      publisher->publish(due_ns);
    }
  };
  struct Edge {
    TopicEnds::End end;
    bool own;  // belongs to the workload
    std::uint32_t number;
    measure::MessageRing* ring;  // receives times of its messages; null: none
    std::optional<std::size_t> scheduled;
    Schedule::Cursor cursor;
    std::size_t wanted;  // schedule entry with the filter's numbers
    measure::EdgeRecorder recorder;
    std::string from;  // the publisher's node
    Acknowledging acknowledges{};
  };
  // Passes a message to listeners and to the program, which gets structs. `header` is null if unknown.
  void hand_over(const Edge& edge, const message::Header* header, const runtime::Delivery& delivery,
                 Nanoseconds callback_ns) const noexcept {
    if (!handler_ && listeners_.empty()) return;
    const Received how{.due_ns = header != nullptr ? header->intended_ns : kUnknownTime,
                       .published_ns = header != nullptr ? header->published_ns : kUnknownTime,
                       .arrived_ns = delivery.arrived_ns,
                       .callback_ns = callback_ns,
                       .from = edge.from};
    for (const auto& listener : listeners_) listener(how);
    if (handler_) handler_(delivery.object, how);
  }

  // For a publisher outside of perflab: nothing is counted, because the number of sent messages is unknown.
  void take_from_outside(const Edge& edge, const runtime::Delivery& delivery, Nanoseconds callback_ns) const noexcept {
    message::Header header;
    header.published_ns = kUnknownTime;
    if (delivery.source_timestamp_ns > 0)
      header.published_ns = callback_ns - (read_clock(CLOCK_REALTIME) - delivery.source_timestamp_ns);
    header.intended_ns = header.published_ns;
    for (const Input& input : reactions_) input.reaction->on_input(input.index, header, delivery);
    hand_over(edge, &header, delivery, callback_ns);
  }

  // Looks up the message's number for the filter. False, and counted, if there is none: the filter does not
  // want it, or the publisher has sent too many others meanwhile.
  bool find_wanted(const Edge& edge, Nanoseconds intended_ns, const runtime::Delivery& delivery,
                   std::uint64_t& sequence) noexcept {
    const Schedule::Entry entry =
        shared_.schedule.find(edge.wanted, Wanted::key(sequence, edge.recorder.measures(intended_ns)));
    if (entry.due_ns != kUnknownTime) {
      sequence = entry.sequence;
      return true;
    }
    const std::span<const std::uint8_t> pieces[] = {delivery.bytes};
    const bool wanted = delivery.object != nullptr ? filter_->match_object(delivery.object)
                                                   : filter_->match(pieces) != message::Filter::Match::kNo;
    (wanted ? shared_.forgotten : shared_.unwanted).fetch_add(1, std::memory_order_relaxed);
    return false;
  }
  struct Known {
    perflab_identity writer;
    Edge* edge;
  };
  struct Input {
    LiveReaction* reaction;
    std::size_t index;
  };

  // The middleware identifies the writer or, if it cannot, the message does.
  Edge* find(const perflab_identity& writer, const message::Header& header) noexcept {
    if (middleware::same(writer, {})) {
      // A message without identification cannot be assigned to one of several publishers.
      if (format_.stamp == message::Stamp::kNone && edges_.size() > 1) return nullptr;
      const std::size_t source = message::source_of(header);
      return source < edges_.size() ? edges_[source].get() : nullptr;
    }
    if (last_ != nullptr && middleware::same(last_->writer, writer)) return last_->edge;
    const auto found =
        std::ranges::lower_bound(by_writer_, writer, middleware::IdentityLess{}, &Known::writer);
    if (found == by_writer_.end() || !middleware::same(found->writer, writer)) return from_outside_;
    last_ = &*found;
    return found->edge;
  }

  Shared& shared_;
  const Node& node_;
  const Subscription& subscription_;
  const message::Format& format_;
  const message::Filter* filter_ = nullptr;  // null: all messages are wanted
  std::optional<message::Object> object_;  // receives decoded messages
  runtime::Subscription* endpoint_ = nullptr;
  // Behind pointers: a recorder keeps its address, and two edges share no cache line.
  std::vector<std::unique_ptr<Edge>> edges_;
  std::vector<Known> by_writer_;
  const Known* last_ = nullptr;
  Edge* from_outside_ = nullptr;  // edge from a writer outside of perflab; null: no such publisher is
                                  // declared
  std::vector<Input> reactions_;
  std::vector<measure::LoopRecorder*> loops_;  // timers whose loops end here
  std::vector<std::function<void(const Received&)>> listeners_;
  OnMessage handler_;  // of a program
  std::uint64_t completed_ = 0;  // of the workload's own edges
};

// Sends requests and measures their round trips.
class LiveGraph::LiveClient final : public runtime::MessageHandler, public ClientEnd {
 public:
  LiveClient(Shared& shared, const Node& node, const Client& client, const LiveSettings& settings,
             bool driven, bool concurrent)
      : driven_(driven),
        shared_(shared),
        node_(node),
        client_(client),
        request_(*shared.messages.find_request(client.type)),
        reply_(*shared.messages.find_response(client.type)),
        schedule_(scheduled() || by_number() ? 1 : 0, -1),
        sender_(shared.memory, shared.clock, request_,
                {.length = message::kServiceLength,
                 .size_bytes = static_cast<std::uint32_t>(request_.payload_bytes(message::kServiceLength)),
                 .frequency_hz = client.frequency_hz,
                 .concurrent = concurrent,
                 .structs = shared.structs,
                 .times_encoding = shared.times_encoding,
                 .schedule = scheduled() ? &schedule_ : nullptr,
                 .tells_current = by_number()}),
        number_(shared.clients++),
        ring_(shared.ring_of(client.service, condition_between(node, *ends().server).empty())),
        replies_(shared.memory, shared.events, number_, settings.thresholds, client.frequency_hz,
                 figures_of(settings, node, *ends().server, false)) {
    if (shared.structs) object_.emplace(*reply_.type);
  }

  void attach(runtime::Client& endpoint) noexcept { endpoint_ = &endpoint; }
  void measure_from(Nanoseconds instant) noexcept {
    sender_.recorder().measure_from(instant);
    replies_.measure_from(instant);
  }

  void request(Nanoseconds intended_ns) noexcept {
    if (!shared_.structs) {
      sender_.send(
          intended_ns, [](const auto&) { return true; },
          [this](const runtime::Outgoing& message) {
            return ask([&] { return endpoint_->request(message); });
          });
      return;
    }
    sender_.send_object(
        intended_ns, [](message::Object& own) { return own.data(); },
        [this](const message::Codec& codec, const void* object, std::int64_t /*source_timestamp_ns*/,
               Nanoseconds& serialize_ns) {
          return ask([&] { return endpoint_->request_object(codec, object, serialize_ns); });
        });
  }

  // For a program, which only uses structs. The reply may come before this returns.
  bool call(const void* request, Nanoseconds due_ns, OnReply on_reply) override {
    if (!shared_.may_send(due_ns)) return false;
    const std::uint64_t key = by_number() ? static_cast<std::uint64_t>(endpoint_->next_number())
                                          : key_of(due_ns, sender_.recorder().next_sequence(due_ns));
    {
      const std::lock_guard lock(waiting_mutex_);
      waiting_[key] = std::move(on_reply);
    }
    const bool sent = sender_.relay_object(
        {.intended_ns = due_ns}, request, [](message::Object& own) { return own.data(); },
        [this](const message::Codec& codec, const void* object, std::int64_t /*source_timestamp_ns*/,
               Nanoseconds& serialize_ns) {
          return ask([&] { return endpoint_->request_object(codec, object, serialize_ns); });
        });
    if (!sent) static_cast<void>(take(key));
    return sent;
  }
  [[nodiscard]] const message::Format& request_format() const noexcept override { return request_; }
  [[nodiscard]] const message::Format& response_format() const noexcept override { return reply_; }
  [[nodiscard]] bool driven() const noexcept { return driven_; }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const std::string& end_name() const noexcept { return client_.service; }

  void on_message(const runtime::Delivery& reply) noexcept override {
    Nanoseconds deserialize_ns = kUnknownTime;
    message::Header header;
    const void* response = nullptr;
    if (object_) {
      runtime::Delivery decoded = reply;
      if (!shared_.decode(reply_, *object_, decoded, deserialize_ns)) return;
      response = decoded.object;
      header = reply_.stamp_in(decoded.object);
    } else if (!shared_.read(reply_, reply, header)) {
      return;
    }
    const Nanoseconds callback_ns = shared_.clock.now();
    Schedule::Cursor unused;  // replies are never identified by time stamp
    if (by_number()) {
      if (!look_up(reply.related.sequence, header)) return;
    } else if (!shared_.look_up(reply_, schedule_, 0, kUnknownTime, unused, header)) {
      return;
    }
    const bool recorded =
        replies_.record_callback({header.intended_ns, header.published_ns, message::sequence_of(header)},
                                 callback_ns, reply.arrived_ns);
    if (recorded && deserialize_ns != kUnknownTime) replies_.record_deserialized(deserialize_ns, callback_ns);
    if (!driven_) {
      const std::uint64_t key = by_number() ? static_cast<std::uint64_t>(reply.related.sequence)
                                            : key_of(header.intended_ns, message::sequence_of(header));
      if (const OnReply then = take(key)) then(response, header.published_ns, callback_ns);
    }
    if (recorded) measure::detail::add<std::uint64_t>(completed_, 1);
    if (ring_ == nullptr) return;
    const bool warm_up = !replies_.measures(header.intended_ns);
    ring_->put({.edge = number_,
                .flags = (warm_up ? measure::kWarmUpRow : 0) | (recorded ? measure::kCountedRow : 0),
                .sequence = message::sequence_of(header),
                .intended_ns = header.intended_ns,
                .published_ns = header.published_ns,
                .arrived_ns = reply.arrived_ns,
                .callback_ns = callback_ns,
                .deserialize_ns = deserialize_ns});
  }

  [[nodiscard]] const ServiceEnds& ends() const { return shared_.index.services.at(client_.service); }
  [[nodiscard]] std::size_t expected() const { return ends().servers; }
  [[nodiscard]] std::size_t matched() { return endpoint_->matched(); }
  [[nodiscard]] std::string name() const { return node_.qualified_name() + " client " + client_.service; }
  [[nodiscard]] std::uint64_t completed() const noexcept { return measure::detail::load(completed_); }
  [[nodiscard]] measure::PublisherRecorder& recorder() noexcept { return sender_.recorder(); }
  [[nodiscard]] ServiceView view() const {
    return {&node_, &client_, ends().server, request_.payload_bytes(message::kServiceLength), &sender_.recorder(),
            &replies_, {}};
  }

 private:
  // True if replies do not carry the requests' due times, because one of the messages has no field for it.
  [[nodiscard]] bool scheduled() const noexcept {
    const auto is = [this](message::Stamp stamp) { return request_.stamp == stamp || reply_.stamp == stamp; };
    return !by_number() && is(message::Stamp::kTimeAndId);
  }
  // True if one of the messages carries no measurement data: the request number from the middleware
  // identifies the reply.
  [[nodiscard]] bool by_number() const noexcept {
    return request_.stamp == message::Stamp::kNone || reply_.stamp == message::Stamp::kNone;
  }

  // The reply may come before this returns, so the request's data are stored before, under the number that it
  // will get; the middleware may skip a number if it could not send a request.
  template <typename Send>
  bool ask(const Send& send) noexcept {
    if (!by_number()) return send();
    const std::int64_t number = endpoint_->next_number();
    const Schedule::Entry entry = sender_.current();
    schedule_.put(0, static_cast<std::uint64_t>(number), entry);
    if (!send()) return false;
    const std::int64_t sent = endpoint_->next_number() - 1;
    if (sent != number) schedule_.put(0, static_cast<std::uint64_t>(sent), entry);
    return true;
  }
  // False, and counted, if the request is no longer known.
  [[nodiscard]] bool look_up(std::int64_t number, message::Header& header) noexcept {
    const Schedule::Entry entry = schedule_.find(0, static_cast<std::uint64_t>(number));
    header.intended_ns = entry.due_ns;
    header.published_ns = entry.published_ns;
    header.sequence = entry.sequence;
    if (entry.due_ns != kUnknownTime) return true;
    shared_.forgotten.fetch_add(1, std::memory_order_relaxed);
    return false;
  }

  // Key under which a waiting request is found if the middleware does not number requests.
  [[nodiscard]] std::uint64_t key_of(Nanoseconds intended_ns, std::uint64_t sequence) noexcept {
    return Wanted::key(sequence, sender_.recorder().measures(intended_ns));
  }
  OnReply take(std::uint64_t key) noexcept {
    const std::lock_guard lock(waiting_mutex_);
    const auto found = waiting_.find(key);
    if (found == waiting_.end()) return {};
    OnReply then = std::move(found->second);
    waiting_.erase(found);
    return then;
  }

  const bool driven_;  // driven by a timer of the graph, otherwise by a program
  Shared& shared_;
  const Node& node_;
  const Client& client_;
  const message::Format& request_;
  const message::Format& reply_;
  Schedule schedule_;  // of its own requests
  std::optional<message::Object> object_;  // receives decoded replies
  runtime::Client* endpoint_ = nullptr;
  Sender sender_;
  std::uint32_t number_;
  measure::MessageRing* ring_;  // receives times of replies; null: none
  measure::EdgeRecorder replies_;
  std::uint64_t completed_ = 0;
  std::mutex waiting_mutex_;  // of a program
  std::map<std::uint64_t, OnReply> waiting_;
};

// Works, and replies with the header of the request, if it has one, by which the client identifies the
// request.
class LiveGraph::LiveServer final : public runtime::RequestHandler, public runtime::Forgotten, public ServerEnd {
 public:
  LiveServer(Shared& shared, const Node& node, const Server& server, runtime::Runtime& runtime)
      : shared_(shared),
        node_(node),
        server_(server),
        runtime_(runtime),
        request_(*shared.messages.find_request(server.type)),
        reply_(*shared.messages.find_response(server.type)),
        message_(message::encode_filled(reply_, message::kServiceLength)),
        region_(reply_, message_.stamp_at) {
    if (!shared.structs) return;
    object_.emplace(*reply_.type);
    message::fill(*object_, message::kServiceLength);
  }

  void attach(runtime::Server& endpoint) noexcept { endpoint_ = &endpoint; }

  // For a program, which only uses structs.
  void set_handler(OnRequest on_request) override { handler_ = std::move(on_request); }
  [[nodiscard]] const message::Format& request_format() const noexcept override { return request_; }
  [[nodiscard]] const message::Format& response_format() const noexcept override { return reply_; }
  [[nodiscard]] const Node& node() const noexcept { return node_; }
  [[nodiscard]] const std::string& end_name() const noexcept { return server_.service; }
  void on_forgotten(Nanoseconds /*at_ns*/) noexcept override {}  // its client counts it as lost

  void on_request(const runtime::Delivery& request, runtime::Reply& reply) noexcept override {
    if (handler_) {
      hand_over(request, reply);
      return;
    }
    if (object_) {
      answer_struct(request, reply);
      return;
    }
    message::Header header;
    if (!shared_.read(request_, request, header)) return;
    runtime_.work(server_.work_ns);
    // Callbacks of a server may run concurrently; each has its own stamp.
    std::array<std::uint8_t, StampRegion::kMaxBytes> stamp;
    runtime::Outgoing message = region_.split(message_.bytes);
    std::ranges::copy(message.stamp, stamp.begin());
    reply_.write_stamp(header, false, stamp.data() + (message_.stamp_at - region_.begin));
    message.stamp = std::span(stamp).first(message.stamp.size());
    // A failed send has been reported; the client counts the reply as lost.
    static_cast<void>(reply.send(message));
  }

  [[nodiscard]] std::size_t expected() const { return shared_.index.services.at(server_.service).clients; }
  [[nodiscard]] std::size_t matched() { return endpoint_->matched(); }
  [[nodiscard]] std::string name() const { return node_.qualified_name() + " server " + server_.service; }

 private:
  // A request that a program answers at any time. The response repeats the request's measurement data.
  class Open final : public OpenRequest {
   public:
    Open(LiveServer& server, const message::Header& header, std::unique_ptr<runtime::LateReply> reply)
        : server_(server), header_(header), reply_(std::move(reply)) {}

    bool reply(const void* response) noexcept override {
      const message::Format& format = server_.reply_;
      if (format.stamp == message::Stamp::kNone) return reply_->send_object(format.codec, response);
      try {
        message::Object stamped(*format.type, response);
        format.stamp_object(header_, stamped.data());
        return reply_->send_object(format.codec, stamped.data());
      } catch (const std::bad_alloc&) {
        return false;
      }
    }

   private:
    LiveServer& server_;
    const message::Header header_;
    const std::unique_ptr<runtime::LateReply> reply_;
  };

  void hand_over(const runtime::Delivery& request, runtime::Reply& reply) noexcept {
    try {
      message::Object asked(*request_.type);
      runtime::Delivery decoded = request;
      Nanoseconds deserialize_ns = kUnknownTime;
      if (!shared_.decode(request_, asked, decoded, deserialize_ns)) return;
      std::unique_ptr<runtime::LateReply> later = reply.later(*this);
      if (later == nullptr) throw std::bad_alloc();
      handler_(decoded.object, std::make_shared<Open>(*this, request_.stamp_in(decoded.object), std::move(later)));
    } catch (const std::bad_alloc&) {
      shared_.malformed.fetch_add(1, std::memory_order_relaxed);
    }
  }

  // Callbacks of a server may run concurrently; each has its own request and response, as in an application.
  void answer_struct(const runtime::Delivery& request, runtime::Reply& reply) noexcept {
    try {
      message::Object asked(*request_.type), answer(*reply_.type, object_->data());
      runtime::Delivery decoded = request;
      Nanoseconds deserialize_ns = kUnknownTime;
      if (!shared_.decode(request_, asked, decoded, deserialize_ns)) return;
      runtime_.work(server_.work_ns);
      reply_.stamp_object(request_.stamp_in(decoded.object), answer.data());
      static_cast<void>(reply.send_object(reply_.codec, answer.data()));
    } catch (const std::bad_alloc&) {
      shared_.malformed.fetch_add(1, std::memory_order_relaxed);
    }
  }

  Shared& shared_;
  const Node& node_;
  const Server& server_;
  runtime::Runtime& runtime_;
  runtime::Server* endpoint_ = nullptr;
  const message::Format& request_;
  const message::Format& reply_;
  message::Encoded message_;
  StampRegion region_;
  std::optional<message::Object> object_;  // the response as a struct
  OnRequest handler_;
};

// Counts its triggers and their outcomes, each once.
class LiveGraph::LiveWaitable final : public runtime::WaitableHandler {
 public:
  LiveWaitable(const Node& node, const Waitable& waitable, runtime::Runtime& runtime)
      : node_(node), waitable_(waitable), runtime_(runtime) {}

  void attach(runtime::Waitable& endpoint) noexcept { endpoint_ = &endpoint; }
  void measure_from(Nanoseconds instant) noexcept { measured_from_ = instant; }

  void trigger(Nanoseconds due_ns) noexcept {
    unanswered_.fetch_add(1, std::memory_order_relaxed);
    count(due_ns > measured_from_ ? triggers_ : warmup_triggers_);
    endpoint_->trigger(due_ns);
  }
  void left_out(std::uint64_t ticks) noexcept { count(not_triggered_, ticks); }

  void on_triggered(Nanoseconds due_ns) noexcept override {
    runtime_.work(waitable_.work_ns);
    answered(due_ns, executed_);
  }
  void on_coalesced(Nanoseconds due_ns) noexcept override { answered(due_ns, coalesced_); }

  [[nodiscard]] bool triggered() const noexcept { return unanswered_.load(std::memory_order_acquire) > 0; }
  [[nodiscard]] WaitableView view() const {
    return {&node_,
            &waitable_,
            {.triggers = triggers_.load(std::memory_order_relaxed),
             .executed = executed_.load(std::memory_order_relaxed),
             .coalesced = coalesced_.load(std::memory_order_relaxed),
             .not_triggered = not_triggered_.load(std::memory_order_relaxed),
             .warmup_triggers = warmup_triggers_.load(std::memory_order_relaxed)}};
  }

 private:
  using Count = std::atomic<std::uint64_t>;

  // Timers and executors may run in several threads.
  static void count(Count& what, std::uint64_t by = 1) noexcept {
    what.fetch_add(by, std::memory_order_relaxed);
  }
  void answered(Nanoseconds due_ns, Count& how) noexcept {
    if (due_ns > measured_from_) count(how);
    unanswered_.fetch_sub(1, std::memory_order_release);
  }

  const Node& node_;
  const Waitable& waitable_;
  runtime::Runtime& runtime_;
  runtime::Waitable* endpoint_ = nullptr;
  Nanoseconds measured_from_ = kUnknownTime;
  std::atomic<std::int64_t> unanswered_{0};
  Count triggers_{0}, executed_{0}, coalesced_{0}, not_triggered_{0}, warmup_triggers_{0};
};

}  // namespace perflab::graph
