#include "middleware/shm/participant.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "middleware/support/status.h"
#include "middleware/types.h"

namespace perflab::middleware::shm {
namespace {

using support::StatusError;

constexpr std::size_t kProcessBytes = 8;

// Of every identity: 8 random bytes of the process and 4 of the participant; the last 4 number the
// participant's entities, 0 is the participant itself.
perflab_identity random_identity() {
  const auto draw = [](std::uint8_t* to, std::size_t size) {
    if (getrandom(to, size, 0) != static_cast<ssize_t>(size))
      throw StatusError(PERFLAB_FAILED, "shm: no random numbers for an identity");
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

bool matches_names(const Endpoint& a, const Endpoint& b) { return a.topic == b.topic && a.type == b.type; }

Letter letter(Kind kind, const perflab_identity& from, const perflab_identity& to = {},
              std::uint64_t number = 0) {
  return {
      .head = {.kind = kind, .from = from, .to = to, .number = number}, .topic = {}, .type = {}, .file = {}};
}

Letter announcement(Kind kind, const Entity& entity) {
  Letter announced = letter(kind, entity.id);
  announced.head.qos = entity.info.qos;
  announced.topic = entity.info.topic;
  announced.type = entity.info.type;
  return announced;
}

}  // namespace

Participant::Participant(const perflab_host& host, const ParticipantSettings& settings)
    : host_(host),
      settings_(settings),
      identity_(random_identity()),
      board_(Board::of_this_process()),
      data_bell_(board_->take_bell()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      poke_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_ || !poke_) throw StatusError(PERFLAB_FAILED, "shm: no descriptor is left");
  Peer& self = peers_.emplace_back(Link{Descriptor{}});
  self.identity = identity_;
  self.board = board_;
  Seat seat = take_seat(settings.domain);
  listener_ = std::move(seat.listener);
  seat_ = seat.number;
  watch(listener_.get(), EPOLLIN);
  watch(poke_.get(), EPOLLIN);
  for (Descriptor& other : seat.others) {
    Peer& peer = connected(std::move(other));
    send_hello(peer);
  }
  control_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "shm.control");
    run_control();
  });
  data_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "shm.data");
    while (!stopping_) {
      board_->bell(data_bell_).wait(kForever, [this] { return stopping_ || call_readers(); });
    }
  });
}

Participant::~Participant() {
  stopping_ = true;
  poke();
  board_->ring(data_bell_);
  control_.join();
  data_.join();
  board_->return_bell(data_bell_);
}

const char* Participant::describe() {
  const std::lock_guard lock(mutex_);
  const nlohmann::json json{{"library", "perflab shm"},
                            {"domain", settings_.domain},
                            {"seat", seat_},
                            {"transport", "shared_memory"},
                            {"shared_memory", true},
                            {"options",
                             {{"match_delay_ns", settings_.match_delay_ns},
                              {"max_blocking_time_ns", settings_.max_blocking_time_ns}}},
                            {"lost", lost_},
                            {"closed", closed_}};
  description_ = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return description_.c_str();
}

perflab_identity Participant::next_identity() {
  perflab_identity identity = identity_;
  const std::uint32_t number = ++entities_;
  std::memcpy(identity.bytes + 12, &number, sizeof number);
  return identity;
}

void Participant::poke() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(poke_.get(), &one, sizeof one);
}

// ---- endpoints come and go ----

void Participant::enter(Writer& writer) {
  const std::lock_guard lock(mutex_);
  writers_.emplace(writer.id, &writer);
  broadcast(Kind::writer, writer);
  for (const Peer& peer : peers_) {
    for (const auto& [identity, remote] : peer.endpoints) {
      if (!remote.is_writer) consider(writer, identity, remote.info);
    }
  }
  poke();
}

void Participant::enter(Reader& reader) {
  if (reader.listener.on_data != nullptr) {
    const std::lock_guard calls(calls_);
    called_.push_back(&reader);
  }
  const std::lock_guard lock(mutex_);
  readers_.emplace(reader.id, &reader);
  broadcast(Kind::reader, reader);
  for (const Peer& peer : peers_) {
    for (const auto& [identity, remote] : peer.endpoints) {
      if (remote.is_writer) consider(reader, identity, remote.info);
    }
  }
  poke();
}

