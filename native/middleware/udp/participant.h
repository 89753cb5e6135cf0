// A participant: what happens when a writer and a reader match, and its threads.
//
// support/local_domain.h does discovery and matching. A reader that requests a writer's messages sends the
// address of its socket; the writer sends there from then on, and answers with the number of the first
// message.
//
// Threads: the caller's (create, write, take, wait); "udp.control" of the domain; and "udp.data", which reads
// the sockets of readers with on_data(), and calls it. Otherwise a message passes through neither of these
// two on its way to take(), nor to a thread in a wait-set.
#pragma once

#include <netinet/in.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "middleware/middleware.h"
#include "middleware/support/local_domain.h"
#include "middleware/udp/reader.h"
#include "middleware/udp/socket.h"
#include "middleware/udp/writer.h"

namespace perflab::middleware::udp {

struct ParticipantSettings {
  support::LocalDomain::Settings domain;
  in_addr address;
  Buffers buffers;
};

// What to do when a writer and a reader match.
class Matching final : public support::LocalDomain::Plugin {
 public:
  void introduce(support::Letter&) override {}
  std::shared_ptr<void> greet(support::Letter&) override { return nullptr; }
  void ask(support::Entity& reader, const perflab_identity& writer, const perflab_qos& offered,
           const support::Peer& peer, support::Letter& match) override;
  void add(support::Entity& writer, const support::Letter& match, const perflab_qos& requested,
           const support::Peer& peer, support::Letter& start) override;
  void start(support::Entity& reader, const support::Letter& start) override;
  void peer_gone(support::Entity& entity, const perflab_identity& peer) override;
  std::int64_t tick(support::Entity& entity, std::int64_t now_ns) override;
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
  Descriptor open_receiving() const { return open_socket(settings_.address, {settings_.buffers.receive, 0}); }
  Descriptor open_sending() const { return open_socket(settings_.address, {0, settings_.buffers.send}); }
  // The largest message that fits into a socket buffer of this size; by default that of this participant.
  static std::uint64_t largest_message(std::uint64_t room) noexcept;
  std::uint64_t largest_message() const noexcept { return largest_message(room_); }
  // Why a message of this size is not sent, and what would be right.
  std::string too_large(std::uint64_t size) const;
  perflab_identity next_identity() { return domain_.next_identity(); }
  void enter(Entity& entity);
  void leave(Entity& entity);
  void poke() noexcept { domain_.poke(); }
  void note_unsent() noexcept { unsent_.fetch_add(1, std::memory_order_relaxed); }
  // Requires the mutex of the domain, which Matching's functions hold.
  void report(const Entity& entity, perflab_event_kind kind, const perflab_identity& peer,
              std::int32_t count) {
    domain_.report(entity, kind, peer, count);
  }
  void note_lost(std::uint64_t messages) noexcept { domain_.note_lost(messages); }

 private:
  // Sums over current and former readers.
  struct Counts {
    std::uint64_t dropped = 0;
    std::uint64_t foreign = 0;
    std::uint64_t incomplete = 0;
    void add(const Reader& reader) noexcept;
  };

  void watch(int number, Reader* reader);
  void run_data();
  bool has(const Reader* reader) noexcept;

  const ParticipantSettings settings_;
  const std::uint64_t room_;  // of a socket
  std::string description_;
  std::atomic<std::uint64_t> unsent_{0};

  std::mutex readers_mutex_;  // held briefly, and locked after the domain's calls()
  std::vector<Reader*> readers_;
  Counts of_those_gone_;

  const Descriptor epoll_;  // sockets of readers with on_data()
  const Event stop_;
  Matching matching_;
  support::LocalDomain domain_;
  std::thread data_;
};

}  // namespace perflab::middleware::udp
