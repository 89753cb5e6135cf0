// Writers and readers.
//
// A message passes entirely in the writing thread: into the queue of each reader, and then each reader is
// called. To destroy a reader, it is first removed from the lists of all writers; then the destroying thread
// waits until all users of an older list have finished. So writing needs no lock for its list.
//
// Locks, in locking order: Bus's, Writer::history_mutex_, Reader::mutex_. Callbacks run without any of them.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/gate.h"
#include "base/queue.h"
#include "middleware/direct/bus.h"
#include "middleware/direct/packet.h"
#include "middleware/middleware.h"
#include "middleware/support/waitset.h"

namespace perflab::middleware::direct {

// Common part of writers and readers.
class Endpoint {
 public:
  Endpoint(Participant& participant, const perflab_endpoint_settings& settings,
           const perflab_listener* listener);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  [[nodiscard]] Participant& participant() const noexcept { return participant_; }
  [[nodiscard]] const perflab_identity& identity() const noexcept { return identity_; }
  [[nodiscard]] const std::string& topic() const noexcept { return topic_; }
  [[nodiscard]] const std::string& type() const noexcept { return type_; }
  [[nodiscard]] const perflab_qos& qos() const noexcept { return qos_; }

  void report(perflab_event_kind kind, const perflab_identity& peer, std::int32_t count,
              const char* policy = nullptr);

 protected:
  ~Endpoint() = default;
  void run_callbacks(Gate::Marks marks) noexcept;

  Participant& participant_;
  const std::string topic_;
  const std::string type_;
  const perflab_qos qos_;
  const std::size_t fixed_size_;
  const perflab_listener listener_;
  const perflab_identity identity_;
  // The callbacks of one entity never overlap; these marks record what arrives meanwhile.
  static constexpr Gate::Marks kData = 1;
  static constexpr Gate::Marks kEvents = 2;
  Gate gate_;

 private:
  std::mutex events_mutex_;
  std::vector<perflab_event> events_;  // not reported yet
};

class Reader : public Endpoint, public support::Attachment {
 public:
  Reader(Participant& participant, const perflab_endpoint_settings& settings,
         const perflab_listener* listener);
  ~Reader();

  [[nodiscard]] std::size_t matched() const noexcept { return writers_.load(std::memory_order_acquire); }
  [[nodiscard]] std::int64_t lifespan(const perflab_identity& writer) const;
  perflab_status take(perflab_sample* sample, perflab_error*) noexcept;
  static void return_sample(perflab_sample* sample) noexcept;

  // ---- for writers ----
  [[nodiscard]] bool keeps_all() const noexcept { return qos_.history == PERFLAB_KEEP_ALL; }
  [[nodiscard]] bool wants_call() const noexcept { return listener_.on_data != nullptr; }
  // Waits for room if a reliable reader has keep_all; false if there was none in time.
  bool wait_for_room(std::int64_t until_ns) noexcept;
  // Takes over one reference, unless it returns false (no room) or throws std::bad_alloc.
  bool push(Packet* packet);
  // Notifies the reader that there may be data.
  void call() noexcept {
    if (wants_call()) gate_.pass(kData, [this](Gate::Marks marks) { run_callbacks(marks); });
  }

  void gain_writer() noexcept { writers_.fetch_add(1, std::memory_order_release); }
  void lose_writer() noexcept { writers_.fetch_sub(1, std::memory_order_release); }
  // Releases and prevents waits for room.
  void close() noexcept;

  // Used by the wait-set.
  [[nodiscard]] bool has_data() const noexcept { return available_.load(std::memory_order_acquire) > 0; }

 private:
  [[nodiscard]] bool full() const noexcept;
  Packet* pop() noexcept;

  const bool relates_;  // its samples have `sequence` and `related`
  std::atomic<std::size_t> writers_{0};

  // Guarded by mutex_.
  GrowingQueue<Packet*> queue_;
  std::size_t bytes_ = 0;  // in the queue, for keep_all
  std::condition_variable room_;
  std::size_t waiting_writers_ = 0;
  bool closed_ = false;

  std::atomic<std::size_t> available_{0};  // in the queue; readable without the mutex
};

class Writer : public Endpoint {
 public:
  Writer(Participant& participant, const perflab_endpoint_settings& settings,
         const perflab_listener* listener);
  ~Writer();

  [[nodiscard]] std::size_t matched() const noexcept { return matched_.load(std::memory_order_acquire); }
  perflab_status write(const perflab_bytes* parts, std::size_t part_count,
                       const perflab_sample_identity* related, std::int64_t* sequence,
                       perflab_error* error) noexcept;
  perflab_status loan(void** message, perflab_error* error) noexcept;
  perflab_status write_loaned(void* message, perflab_error* error) noexcept;
  void discard_loan(void* message) noexcept;
  void stamp_next(std::int64_t source_timestamp_ns) noexcept { next_stamp_ns_ = source_timestamp_ns; }

  // ---- for the bus ----
  [[nodiscard]] const std::vector<Reader*>& targets() const noexcept { return current_->readers; }
  // From now on messages go to this reader, after the history if it requests it.
  void add(Reader& reader);
  // False if the reader was not there.
  bool remove(Reader& reader);
  // Returns when no message is in flight to readers removed before. Must not be called in a callback.
  void wait_until_left() const noexcept;

 private:
  // Immutable: changes create a new one.
  struct Targets {
    std::vector<Reader*> readers;
    std::vector<Reader*> called;   // those with on_data()
    std::vector<Reader*> bounded;  // those with keep_all
  };

  [[nodiscard]] bool keeps_history() const noexcept { return qos_.durability == PERFLAB_TRANSIENT_LOCAL; }
  perflab_status send(Packet* packet, const perflab_sample_identity* related, std::int64_t* sequence,
                      std::int64_t stamp_ns, perflab_error* error) noexcept;
  void distribute(Packet* packet, const Targets& targets);
  void wait_for_room(const Targets& targets) const;
  void push_all(Packet* packet, const std::vector<Reader*>& readers, std::uint32_t kept);
  void publish(std::unique_ptr<const Targets> targets);
  void reserve(const std::vector<Reader*>& readers);
  Packet* end_loan(const void* message) noexcept;

  Pool& pool_;
  const bool lends_;

  // Used by the writing thread.
  std::int64_t next_stamp_ns_ = 0;  // 0: the wall clock's
  std::int64_t sequence_ = 0;
  unsigned depth_ = 0;  // nesting depth: a callback may write again
  std::vector<Packet*> loans_;

  std::atomic<const Targets*> targets_;
  std::atomic<std::uint64_t> passes_{0};  // odd while a message is in flight
  std::atomic<std::size_t> matched_{0};

  // Used by the thread that creates and destroys endpoints.
  std::unique_ptr<const Targets> current_;
  std::vector<std::unique_ptr<const Targets>> retired_;  // may still be in use

  // Only with transient_local. Held while a message is numbered, stored and queued, and while a reader is
  // added, so that the reader gets each message once.
  std::mutex history_mutex_;
  GrowingQueue<Packet*> history_;
};

}  // namespace perflab::middleware::direct
