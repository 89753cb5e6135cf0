// The ring of one writer: its last messages, stored once for all its readers. Only the writer writes it;
// readers map it read-only and follow at their own pace. The board of each reader's process has the reader's
// progress (board.h).
//
// A message is an entry of a table plus the bytes that the entry refers to. Messages are numbered from 1;
// number n has entry n modulo the number of entries. Those in [`oldest`, `next`) are available. A message
// becomes visible when `next` advances, after everything else has been written: a writer that dies in between
// leaves nothing behind. A reader of a message that the writer does not wait for checks `oldest` afterwards,
// and discards what it read if `oldest` has passed the message.
//
// The file is much larger than the part in use, and sealed. Table and bytes start small and grow only to the
// amount in flight; a message larger than all bytes so far makes them grow, too. Messages wrap around to the
// beginning as soon as there is room, so that the memory touched is small and stays in the caches.
//
// Example:
//   RingWriter ring(1, now_ns);                        RingReader reader(duplicate(ring.file()));
//   while (!ring.has_room(size)) ring.forget_before(ring.oldest() + 1);
//   std::memcpy(ring.place(size), bytes, size);
//   ring.publish({.size = size});                      Entry entry;
//                                                      if (reader.find(1, entry)) reader.copy(entry, to);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>

#include "middleware/middleware.h"
#include "middleware/shm/memory.h"

namespace perflab::middleware::shm {

inline constexpr std::uint32_t kMostMessages = 16384;
inline constexpr std::size_t kLargestMessage = std::size_t{1} << 30;

struct Entry {
  std::uint64_t number;
  std::uint64_t offset;  // of its bytes
  std::uint64_t size;
  std::int64_t published_ns;  // clock of the writer's host
  std::int64_t source_ns;     // wall clock
  perflab_sample_identity related;
};
static_assert(sizeof(Entry) == 64);

// At the start of the file.
struct RingHeader {
  std::atomic<std::uint64_t> next;
  std::atomic<std::uint64_t> oldest;
  std::atomic<std::int64_t> written_ns;   // time of the last message; host clock, likewise below
  std::atomic<std::int64_t> asserted_ns;  // for the writer's liveliness
  std::atomic<std::uint32_t> entries;     // a power of two
  std::atomic<std::uint32_t>
      waiting;  // bell on the writer's board while the writer waits for readers; 0: it does not wait
};

// A peer's ring is invalid.
class Rubbish : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class RingWriter {
 public:
  // `next`: the number of the first message. Throws Failed.
  RingWriter(std::uint64_t next, std::int64_t now_ns);

  const Descriptor& file() const noexcept { return file_; }
  std::uint64_t next() const noexcept { return next_; }
  std::uint64_t oldest() const noexcept { return oldest_; }
  // The first message younger than the lifespan; next() if there is none.
  std::uint64_t oldest_living(std::int64_t now_ns, std::int64_t lifespan_ns) const noexcept;
  // True if another message of this size fits besides the current ones.
  bool has_room(std::size_t size) const noexcept;
  // Takes more memory; false if the limit is reached.
  [[nodiscard]] bool grow(std::size_t size) noexcept;
  // Drops messages before `number`, which is at most next().
  void forget_before(std::uint64_t number) noexcept;
  // Where to write the bytes of the next message. Precondition: it has room.
  std::uint8_t* place(std::size_t size) noexcept;
  // Makes the message written there visible; fills in its number and offset.
  void publish(Entry entry) noexcept;

  void assert_alive(std::int64_t now_ns) noexcept { header().asserted_ns.store(now_ns); }
  void set_waiting(std::uint32_t bell) noexcept { header().waiting.store(bell); }

 private:
  RingHeader& header() const noexcept { return *reinterpret_cast<RingHeader*>(table_.data()); }
  Entry& entry(std::uint64_t number) const noexcept;
  // A possible position of a message's bytes.
  struct Place {
    enum class How { onward, at_the_beginning, in_a_new_area } how;
    std::size_t offset;
  };
  std::optional<Place> find_place(std::size_t size) const noexcept;

  Descriptor file_;
  Window table_;
  Window bytes_;
  std::uint64_t next_;
  std::uint64_t oldest_;
  std::uint32_t entries_;
  // Messages circulate in the area from here to the end of the bytes, starting with number `area_since_`.
  // Before it there are only older messages.
  std::size_t area_begin_ = 0;
  std::uint64_t area_since_;
  std::size_t end_ = 0;       // end of the last message
  std::size_t wrap_end_ = 0;  // end of the last message before wrapping to the start of the area
};

class RingReader {
 public:
  // Throws Rubbish, or Failed if the kernel provides no memory.
  explicit RingReader(const Descriptor& file);

  std::uint64_t next() const noexcept { return header().next.load(); }
  std::uint64_t oldest() const noexcept { return header().oldest.load(); }
  std::int64_t written_ns() const noexcept { return header().written_ns.load(); }
  std::int64_t asserted_ns() const noexcept { return header().asserted_ns.load(); }
  std::uint32_t waiting() const noexcept { return header().waiting.load(); }
  // The entry of a message below next(); false if the writer has dropped it. Throws Rubbish.
  bool find(std::uint64_t number, Entry& entry);
  // Copies its bytes; false if the writer has dropped it meanwhile.
  bool copy(const Entry& entry, std::uint8_t* to) const noexcept;

 private:
  const RingHeader& header() const noexcept { return *reinterpret_cast<const RingHeader*>(table_.data()); }
  bool has_forgotten(std::uint64_t number) const noexcept;

  Window table_;
  Window bytes_;
};

}  // namespace perflab::middleware::shm
