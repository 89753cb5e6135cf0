#include "middleware/sim/participant.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <new>
#include <nlohmann/json.hpp>
#include <span>

#include "middleware/sim/qos.h"
#include "middleware/support/status.h"

namespace perflab::middleware::sim {
namespace {

constexpr std::size_t kScratch = 64 << 10;

// FNV-1a: the same number for a topic in every run, so that a seed means the same in every run.
std::uint64_t hash(const std::string& text) {
  std::uint64_t value = 0xcbf29ce484222325u;
  for (const char c : text) value = (value ^ static_cast<std::uint8_t>(c)) * 0x100000001b3u;
  return value;
}

constexpr std::size_t kProcessBytes = 8;

// Of every identity: 8 random bytes of the process and 4 of the participant; the last 4 number the
// participant's entities, 0 is the participant itself.
perflab_identity random_identity() {
  const auto draw = [](std::uint8_t* to, std::size_t size) {
    if (getrandom(to, size, 0) != static_cast<ssize_t>(size))
      throw support::StatusError(PERFLAB_FAILED, "sim: no random numbers for an identity");
  };
  static const perflab_identity process = [&] {
    perflab_identity drawn{};
    draw(drawn.bytes, kProcessBytes);
    return drawn;
  }();
  perflab_identity identity = process;
  draw(identity.bytes + kProcessBytes, 4);
  return identity;
}

bool of_one_process(const perflab_identity& a, const perflab_identity& b) {
  return std::memcmp(a.bytes, b.bytes, kProcessBytes) == 0;
}

nlohmann::json to_json(const DelayStatistics& delay) {
  nlohmann::json json{{"count", delay.count}, {"min", nullptr}, {"mean", nullptr}, {"max", nullptr}};
  if (delay.count > 0) {
    json["min"] = delay.min_ns;
    json["mean"] = delay.sum_ns / static_cast<double>(delay.count);
    json["max"] = delay.max_ns;
  }
  return json;
}

}  // namespace

Participant::Participant(const perflab_host& host, Program program, std::uint32_t domain,
                         bool ignore_local_endpoints)
    : host_(host),
      program_(std::move(program)),
      ignore_local_endpoints_(ignore_local_endpoints),
      domain_(domain),
      identity_(random_identity()),
      scheduler_([this](Delivery& delivery) { deliver(delivery); }),
      scratch_(kScratch) {
  std::tie(listener_, slot_) = listen_on_free_slot(domain);
  epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
  stop_ = Descriptor(eventfd(0, EFD_CLOEXEC));
  if (!epoll_ || !stop_) throw support::StatusError(PERFLAB_FAILED, "sim: cannot make descriptors");
  watch(listener_.get());
  watch(stop_.get());
  // Whoever comes later finds this participant, as it listens already.
  {
    const std::lock_guard lock(mutex_);
    for (int slot = 0; slot < kSlots; ++slot) {
      if (slot != slot_) connect_to(slot);
    }
  }
  io_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "sim.io");
    run_io();
  });
}

Participant::~Participant() {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(stop_.get(), &one, sizeof one);
  io_.join();
  scheduler_.stop();
}

perflab_identity Participant::next_identity() {
  perflab_identity identity = identity_;
  const std::uint32_t number = ++entities_;
  std::memcpy(identity.bytes + 12, &number, sizeof number);
  return identity;
}

const char* Participant::describe() {
  const auto every = [](std::uint64_t n) { return n == 0 ? nlohmann::json(nullptr) : nlohmann::json(n); };
  nlohmann::json json;
  json["library"] = "perflab sim";
  json["domain"] = domain_;
  json["slot"] = slot_;
  json["transport"] = "af_unix";
  json["shared_memory"] = false;
  json["options"] = {
      {"delay_ns", program_.delay_ns},
      {"jitter_ns", program_.jitter_ns},
      {"loss", program_.loss},
      {"loss_every", every(program_.loss_every)},
      {"reorder_every", every(program_.reorder_every)},
      {"duplicate_every", every(program_.duplicate_every)},
      {"seed", program_.seed},
      {"match_delay_ns", program_.match_delay_ns},
      {"max_blocking_time_ns", program_.max_blocking_time_ns},
      {"topic", program_.topic.empty() ? nlohmann::json(nullptr) : nlohmann::json(program_.topic)}};
  nlohmann::json per_edge = nlohmann::json::array();
  DelayStatistics all;
  const std::lock_guard lock(mutex_);
  for (const auto& edge : edges_) {
    per_edge.push_back({{"writer", to_hex(edge->writer)},
                        {"reader", to_hex(edge->reader_identity)},
                        {"topic", edge->topic},
                        {"offered", edge->disturbance.offered() + edge->overflowed},
                        {"delivered", edge->delivered},
                        {"lost", edge->disturbance.lost()},
                        {"reordered", edge->reordered},
                        {"duplicated", edge->duplicated},
                        {"expired", edge->expired},
                        {"overflowed", edge->overflowed},
                        {"delay_ns", to_json(edge->delay)}});
    all.add(edge->delay);
  }
  json["injected"] = {{"per_edge", std::move(per_edge)}, {"delay_ns", to_json(all)}};
  description_ = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return description_.c_str();
}

