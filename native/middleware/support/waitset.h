// The common part of the plug-ins' wait-sets (middleware.h has their contract): attached readers, the order
// of readiness, waiting and waking, and the end of either side.
//
// Example: a reader with a cache in memory. It derives from Attachment, uses the Attachment's mutex, calls
// ready() whenever something has arrived, and implements has_data(); the wait-set is generated from it.
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
// ready() sets a mark, one bit of a 64-bit word: one load checks 64 readers, and has_data() is only called
// for marked readers. Neither ready() nor wait() locks or allocates.
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

// The reader's part. Attached to at most one wait-set; destroying either ends the attachment.
class Attachment {
 public:
  Attachment(const Attachment&) = delete;
  Attachment& operator=(const Attachment&) = delete;

 protected:
  explicit Attachment(const char* plugin) noexcept : plugin_(plugin) {}
  ~Attachment();

  // There may be something to take. Requires the mutex.
  void ready() noexcept;
  // Without the mutex: the attachment may end, or begin, at any moment.
  [[nodiscard]] bool attached() const noexcept { return places_.load(std::memory_order_relaxed) != nullptr; }

  // The reader's own mutex: guards its cache and everything that depends on it.
  std::mutex mutex_;

 private:
  friend class Places;

  const char* const plugin_;              // for error messages
  std::atomic<Places*> places_{nullptr};  // written under the mutex
  std::size_t place_ = 0;
  std::atomic<std::uint64_t>* word_ = nullptr;  // the word that contains this reader's mark
};

// The readers of a wait-set in order of attachment, and their marks. They only change while no thread waits.
class Places {
 public:
  Places() = default;
  ~Places();
  Places(const Places&) = delete;
  Places& operator=(const Places&) = delete;

  // Returns the place. Throws Failed if the reader is attached already, here or elsewhere.
  std::size_t add(Attachment& reader, std::uint64_t cookie);
  void remove(std::size_t place) noexcept;

  void mark(std::size_t place) noexcept { word(place).fetch_or(bit(place), std::memory_order_seq_cst); }
  void unmark(std::size_t place) noexcept { word(place).fetch_and(~bit(place), std::memory_order_seq_cst); }
  void unmark_all() noexcept {
    for (std::atomic<std::uint64_t>& marks : marks_) marks.store(0, std::memory_order_relaxed);
  }

  // Stores the cookies of marked readers with has_data(Attachment&) in `ready` and returns their number, at
  // most `capacity`. Starts with the first that did not fit last time. A reader without data loses its mark.
  template <typename HasData>
  std::size_t collect(std::uint64_t* ready, std::size_t capacity, const HasData& has_data) noexcept;

  // The same for a reader that is known to be the only one with data and has no mark.
  std::uint64_t collect_only(std::size_t place) noexcept {
    first_ = 0;
    return places_[place].cookie;
  }

  Bell& bell() noexcept { return bell_; }

 private:
  friend class Attachment;
  static constexpr std::size_t kBits = 64;
  struct Place {
    Attachment* reader;  // null: destroyed
    std::uint64_t cookie;
  };

  static std::uint64_t bit(std::size_t place) noexcept { return std::uint64_t{1} << place % kBits; }
  std::atomic<std::uint64_t>& word(std::size_t place) noexcept { return marks_[place / kBits]; }
  template <typename HasData>
  bool holds_data(std::size_t place, const HasData& has_data) noexcept;

  std::vector<Place> places_;
  std::deque<std::atomic<std::uint64_t>> marks_;  // stable addresses
  std::size_t first_ = 0;
  Bell bell_;
};

// `Reader` derives from Attachment and has has_data(), which the thread in wait() calls without a lock.
template <typename Reader>
class WaitSet {
 public:
  template <typename Participant>
  explicit WaitSet(Participant&) {}

  // Earlier messages count as well.
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
    // Do not sleep until now: the kernel would still sleep for the thread's timer slack (50 us by default).
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

// The mark is cleared before the second check, so that a message arriving meanwhile sets it again.
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
  // False if more readers are ready than fit.
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
