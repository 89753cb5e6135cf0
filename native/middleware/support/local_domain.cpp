#include "middleware/support/local_domain.h"

#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <nlohmann/json.hpp>
#include <utility>

#include "base/error.h"
#include "middleware/policies.h"
#include "middleware/support/qos.h"

namespace perflab::middleware::support {
namespace {

constexpr std::size_t kProcessBytes = 8;

// Every identity starts with 8 random bytes for the process and 4 for the participant; the last 4 number its
// entities, 0 is the participant itself.
perflab_identity random_identity() {
  const auto draw = [](std::uint8_t* to, std::size_t size) {
    if (getrandom(to, size, 0) != static_cast<ssize_t>(size))
      throw Failed("no random numbers for an identity");
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

Letter letter(Kind kind, const perflab_identity& from, const perflab_identity& to = {}) {
  return {.head = {.kind = kind, .from = from, .to = to}, .topic = {}, .type = {}, .text = {}, .file = {}};
}

Letter announcement(Kind kind, const Entity& entity) {
  Letter announced = letter(kind, entity.id);
  announced.head.qos = entity.info.qos;
  announced.topic = entity.info.topic;
  announced.type = entity.info.type;
  announced.text = entity.info.user_data;
  return announced;
}

}  // namespace

Endpoint checked_endpoint(const char* plugin, const perflab_endpoint_settings& settings) {
  checked(plugin, settings);
  Endpoint info{settings.qos, settings.topic, settings.type, user_data_of(settings)};
  const std::string name = plugin;
  if (info.topic.size() + info.type.size() + info.user_data.size() > kLongestNames)
    throw BadInput(name + ": topic, type or user data is not terminated or too long; right would be e.g. "
                          "rt/amazon");
  if (settings.loans) {
    throw Unsupported(name + ": topic '" + info.topic +
                      "' shall pass loaned messages, which this middleware does not support; right would be "
                      "unique or shared");
  }
  return info;
}

LocalDomain::LocalDomain(const char* name, const perflab_host& host, const Settings& settings, Plugin& plugin,
                         std::shared_ptr<void> own)
    : name_(name),
      host_(host),
      settings_(settings),
      plugin_(plugin),
      identity_(random_identity()),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      poke_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!epoll_.open() || !poke_.open()) throw Failed(name_ + ": no file descriptor is left");
  peers_.push_back({.socket = {}, .identity = identity_, .has_greeted = true, .shown = std::move(own)});
  Seat seat = take_seat(name_, settings.domain);
  listener_ = std::move(seat.listener);
  seat_ = seat.number;
  watch(listener_.number(), EPOLLIN);
  watch(poke_.number(), EPOLLIN);
  for (Descriptor& other : seat.others) connected(std::move(other));
  control_ = std::thread([this] {
    pthread_setname_np(pthread_self(), (name_ + ".control").c_str());
    run_control();
  });
}

LocalDomain::~LocalDomain() {
  stopping_ = true;
  poke();
  control_.join();
}

nlohmann::json LocalDomain::described() {
  const std::lock_guard lock(mutex_);
  return {{"domain", settings_.domain}, {"seat", seat_}, {"lost", lost_}, {"closed", closed_}};
}

perflab_identity LocalDomain::next_identity() {
  perflab_identity identity = identity_;
  const std::uint32_t number = ++made_;
  std::memcpy(identity.bytes + 12, &number, sizeof number);
  return identity;
}

void LocalDomain::poke() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const ssize_t written = ::write(poke_.number(), &one, sizeof one);
}

// ---- endpoints appear and disappear ----

void LocalDomain::enter(Entity& entity) {
  const std::lock_guard lock(mutex_);
  entities_.emplace(entity.id, &entity);
  broadcast(entity.is_writer ? Kind::writer : Kind::reader, entity);
  for (const Peer& peer : peers_) {
    for (const auto& [identity, remote] : peer.endpoints) consider(entity, identity, remote);
  }
  poke();
}

void LocalDomain::leave(Entity& entity) {
  const std::lock_guard calls(calls_);
  const std::lock_guard lock(mutex_);
  entities_.erase(entity.id);
  broadcast(Kind::gone, entity);
  poke();
}