// ---- endpoints come and go ----

void Participant::enter(Writer& writer) {
  const std::lock_guard lock(mutex_);
  writers_.push_back(&writer);
  for (Reader* const reader : readers_) consider(*reader, writer.identity(), writer.info(), &writer, nullptr);
  for (const auto& [id, peer] : peers_) {
    for (const auto& [endpoint_id, endpoint] : peer->endpoints) {
      if (endpoint.is_writer || endpoint.info.topic != writer.info().topic ||
          endpoint.info.type != writer.info().type || is_ignored(endpoint_id))
        continue;
      const char* const policy = incompatible_policy(writer.info().qos, endpoint.info.qos);
      if (policy != nullptr) report(writer, PERFLAB_INCOMPATIBLE_QOS, endpoint_id, 1, policy);
    }
  }
  const perflab_qos& qos = writer.info().qos;
  if (qos.liveliness == PERFLAB_AUTOMATIC && finite(qos.lease_duration_ns)) {
    const bool first = beat_ns_ == INT64_MAX;
    beat_ns_ = std::min(beat_ns_, std::max<std::int64_t>(qos.lease_duration_ns / 3, 1'000'000));
    if (first) scheduler_.at(0, this, [this] { beat(); });
  }
  scheduler_.at(0, this,
                [this, frame = make_frame(FrameKind::writer, writer.identity()),
                 payload = encode(writer.info())] { broadcast(frame, payload); });
}

void Participant::enter(Reader& reader) {
  const std::lock_guard lock(mutex_);
  readers_.push_back(&reader);
  // Announced before its first request to match.
  scheduler_.at(0, this,
                [this, frame = make_frame(FrameKind::reader, {}, reader.identity()),
                 payload = encode(reader.info())] { broadcast(frame, payload); });
  for (Writer* const writer : writers_) consider(reader, writer->identity(), writer->info(), writer, nullptr);
  for (const auto& [id, peer] : peers_) {
    for (const auto& [endpoint_id, endpoint] : peer->endpoints) {
      if (endpoint.is_writer) consider(reader, endpoint_id, endpoint.info, nullptr, peer.get());
    }
  }
}

void Participant::leave(Writer& writer) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(writers_, &writer);
    for (const auto& edge : edges_) {
      if (edge->local_writer != &writer) continue;
      set_unmatched(*edge);
      edge->local_writer = nullptr;
    }
    edges_of_writer_.erase(writer.identity());
    scheduler_.at(
        0, this, [this, frame = make_frame(FrameKind::writer_gone, writer.identity())] { broadcast(frame); });
  }
  scheduler_.cancel(&writer);
}

void Participant::leave(Reader& reader) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(readers_, &reader);
    for (const auto& edge : edges_) {
      if (edge->reader != &reader) continue;
      if (edge->local_writer != nullptr) edge->local_writer->remove_target(reader.identity());
      edge->reader = nullptr;
      edge->matched = false;
      edge->held.reset();
      const auto found = edges_of_writer_.find(edge->writer);
      if (found != edges_of_writer_.end()) std::erase(found->second, edge.get());
    }
    consumed_.notify_all();  // who waited for this reader need not any more
    scheduler_.at(0, this, [this, frame = make_frame(FrameKind::reader_gone, {}, reader.identity())] {
      broadcast(frame);
    });
  }
  scheduler_.cancel(&reader);
}

std::size_t Participant::matched(const Reader& reader) const {
  return static_cast<std::size_t>(std::count_if(edges_.begin(), edges_.end(), [&](const auto& edge) {
    return edge->reader == &reader && edge->matched;
  }));
}

