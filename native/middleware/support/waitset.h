// What the wait-sets of plug-ins share (what a wait-set promises stands in middleware.h): who is attached, in
// which order readiness is told, waiting and waking, and the end of either side.
//
// Example: a reader with a cache in memory. It derives from Attachment, whose mutex is its own, says ready()
// whenever something has arrived, and tells whether something is there; the wait-set is made from it.
//
//   class Reader : public support::Attachment {
//    public:
//     Reader() : Attachment("mine") {}
//     void receive(Message* message) {  // in any thread
//       const std::lock_guard lock(mutex_);
//       cache_.push_back(message);
//       size_.store(cache_.size(), std::memory_order_release);
//       ready();
//     }
//     Message* take() {
//       const std::lock_guard lock(mutex_);
//       ...
//       size_.store(cache_.size(), std::memory_order_relaxed);
//     }
//     bool has_data() noexcept { return size_.load(std::memory_order_acquire) > 0; }
//
//    private:
//     std::deque<Message*> cache_;
//     std::atomic<std::size_t> size_{0};
//   };
//   struct perflab_reader final : mine::Reader { using Reader::Reader; };
//   struct perflab_waitset final : support::WaitSet<mine::Reader> { using WaitSet::WaitSet; };
//
// ready() sets a mark, one bit among 64 in a word: a look at 64 readers is the look at one number, and only
// marked readers are asked. Neither ready() nor wait() takes a lock or allocates.
#pragma once

#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <vector>

#include "middleware/middleware.h"
#include "middleware/support/bell.h"

namespace perflab::middleware::support {

class Places;

// A reader's end of it. Attached to at most one wait-set; its end, or that of the wait-set, ends that.
class Attachment {
 public:
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

 protected:
  explicit Attachment(const char* plugin) noexcept : plugin_(plugin) {}
  ~Attachment();

  // There may be something to take. Under the mutex.
  void ready() noexcept;
  // Without the mutex: it may be over, or begin, at once.
  [[nodiscard]] bool attached() const noexcept { return places_.load(std::memory_order_relaxed) != nullptr; }

  // The reader's own: whatever arrives is put into its cache under it, and so is what follows.
  std::mutex mutex_;

 private:
  friend class Places;

  const char* const plugin_;              // for the text of errors
  std::atomic<Places*> places_{nullptr};  // changed under the mutex
  std::size_t place_ = 0;
  std::atomic<std::uint64_t>* word_ = nullptr;  // of marks, with this one's
};

// The readers of a wait-set in order of attachment, and which of them are marked. They change only while
// nobody waits.
class Places {
 public:
  Places() = default;
  ~Places();
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // Returns the place. Throws Failed where the reader is attached already, here or elsewhere.
  std::size_t add(Attachment& reader, std::uint64_t cookie);
  void remove(std::size_t place) noexcept;

  void mark(std::size_t place) noexcept { word(place).fetch_or(bit(place), std::memory_order_seq_cst); }
  void unmark(std::size_t place) noexcept { word(place).fetch_and(~bit(place), std::memory_order_seq_cst); }
  void unmark_all() noexcept {
    for (std::atomic<std::uint64_t>& marks : marks_) marks.store(0, std::memory_order_relaxed);
  }

  // Puts the cookies of the marked readers that has_data(Attachment&) into `ready` and returns how many there
  // are, `capacity` at most. It begins with the first that did not fit the time before. A reader without data
  // loses its mark.
  template <typename HasData>
  std::size_t collect(std::uint64_t* ready, std::size_t capacity, const HasData& has_data) noexcept;

  // The same for one reader that is known to be the only one with data, without its mark.
  std::uint64_t collect_only(std::size_t place) noexcept {
    first_ = 0;
    return places_[place].cookie;
  }

  Bell& bell() noexcept { return bell_; }

 private:
  friend class Attachment;
  static constexpr std::size_t kBits = 64;
  struct Place {
    Attachment* reader;  // null: it was destroyed
    std::uint64_t cookie;
  };

  static std::uint64_t bit(std::size_t place) noexcept { return std::uint64_t{1} << place % kBits; }
  std::atomic<std::uint64_t>& word(std::size_t place) noexcept { return marks_[place / kBits]; }
  template <typename HasData>
  bool holds_data(std::size_t place, const HasData& has_data) noexcept;

  std::vector<Place> places_;
  std::deque<std::atomic<std::uint64_t>> marks_;  // stay where they are
  std::size_t first_ = 0;
  Bell bell_;
};

// `Reader` derives from Attachment and has has_data(), which is called by the thread in wait() and under no
// lock.
template <typename Reader>
class WaitSet {
 public:
  template <typename Participant>
  explicit WaitSet(Participant&) {}

  // What came before counts as well.
  void attach(Reader& reader, std::uint64_t cookie) { places_.mark(places_.add(reader, cookie)); }

  perflab_status wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                      std::size_t* ready_count, perflab_error*) noexcept {
    const auto look = [&]() noexcept {
      const bool woken = woken_.load(std::memory_order_seq_cst) && woken_.exchange(false);
      *ready_count = places_.collect(
          ready, capacity, [](Attachment& reader) { return static_cast<Reader&>(reader).has_data(); });
      return *ready_count > 0 || woken;
    };
    if (look()) return PERFLAB_OK;
    // Not by sleeping until now: the kernel would still sleep for the thread's timer slack (50 us unless
    // changed).
    if (timeout_ns <= 0) return PERFLAB_TIMEOUT;
    return places_.bell().wait_until(monotonic_after(timeout_ns), look) ? PERFLAB_OK : PERFLAB_TIMEOUT;
  }

  void wake() noexcept {
    woken_.store(true, std::memory_order_seq_cst);
    places_.bell().ring();
  }

 private:
  std::atomic<bool> woken_{false};
  Places places_;
};

// ---- inline, because it is measured ----

inline void Attachment::ready() noexcept {
  Places* const places = places_.load(std::memory_order_relaxed);
  if (places == nullptr) return;
  word_->fetch_or(Places::bit(place_), std::memory_order_seq_cst);
  places->bell_.ring();
}

// The mark goes before the second look, so that what arrives meanwhile sets it again.
template <typename HasData>
bool Places::holds_data(std::size_t place, const HasData& has_data) noexcept {
  Attachment& reader = *places_[place].reader;
  if (has_data(reader)) return true;
  unmark(place);
  if (!has_data(reader)) return false;
  mark(place);
  return true;
}

template <typename HasData>
std::size_t Places::collect(std::uint64_t* ready, std::size_t capacity, const HasData& has_data) noexcept {
  std::size_t count = 0;
  // False where one more is ready than fits.
  const auto gather = [&](std::size_t from, std::size_t end) {
    for (std::size_t at = from; at < end; at = (at / kBits + 1) * kBits) {
      std::uint64_t marked = word(at).load(std::memory_order_seq_cst) >> at % kBits;
      for (std::size_t place = at; marked != 0; ++place, marked >>= 1) {
        const auto skipped = static_cast<std::size_t>(std::countr_zero(marked));
        place += skipped;
        marked >>= skipped;
        if (place >= end) return true;
        if (!holds_data(place, has_data)) continue;
        if (count == capacity) {
          first_ = place;
          return false;
        }
        ready[count++] = places_[place].cookie;
      }
    }
    return true;
  };
  const std::size_t start = first_;
  if (gather(start, places_.size()) && gather(0, start)) first_ = 0;
  return count;
}

}  // namespace perflab::middleware::support
