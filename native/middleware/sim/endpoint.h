// Writers and readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "middleware/middleware.h"
#include "middleware/sim/edge.h"
#include "middleware/sim/packet.h"
#include "middleware/sim/ring.h"
#include "middleware/sim/wire.h"

namespace perflab::middleware::sim {

class Participant;
class WaitSet;

// Locks, in the order in which they may be taken together: Writer::send_mutex_, Participant::mutex(),
// Reader::mutex_, WaitSet::mutex_. "Under the mutex" means the participant's.

class Writer {
 public:
  Writer(Participant& participant, Announcement info, const perflab_listener* listener);
  ~Writer();
  Writer(const Writer&) = delete;
  Writer& operator=(const Writer&) = delete;

  const perflab_identity& identity() const noexcept { return identity_; }
  const Announcement& info() const noexcept { return info_; }
  const perflab_listener& listener() const noexcept { return listener_; }
  std::size_t matched() const noexcept;
  perflab_status write(const perflab_bytes* parts, std::size_t part_count, perflab_error* error) noexcept;
  void stamp_next(std::int64_t source_timestamp_ns) noexcept { next_stamp_ns_ = source_timestamp_ns; }

  // From now on messages go to this reader, after the history if it asks for that. On the scheduler's thread.
  void start_local(Edge& edge);
  void start_remote(const perflab_identity& reader, const perflab_identity& peer, bool reliable,
                    bool with_history);

  // Under the mutex.
  void remove_target(const perflab_identity& reader);
  void remove_targets_of(const Peer& peer);
  void consumed_remotely(const perflab_identity& reader, const Flow& flow) noexcept;

 private:
  struct Target {
    perflab_identity reader;
    Edge* local;  // or
    Peer* peer;
    std::shared_ptr<Connection> out;
    bool reliable;
    Flow sent;
    Flow consumed;  // as told by a remote reader

    const Flow& consumption() const noexcept { return local != nullptr ? local->consumed : consumed; }
  };

  bool wait_for_room(std::unique_lock<std::mutex>& lock);
  PacketRef copy(const perflab_bytes* parts, std::size_t part_count, std::size_t size);
  void remember(const PacketRef& packet, std::int64_t now_ns);
  void add_target(Target target, const perflab_identity& peer);
  std::vector<PacketRef> living_history();
  bool send_to_others(const perflab_bytes* parts, std::size_t part_count, Frame frame);
  void assert_liveliness(std::int64_t now_ns);
  void announce_liveliness(bool alive);
  void check_lease();
  void check_deadline();

  Participant& participant_;
  const Announcement info_;
  const perflab_listener listener_;
  const perflab_identity identity_;

  std::int64_t next_stamp_ns_ = 0;  // 0: the wall clock's; of the thread that writes

  // Held while a message gets its number and is sent, and while a reader is started: what is sent to a reader
  // begins exactly at the number that it was told.
  std::mutex send_mutex_;
  std::vector<std::shared_ptr<Connection>> sending_;  // under send_mutex_; kept for its memory

  // Under the mutex.
  std::vector<Target> targets_;
  Ring<PacketRef> history_;
  std::uint64_t next_sequence_ = 1;
  bool alive_ = true;
  std::int64_t asserted_ns_;
  std::int64_t deadline_from_ns_ = 0;  // 0: nothing written yet
};

class Reader {
 public:
  Reader(Participant& participant, Announcement info, const perflab_listener* listener);
  ~Reader();
  Reader(const Reader&) = delete;
  Reader& operator=(const Reader&) = delete;

  const perflab_identity& identity() const noexcept { return identity_; }
  const Announcement& info() const noexcept { return info_; }
  const perflab_listener& listener() const noexcept { return listener_; }
  bool keeps_all() const noexcept { return info_.qos.history == PERFLAB_KEEP_ALL; }
  std::size_t matched() const noexcept;
  perflab_status take(perflab_sample* sample, perflab_error*);
  static void return_sample(perflab_sample* sample) noexcept;

  bool has_data() noexcept;
  // Throws StatusError if there is one already.
  void attach(WaitSet* waitset);
  void detach() noexcept;

  // On the scheduler's thread.
  void deliver(Edge& edge, PacketRef packet, bool copy);

 private:
  struct Entry {
    PacketRef packet;
    Edge* edge = nullptr;
    std::int64_t expires_ns = INT64_MAX;  // the simulator's clock
    std::int64_t reception_ns = 0;        // the host's clock
    bool copy = false;
  };

  void drop_expired(std::int64_t now_ns) noexcept;
  void check_deadline();

  Participant& participant_;
  const Announcement info_;
  const perflab_listener listener_;
  const perflab_identity identity_;

  std::mutex mutex_;
  Ring<Entry> cache_;
  WaitSet* waitset_ = nullptr;

  std::int64_t deadline_from_ns_ = 0;  // on the scheduler's thread only
};

}  // namespace perflab::middleware::sim