Peer* Participant::find_peer(const perflab_identity& identity) {
  const auto found = peers_.find(identity);
  return found == peers_.end() ? nullptr : found->second.get();
}

// ---- matching ----

bool Participant::is_ignored(const perflab_identity& endpoint) const {
  return ignore_local_endpoints_ && of_one_process(endpoint, identity_);
}

void Participant::consider(Reader& reader, const perflab_identity& writer, const Announcement& offered,
                           Writer* local, Peer* peer) {
  if (is_ignored(writer)) return;
  const Announcement& requested = reader.info();
  if (offered.topic != requested.topic || offered.type != requested.type) return;
  if (const char* const policy = incompatible_policy(offered.qos, requested.qos)) {
    report(reader, PERFLAB_INCOMPATIBLE_QOS, writer, 1, policy);
    if (local != nullptr) report(*local, PERFLAB_INCOMPATIBLE_QOS, reader.identity(), 1, policy);
    return;
  }
  const std::uint64_t stream = hash(offered.topic) + edges_of_topic_[offered.topic]++;
  edges_.push_back(std::make_unique<Edge>(writer, reader.identity(), offered.topic, offered.qos,
                                          program_.concerns(offered.topic) ? program_ : Program{}, stream));
  Edge& edge = *edges_.back();
  edge.reader = &reader;
  edge.local_writer = local;
  edge.peer = peer;
  edge.reliable = requested.qos.reliability == PERFLAB_RELIABLE;
  edges_of_writer_[writer].push_back(&edge);
  const std::int64_t due_ns = program_.match_delay_ns == 0 ? 0 : monotonic_ns() + program_.match_delay_ns;
  scheduler_.at(due_ns, &reader, [this, &edge] {
    std::unique_lock lock(mutex_);
    edge.match_wanted = true;
    request_match(edge);
  });
}

void Participant::request_match(Edge& edge) {
  if (edge.local_writer != nullptr) {
    // As a task of the writer, which must not be destroyed meanwhile.
    Writer* const writer = edge.local_writer;
    scheduler_.at(0, writer, [writer, &edge] { writer->start_local(edge); });
    return;
  }
  if (edge.peer == nullptr || edge.peer->out == nullptr || edge.match_sent || edge.reader == nullptr) return;
  edge.match_sent = true;
  Frame frame = make_frame(FrameKind::match, edge.writer, edge.reader_identity);
  const perflab_qos& qos = edge.reader->info().qos;
  frame.sequence = (qos.durability == PERFLAB_TRANSIENT_LOCAL ? 1u : 0u) | (edge.reliable ? 2u : 0u);
  scheduler_.at(0, this, [out = edge.peer->out, frame] { out->send(frame); });
}

void Participant::set_matched(Edge& edge, std::uint64_t first_sequence, bool alive) {
  if (edge.matched || edge.reader == nullptr) return;
  edge.matched = true;
  edge.first_sequence = first_sequence;
  report(*edge.reader, PERFLAB_MATCHED, edge.writer, 1);
  set_alive(edge, alive);
  const perflab_qos& qos = edge.writer_qos;
  if (edge.peer != nullptr && qos.liveliness == PERFLAB_AUTOMATIC && finite(qos.lease_duration_ns)) {
    scheduler_.at(monotonic_ns() + qos.lease_duration_ns, edge.reader, [this, &edge] { watch_lease(edge); });
  }
}

void Participant::set_unmatched(Edge& edge) {
  if (!edge.matched) return;
  set_alive(edge, false);
  edge.matched = false;
  report(*edge.reader, PERFLAB_UNMATCHED, edge.writer, 1);
}

void Participant::set_alive(Edge& edge, bool alive) {
  if (!edge.matched || edge.alive == alive) return;
  edge.alive = alive;
  report(*edge.reader, PERFLAB_LIVELINESS_CHANGED, edge.writer, alive ? 1 : -1);
}

// ---- events ----

void Participant::report(const void* owner, const perflab_listener& listener, const Announcement& info,
                         perflab_event_kind kind, const perflab_identity& peer, std::int32_t count,
                         const char* policy) {
  if (listener.on_event == nullptr) return;
  perflab_event event{};
  event.kind = kind;
  event.at_ns = host_now_ns();
  event.peer = peer;
  event.topic = info.topic.c_str();
  event.type = info.type.c_str();
  event.policy = policy;
  event.count = count;
  scheduler_.at(0, owner, [&listener, event] { listener.on_event(listener.context, &event); });
}

