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

#include "base/error.h"
#include "middleware/types.h"

namespace perflab::middleware::shm {
namespace {

constexpr std::size_t kProcessBytes = 8;

// Of every identity: 8 random bytes of the process and 4 of the participant; the last 4 number the
// participant's entities, 0 is the participant itself.
perflab_identity random_identity() {
  const auto draw = [](std::uint8_t* to, std::size_t size) {
    if (getrandom(to, size, 0) != static_cast<ssize_t>(size))
      throw Failed("shm: no random numbers for an identity");
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

// Calls the function with the writer or reader. Not a virtual one: the control thread calls it while another
// thread still constructs or already destroys what the plug-in derives from it.
template <typename Function>
auto as_it_is(Entity& entity, Function&& function) {
  return entity.is_writer ? function(static_cast<Writer&>(entity)) : function(static_cast<Reader&>(entity));
}

Letter letter(Kind kind, const perflab_identity& from, const perflab_identity& to = {},
              std::uint64_t number = 0) {
  return {.head = {.kind = kind, .from = from, .to = to, .number = number},
          .topic = {},
          .type = {},
          .user_data = {},
          .file = {}};
}

Letter announcement(Kind kind, const Entity& entity) {
  Letter announced = letter(kind, entity.id);
  announced.head.qos = entity.info.qos;
  announced.topic = entity.info.topic;
  announced.type = entity.info.type;
  announced.user_data = entity.info.user_data;
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
  if (!epoll_.open() || !poke_.open()) throw Failed("shm: no descriptor is left");
  peers_.push_back({.socket = {}, .identity = identity_, .board = board_});
  Seat seat = take_seat(settings.domain);
  listener_ = std::move(seat.listener);
  seat_ = seat.number;
  watch(listener_.number(), EPOLLIN);
  watch(poke_.number(), EPOLLIN);
  for (Descriptor& other : seat.others) connected(std::move(other));
  control_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "shm.control");
    run_control();
  });
  data_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "shm.data");
    while (!stopping_) {
      const auto look = [this] { return stopping_ || call_readers(); };
      if (!look()) board_->bell(data_bell_).wait_until(INT64_MAX, look);
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
  const std::uint32_t number = ++made_;
  std::memcpy(identity.bytes + 12, &number, sizeof number);
  return identity;
}

void Participant::poke() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(poke_.number(), &one, sizeof one);
}

// ---- endpoints come and go ----

void Participant::enter(Entity& entity) {
  if (entity.listener.on_data != nullptr && !entity.is_writer) {
    const std::lock_guard calls(calls_);
    called_.push_back(static_cast<Reader*>(&entity));
  }
  const std::lock_guard lock(mutex_);
  entities_.emplace(entity.id, &entity);
  broadcast(entity.is_writer ? Kind::writer : Kind::reader, entity);
  for (const Peer& peer : peers_) {
    for (const auto& [identity, remote] : peer.endpoints) consider(entity, identity, remote);
  }
  poke();
}

void Participant::leave(Entity& entity) {
  const std::lock_guard calls(calls_);
  std::erase(called_, &entity);
  const std::lock_guard lock(mutex_);
  entities_.erase(entity.id);
  broadcast(Kind::gone, entity);
  poke();
}

Entity* Participant::find(const perflab_identity& identity, bool is_writer) const noexcept {
  const auto found = entities_.find(identity);
  return found != entities_.end() && found->second->is_writer == is_writer ? found->second : nullptr;
}

// ---- matching ----

void Participant::consider(Entity& own, const perflab_identity& identity, const RemoteEndpoint& remote) {
  if (settings_.ignore_local_endpoints && of_one_process(identity, identity_)) return;
  const Endpoint& info = remote.info;
  if (own.is_writer == remote.is_writer || own.info.topic != info.topic || own.info.type != info.type) return;
  const char* const policy = own.is_writer ? incompatible_policy(own.info.qos, info.qos)
                                           : incompatible_policy(info.qos, own.info.qos);
  if (policy != nullptr) {
    report(own, PERFLAB_INCOMPATIBLE_QOS, identity, 1, policy);
  } else if (!own.is_writer) {
    wanted_.push_back({own.id, identity, host_now_ns() + settings_.match_delay_ns});
  }
}

