// Discovery and matching on one machine, for plug-ins without a library.
//
// The reader's side decides about matching. When it knows a compatible writer and reader it waits for
// match_delay and asks the writer's side to start (`match`); the writer's side adds the reader to its targets
// and answers (`start`). What the two attach to these letters is up to the plug-in. A participant sends
// itself the same letters as others, so that there is a single way of matching.
//
// Threads: those of the plug-in, and "<plug-in>.control", which runs everything in this file, sends and reads
// letters, and calls on_event().
//
// Locks, in locking order: calls(), mutex(), and one of a writer or reader.
//
// Example:
//   class Matching final : public LocalDomain::Plugin { ... };  // what to do when two endpoints match
//   Matching matching;
//   LocalDomain domain("mine", host, {.domain = 5}, matching);
//   domain.enter(writer);  // from now on it is known, and matched
//   domain.leave(writer);  // no callback of it runs, and none will
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "middleware/middleware.h"
#include "middleware/support/letters.h"
#include "middleware/types.h"

namespace perflab::middleware::support {

template <typename Value>
using ByIdentity = std::map<perflab_identity, Value, IdentityLess>;

// A writer or reader as known to peers.
struct Endpoint {
  perflab_qos qos;
  std::string topic;
  std::string type;
  std::string user_data;
};
// Throws Error if the settings are malformed, or request loaned messages, which such plug-ins do not support.
Endpoint checked_endpoint(const char* plugin, const perflab_endpoint_settings& settings);

// A writer or reader of this participant.
struct Entity {
  Entity(bool writes, Endpoint endpoint, const perflab_listener* called, const perflab_identity& identity)
      : is_writer(writes),
        info(std::move(endpoint)),
        listener(called != nullptr ? *called : perflab_listener{}),
        id(identity) {}
  Entity(const Entity&) = delete;
  Entity& operator=(const Entity&) = delete;

  const bool is_writer;
  const Endpoint info;
  const perflab_listener listener;
  const perflab_identity id;
};

// A writer or reader of a peer.
struct RemoteEndpoint {
  bool is_writer;
  Endpoint info;
};

// Another participant, or this one.
struct Peer {
  Descriptor socket;  // not open: this participant itself
  perflab_identity identity{};
  bool has_greeted = false;
  std::shared_ptr<void> shown{};  // the peer's attachment to its greeting, as interpreted by the plug-in
  ByIdentity<RemoteEndpoint> endpoints{};
  std::deque<Letter> out{};  // not yet sent
};

class LocalDomain {
 public:
  // What a plug-in does when participants meet and when two endpoints match. All functions run on the control
  // thread (introduce() also before it starts), under mutex(). An exception ends the connection to that peer,
  // and is recorded. They are not members of writers and readers, because the control thread calls them while
  // another thread may still be constructing or already destroying classes derived from these.
  class Plugin {
   public:
    Plugin() = default;
    Plugin(const Plugin&) = delete;
    Plugin& operator=(const Plugin&) = delete;

    virtual void introduce(Letter& hello) = 0;
    virtual std::shared_ptr<void> greet(Letter& hello) = 0;  // becomes Peer::shown
    // The reader will match this writer of a peer.
    virtual void ask(Entity& reader, const perflab_identity& writer, const perflab_qos& offered,
                     const Peer& peer, Letter& match) = 0;
    // The writer sends to this reader of a peer from now on.
    virtual void add(Entity& writer, const Letter& match, const perflab_qos& requested, const Peer& peer,
                     Letter& start) = 0;
    virtual void start(Entity& reader, const Letter& start) = 0;
    virtual void peer_gone(Entity& entity, const perflab_identity& peer) = 0;
    // Runs what is due for the entity; returns when to call it again, or PERFLAB_DURATION_INFINITE.
    virtual std::int64_t tick(Entity& entity, std::int64_t now_ns) = 0;

   protected:
    ~Plugin() = default;
  };

  struct Settings {
    std::uint32_t domain = 0;
    bool ignore_local_endpoints = false;
    std::int64_t match_delay_ns = 0;
  };

  // `own` is Peer::shown of this participant itself; `plugin` must outlive the domain. Throws Failed.
  LocalDomain(const char* name, const perflab_host& host, const Settings& settings, Plugin& plugin,
              std::shared_ptr<void> own = nullptr);
  ~LocalDomain();
  LocalDomain(const LocalDomain&) = delete;
  LocalDomain& operator=(const LocalDomain&) = delete;

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
              {info.user_data.data(), info.user_data.size()},
              {nullptr, 0},
              {nullptr, 0}});
      }
    }
  }
  // For describe(): domain, seat, lost messages, and reasons of closed connections.
  nlohmann::json described();

  std::int64_t host_now_ns() const noexcept { return host_.now_ns(host_.context); }
  perflab_identity next_identity();
  void enter(Entity& entity);
  // No callback of the entity runs afterwards.
  void leave(Entity& entity);
  // Makes the control thread call tick() for every writer and reader.
  void poke() noexcept;

  // Held while calling the host. Recursive, because a callback may destroy its own entity.
  std::recursive_mutex& calls() noexcept { return calls_; }

  // Calls on_event() of a writer or reader soon. Requires the mutex, which functions of Plugin hold.
  void report(const Entity& entity, perflab_event_kind kind, const perflab_identity& peer, std::int32_t count,
              const char* policy = nullptr);
  void note_closed(const std::string& why) { closed_.push_back(why); }
  void note_lost(std::uint64_t messages) noexcept { lost_ += messages; }

 private:
  struct Event {
    perflab_identity owner;  // all zero: the host
    perflab_listener listener;
    perflab_event event;
    Endpoint info;  // for topic and type
  };
  // A reader and a writer that will match.
  struct Wanted {
    perflab_identity reader;
    perflab_identity writer;
    std::int64_t due_ns;
  };

  // ---- the control thread, without the mutex ----
  void run_control();
  void deliver_events();

  // ---- the control thread, with the mutex ----
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

  // ---- with the mutex ----
  bool is_self(const Peer& peer) const noexcept { return &peer == &peers_.front(); }
  void broadcast(Kind kind, const Entity& entity);
  void consider(Entity& own, const perflab_identity& identity, const RemoteEndpoint& remote);
  Entity* find(const perflab_identity& identity, bool is_writer) const noexcept;
  void post(const perflab_identity& owner, const perflab_listener& listener, const Endpoint& info,
            perflab_event_kind kind, const perflab_identity& peer, std::int32_t count, const char* policy);
  void report_discovery(const Peer& peer, perflab_event_kind kind, const perflab_identity& identity,
                        const Endpoint& info = {});

  const std::string name_;
  const perflab_host host_;
  const Settings settings_;
  Plugin& plugin_;
  const perflab_identity identity_;
  const Descriptor epoll_;
  const Descriptor poke_;
  Descriptor listener_;
  int seat_ = 0;
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint32_t> made_{0};  // number of writers and readers created

  std::recursive_mutex calls_;

  std::mutex mutex_;
  ByIdentity<Entity*> entities_;
  std::list<Peer> peers_;  // the first is this participant itself
  std::vector<Wanted> wanted_;
  std::deque<Event> events_;
  std::vector<std::string> closed_;
  std::uint64_t lost_ = 0;

  std::thread control_;
};

}  // namespace perflab::middleware::support