void Participant::report(const Writer& writer, perflab_event_kind kind, const perflab_identity& peer,
                         std::int32_t count, const char* policy) {
  report(&writer, writer.listener(), writer.info(), kind, peer, count, policy);
}

void Participant::report(const Reader& reader, perflab_event_kind kind, const perflab_identity& peer,
                         std::int32_t count, const char* policy) {
  report(&reader, reader.listener(), reader.info(), kind, peer, count, policy);
}

void Participant::report_discovery(perflab_event_kind kind, const perflab_identity& peer,
                                   const Announcement* info) {
  if (host_.on_event == nullptr) return;
  perflab_event event{};
  event.kind = kind;
  event.at_ns = host_now_ns();
  event.peer = peer;
  event.count = 1;
  scheduler_.at(0, this,
                [this, event, named = info != nullptr, topic = info != nullptr ? info->topic : std::string(),
                 type = info != nullptr ? info->type : std::string()]() mutable {
                  if (named) {
                    event.topic = topic.c_str();
                    event.type = type.c_str();
                  }
                  host_.on_event(host_.context, &event);
                });
}

// ---- the way of a message to its reader ----

void Participant::offer(Edge& edge, const PacketRef& packet, std::int64_t offered_ns) {
  if (edge.reader == nullptr) return;
  if (!edge.reliable && exceeds(edge.accepted, edge.consumed, kWindow)) {
    ++edge.overflowed;
    report(*edge.reader, PERFLAB_SAMPLE_LOST, edge.writer, 1);
    return;
  }
  edge.accepted.add(packet->size);
  Disturbance::Arrivals arrivals;
  switch (edge.disturbance.offer(packet.get(), offered_ns, arrivals)) {
    case Disturbance::Outcome::lost:
      consume(edge, packet->size);
      return;
    case Disturbance::Outcome::held:
      edge.held = packet;
      edge.held_offered_ns = offered_ns;
      edge.held_number = edge.disturbance.offered();
      scheduler_.at(edge.disturbance.held_until_ns(), edge.reader,
                    [this, &edge, number = edge.held_number] { flush(edge, number); });
      return;
    case Disturbance::Outcome::passed:
      break;
  }
  for (const Disturbance::Arrival& arrival : arrivals) {
    const bool was_held = arrival.message != packet.get();
    scheduler_.push({.due_ns = arrival.due_ns,
                     .order = 0,
                     .owner = edge.reader,
                     .edge = &edge,
                     .packet = PacketRef::share(static_cast<Packet*>(arrival.message)),
                     .offered_ns = was_held ? edge.held_offered_ns : offered_ns,
                     .copy = arrival.copy,
                     .overtaken = arrival.overtaken});
  }
  if (edge.disturbance.held() == nullptr) edge.held.reset();
}

// No message followed the one that was held back to be overtaken.
void Participant::flush(Edge& edge, std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  if (!edge.held || edge.held_number != number || edge.reader == nullptr) return;
  Disturbance::Arrivals arrivals;
  edge.disturbance.release(arrivals);
  for (const Disturbance::Arrival& arrival : arrivals) {
    scheduler_.push({.due_ns = arrival.due_ns,
                     .order = 0,
                     .owner = edge.reader,
                     .edge = &edge,
                     .packet = edge.held,
                     .offered_ns = edge.held_offered_ns,
                     .copy = arrival.copy,
                     .overtaken = false});
  }
  edge.held.reset();
}

void Participant::deliver(Delivery& delivery) {
  Edge& edge = *delivery.edge;
  Reader& reader = *static_cast<Reader*>(const_cast<void*>(delivery.owner));
  const std::size_t size = delivery.packet->size;
  const std::int64_t now_ns = monotonic_ns();
  const bool expired =
      finite(edge.writer_qos.lifespan_ns) && now_ns - delivery.packet->sent_ns >= edge.writer_qos.lifespan_ns;
  {
    const std::lock_guard lock(mutex_);
    if (expired) {
      if (!delivery.copy) ++edge.expired;
    } else {
      ++(delivery.copy ? edge.duplicated : edge.delivered);
      if (delivery.overtaken && !delivery.copy) ++edge.reordered;
      edge.delay.add(now_ns - delivery.offered_ns);
    }
  }
  if (!expired) reader.deliver(edge, std::move(delivery.packet), delivery.copy);
  // With keep_all a message is consumed when it is taken.
  if (!delivery.copy && (expired || !reader.keeps_all())) {
    const std::lock_guard lock(mutex_);
    consume(edge, size);
  }
}