void Participant::leave(Writer& writer) {
  const std::lock_guard calls(calls_);
  const std::lock_guard lock(mutex_);
  writers_.erase(writer.id);
  broadcast(Kind::gone, writer);
  poke();
}

void Participant::leave(Reader& reader) {
  const std::lock_guard calls(calls_);
  std::erase(called_, &reader);
  const std::lock_guard lock(mutex_);
  readers_.erase(reader.id);
  std::erase_if(wanted_, [&](const Wanted& wanted) { return same(wanted.reader, reader.id); });
  broadcast(Kind::gone, reader);
  poke();
}

// ---- matching ----

bool Participant::concern(const Entity& entity, const perflab_identity& identity,
                          const Endpoint& remote) const {
  if (settings_.ignore_local_endpoints && of_one_process(identity, identity_)) return false;
  return matches_names(entity.info, remote);
}

void Participant::consider(Writer& writer, const perflab_identity& reader, const Endpoint& requested) {
  if (!concern(writer, reader, requested)) return;
  const char* const policy = incompatible_policy(writer.info.qos, requested.qos);
  if (policy != nullptr) report(writer, PERFLAB_INCOMPATIBLE_QOS, reader, 1, policy);
}

void Participant::consider(Reader& reader, const perflab_identity& writer, const Endpoint& offered) {
  if (!concern(reader, writer, offered)) return;
  if (const char* const policy = incompatible_policy(offered.qos, reader.info.qos)) {
    report(reader, PERFLAB_INCOMPATIBLE_QOS, writer, 1, policy);
    return;
  }
  wanted_.push_back({reader.id, writer, host_now_ns() + settings_.match_delay_ns});
}

Peer* Participant::owner_of(const perflab_identity& endpoint) {
  const auto found =
      std::ranges::find_if(peers_, [&](const Peer& peer) { return peer.endpoints.contains(endpoint); });
  return found == peers_.end() ? nullptr : &*found;
}

void Participant::match(const Wanted& wanted) {
  const auto reader = readers_.find(wanted.reader);
  Peer* const peer = owner_of(wanted.writer);
  if (reader == readers_.end() || peer == nullptr) return;
  const perflab_qos& offered = peer->endpoints.at(wanted.writer).info.qos;
  const std::uint32_t cell = reader->second->expect(wanted.writer, offered, peer->board);
  peer->link.send(letter(Kind::match, wanted.reader, wanted.writer, cell));
}

void Participant::unmatch(const Reader& reader, const perflab_identity& writer) {
  if (Peer* const peer = owner_of(writer)) peer->link.send(letter(Kind::unmatch, reader.id, writer));
}

// ---- events ----

void Participant::report(const Entity& entity, perflab_event_kind kind, const perflab_identity& peer,
                         std::int32_t count, const char* policy) {
  if (entity.listener.on_event == nullptr) return;
  events_.push_back({entity.id,
                     entity.listener,
                     {.kind = kind,
                      .at_ns = host_now_ns(),
                      .peer = peer,
                      .topic = nullptr,
                      .type = nullptr,
                      .policy = policy,
                      .count = count},
                     entity.info.topic,
                     entity.info.type});
}

void Participant::report_discovery(const Peer& peer, perflab_event_kind kind,
                                   const perflab_identity& identity, const Endpoint* info) {
  if (host_.on_event == nullptr || is_self(peer)) return;
  events_.push_back({{},
                     {.on_data = nullptr, .on_event = host_.on_event, .context = host_.context},
                     {.kind = kind,
                      .at_ns = host_now_ns(),
                      .peer = identity,
                      .topic = nullptr,
                      .type = nullptr,
                      .policy = nullptr,
                      .count = 1},
                     info != nullptr ? info->topic : "",
                     info != nullptr ? info->type : ""});
}