Entity* LocalDomain::find(const perflab_identity& identity, bool is_writer) const noexcept {
  const auto found = entities_.find(identity);
  return found != entities_.end() && found->second->is_writer == is_writer ? found->second : nullptr;
}

// ---- matching ----

void LocalDomain::consider(Entity& own, const perflab_identity& identity, const RemoteEndpoint& remote) {
  if (settings_.ignore_local_endpoints && of_one_process(identity, identity_)) return;
  const Endpoint& info = remote.info;
  if (own.is_writer == remote.is_writer || own.info.topic != info.topic || own.info.type != info.type) return;
  if (!rule::OneInCommon::fits(own.info.qos.partition, info.qos.partition)) return;  // not an error:
                                                                                     // different partitions
  const char* const policy = own.is_writer ? incompatible_policy(own.info.qos, info.qos)
                                           : incompatible_policy(info.qos, own.info.qos);
  if (policy != nullptr) {
    report(own, PERFLAB_INCOMPATIBLE_QOS, identity, 1, policy);
  } else if (!own.is_writer) {
    wanted_.push_back({own.id, identity, host_now_ns() + settings_.match_delay_ns});
  }
}

void LocalDomain::match(const Wanted& wanted) try {
  Entity* const reader = find(wanted.reader, false);
  for (Peer& peer : peers_) {
    const auto writer = peer.endpoints.find(wanted.writer);
    if (reader == nullptr || writer == peer.endpoints.end()) continue;
    Letter asked = letter(Kind::match, wanted.reader, wanted.writer);
    plugin_.ask(*reader, wanted.writer, writer->second.info.qos, peer, asked);
    peer.out.push_back(std::move(asked));
  }
} catch (const Error& failure) {
  closed_.push_back(failure.what());
}

// ---- events ----

void LocalDomain::post(const perflab_identity& owner, const perflab_listener& listener, const Endpoint& info,
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

void LocalDomain::report(const Entity& entity, perflab_event_kind kind, const perflab_identity& peer,
                         std::int32_t count, const char* policy) {
  post(entity.id, entity.listener, entity.info, kind, peer, count, policy);
}

void LocalDomain::report_discovery(const Peer& peer, perflab_event_kind kind,
                                   const perflab_identity& identity, const Endpoint& info) {
  const perflab_listener listener{.on_data = nullptr, .on_event = host_.on_event, .context = host_.context};
  if (!is_self(peer)) post({}, listener, info, kind, identity, 1, nullptr);
}

void LocalDomain::deliver_events() {
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

// ---- the control thread ----

void LocalDomain::run_control() {
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
    // Rounded up, otherwise the last millisecond would be spent spinning.
    const std::int64_t left_ms = (due_ns - host_now_ns()) / 1'000'000 + 1;
    const int count = epoll_wait(epoll_.number(), ready.data(), static_cast<int>(ready.size()),
                                 static_cast<int>(std::clamp<std::int64_t>(left_ms, 0, 3'600'000)));
    const std::lock_guard lock(mutex_);
    for (int i = 0; i < count; ++i) handle_ready(ready[static_cast<std::size_t>(i)].data.fd);
  }
}

// Runs what is due. Returns the time of the next check.
std::int64_t LocalDomain::tick() {
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
    due_ns = std::min(due_ns, plugin_.tick(*entity, now_ns));
  }
  return due_ns;
}

void LocalDomain::watch(int fd, std::uint32_t events) {
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, fd, &event);
}

void LocalDomain::handle_ready(int fd) {
  if (fd == poke_.number()) {
    std::uint64_t count = 0;
    [[maybe_unused]] const ssize_t size = ::read(fd, &count, sizeof count);
    return;
  }
  if (fd == listener_.number()) {
    for (Descriptor socket; (socket = accept_connection(listener_)).open();) connected(std::move(socket));
    return;
  }
  const auto peer =
      std::ranges::find_if(peers_, [&](const Peer& each) { return each.socket.number() == fd; });
  if (peer != peers_.end() && !receive_letters(*peer)) lose(peer);
}