void Participant::consume(Edge& edge, std::size_t size) {
  edge.consumed.add(size);
  if (edge.peer == nullptr) {
    if (waiting_ > 0) consumed_.notify_all();
    return;
  }
  static constexpr Flow kReport{kWindow.messages / 8, kWindow.bytes / 8};
  if (edge.reliable && edge.reader != nullptr && exceeds(edge.consumed, edge.reported, kReport)) {
    edge.reported = edge.consumed;
    scheduler_.at(0, edge.reader, [this, &edge] { send_credit(edge); });
  }
}

void Participant::send_credit(Edge& edge) {
  std::unique_lock lock(mutex_);
  if (edge.peer == nullptr || edge.peer->out == nullptr) return;
  const auto out = edge.peer->out;
  Frame frame = make_frame(FrameKind::credit, edge.writer, edge.reader_identity);
  frame.sequence = edge.consumed.messages;
  frame.sent_ns = static_cast<std::int64_t>(edge.consumed.bytes);
  edge.reported = edge.consumed;
  lock.unlock();
  out->send(frame);
}

bool Participant::wait_for_consumption(std::unique_lock<std::mutex>& lock, std::int64_t until_ns) {
  if (monotonic_ns() >= until_ns) return false;
  ++waiting_;
  consumed_.wait_until(lock, std::chrono::steady_clock::time_point(std::chrono::nanoseconds(until_ns)));
  --waiting_;
  return true;
}

// ---- liveliness ----

void Participant::beat() {
  std::vector<std::shared_ptr<Connection>> out;
  std::unique_lock lock(mutex_);
  for (const auto& [id, peer] : peers_) {
    if (peer->out != nullptr) out.push_back(peer->out);
  }
  const std::int64_t period_ns = beat_ns_;
  lock.unlock();
  // Without patience: where there is no room, there are other frames that tell that this process lives.
  for (const auto& connection : out) connection->send(make_frame(FrameKind::heartbeat), {}, 0);
  scheduler_.at(monotonic_ns() + period_ns, this, [this] { beat(); });
}

void Participant::watch_lease(Edge& edge) {
  const std::lock_guard lock(mutex_);
  if (!edge.matched || edge.peer == nullptr) return;
  const std::int64_t lease_ns = edge.writer_qos.lease_duration_ns;
  const std::int64_t now_ns = monotonic_ns();
  set_alive(edge, now_ns - edge.peer->heard_ns <= lease_ns);
  scheduler_.at(now_ns + std::max<std::int64_t>(lease_ns / 4, 1'000'000), edge.reader,
                [this, &edge] { watch_lease(edge); });
}

// ---- other participants ----

void Participant::broadcast(const Frame& frame, std::vector<std::uint8_t> payload) {
  std::vector<std::shared_ptr<Connection>> out;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& [id, peer] : peers_) {
      if (peer->out != nullptr) out.push_back(peer->out);
    }
  }
  for (const auto& connection : out) connection->send(frame, payload);
}

void Participant::announce_everything(const perflab_identity& identity) {
  std::vector<std::pair<Frame, std::vector<std::uint8_t>>> announcements;
  std::shared_ptr<Connection> out;
  {
    const std::lock_guard lock(mutex_);
    Peer* const peer = find_peer(identity);
    if (peer == nullptr || peer->out == nullptr) return;
    out = peer->out;
    for (const Writer* const writer : writers_) {
      announcements.emplace_back(make_frame(FrameKind::writer, writer->identity()), encode(writer->info()));
    }
    for (const Reader* const reader : readers_) {
      announcements.emplace_back(make_frame(FrameKind::reader, {}, reader->identity()),
                                 encode(reader->info()));
    }
    // Requests that could not be sent before.
    for (const auto& edge : edges_) {
      if (edge->peer == peer && edge->match_wanted) request_match(*edge);
    }
  }
  for (const auto& [frame, payload] : announcements) out->send(frame, payload);
}

void Participant::watch(int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event);
}