void Participant::deliver_events() {
  for (;;) {
    {
      const std::lock_guard lock(mutex_);
      if (events_.empty()) return;
    }
    const std::lock_guard calls(calls_);
    Event event;
    {
      const std::lock_guard lock(mutex_);
      event = std::move(events_.front());
      events_.pop_front();
      const bool is_there =
          same(event.owner, {}) || writers_.contains(event.owner) || readers_.contains(event.owner);
      if (!is_there) continue;
    }
    if (!event.topic.empty()) event.event.topic = event.topic.c_str();
    if (!event.type.empty()) event.event.type = event.type.c_str();
    event.listener.on_event(event.listener.context, &event.event);
  }
}

bool Participant::call_readers() {
  const std::lock_guard calls(calls_);
  bool any = false;
  for (std::size_t i = 0; i < called_.size(); ++i) {
    if (!called_[i]->has_news()) continue;
    any = true;
    const perflab_listener& listener = called_[i]->listener;
    listener.on_data(listener.context);
  }
  return any;
}

// ---- the control thread ----

void Participant::run_control() {
  for (;;) {
    std::int64_t due_ns = 0;
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) return;
      do {
        due_ns = tick();
      } while (read_own_letters());
      send_letters();
    }
    deliver_events();
    std::array<epoll_event, 32> ready;
    // Rounded up, or the last millisecond would be spun away.
    const std::int64_t left_ms = (due_ns - host_now_ns()) / 1'000'000 + 1;
    const int count = epoll_wait(epoll_.get(), ready.data(), static_cast<int>(ready.size()),
                                 static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 3'600'000)));
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i) handle_ready(ready[static_cast<std::size_t>(i)].data.fd);
  }
}

// What is due by the clock. Returns when to look again.
std::int64_t Participant::tick() {
  const std::int64_t now_ns = host_now_ns();
  std::int64_t due_ns = PERFLAB_DURATION_INFINITE;
  for (const Wanted& wanted : wanted_) {
    if (wanted.due_ns <= now_ns) {
      match(wanted);
    } else {
      due_ns = std::min(due_ns, wanted.due_ns);
    }
  }
  std::erase_if(wanted_, [&](const Wanted& wanted) { return wanted.due_ns <= now_ns; });
  for (const auto& [identity, writer] : writers_) due_ns = std::min(due_ns, writer->tick(now_ns));
  for (const auto& [identity, reader] : readers_) due_ns = std::min(due_ns, reader->tick(now_ns));
  return due_ns;
}

void Participant::watch(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) != 0)
    epoll_ctl(epoll_.get(), EPOLL_CTL_MOD, fd, &event);
}

void Participant::handle_ready(int fd) {
  if (fd == poke_.get()) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(fd, &count, sizeof count);
    return;
  }
  if (fd == listener_.get()) {
    while (Descriptor socket = accept_connection(listener_)) connected(std::move(socket));
    return;
  }
  const auto peer = std::ranges::find_if(peers_, [&](const Peer& each) { return each.link.fd() == fd; });
  if (peer != peers_.end() && !receive(*peer)) lose(peer);
}

Peer& Participant::connected(Descriptor socket) {
  Peer& peer = peers_.emplace_back(Link(std::move(socket)));
  watch(peer.link.fd(), EPOLLIN);
  return peer;
}

void Participant::send_hello(Peer& peer) {
  Letter hello = letter(Kind::hello, identity_);
  hello.file = board_->file().duplicate();
  peer.link.send(std::move(hello));
  peer.has_been_greeted = true;
}

bool Participant::read_own_letters() {
  Peer& self = peers_.front();
  bool any = false;
  while (auto own = self.link.take_waiting()) {
    any = true;
    handle(self, *own);
  }
  return any;
}

void Participant::send_letters() {
  for (auto peer = std::next(peers_.begin()); peer != peers_.end();) {
    const auto each = peer++;
    const bool was_blocked = each->is_blocked;
    if (!each->link.flush(each->is_blocked)) {
      lose(each);
    } else if (each->is_blocked != was_blocked) {
      watch(each->link.fd(), each->is_blocked ? EPOLLIN | EPOLLOUT : EPOLLIN);
    }
  }
}

// False where the peer has ended, or is not understood.
bool Participant::receive(Peer& peer) {
  for (;;) {
    bool gone = false;
    std::optional<Letter> received = peer.link.receive(gone);
    if (gone) return false;
    if (!received) return true;
    try {
      if (!handle(peer, *received)) return false;
    } catch (const std::exception& failure) {
      closed_.push_back(failure.what());
      return false;
    }
  }
}

