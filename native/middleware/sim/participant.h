// A participant: who is there, who belongs together, and the way of a message from the socket to the reader.
//
// The reader's side decides about matching. When it knows a compatible writer and reader, it waits for
// match_delay, makes the edge and asks the writer's side to start; the writer's side answers with the number
// of the first message that will come. So a message is sent to a reader exactly from the moment on from which
// the writer counts it as matched. Readers and writers of one participant take the same steps without the
// socket.
//
// Threads: the caller's (create, write, take), "sim.io" (reads sockets, never sends, never blocks), and
// "sim.deliver" (the Scheduler: deliveries, callbacks, everything that is sent but messages). Because sim.io
// never waits for anything, two participants cannot wait for each other.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "middleware/middleware.h"
#include "middleware/sim/clock.h"
#include "middleware/sim/edge.h"
#include "middleware/sim/endpoint.h"
#include "middleware/sim/packet.h"
#include "middleware/sim/program.h"
#include "middleware/sim/scheduler.h"
#include "middleware/sim/wire.h"

namespace perflab::middleware::sim {

// A writer or reader in another participant.
struct RemoteEndpoint {
  bool is_writer;
  Announcement info;
};

// Another participant. Under the mutex.
struct Peer {
  perflab_identity identity;
  std::shared_ptr<Connection> out;  // once it has answered
  int incoming = -1;                // the connection that it made to us
  int slot = -1;
  bool reported = false;
  std::int64_t heard_ns = 0;
  std::map<perflab_identity, RemoteEndpoint, IdentityLess> endpoints;
};

class Participant {
 public:
  Participant(const perflab_host& host, Program program, std::uint32_t domain, bool ignore_local_endpoints);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  const char* describe();

  // For writers and readers.
  const Program& program() const noexcept { return program_; }
  std::mutex& mutex() noexcept { return mutex_; }
  Scheduler& scheduler() noexcept { return scheduler_; }
  PacketPool& pool() noexcept { return pool_; }
  std::int64_t host_now_ns() const noexcept { return host_.now_ns(host_.context); }
  perflab_identity next_identity();
  void enter(Writer& writer);
  void enter(Reader& reader);
  void leave(Writer& writer);
  void leave(Reader& reader);

  // Sends to every participant that is known, on the scheduler's thread.
  void broadcast(const Frame& frame, std::vector<std::uint8_t> payload = {});

  // Under the mutex.
  Peer* find_peer(const perflab_identity& identity);
  std::size_t matched(const Reader& reader) const;
  void set_matched(Edge& edge, std::uint64_t first_sequence, bool alive);
  void set_unmatched(Edge& edge);
  void set_alive(Edge& edge, bool alive);
  // Disturbs a message and schedules what is to arrive of it.
  void offer(Edge& edge, const PacketRef& packet, std::int64_t offered_ns);
  void consume(Edge& edge, std::size_t size);
  // Waits for consume(), until `until_ns`; false when that has passed.
  bool wait_for_consumption(std::unique_lock<std::mutex>& lock, std::int64_t until_ns);
  // Calls the entity's on_event on the scheduler's thread.
  void report(const Writer& writer, perflab_event_kind kind, const perflab_identity& peer, std::int32_t count,
              const char* policy = nullptr);
  void report(const Reader& reader, perflab_event_kind kind, const perflab_identity& peer, std::int32_t count,
              const char* policy = nullptr);

 private:
  // A connection that another participant made to send to us.
  struct Incoming {
    Descriptor socket;
    perflab_identity peer{};
    bool greeted = false;
    Frame frame{};  // the frame that is being read
    std::size_t header_have = 0;
    PacketRef payload;
    std::size_t payload_have = 0;
  };
  struct Outgoing {
    std::shared_ptr<Connection> connection;
    perflab_identity peer{};
    bool answered = false;
  };

  // ---- matching; under the mutex ----
  bool is_ignored(const perflab_identity& endpoint) const;
  void consider(Reader& reader, const perflab_identity& writer, const Announcement& offered, Writer* local,
                Peer* peer);
  void request_match(Edge& edge);
  void report(const void* owner, const perflab_listener& listener, const Announcement& info,
              perflab_event_kind kind, const perflab_identity& peer, std::int32_t count, const char* policy);
  void report_discovery(perflab_event_kind kind, const perflab_identity& peer, const Announcement* info);

  // ---- on the scheduler's thread ----
  void deliver(Delivery& delivery);
  void flush(Edge& edge, std::uint64_t number);
  void send_credit(Edge& edge);
  void announce_everything(const perflab_identity& peer);
  void beat();
  void watch_lease(Edge& edge);

  // ---- on the thread sim.io ----
  void run_io();
  void connect_to(int slot);
  void accept_all();
  void read_answer(int fd);
  // False when the connection has ended or is not understood.
  bool read_frames(Incoming& incoming);
  bool consume_bytes(Incoming& incoming, const std::uint8_t*& at, const std::uint8_t* end);
  bool begin_payload(Incoming& incoming);
  bool handle(Incoming& incoming);
  bool greet(Incoming& incoming);
  void handle_data(const Frame& frame, const PacketRef& packet);
  void handle_endpoint(Peer& peer, const Frame& frame, const RemoteEndpoint& endpoint);
  void handle_gone(Peer& peer, const perflab_identity& endpoint);
  void report_when_complete(Peer& peer);
  void lose(const perflab_identity& peer);
  void watch(int fd);

  const perflab_host host_;
  const Program program_;
  const bool ignore_local_endpoints_;
  const std::uint32_t domain_;
  perflab_identity identity_{};
  std::atomic<std::uint32_t> entities_{0};
  std::string description_;
  PacketPool pool_;  // outlives everything that holds packets

  std::mutex mutex_;
  std::condition_variable consumed_;
  unsigned waiting_ = 0;
  std::vector<Writer*> writers_;
  std::vector<Reader*> readers_;
  std::map<perflab_identity, std::unique_ptr<Peer>, IdentityLess> peers_;
  std::map<int, Outgoing> outgoing_;  // by descriptor
  std::vector<std::unique_ptr<Edge>> edges_;
  std::map<perflab_identity, std::vector<Edge*>, IdentityLess> edges_of_writer_;
  std::map<std::string, std::uint64_t> edges_of_topic_;
  std::int64_t beat_ns_ = INT64_MAX;  // period of heartbeats
  bool closing_ = false;

  Scheduler scheduler_;

  int slot_ = -1;
  Descriptor listener_;
  Descriptor epoll_;
  Descriptor stop_;
  std::map<int, Incoming> incoming_;  // on sim.io only
  std::vector<std::uint8_t> scratch_;
  std::thread io_;
};

}  // namespace perflab::middleware::sim
