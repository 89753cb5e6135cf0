// One connection of a writer to a reader, kept where the reader lives. It outlives both, for the report.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "middleware/middleware.h"
#include "middleware/sim/disturbance.h"
#include "middleware/sim/packet.h"
#include "middleware/types.h"

namespace perflab::middleware::sim {

class Reader;
class Writer;
struct Peer;

// For std::map.
struct IdentityLess {
  bool operator()(const perflab_identity& a, const perflab_identity& b) const noexcept {
    return std::lexicographical_compare(std::begin(a.bytes), std::end(a.bytes), std::begin(b.bytes),
                                        std::end(b.bytes));
  }
};

// How much of an edge's traffic has passed a point.
struct Flow {
  std::uint64_t messages = 0;
  std::uint64_t bytes = 0;

  void add(std::size_t size) noexcept {
    ++messages;
    bytes += size;
  }
};

// A reliable writer waits while this much is under way to, or untaken (keep_all) at, one reader. Large enough
// that no sensible delay times rate reaches it.
inline constexpr Flow kWindow{16384, std::uint64_t{512} << 20};

inline bool exceeds(const Flow& sent, const Flow& consumed, const Flow& window) noexcept {
  return sent.messages - consumed.messages >= window.messages || sent.bytes - consumed.bytes >= window.bytes;
}

// What the simulator measured of itself, by its own clock, at delivery.
struct DelayStatistics {
  std::uint64_t count = 0;
  std::int64_t min_ns = 0;
  std::int64_t max_ns = 0;
  double sum_ns = 0;

  void add(std::int64_t delay_ns) noexcept {
    min_ns = count == 0 ? delay_ns : std::min(min_ns, delay_ns);
    max_ns = count == 0 ? delay_ns : std::max(max_ns, delay_ns);
    sum_ns += static_cast<double>(delay_ns);
    ++count;
  }
  void add(const DelayStatistics& other) noexcept {
    if (other.count == 0) return;
    min_ns = count == 0 ? other.min_ns : std::min(min_ns, other.min_ns);
    max_ns = count == 0 ? other.max_ns : std::max(max_ns, other.max_ns);
    sum_ns += other.sum_ns;
    count += other.count;
  }
};

// All members are protected by the participant's mutex.
struct Edge {
  Edge(const perflab_identity& from, const perflab_identity& to, const std::string& on,
       const perflab_qos& offered, const Program& program, std::uint64_t stream)
      : writer(from), reader_identity(to), topic(on), writer_qos(offered), disturbance(program, stream) {}

  const perflab_identity writer;
  const perflab_identity reader_identity;
  const std::string topic;
  const perflab_qos writer_qos;

  Reader* reader = nullptr;        // until it is destroyed
  Writer* local_writer = nullptr;  // exactly one of these two while the writer exists
  Peer* peer = nullptr;

  bool match_wanted = false;  // match_delay has passed
  bool match_sent = false;
  bool matched = false;
  bool alive = false;  // liveliness of the writer
  bool reliable = false;
  std::uint64_t first_sequence = 0;

  Disturbance disturbance;
  PacketRef held;
  std::int64_t held_offered_ns = 0;
  std::uint64_t held_number = 0;

  std::uint64_t delivered = 0;
  std::uint64_t reordered = 0;
  std::uint64_t duplicated = 0;
  std::uint64_t expired = 0;     // older than the lifespan when it was due
  std::uint64_t overflowed = 0;  // best effort, and more than kWindow under way
  DelayStatistics delay;

  Flow accepted;
  Flow consumed;
  Flow reported;  // of consumed, to a writer in another process
};

}  // namespace perflab::middleware::sim