bool Participant::handle(Peer& peer, Letter& received) {
  const Letter::Head& head = received.head;
  if (head.kind == Kind::hello) return greet(peer, received);
  if (peer.board == nullptr) return false;
  switch (head.kind) {
    case Kind::writer:
    case Kind::reader:
      if (received.topic.empty() || received.type.empty()) return false;
      handle_endpoint(peer, head.from,
                      {head.kind == Kind::writer, {head.qos, received.topic, received.type}});
      return true;
    case Kind::gone:
      handle_gone(peer, head.from);
      return true;
    case Kind::match: {
      const auto reader = peer.endpoints.find(head.from);
      if (reader == peer.endpoints.end() || head.number >= Board::kCells) return false;
      const auto writer = writers_.find(head.to);
      if (writer == writers_.end()) return true;
      auto [ring, first] = writer->second->add({.reader = head.from,
                                                .qos = reader->second.info.qos,
                                                .board = peer.board,
                                                .cell = static_cast<std::uint32_t>(head.number)});
      if (!ring) return true;
      Letter start = letter(Kind::start, head.to, head.from, first);
      start.file = std::move(ring);
      peer.link.send(std::move(start));
      return true;
    }
    case Kind::unmatch:
      if (const auto writer = writers_.find(head.to); writer != writers_.end())
        writer->second->remove(head.from);
      return true;
    case Kind::start:
      if (const auto reader = readers_.find(head.to); reader != readers_.end())
        reader->second->start(head.from, received.file, head.number);
      return true;
    case Kind::hello:
      break;
  }
  return false;
}

bool Participant::greet(Peer& peer, Letter& hello) {
  if (peer.board != nullptr) return false;
  peer.board = std::make_shared<Board>(std::move(hello.file));
  peer.identity = hello.head.from;
  if (!peer.has_been_greeted) send_hello(peer);
  report_discovery(peer, PERFLAB_PARTICIPANT_FOUND, peer.identity);
  for (const auto& [identity, writer] : writers_) peer.link.send(announcement(Kind::writer, *writer));
  for (const auto& [identity, reader] : readers_) peer.link.send(announcement(Kind::reader, *reader));
  return true;
}

void Participant::broadcast(Kind kind, const Entity& entity) {
  for (Peer& peer : peers_) {
    if (peer.board != nullptr) peer.link.send(announcement(kind, entity));
  }
}

void Participant::handle_endpoint(Peer& peer, const perflab_identity& identity, RemoteEndpoint endpoint) {
  const auto [at, is_new] = peer.endpoints.emplace(identity, std::move(endpoint));
  if (!is_new) return;
  const auto& [is_writer, info] = at->second;
  report_discovery(peer, is_writer ? PERFLAB_WRITER_FOUND : PERFLAB_READER_FOUND, identity, &info);
  if (is_writer) {
    for (const auto& [own, reader] : readers_) consider(*reader, identity, info);
  } else {
    for (const auto& [own, writer] : writers_) consider(*writer, identity, info);
  }
}

void Participant::handle_gone(Peer& peer, const perflab_identity& identity) {
  const auto found = peer.endpoints.find(identity);
  if (found == peer.endpoints.end()) return;
  const bool is_writer = found->second.is_writer;
  peer.endpoints.erase(found);
  report_discovery(peer, is_writer ? PERFLAB_WRITER_LOST : PERFLAB_READER_LOST, identity);
  if (!is_writer) {
    for (const auto& [own, writer] : writers_) writer->remove(identity);
    return;
  }
  std::erase_if(wanted_, [&](const Wanted& wanted) { return same(wanted.writer, identity); });
  for (const auto& [own, reader] : readers_) reader->writer_gone(identity);
}

void Participant::lose(std::list<Peer>::iterator peer) {
  while (!peer->endpoints.empty()) handle_gone(*peer, perflab_identity(peer->endpoints.begin()->first));
  if (peer->board != nullptr) report_discovery(*peer, PERFLAB_PARTICIPANT_LOST, peer->identity);
  peers_.erase(peer);
}

}  // namespace perflab::middleware::shm