// Under the mutex.
void Participant::connect_to(int slot) {
  Descriptor socket = connect_to_slot(domain_, slot);
  if (!socket) return;
  const int fd = socket.get();
  const auto connection = std::make_shared<Connection>(std::move(socket), slot);
  Frame hello = make_frame(FrameKind::hello, identity_);
  hello.sequence = static_cast<std::uint64_t>(slot_);
  connection->send(hello, {}, 0);  // there is always room for the first frame
  outgoing_[fd] = {.connection = connection, .peer = {}, .answered = false};
  watch(fd);
}

void Participant::run_io() {
  for (;;) {
    epoll_event events[32];
    const int count = epoll_wait(epoll_.get(), events, 32, -1);
    for (int i = 0; i < count; ++i) {
      const int fd = events[i].data.fd;
      if (fd == stop_.get()) return;
      if (fd == listener_.get()) {
        accept_all();
        continue;
      }
      const auto incoming = incoming_.find(fd);
      if (incoming == incoming_.end()) {
        read_answer(fd);
        continue;
      }
      bool good = false;
      try {
        good = read_frames(incoming->second);
      } catch (const std::bad_alloc&) {
        // No memory for its message: give the peer up, which it will notice.
      }
      if (good) continue;
      const perflab_identity peer = incoming->second.peer;
      const bool greeted = incoming->second.greeted;
      incoming_.erase(incoming);  // closes it, which takes it off epoll
      if (greeted) lose(peer);
    }
  }
}

void Participant::accept_all() {
  for (;;) {
    Descriptor socket = accept_connection(listener_.get());
    if (!socket) return;
    const int fd = socket.get();
    Incoming incoming;
    incoming.socket = std::move(socket);
    incoming_[fd] = std::move(incoming);
    watch(fd);
  }
}

// On a connection that we made there is one answer to read, and later its end.
void Participant::read_answer(int fd) {
  Frame frame;
  const ssize_t size = recv(fd, &frame, sizeof frame, MSG_DONTWAIT);
  if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
  const std::lock_guard lock(mutex_);
  const auto found = outgoing_.find(fd);
  if (found == outgoing_.end()) return;
  Outgoing& outgoing = found->second;
  const bool welcome = size == static_cast<ssize_t>(sizeof frame) && frame.magic == kMagic &&
                       frame.kind == FrameKind::welcome && !outgoing.answered;
  if (!welcome) {
    // Ended. If a peer is known, its own connection ends as well, after what it still carries.
    epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, fd, nullptr);
    const int slot = outgoing.connection->slot();
    const bool answered = outgoing.answered;
    outgoing_.erase(found);
    // The one who had the slot died before it answered, and another has it now.
    if (!answered) {
      for (const auto& [id, peer] : peers_) {
        if (peer->slot == slot && peer->out == nullptr) connect_to(slot);
      }
    }
    return;
  }
  outgoing.answered = true;
  outgoing.peer = frame.writer;
  auto& peer = peers_[frame.writer];
  if (peer == nullptr) {
    peer = std::make_unique<Peer>();
    peer->identity = frame.writer;
    peer->slot = outgoing.connection->slot();
  }
  if (peer->out != nullptr) return;
  peer->out = outgoing.connection;
  scheduler_.at(0, this, [this, id = frame.writer] { announce_everything(id); });
  report_when_complete(*peer);
}

void Participant::report_when_complete(Peer& peer) {
  if (peer.reported || peer.out == nullptr || peer.incoming < 0) return;
  peer.reported = true;
  report_discovery(PERFLAB_PARTICIPANT_FOUND, peer.identity, nullptr);
}

bool Participant::read_frames(Incoming& incoming) {
  // What is left of a large message goes straight to its place.
  if (incoming.payload && incoming.frame.payload_size - incoming.payload_have >= kScratch) {
    const ssize_t size = recv(incoming.socket.get(), incoming.payload->bytes() + incoming.payload_have,
                              incoming.frame.payload_size - incoming.payload_have, MSG_DONTWAIT);
    if (size < 0) return errno == EAGAIN || errno == EINTR;
    incoming.payload_have += static_cast<std::size_t>(size);
    return size > 0 && (incoming.payload_have < incoming.frame.payload_size || handle(incoming));
  }
  const ssize_t size = recv(incoming.socket.get(), scratch_.data(), scratch_.size(), MSG_DONTWAIT);
  if (size < 0) return errno == EAGAIN || errno == EINTR;
  const std::uint8_t* at = scratch_.data();
  const std::uint8_t* const end = at + size;
  while (at != end) {
    if (!consume_bytes(incoming, at, end)) return false;
  }
  return size > 0;
}

