#include "middleware/shm/ring.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <string>
#include <utility>

namespace perflab::middleware::shm {
namespace {

// File layout: a page with the header, the table, the bytes.
constexpr std::size_t kTableAt = 4096;
constexpr std::size_t kBytesAt = std::size_t{2} << 20;
constexpr std::size_t kMostBytes = std::size_t{1} << 30;
constexpr std::size_t kFirstBytes = std::size_t{16} << 10;
constexpr std::size_t kFileSize = kBytesAt + kMostBytes;
constexpr std::uint32_t kFirstEntries = 16;
static_assert(kTableAt + kMostMessages * sizeof(Entry) <= kBytesAt && kLargestMessage <= kMostBytes);

constexpr std::size_t table_size(std::size_t entries) { return kTableAt + entries * sizeof(Entry); }

// Messages do not share cache lines.
constexpr std::size_t whole_lines(std::size_t size) {
  return (std::max<std::size_t>(size, 1) + 63) / 64 * 64;
}

// Prevents earlier reads from moving down and later writes from moving up.
void fence(std::memory_order order) noexcept {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored \
    "-Wtsan"  // the thread sanitizer does not support fences; processes map the file at different addresses
              // anyway
  std::atomic_thread_fence(order);
#pragma GCC diagnostic pop
}

}  // namespace

// ---- writing ----

RingWriter::RingWriter(std::uint64_t next, std::int64_t now_ns)
    : file_(make_file("perflab-shm-ring", kFileSize)),
      table_(file_, 0, table_size(kFirstEntries), true),
      bytes_(file_, kBytesAt, kFirstBytes, true),
      next_(next),
      oldest_(next),
      entries_(kFirstEntries),
      area_since_(next) {
  header().next = next;
  header().oldest = next;
  header().asserted_ns = now_ns;
  header().entries = entries_;
}

Entry& RingWriter::entry(std::uint64_t number) const noexcept {
  return reinterpret_cast<Entry*>(table_.data() + kTableAt)[number % entries_];
}

std::uint64_t RingWriter::oldest_living(std::int64_t now_ns, std::int64_t lifespan_ns) const noexcept {
  std::uint64_t number = oldest_;
  while (number < next_ && now_ns - entry(number).published_ns >= lifespan_ns) ++number;
  return number;
}

bool RingWriter::has_room(std::size_t size) const noexcept {
  return next_ - oldest_ < entries_ && find_place(size).has_value();
}

std::optional<RingWriter::Place> RingWriter::find_place(std::size_t size) const noexcept {
  using enum Place::How;
  const std::size_t room = whole_lines(size);
  const std::uint64_t oldest = std::max(oldest_, area_since_);
  const std::size_t begin = oldest == next_ ? end_ : entry(oldest).offset;
  if (oldest == next_ || end_ > begin) {  // the data are from `begin` to `end_`
    if (oldest == next_ ? room <= bytes_.size() - area_begin_ : room <= begin - area_begin_)
      return Place{at_the_beginning, area_begin_};
    if (room <= bytes_.size() - end_) return Place{onward, end_};
    return std::nullopt;
  }
  // The data are from `begin` to `wrap_end_`, and from the start of the area to `end_`.
  if (room <= begin - end_) return Place{onward, end_};
  if (room <= bytes_.size() - wrap_end_) return Place{in_a_new_area, wrap_end_};
  return std::nullopt;
}

bool RingWriter::grow(std::size_t size) noexcept {
  if (next_ - oldest_ == entries_) {
    if (entries_ == kMostMessages || !table_.grow(table_size(std::size_t{2} * entries_))) return false;
    auto* const table = reinterpret_cast<Entry*>(table_.data() + kTableAt);
    for (std::uint64_t number = oldest_; number < next_; ++number) {
      const std::uint64_t place = number % (2 * entries_);
      if (place >= entries_) table[place] = table[place - entries_];
    }
    entries_ *= 2;
    header().entries.store(entries_, std::memory_order_release);
    return true;
  }
  if (bytes_.size() == kMostBytes) return false;
  const std::size_t larger = std::max(2 * bytes_.size(), std::bit_ceil(whole_lines(size)));
  return bytes_.grow(larger);
}

void RingWriter::forget_before(std::uint64_t number) noexcept {
  oldest_ = number;
  header().oldest.store(number, std::memory_order_relaxed);
  fence(std::memory_order_release);
  if (oldest_ >= area_since_) area_begin_ = 0;
}

std::uint8_t* RingWriter::place(std::size_t size) noexcept {
  return bytes_.data() + find_place(size)->offset;
}

void RingWriter::publish(Entry written) noexcept {
  const Place place = *find_place(written.size);
  if (place.how == Place::How::at_the_beginning) wrap_end_ = end_;
  if (place.how == Place::How::in_a_new_area) {
    area_begin_ = place.offset;
    area_since_ = next_;
  }
  written.number = next_;
  written.offset = place.offset;
  end_ = place.offset + whole_lines(written.size);
  entry(next_) = written;
  header().written_ns.store(written.published_ns, std::memory_order_relaxed);
  header().next.store(++next_);
}

// ---- reading ----

RingReader::RingReader(const Descriptor& file)
    : table_(is_sealed_file(file, kFileSize) ? Window(file, 0, table_size(kFirstEntries), false)
                                             : throw Rubbish("it is not the file of a ring")),
      bytes_(file, kBytesAt, kFirstBytes, false) {}

bool RingReader::has_forgotten(std::uint64_t number) const noexcept {
  fence(std::memory_order_acquire);
  return header().oldest.load(std::memory_order_relaxed) > number;
}

bool RingReader::find(std::uint64_t number, Entry& entry) {
  for (;;) {
    const std::uint32_t entries = header().entries.load(std::memory_order_acquire);
    if (!std::has_single_bit(entries) || entries > kMostMessages || !table_.grow(table_size(entries)))
      throw Rubbish("it has " + std::to_string(entries) + " entries");
    entry = reinterpret_cast<const Entry*>(table_.data() + kTableAt)[number % entries];
    if (has_forgotten(number)) return false;
    if (entry.number == number) break;
    if (header().entries.load() == entries)
      throw Rubbish("message " + std::to_string(number) + " is numbered " + std::to_string(entry.number));
  }
  const bool is_inside = entry.size <= kMostBytes && entry.offset <= kMostBytes - entry.size;
  if (!is_inside || !bytes_.grow(std::bit_ceil(entry.offset + entry.size)))
    throw Rubbish("message " + std::to_string(number) + " lies outside of it");
  return true;
}

bool RingReader::copy(const Entry& entry, std::uint8_t* to) const noexcept {
  if (entry.size > 0) std::memcpy(to, bytes_.data() + entry.offset, entry.size);
  return !has_forgotten(entry.number);
}

}  // namespace perflab::middleware::shm
