// Between processes: frames on abstract AF_UNIX sockets.
//
// Each participant of a domain listens on the first free of kSlots names
// ("perflab-sim.<user>.<domain>.<slot>"), and connects to every other participant to send; what it receives
// comes on the connections that the others made. The kernel removes abstract names and connections with the
// process, however it ends, so nothing is left behind and peers see the end at once.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "middleware/middleware.h"

namespace perflab::middleware::sim {

inline constexpr int kSlots = 256;

// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

enum class FrameKind : std::uint32_t {
  hello,    // the first on a connection: `writer` is the sender's participant, `sequence` its slot
  welcome,  // the answer on the same connection: `writer` is the listener's participant
  writer,   // an endpoint exists; the payload is its QoS, topic and type
  reader,
  writer_gone,
  reader_gone,
  match,   // reader side to writer side: send to me; `sequence` 1: with history
  start,   // the answer: messages from `sequence` on are for this reader
  data,    // to all started readers, or to `reader` alone (history)
  credit,  // `sequence` messages and `sent_ns` bytes have been consumed by `reader` in total
  alive,   // a writer with manual liveliness is alive again
  not_alive,
  heartbeat,  // the participant's writers with automatic liveliness are alive
};

struct Frame {
  std::uint32_t magic;
  FrameKind kind;
  std::uint64_t payload_size;
  perflab_identity writer;
  perflab_identity reader;
  std::uint64_t sequence;
  std::int64_t sent_ns;
  std::int64_t source_ns;
};
static_assert(std::is_trivially_copyable_v<Frame> && sizeof(Frame) == 72);

// Changes whenever the meaning of a frame does.
inline constexpr std::uint32_t kMagic = 0x504c5331;  // "PLS1"
inline constexpr std::uint64_t kLargestPayload = std::uint64_t{1} << 30;

Frame make_frame(FrameKind kind, const perflab_identity& writer = {}, const perflab_identity& reader = {});

// An endpoint's announcement.
struct Announcement {
  perflab_qos qos;
  std::string topic;
  std::string type;
};
std::vector<std::uint8_t> encode(const Announcement& announcement);
std::optional<Announcement> decode(std::span<const std::uint8_t> payload);

// Listens on the first free slot; throws StatusError when all are taken.
std::pair<Descriptor, int> listen_on_free_slot(std::uint32_t domain);
// No descriptor if nobody listens there. Never blocks.
Descriptor connect_to_slot(std::uint32_t domain, int slot);
// The next waiting connection of this user, if any.
Descriptor accept_connection(int listener);

// A connection to send on.
class Connection {
 public:
  Connection(Descriptor socket, int slot) : socket_(std::move(socket)), slot_(slot) {}

  static constexpr std::size_t kMostParts = 15;

  enum class Result { sent, full, gone };
  // Sends header and parts (at most kMostParts) as one frame. Waits up to `patience_ns` for room before the
  // first byte (then: full) and up to kStall_ns for each further one (then the peer counts as gone). Safe
  // from every thread.
  Result send(Frame frame, std::span<const perflab_bytes> parts, std::int64_t patience_ns) noexcept;
  // Announcements and other small frames, with kStall_ns of patience.
  Result send(const Frame& frame, std::span<const std::uint8_t> payload = {}) noexcept;

  int fd() const noexcept { return socket_.get(); }
  int slot() const noexcept { return slot_; }

 private:
  static constexpr std::int64_t kStall_ns = 10'000'000'000;

  bool wait_for_room(std::int64_t patience_ns) noexcept;

  Descriptor socket_;
  int slot_;
  std::mutex mutex_;
  bool gone_ = false;
};

}  // namespace perflab::middleware::sim