// Advances `at` by a header, a payload, or what there is of it.
bool Participant::consume_bytes(Incoming& incoming, const std::uint8_t*& at, const std::uint8_t* end) {
  const auto available = static_cast<std::size_t>(end - at);
  if (incoming.header_have < sizeof(Frame)) {
    const std::size_t size = std::min(available, sizeof(Frame) - incoming.header_have);
    std::memcpy(reinterpret_cast<std::uint8_t*>(&incoming.frame) + incoming.header_have, at, size);
    incoming.header_have += size;
    at += size;
    return incoming.header_have < sizeof(Frame) || begin_payload(incoming);
  }
  const std::size_t size = std::min(available, incoming.frame.payload_size - incoming.payload_have);
  std::memcpy(incoming.payload->bytes() + incoming.payload_have, at, size);
  incoming.payload_have += size;
  at += size;
  return incoming.payload_have < incoming.frame.payload_size || handle(incoming);
}

bool Participant::begin_payload(Incoming& incoming) {
  const Frame& frame = incoming.frame;
  if (frame.magic != kMagic || frame.payload_size > kLargestPayload) return false;
  incoming.payload = pool_.get(frame.payload_size);
  incoming.payload_have = 0;
  incoming.payload->sequence = frame.sequence;
  incoming.payload->sent_ns = frame.sent_ns;
  incoming.payload->source_ns = frame.source_ns;
  incoming.payload->writer = frame.writer;
  return frame.payload_size > 0 || handle(incoming);
}

// A whole frame has come.
bool Participant::handle(Incoming& incoming) {
  const Frame frame = incoming.frame;
  const PacketRef packet = std::move(incoming.payload);
  incoming.header_have = 0;
  if (!incoming.greeted) return frame.kind == FrameKind::hello && greet(incoming);

  const std::lock_guard lock(mutex_);
  Peer* const peer = find_peer(incoming.peer);
  if (peer == nullptr) return false;
  peer->heard_ns = monotonic_ns();
  const auto local_writer = [&]() -> Writer* {
    const auto found = std::find_if(writers_.begin(), writers_.end(), [&](const Writer* writer) {
      return same(writer->identity(), frame.writer);
    });
    return found == writers_.end() ? nullptr : *found;
  };
  switch (frame.kind) {
    case FrameKind::data:
      handle_data(frame, packet);
      return true;
    case FrameKind::writer:
    case FrameKind::reader: {
      auto info = decode({packet->bytes(), packet->size});
      if (!info) return false;
      handle_endpoint(*peer, frame, {frame.kind == FrameKind::writer, std::move(*info)});
      return true;
    }
    case FrameKind::writer_gone:
      handle_gone(*peer, frame.writer);
      return true;
    case FrameKind::reader_gone:
      handle_gone(*peer, frame.reader);
      return true;
    case FrameKind::match:
      if (Writer* const writer = local_writer()) {
        scheduler_.at(0, writer,
                      [writer, reader = frame.reader, from = incoming.peer, wish = frame.sequence] {
                        writer->start_remote(reader, from, (wish & 2u) != 0, (wish & 1u) != 0);
                      });
      }
      return true;
    case FrameKind::credit:
      if (Writer* const writer = local_writer()) {
        writer->consumed_remotely(frame.reader, {frame.sequence, static_cast<std::uint64_t>(frame.sent_ns)});
        if (waiting_ > 0) consumed_.notify_all();
      }
      return true;
    case FrameKind::start:
    case FrameKind::alive:
    case FrameKind::not_alive: {
      const auto found = edges_of_writer_.find(frame.writer);
      if (found == edges_of_writer_.end()) return true;
      for (Edge* const edge : found->second) {
        if (frame.kind != FrameKind::start) {
          set_alive(*edge, frame.kind == FrameKind::alive);
        } else if (same(edge->reader_identity, frame.reader)) {
          set_matched(*edge, frame.sequence, frame.source_ns != 0);
        }
      }
      return true;
    }
    case FrameKind::heartbeat:
      return true;
    case FrameKind::hello:
    case FrameKind::welcome:
      break;
  }
  return false;
}