void Participant::match(const Wanted& wanted) try {
  auto* const reader = static_cast<Reader*>(find(wanted.reader, false));
  for (Peer& peer : peers_) {
    const auto writer = peer.endpoints.find(wanted.writer);
    if (reader == nullptr || writer == peer.endpoints.end()) continue;
    const std::uint32_t cell = reader->expect(wanted.writer, writer->second.info.qos, peer.board);
    peer.out.push_back(letter(Kind::match, wanted.reader, wanted.writer, cell));
  }
} catch (const Error& failure) {
  closed_.push_back(failure.what());
}

// ---- events ----

void Participant::post(const perflab_identity& owner, const perflab_listener& listener, const Endpoint& info,
                       perflab_event_kind kind, const perflab_identity& peer, std::int32_t count,
                       const char* policy) {
  if (listener.on_event == nullptr) return;
  perflab_event event{};
  event.kind = kind;
  event.at_ns = host_now_ns();
  event.peer = peer;
  event.policy = policy;
  event.count = count;
  events_.push_back({owner, listener, event, info});
}

void Participant::report(const Entity& entity, perflab_event_kind kind, const perflab_identity& peer,
                         std::int32_t count, const char* policy) {
  post(entity.id, entity.listener, entity.info, kind, peer, count, policy);
}

void Participant::report_discovery(const Peer& peer, perflab_event_kind kind,
                                   const perflab_identity& identity, const Endpoint& info) {
  const perflab_listener listener{.on_data = nullptr, .on_event = host_.on_event, .context = host_.context};
  if (!is_self(peer)) post({}, listener, info, kind, identity, 1, nullptr);
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
      if (!same(event.owner, {}) && !entities_.contains(event.owner)) continue;
    }
    if (!event.info.topic.empty()) event.event.topic = event.info.topic.c_str();
    if (!event.info.type.empty()) event.event.type = event.info.type.c_str();
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
    const int count = epoll_wait(epoll_.number(), ready.data(), static_cast<int>(ready.size()),
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
  for (const auto& [identity, entity] : entities_) {
    due_ns = std::min(due_ns, as_it_is(*entity, [&](auto& own) { return own.tick(now_ns); }));
  }
  return due_ns;
}

void Participant::watch(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, fd, &event);
}

void Participant::handle_ready(int fd) {
  if (fd == poke_.number()) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(fd, &count, sizeof count);
    return;
  }
  if (fd == listener_.number()) {
    for (Descriptor socket; (socket = accept_connection(listener_)).open();) connected(std::move(socket));
    return;
  }
  const auto peer = std::ranges::find_if(peers_, [&](const Peer& each) { return each.socket.number() == fd; });
  if (peer != peers_.end() && !receive_letters(*peer)) lose(peer);
}

void Participant::connected(Descriptor socket) try {
  Letter hello = letter(Kind::hello, identity_);
  hello.file = duplicate(board_->file());
  // Also when there is room to send again. Once for each change, for all is read and sent that can be.
  watch(socket.number(), EPOLLIN | EPOLLOUT | EPOLLET);
  peers_.push_back({.socket = std::move(socket)});
  peers_.back().out.push_back(std::move(hello));
} catch (const Error& failure) {
  closed_.push_back(failure.what());
}

bool Participant::read_own_letters() {
  Peer& self = peers_.front();
  const bool any = !self.out.empty();
  for (; !self.out.empty(); self.out.pop_front()) {
    Letter own = std::move(self.out.front());
    handle(self, own);
  }
  return any;
}

