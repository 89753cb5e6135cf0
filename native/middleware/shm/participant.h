// A participant: who is there, who belongs together, and its two threads.
//
// The reader's side decides about matching. When it knows a compatible writer and reader it waits for
// match_delay, and asks the writer's side to start (`match`); that one adds the reader to those it writes for
// and answers with its ring
// (`start`). A participant talks to itself in the same letters as to others, so that there is one way of
// matching.
//
// Threads: the caller's (create, write, take, wait); "shm.control", which does all that is in this file,
// sends and reads letters, watches deadlines and leases, and calls on_event(); and "shm.data", which calls
// on_data(), where readers have it. A message passes neither of the two on its way to take(), nor to a thread
// in a wait-set.
//
// Locks, in the order in which they may be held together: calls_, mutex_, and one of a writer or reader.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "middleware/middleware.h"
#include "middleware/shm/board.h"
#include "middleware/shm/reader.h"
#include "middleware/shm/wire.h"
#include "middleware/shm/writer.h"
#include "middleware/support/options.h"
#include "middleware/types.h"

namespace perflab::middleware::shm {

template <typename Value>
using ByIdentity = std::map<perflab_identity, Value, IdentityLess>;

struct ParticipantSettings : support::LocalSettings {
  std::int64_t match_delay_ns;
};

// A writer or reader of a peer.
struct RemoteEndpoint {
  bool is_writer;
  Endpoint info;
};

// Another participant, or this one. Under the mutex.
struct Peer {
  Descriptor socket;  // none: this participant itself
  perflab_identity identity{};
  std::shared_ptr<Board> board{};  // once it has said hello
  ByIdentity<RemoteEndpoint> endpoints{};
  std::deque<Letter> out{};  // not yet sent
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
    const std::lock_guard lock(mutex_);
    for (const Peer& peer : peers_) {
      if (is_self(peer)) continue;
      for (const auto& [identity, remote] : peer.endpoints) {
        const Endpoint& info = remote.info;
        each({identity,
              remote.is_writer,
              info.topic.c_str(),
              info.type.c_str(),
              {info.user_data.data(), info.user_data.size()}});
      }
    }
  }

  // For writers and readers.
  const ParticipantSettings& settings() const noexcept { return settings_; }
  Board& board() const noexcept { return *board_; }
  std::uint32_t data_bell() const noexcept { return data_bell_; }
  std::int64_t host_now_ns() const noexcept { return host_.now_ns(host_.context); }
  perflab_identity next_identity();
  void enter(Entity& entity);
  // Afterwards no callback of it runs, and none will.
  void leave(Entity& entity);
  // Has the control thread look at every writer and reader (tick()).
  void poke() noexcept;

  // Under the mutex, which tick() has.
  // Calls on_event() of a writer or reader, soon.
  void report(const Entity& entity, perflab_event_kind kind, const perflab_identity& peer, std::int32_t count,
              const char* policy = nullptr);
  // For describe().
  void note_closed(const std::string& why) { closed_.push_back(why); }
  void note_lost(std::uint64_t messages) noexcept { lost_ += messages; }

 private:
  struct Event {
    perflab_identity owner;  // all zero: the host
    perflab_listener listener;
    perflab_event event;
    Endpoint info;  // for its topic and type
  };
  // A reader and a writer that will match.
  struct Wanted {
    perflab_identity reader;
    perflab_identity writer;
    std::int64_t due_ns;
  };

  // ---- the control thread; without the mutex ----
  void run_control();
  void deliver_events();

  // ---- the control thread; under the mutex ----
  std::int64_t tick();
  void match(const Wanted& wanted);
  void watch(int fd, std::uint32_t events);
  void handle_ready(int fd);
  void connected(Descriptor socket);
  bool read_own_letters();
  void send_letters();
  bool receive_letters(Peer& peer);
  bool handle(Peer& peer, Letter& received);
  bool greet(Peer& peer, Letter& hello);
  void handle_endpoint(Peer& peer, const Letter& received);
  void handle_gone(Peer& peer, const perflab_identity& identity);
  void lose(std::list<Peer>::iterator peer);

  // ---- under the mutex ----
  bool is_self(const Peer& peer) const noexcept { return &peer == &peers_.front(); }
  void broadcast(Kind kind, const Entity& entity);
  void consider(Entity& own, const perflab_identity& identity, const RemoteEndpoint& remote);
  Entity* find(const perflab_identity& identity, bool is_writer) const noexcept;
  void post(const perflab_identity& owner, const perflab_listener& listener, const Endpoint& info,
            perflab_event_kind kind, const perflab_identity& peer, std::int32_t count, const char* policy);
  void report_discovery(const Peer& peer, perflab_event_kind kind, const perflab_identity& identity,
                        const Endpoint& info = {});

  // The thread that calls on_data(). False where there was nothing new for any reader.
  bool call_readers();

  const perflab_host host_;
  const ParticipantSettings settings_;
  const perflab_identity identity_;
  const std::shared_ptr<Board> board_;
  const std::uint32_t data_bell_;
  const Descriptor epoll_;
  const Descriptor poke_;
  Descriptor listener_;
  int seat_ = 0;
  std::string description_;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> made_{0};  // writers and readers

  // Held while anything of the host is called. Recursive, for a callback may destroy what it belongs to.
  std::recursive_mutex calls_;
  std::vector<Reader*> called_;  // those with on_data(); under calls_

  std::mutex mutex_;
  ByIdentity<Entity*> entities_;
  std::list<Peer> peers_;  // the first is this participant itself
  std::vector<Wanted> wanted_;
  std::deque<Event> events_;
  std::vector<std::string> closed_;
  std::uint64_t lost_ = 0;

  std::thread control_;
  std::thread data_;
};

}  // namespace perflab::middleware::shm