bool Participant::greet(Incoming& incoming) {
  const Frame& frame = incoming.frame;
  if (frame.sequence >= kSlots) return false;
  const std::lock_guard lock(mutex_);
  auto& peer = peers_[frame.writer];
  if (peer == nullptr) {
    peer = std::make_unique<Peer>();
    peer->identity = frame.writer;
  } else if (peer->incoming >= 0) {
    return false;  // connected twice: only the first is answered, and so only that one is used
  }
  peer->slot = static_cast<int>(frame.sequence);
  peer->incoming = incoming.socket.get();
  peer->heard_ns = monotonic_ns();
  incoming.peer = frame.writer;
  incoming.greeted = true;
  const Frame welcome = make_frame(FrameKind::welcome, identity_);
  if (send(incoming.socket.get(), &welcome, sizeof welcome, MSG_NOSIGNAL | MSG_DONTWAIT) != sizeof welcome) {
    return false;  // ended meanwhile
  }
  const bool connecting = std::any_of(outgoing_.begin(), outgoing_.end(), [&](const auto& item) {
    return !item.second.answered && item.second.connection->slot() == peer->slot;
  });
  if (peer->out == nullptr && !connecting) connect_to(peer->slot);
  report_when_complete(*peer);
  return true;
}

void Participant::handle_data(const Frame& frame, const PacketRef& packet) {
  const auto found = edges_of_writer_.find(frame.writer);
  if (found == edges_of_writer_.end()) return;
  const bool history = !same(frame.reader, {});
  for (Edge* const edge : found->second) {
    if (!edge->matched) continue;
    if (history) {
      if (same(edge->reader_identity, frame.reader)) offer(*edge, packet, monotonic_ns());
    } else if (frame.sequence >= edge->first_sequence) {
      offer(*edge, packet, frame.sent_ns);
    }
  }
}

void Participant::handle_endpoint(Peer& peer, const Frame& frame, const RemoteEndpoint& endpoint) {
  const perflab_identity& identity = endpoint.is_writer ? frame.writer : frame.reader;
  const auto [at, is_new] = peer.endpoints.emplace(identity, endpoint);
  if (!is_new) return;
  report_discovery(endpoint.is_writer ? PERFLAB_WRITER_FOUND : PERFLAB_READER_FOUND, identity,
                   &endpoint.info);
  if (endpoint.is_writer) {
    for (Reader* const reader : readers_) consider(*reader, identity, endpoint.info, nullptr, &peer);
    return;
  }
  if (is_ignored(identity)) return;
  for (Writer* const writer : writers_) {
    if (writer->info().topic != endpoint.info.topic || writer->info().type != endpoint.info.type) continue;
    const char* const policy = incompatible_policy(writer->info().qos, endpoint.info.qos);
    if (policy != nullptr) report(*writer, PERFLAB_INCOMPATIBLE_QOS, identity, 1, policy);
  }
}

void Participant::handle_gone(Peer& peer, const perflab_identity& identity) {
  const auto found = peer.endpoints.find(identity);
  if (found == peer.endpoints.end()) return;
  const bool is_writer = found->second.is_writer;
  peer.endpoints.erase(found);
  report_discovery(is_writer ? PERFLAB_WRITER_LOST : PERFLAB_READER_LOST, identity, nullptr);
  if (!is_writer) {
    for (Writer* const writer : writers_) writer->remove_target(identity);
    consumed_.notify_all();
    return;
  }
  const auto edges = edges_of_writer_.find(identity);
  if (edges == edges_of_writer_.end()) return;
  for (Edge* const edge : edges->second) {
    set_unmatched(*edge);
    edge->peer = nullptr;
  }
  edges_of_writer_.erase(edges);
}

// A process has ended, or has stopped reading for too long.
void Participant::lose(const perflab_identity& identity) {
  const std::lock_guard lock(mutex_);
  const auto found = peers_.find(identity);
  if (found == peers_.end()) return;
  Peer& peer = *found->second;
  while (!peer.endpoints.empty()) handle_gone(peer, perflab_identity(peer.endpoints.begin()->first));
  for (Writer* const writer : writers_) writer->remove_targets_of(peer);
  consumed_.notify_all();
  for (auto at = outgoing_.begin(); at != outgoing_.end();) {
    if (at->second.answered && same(at->second.peer, identity)) {
      epoll_ctl(epoll_.get(), EPOLL_CTL_DEL, at->first, nullptr);
      at = outgoing_.erase(at);
    } else {
      ++at;
    }
  }
  if (peer.reported) report_discovery(PERFLAB_PARTICIPANT_LOST, identity, nullptr);
  peers_.erase(found);
}

}  // namespace perflab::middleware::sim