void Participant::send_letters() {
  for (auto next = std::next(peers_.begin()); next != peers_.end();) {
    const auto peer = next++;
    Sent sent = Sent::yes;
    while (!peer->out.empty() && (sent = send(peer->socket, peer->out.front())) == Sent::yes)
      peer->out.pop_front();
    if (sent == Sent::gone) lose(peer);
  }
}

// False where the peer has ended, or is not understood.
bool Participant::receive_letters(Peer& peer) {
  bool gone = false;
  while (std::optional<Letter> received = receive(peer.socket, gone)) {
    if (!handle(peer, *received)) return false;
  }
  return !gone;
}

bool Participant::handle(Peer& peer, Letter& received) try {
  const Letter::Head& head = received.head;
  if ((head.kind == Kind::hello) != (peer.board == nullptr)) return false;
  switch (head.kind) {
    case Kind::hello:
      return greet(peer, received);
    case Kind::writer:
    case Kind::reader:
      handle_endpoint(peer, received);
      return true;
    case Kind::gone:
      handle_gone(peer, head.from);
      return true;
    case Kind::match: {
      const auto reader = peer.endpoints.find(head.from);
      auto* const writer = static_cast<Writer*>(find(head.to, true));
      if (reader == peer.endpoints.end() || writer == nullptr) return true;  // gone meanwhile
      auto [ring, first] = writer->add({.reader = head.from,
                                        .qos = reader->second.info.qos,
                                        .board = peer.board,
                                        .cell = static_cast<std::uint32_t>(head.number)});
      Letter start = letter(Kind::start, head.to, head.from, first);
      start.file = std::move(ring);
      peer.out.push_back(std::move(start));
      return true;
    }
    case Kind::start:
      if (auto* const reader = static_cast<Reader*>(find(head.to, false)))
        reader->start(head.from, received.file, head.number);
      return true;
  }
  return false;
} catch (const std::exception& failure) {
  closed_.push_back(failure.what());
  return false;
}

bool Participant::greet(Peer& peer, Letter& hello) {
  peer.board = std::make_shared<Board>(std::move(hello.file));
  peer.identity = hello.head.from;
  report_discovery(peer, PERFLAB_PARTICIPANT_FOUND, peer.identity);
  for (const auto& [identity, entity] : entities_)
    peer.out.push_back(announcement(entity->is_writer ? Kind::writer : Kind::reader, *entity));
  return true;
}

void Participant::broadcast(Kind kind, const Entity& entity) {
  for (Peer& peer : peers_) {
    if (peer.board != nullptr) peer.out.push_back(announcement(kind, entity));
  }
}

void Participant::handle_endpoint(Peer& peer, const Letter& received) {
  const Letter::Head& head = received.head;
  const bool is_writer = head.kind == Kind::writer;
  const auto [at, is_new] = peer.endpoints.try_emplace(
      head.from, RemoteEndpoint{is_writer, {head.qos, received.topic, received.type, received.user_data}});
  if (!is_new) return;
  report_discovery(peer, is_writer ? PERFLAB_WRITER_FOUND : PERFLAB_READER_FOUND, head.from, at->second.info);
  for (const auto& [identity, entity] : entities_) consider(*entity, head.from, at->second);
}

void Participant::handle_gone(Peer& peer, const perflab_identity& identity) {
  const auto found = peer.endpoints.find(identity);
  if (found == peer.endpoints.end()) return;
  report_discovery(peer, found->second.is_writer ? PERFLAB_WRITER_LOST : PERFLAB_READER_LOST, identity);
  peer.endpoints.erase(found);
  for (const auto& [id, entity] : entities_) as_it_is(*entity, [&](auto& own) { own.peer_gone(identity); });
}

void Participant::lose(std::list<Peer>::iterator peer) {
  while (!peer->endpoints.empty()) handle_gone(*peer, perflab_identity(peer->endpoints.begin()->first));
  if (peer->board != nullptr) report_discovery(*peer, PERFLAB_PARTICIPANT_LOST, peer->identity);
  peers_.erase(peer);
}

}  // namespace perflab::middleware::shm
