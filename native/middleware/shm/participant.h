// A participant: what it shares with peers, what happens when a writer and a reader match, and its threads.
//
// support/local_domain.h does discovery and matching. Participants exchange their boards when they meet; a
// reader that requests a writer's messages sends the cell that they share, and the writer answers with its
// ring.
//
// Threads: the caller's (create, write, take, wait); "shm.control" of the domain, which also monitors
// deadlines and leases; and "shm.data", which calls on_data() if readers have it. A message passes through
// neither of these two on its way to take(), nor to a thread in a wait-set.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "middleware/middleware.h"
#include "middleware/shm/board.h"
#include "middleware/shm/reader.h"
#include "middleware/shm/writer.h"
#include "middleware/support/local_domain.h"
#include "middleware/support/options.h"

namespace perflab::middleware::shm {

struct ParticipantSettings : support::LocalSettings {
  std::int64_t match_delay_ns;
};

// What to do when participants meet, and when a writer and a reader match.
class Matching final : public support::LocalDomain::Plugin {
 public:
  explicit Matching(std::shared_ptr<Board> own) : own_(std::move(own)) {}

  void introduce(support::Letter& hello) override;
  std::shared_ptr<void> greet(support::Letter& hello) override;
  void ask(support::Entity& reader, const perflab_identity& writer, const perflab_qos& offered,
           const support::Peer& peer, support::Letter& match) override;
  void add(support::Entity& writer, const support::Letter& match, const perflab_qos& requested,
           const support::Peer& peer, support::Letter& start) override;
  void start(support::Entity& reader, const support::Letter& start) override;
  void peer_gone(support::Entity& entity, const perflab_identity& peer) override;
  std::int64_t tick(support::Entity& entity, std::int64_t now_ns) override;

 private:
  const std::shared_ptr<Board> own_;
};

class Participant {
 public:
  Participant(const perflab_host& host, const ParticipantSettings& settings);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  const char* describe();
  template <typename Each>
  void remote_endpoints(Each&& each) {
    domain_.remote_endpoints(each);
  }

  // Used by writers and readers.
  const ParticipantSettings& settings() const noexcept { return settings_; }
  Board& board() const noexcept { return *board_; }
  std::uint32_t data_bell() const noexcept { return data_bell_; }
  std::int64_t host_now_ns() const noexcept { return domain_.host_now_ns(); }
  perflab_identity next_identity() { return domain_.next_identity(); }
  void enter(Entity& entity);
  void leave(Entity& entity);
  void poke() noexcept { domain_.poke(); }
  // Requires the mutex of the domain, which Matching's functions hold.
  void report(const Entity& entity, perflab_event_kind kind, const perflab_identity& peer,
              std::int32_t count) {
    domain_.report(entity, kind, peer, count);
  }
  void note_closed(const std::string& why) { domain_.note_closed(why); }
  void note_lost(std::uint64_t messages) noexcept { domain_.note_lost(messages); }

 private:
  // Body of the thread that calls on_data(). False if there was nothing new for any reader.
  bool call_readers();

  const ParticipantSettings settings_;
  const std::shared_ptr<Board> board_;
  const std::uint32_t data_bell_;
  std::string description_;
  std::atomic<bool> stopping_{false};
  std::vector<Reader*> called_;  // readers with on_data(); guarded by the domain's calls()
  Matching matching_;
  support::LocalDomain domain_;
  std::thread data_;
};

}  // namespace perflab::middleware::shm
