// A reader: its socket, the messages read from it, and messages being assembled.
//
// The socket's buffer is the queue. take() reads it: completely for keep_last, because the oldest are
// dropped, otherwise in portions. So no thread is between the kernel and the taking thread, and the host
// reads a message of one datagram in place.
//
// If the host wants on_data() for each message, the calling thread reads the socket, because only it knows
// what has come since the last call; take() then finds the message in memory.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/descriptor.h"
#include "base/queue.h"
#include "middleware/middleware.h"
#include "middleware/udp/datagram.h"
#include "middleware/udp/entity.h"

namespace perflab::middleware::udp {

class WaitSet;

// A message, or a datagram.
struct Slot {
  explicit Slot(std::size_t bytes) : capacity(bytes), data(new std::uint8_t[bytes]) {}
  Head head;
  std::size_t capacity;
  std::unique_ptr<std::uint8_t[]> data;
};

// A message of several pieces.
struct Assembly {
  std::unique_ptr<Slot> slot{};  // null: no assembly in progress
  std::vector<bool> has{};       // by piece
  std::size_t missing = 0;       // number of pieces
};

// A writer as seen by its reader.
struct Source {
  perflab_identity writer;
  bool matched = false;
  bool gone = false;       // what it has sent is still read
  bool is_read = false;    // gone, and none of its messages are left in the socket
  std::int64_t first = 0;  // first message for this reader; 0: not known yet
  std::int64_t next = 0;   // next message expected; 0: none has come
  std::uint64_t lost = 0;  // not yet reported
  Assembly assembly{};
};

class Reader : public Entity {
 public:
  Reader(Participant& participant, const perflab_endpoint_settings& settings,
         const perflab_listener* listener);
  ~Reader();

  std::size_t matched() const noexcept;
  std::int64_t lifespan(const perflab_identity&) const noexcept { return PERFLAB_DURATION_INFINITE; }
  perflab_status take(perflab_sample* sample, perflab_error* error);
  void return_sample(perflab_sample* sample) noexcept;

  bool is_called() const noexcept { return listener.on_data != nullptr; }
  // For the thread that calls on_data(): reads the socket; true if it may not be empty yet.
  bool receive() noexcept;

  const Descriptor& socket() const noexcept { return socket_; }
  std::uint64_t key() const noexcept { return key_; }
  std::uint64_t largest_message() const noexcept { return largest_; }
  // True if take() has something that was read from the socket already. Thread-safe.
  bool has_read_ahead() const noexcept { return ready_count_.load(std::memory_order_acquire) > 0; }
  std::uint64_t foreign() const noexcept { return foreign_.load(std::memory_order_relaxed); }
  std::uint64_t incomplete() const noexcept { return incomplete_.load(std::memory_order_relaxed); }
  // Throws Failed if the reader is attached already.
  void attach(WaitSet& waitset);
  void detach() noexcept;

  // On the control thread, under the domain's mutex. From now on datagrams of that writer are accepted.
  void expect(const perflab_identity& writer);
  void start(const perflab_identity& writer, std::int64_t first);
  void peer_gone(const perflab_identity& writer);
  // Reports losses.
  void tick();

 private:
  static constexpr std::size_t kAtOnce = 16;  // maximum datagrams per system call

  bool keeps_all() const noexcept { return info.qos.history == PERFLAB_KEEP_ALL; }
  // Everything below requires mutex_.
  bool read_socket();
  std::size_t read_some();
  void accept(std::unique_ptr<Slot>& slot, std::size_t size, bool is_cut);
  void join(Source& source, const Head& head, const std::uint8_t* piece, std::size_t size);
  void give_up(Source& source);
  bool is_late(Source& source, std::int64_t sequence) noexcept;
  void push(Source& source, std::unique_ptr<Slot> slot);
  void note_those_gone();
  Source* find(const perflab_identity& writer) noexcept;
  std::unique_ptr<Slot> datagram_slot();
  std::unique_ptr<Slot> large_slot(std::size_t size);
  void give_back(std::unique_ptr<Slot> slot) noexcept;

  const bool tells_identities_;
  const std::size_t fixed_size_;      // of messages, or 0
  const std::size_t datagram_bytes_;  // capacity of a slot
  const Descriptor socket_;
  const std::uint64_t room_;  // of its socket
  const std::uint64_t largest_;
  const std::uint64_t key_;
  const std::size_t at_once_;
  const std::size_t most_queued_;  // maximum datagrams in the socket
  const std::size_t most_ready_;

  mutable std::mutex mutex_;
  WaitSet* waitset_ = nullptr;
  std::vector<std::unique_ptr<Slot>> free_;
  std::vector<std::unique_ptr<Slot>> free_large_;
  std::size_t made_ = 0;
  std::size_t made_large_ = 0;
  std::vector<std::unique_ptr<Slot>> next_;  // receives the next datagrams
  std::vector<iovec> pieces_;
  std::vector<mmsghdr> messages_;

  std::vector<std::unique_ptr<Source>> sources_;
  bool some_are_gone_ = false;
  GrowingQueue<std::unique_ptr<Slot>> ready_;
  std::string problem_;  // read error not reported by take() yet
  std::atomic<std::size_t> ready_count_{0};

  std::atomic<std::uint64_t> foreign_{0};     // datagrams from unknown writers
  std::atomic<std::uint64_t> incomplete_{0};  // messages with missing pieces
};

}  // namespace perflab::middleware::udp
