#include "middleware/shm/participant.h"

#include <pthread.h>

#include <cstdint>
#include <mutex>
#include <nlohmann/json.hpp>
#include <utility>

namespace perflab::middleware::shm {
namespace {

std::shared_ptr<Board> board_of(const support::Peer& peer) {
  return std::static_pointer_cast<Board>(peer.shown);
}

// Calls the function with the writer or reader.
template <typename Function>
auto as_it_is(support::Entity& entity, Function&& function) {
  return entity.is_writer ? function(static_cast<Writer&>(entity)) : function(static_cast<Reader&>(entity));
}

}  // namespace

// ---- matching ----

void Matching::introduce(support::Letter& hello) { hello.file = duplicate(own_->file()); }

std::shared_ptr<void> Matching::greet(support::Letter& hello) {
  return std::make_shared<Board>(std::move(hello.file));
}

void Matching::ask(support::Entity& reader, const perflab_identity& writer, const perflab_qos& offered,
                   const support::Peer& peer, support::Letter& match) {
  match.head.number = static_cast<Reader&>(reader).expect(writer, offered, board_of(peer));
}

void Matching::add(support::Entity& writer, const support::Letter& match, const perflab_qos& requested,
                   const support::Peer& peer, support::Letter& start) {
  auto [ring, first] =
      static_cast<Writer&>(writer).add({.reader = match.head.from,
                                        .qos = requested,
                                        .board = board_of(peer),
                                        .cell = static_cast<std::uint32_t>(match.head.number)});
  start.file = std::move(ring);
  start.head.number = first;
}

void Matching::start(support::Entity& reader, const support::Letter& start) {
  static_cast<Reader&>(reader).start(start.head.from, start.file, start.head.number);
}

void Matching::peer_gone(support::Entity& entity, const perflab_identity& peer) {
  as_it_is(entity, [&](auto& own) { own.peer_gone(peer); });
}

std::int64_t Matching::tick(support::Entity& entity, std::int64_t now_ns) {
  return as_it_is(entity, [&](auto& own) { return own.tick(now_ns); });
}

// ---- the participant ----

Participant::Participant(const perflab_host& host, const ParticipantSettings& settings)
    : settings_(settings),
      board_(Board::of_this_process()),
      data_bell_(board_->take_bell()),
      matching_(board_),
      domain_("shm", host, {settings.domain, settings.ignore_local_endpoints, settings.match_delay_ns},
              matching_, board_) {
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
  board_->ring(data_bell_);
  data_.join();
  board_->return_bell(data_bell_);
}

const char* Participant::describe() {
  nlohmann::json json = domain_.described();
  json.update({{"library", "perflab shm"},
               {"transport", "shared_memory"},
               {"shared_memory", true},
               {"options",
                {{"match_delay_ns", settings_.match_delay_ns},
                 {"max_blocking_time_ns", settings_.max_blocking_time_ns}}}});
  description_ = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return description_.c_str();
}

void Participant::enter(Entity& entity) {
  if (entity.listener.on_data != nullptr && !entity.is_writer) {
    const std::lock_guard calls(domain_.calls());
    called_.push_back(static_cast<Reader*>(&entity));
  }
  domain_.enter(entity);
}

void Participant::leave(Entity& entity) {
  const std::lock_guard calls(domain_.calls());
  std::erase(called_, &entity);
  domain_.leave(entity);
}

bool Participant::call_readers() {
  const std::lock_guard calls(domain_.calls());
  bool any = false;
  for (std::size_t i = 0; i < called_.size(); ++i) {
    if (!called_[i]->has_news()) continue;
    any = true;
    const perflab_listener& listener = called_[i]->listener;
    listener.on_data(listener.context);
  }
  return any;
}

}  // namespace perflab::middleware::shm
