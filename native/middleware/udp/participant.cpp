#include "middleware/udp/participant.h"

#include <pthread.h>
#include <sys/epoll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "middleware/types.h"

namespace perflab::middleware::udp {
namespace {

// A reader's address, in the text of its letter; its key is the letter's number.
struct Where {
  in_addr address;
  in_port_t port;
  std::uint64_t largest;
};

}  // namespace

// ---- matching ----

void Matching::ask(support::Entity& entity, const perflab_identity& writer, const perflab_qos&,
                   const support::Peer&, support::Letter& match) {
  auto& reader = static_cast<Reader&>(entity);
  reader.expect(writer);
  const sockaddr_in name = name_of(reader.socket());
  Where where;
  std::memset(&where, 0, sizeof where);
  where.address = name.sin_addr;
  where.port = name.sin_port;
  where.largest = reader.largest_message();
  match.head.number = reader.key();
  match.text.assign(reinterpret_cast<const char*>(&where), sizeof where);
}

void Matching::add(support::Entity& writer, const support::Letter& match, const perflab_qos&,
                   const support::Peer&, support::Letter& start) {
  Where where;
  if (match.text.size() != sizeof where) throw Failed("udp: a reader did not send its address");
  std::memcpy(&where, match.text.data(), sizeof where);
  Target target{.reader = match.head.from, .address = {}, .largest = where.largest};
  target.address.sin_family = AF_INET;
  target.address.sin_addr = where.address;
  target.address.sin_port = where.port;
  target.head.key = match.head.number;
  start.head.number = static_cast<Writer&>(writer).add(target);
}

void Matching::start(support::Entity& reader, const support::Letter& start) {
  static_cast<Reader&>(reader).start(start.head.from, static_cast<std::int64_t>(start.head.number));
}

void Matching::peer_gone(support::Entity& entity, const perflab_identity& peer) {
  if (entity.is_writer) {
    static_cast<Writer&>(entity).peer_gone(peer);
  } else {
    static_cast<Reader&>(entity).peer_gone(peer);
  }
}

std::int64_t Matching::tick(support::Entity& entity, std::int64_t) {
  if (!entity.is_writer) static_cast<Reader&>(entity).tick();
  return PERFLAB_DURATION_INFINITE;
}

// ---- the participant ----

Participant::Participant(const perflab_host& host, const ParticipantSettings& settings)
    : settings_(settings),
      room_(receive_room(open_receiving())),
      epoll_(epoll_create1(EPOLL_CLOEXEC)),
      domain_("udp", host, settings.domain, matching_) {
  if (!epoll_.open()) fail("no file descriptor is left");
  watch(stop_.number(), nullptr);
  data_ = std::thread([this] {
    pthread_setname_np(pthread_self(), "udp.data");
    run_data();
  });
}

Participant::~Participant() {
  stop_.notify();
  data_.join();
}

const char* Participant::describe() {
  nlohmann::json json = domain_.described();
  Counts counts;
  {
    const std::lock_guard lock(readers_mutex_);
    counts = of_those_gone_;
    for (const Reader* const reader : readers_) counts.add(*reader);
  }
  json.update({{"library", "perflab udp"},
               {"transport", "udp"},
               {"shared_memory", false},
               {"socket_receive_buffer", {{"requested", settings_.buffers.receive}, {"granted", room_ / 2}}},
               {"largest_message", largest_message()},
               // Datagrams that met a full socket, were invalid, or were refused by the kernel; messages with
               // missing pieces.
               {"dropped_by_sockets", counts.dropped},
               {"foreign", counts.foreign},
               {"unsent", unsent_.load()},
               {"incomplete", counts.incomplete}});
  description_ = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return description_.c_str();
}

void Participant::Counts::add(const Reader& reader) noexcept {
  dropped += udp::dropped(reader.socket());
  foreign += reader.foreign();
  incomplete += reader.incomplete();
}

// The inverse of room_for(); a message's size has 32 bits on the wire.
std::uint64_t Participant::largest_message(std::uint64_t room) noexcept {
  const std::uint64_t beside = room_for(0);
  return std::min<std::uint64_t>(room > beside ? (room - beside) / 17 * 16 : 0, UINT32_MAX);
}

std::string Participant::too_large(std::uint64_t size) const {
  const std::uint64_t needed = room_for(size) / 2 + 1;
  const bool asked = needed <= settings_.buffers.receive;
  return "a message of " + std::to_string(size) + " bytes does not fit into a socket's buffer of " +
         std::to_string(room_) + " as the kernel counts; right would be at most " +
         std::to_string(largest_message()) + " bytes, or " +
         (asked ? "`sysctl -w net.core.rmem_max=" + std::to_string(needed) + "`"
                : "socket_receive_buffer=" + std::to_string(needed) + " and net.core.rmem_max of as much");
}

void Participant::enter(Entity& entity) {
  if (!entity.is_writer) {
    auto& reader = static_cast<Reader&>(entity);
    const std::lock_guard lock(readers_mutex_);
    if (reader.is_called()) watch(reader.socket().number(), &reader);
    readers_.push_back(&reader);
  }
  domain_.enter(entity);
}

void Participant::leave(Entity& entity) {
  const std::lock_guard calls(domain_.calls());
  if (!entity.is_writer) {
    auto& reader = static_cast<Reader&>(entity);
    const std::lock_guard lock(readers_mutex_);
    of_those_gone_.add(reader);
    std::erase(readers_, &reader);
    if (reader.is_called()) epoll_ctl(epoll_.number(), EPOLL_CTL_DEL, reader.socket().number(), nullptr);
  }
  domain_.leave(entity);
}

bool Participant::has(const Reader* reader) noexcept {
  const std::lock_guard lock(readers_mutex_);
  return std::ranges::find(readers_, reader) != readers_.end();
}

// ---- the thread that calls on_data() ----

// Reports whenever a datagram has come, whether or not earlier ones have been read.
void Participant::watch(int number, Reader* reader) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLET;
  event.data.ptr = reader;
  if (epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, number, &event) != 0) fail("cannot watch a socket");
}

void Participant::run_data() {
  std::array<epoll_event, 32> ready;
  for (;;) {
    const int count = epoll_wait(epoll_.number(), ready.data(), static_cast<int>(ready.size()), -1);
    const std::lock_guard calls(domain_.calls());
    for (int i = 0; i < count; ++i) {
      auto* const reader = static_cast<Reader*>(ready[static_cast<std::size_t>(i)].data.ptr);
      if (reader == nullptr) return;
      // The reader may be gone meanwhile, possibly in another one's callback.
      for (bool has_more = true; has_more && has(reader);) {
        has_more = reader->receive();
        reader->listener.on_data(reader->listener.context);
      }
    }
  }
}

}  // namespace perflab::middleware::udp
