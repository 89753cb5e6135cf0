// A reader: its socket, what it has read from it, and messages in pieces.
//
// The socket's buffer is the queue. take() reads it: all that is there where the history keeps the last few,
// for the oldest give way, otherwise some at a time. So no thread lies between the kernel and the one that
// takes, and a message of one datagram lies from then on where the host sees it.
//
// Where the host wants to be called for each message, the thread that calls reads the socket, for it alone
// knows what has come since the last call; take() then finds it in memory.
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
  std::unique_ptr<Slot> slot{};  // none: nothing is under way
  std::vector<bool> has{};       // by piece
  std::size_t missing = 0;       // pieces
};

// A writer, as its reader sees it.
struct Source {
  perflab_identity writer;
  bool matched = false;
  bool gone = false;       // what it has sent is read nevertheless
  bool is_read = false;    // gone, and nothing of it is left in the socket
  std::int64_t first = 0;  // message for this reader; 0: not known yet
  std::int64_t next = 0;   // message that is expected; 0: none has come
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
  // The thread that calls: reads the socket; true where it may not be empty yet.
  bool receive() noexcept;

  const Descriptor& socket() const noexcept { return socket_; }
  std::uint64_t key() const noexcept { return key_; }
  std::uint64_t largest_message() const noexcept { return largest_; }
  // Of what has been read from the socket: whether take() has something to say. From any thread.
  bool has_read_ahead() const noexcept { return ready_count_.load(std::memory_order_acquire) > 0; }
  std::uint64_t foreign() const noexcept { return foreign_.load(std::memory_order_relaxed); }
  std::uint64_t incomplete() const noexcept { return incomplete_.load(std::memory_order_relaxed); }
  // Throws Failed where the reader is attached already.
  void attach(WaitSet& waitset);
  void detach() noexcept;

  // On the control thread, under the domain's mutex.
  // Datagrams of that writer are its own from now on.
  void expect(const perflab_identity& writer);
  void start(const perflab_identity& writer, std::int64_t first);
  void peer_gone(const perflab_identity& writer);
  // Reports what was lost.
  void tick();

 private:
  static constexpr std::size_t kAtOnce = 16;  // datagrams per system call, at most

  bool keeps_all() const noexcept { return info.qos.history == PERFLAB_KEEP_ALL; }
  // All under mutex_.
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
  const std::size_t datagram_bytes_;  // that a slot holds
  const Descriptor socket_;
  const std::uint64_t room_;  // of its socket
  const std::uint64_t largest_;
  const std::uint64_t key_;
  const std::size_t at_once_;
  const std::size_t most_queued_;  // datagrams that the socket can hold
  const std::size_t most_ready_;

  mutable std::mutex mutex_;
  WaitSet* waitset_ = nullptr;
  std::vector<std::unique_ptr<Slot>> free_;
  std::vector<std::unique_ptr<Slot>> free_large_;
  std::size_t made_ = 0;
  std::size_t made_large_ = 0;
  std::vector<std::unique_ptr<Slot>> next_;  // what the socket is read into
  std::vector<iovec> pieces_;
  std::vector<mmsghdr> messages_;

  std::vector<std::unique_ptr<Source>> sources_;
  bool some_are_gone_ = false;
  GrowingQueue<std::unique_ptr<Slot>> ready_;
  std::string problem_;  // with reading, which take() has not said yet
  std::atomic<std::size_t> ready_count_{0};

  std::atomic<std::uint64_t> foreign_{0};     // datagrams that are none of its writers'
  std::atomic<std::uint64_t> incomplete_{0};  // messages of which pieces were missing
};

}  // namespace perflab::middleware::udp
