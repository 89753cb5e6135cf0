// The ring of one writer: its last messages, once, for all its readers. The writer alone writes it; readers
// map it read-only and follow at their own pace. How far each of them is stands on the board of its process
// (board.h).
//
// A message is an entry of a table and a piece of the bytes that the entry points at. Messages are numbered
// from 1; number n has the entry n modulo the number of entries. Those from `oldest` up to `next` are there.
// A message becomes visible when `next` moves, after everything else has been written: so a writer that dies
// on the way leaves nothing. Whoever reads a message that the writer does not wait for looks at `oldest`
// afterwards, and forgets what it read where that has moved past the message.
//
// The file is much larger than what is used of it, and sealed. Table and bytes begin small and grow to what
// is under way at most; a message that is larger than all bytes so far makes them grow, too. Within them the
// place of messages goes back to the beginning as soon as there is room, so that what is touched is small and
// stays in the caches.
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

// Of the file.
struct RingHeader {
  std::atomic<std::uint64_t> next;
  std::atomic<std::uint64_t> oldest;
  std::atomic<std::int64_t> written_ns;   // the last message; host clock, likewise below
  std::atomic<std::int64_t> asserted_ns;  // the writer's liveliness
  std::atomic<std::uint32_t> entries;     // a power of two
  std::atomic<std::uint32_t>
      waiting;  // the bell of the writer that waits for readers, on its board; 0: it does not
};

// What a peer shows as a ring is none.
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
  // The first that is not as old as that; next() where there is none.
  std::uint64_t oldest_living(std::int64_t now_ns, std::int64_t lifespan_ns) const noexcept;
  // Whether one more message of this size has room beside those that are there.
  bool has_room(std::size_t size) const noexcept;
  // Takes more memory; false where it has as much as it may have.
  [[nodiscard]] bool grow(std::size_t size) noexcept;
  // Readers can have those from `number` on, which is at most next().
  void forget_before(std::uint64_t number) noexcept;
  // Where the bytes of the next message go; it has room.
  std::uint8_t* place(std::size_t size) noexcept;
  // The message that was put there can be read; its number and offset are filled in here.
  void publish(Entry entry) noexcept;

  void assert_alive(std::int64_t now_ns) noexcept { header().asserted_ns.store(now_ns); }
  void set_waiting(std::uint32_t bell) noexcept { header().waiting.store(bell); }

 private:
  RingHeader& header() const noexcept { return *reinterpret_cast<RingHeader*>(table_.data()); }
  Entry& entry(std::uint64_t number) const noexcept;
  // Where the bytes of a message can lie.
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
  // The area where messages go around: from here to the end of the bytes, those from `area_since_` on. There
  // are others before it only while older messages are.
  std::size_t area_begin_ = 0;
  std::uint64_t area_since_;
  std::size_t end_ = 0;       // of the last message
  std::size_t wrap_end_ = 0;  // of the last one before it went back to the beginning of the area
};

class RingReader {
 public:
  // Throws Rubbish, or Failed where the kernel gives no memory.
  explicit RingReader(const Descriptor& file);

  std::uint64_t next() const noexcept { return header().next.load(); }
  std::uint64_t oldest() const noexcept { return header().oldest.load(); }
  std::int64_t written_ns() const noexcept { return header().written_ns.load(); }
  std::int64_t asserted_ns() const noexcept { return header().asserted_ns.load(); }
  std::uint32_t waiting() const noexcept { return header().waiting.load(); }
  // The entry of a message below next(); false where the writer has forgotten it. Throws Rubbish.
  bool find(std::uint64_t number, Entry& entry);
  // Its bytes; false where the writer has forgotten it meanwhile.
  bool copy(const Entry& entry, std::uint8_t* to) const noexcept;

 private:
  const RingHeader& header() const noexcept { return *reinterpret_cast<const RingHeader*>(table_.data()); }
  bool has_forgotten(std::uint64_t number) const noexcept;

  Window table_;
  Window bytes_;
};

}  // namespace perflab::middleware::shm