void LocalDomain::connected(Descriptor socket) try {
  Letter hello = letter(Kind::hello, identity_);
  plugin_.introduce(hello);
  // Also reports when there is room to send again. Edge-triggered, because everything possible is read and
  // sent each time.
  watch(socket.number(), EPOLLIN | EPOLLOUT | EPOLLET);
  peers_.push_back({.socket = std::move(socket)});
  peers_.back().out.push_back(std::move(hello));
} catch (const Error& failure) {
  closed_.push_back(failure.what());
}

bool LocalDomain::read_own_letters() {
  Peer& self = peers_.front();
  const bool any = !self.out.empty();
  for (; !self.out.empty(); self.out.pop_front()) {
    Letter own = std::move(self.out.front());
    handle(self, own);
  }
  return any;
}

void LocalDomain::send_letters() {
  for (auto next = std::next(peers_.begin()); next != peers_.end();) {
    const auto peer = next++;
    Sent sent = Sent::yes;
    while (!peer->out.empty() && (sent = send(peer->socket, peer->out.front())) == Sent::yes)
      peer->out.pop_front();
    if (sent == Sent::gone) lose(peer);
  }
}

// False if the peer has ended, or sends invalid data.
bool LocalDomain::receive_letters(Peer& peer) {
  bool gone = false;
  while (std::optional<Letter> received = receive(peer.socket, gone)) {
    if (!handle(peer, *received)) return false;
  }
  return !gone;
}

bool LocalDomain::handle(Peer& peer, Letter& received) try {
  const Letter::Head& head = received.head;
  if ((head.kind == Kind::hello) != !peer.has_greeted) return false;
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
      Entity* const writer = find(head.to, true);
      if (reader == peer.endpoints.end() || writer == nullptr) return true;  // disappeared meanwhile
      Letter start = letter(Kind::start, head.to, head.from);
      plugin_.add(*writer, received, reader->second.info.qos, peer, start);
      peer.out.push_back(std::move(start));
      return true;
    }
    case Kind::start:
      if (Entity* const reader = find(head.to, false)) plugin_.start(*reader, received);
      return true;
  }
  return false;
} catch (const std::exception& failure) {
  closed_.push_back(failure.what());
  return false;
}

bool LocalDomain::greet(Peer& peer, Letter& hello) {
  peer.shown = plugin_.greet(hello);
  peer.has_greeted = true;
  peer.identity = hello.head.from;
  report_discovery(peer, PERFLAB_PARTICIPANT_FOUND, peer.identity);
  for (const auto& [identity, entity] : entities_)
    peer.out.push_back(announcement(entity->is_writer ? Kind::writer : Kind::reader, *entity));
  return true;
}

void LocalDomain::broadcast(Kind kind, const Entity& entity) {
  for (Peer& peer : peers_) {
    if (peer.has_greeted) peer.out.push_back(announcement(kind, entity));
  }
}

void LocalDomain::handle_endpoint(Peer& peer, const Letter& received) {
  const Letter::Head& head = received.head;
  const bool is_writer = head.kind == Kind::writer;
  const auto [at, is_new] = peer.endpoints.try_emplace(
      head.from, RemoteEndpoint{is_writer, {head.qos, received.topic, received.type, received.text}});
  if (!is_new) return;
  report_discovery(peer, is_writer ? PERFLAB_WRITER_FOUND : PERFLAB_READER_FOUND, head.from, at->second.info);
  for (const auto& [identity, entity] : entities_) consider(*entity, head.from, at->second);
}

void LocalDomain::handle_gone(Peer& peer, const perflab_identity& identity) {
  const auto found = peer.endpoints.find(identity);
  if (found == peer.endpoints.end()) return;
  report_discovery(peer, found->second.is_writer ? PERFLAB_WRITER_LOST : PERFLAB_READER_LOST, identity);
  peer.endpoints.erase(found);
  for (const auto& [id, entity] : entities_) plugin_.peer_gone(*entity, identity);
}

void LocalDomain::lose(std::list<Peer>::iterator peer) {
  while (!peer->endpoints.empty()) handle_gone(*peer, perflab_identity(peer->endpoints.begin()->first));
  if (peer->has_greeted) report_discovery(*peer, PERFLAB_PARTICIPANT_LOST, peer->identity);
  peers_.erase(peer);
}

}  // namespace perflab::middleware::support
