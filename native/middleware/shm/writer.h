// A writer: its ring, and its readers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "middleware/middleware.h"
#include "middleware/shm/board.h"
#include "middleware/shm/entity.h"
#include "middleware/shm/ring.h"

namespace perflab::middleware::shm {

// A reader as seen by its writer.
struct Target {
  perflab_identity reader;
  perflab_qos qos;
  std::shared_ptr<Board> board;  // of the reader's process
  std::uint32_t cell;
  std::uint64_t first = 0;  // first message for it
  std::uint64_t done = 0;   // it has finished with all messages before this one
};

class Writer : public Entity {
 public:
  Writer(Participant& participant, const perflab_endpoint_settings& settings,
         const perflab_listener* listener);
  ~Writer();

  std::size_t matched() const noexcept;
  perflab_status write(const perflab_bytes* parts, std::size_t part_count,
                       const perflab_sample_identity* related, std::int64_t* sequence, perflab_error* error);
  void stamp_next(std::int64_t source_timestamp_ns) noexcept { next_stamp_ns_ = source_timestamp_ns; }

  // On the control thread, under the participant's mutex. Returns what the reader needs to follow: the ring,
  // and its first message. No file if the reader has it already.
  std::pair<Descriptor, std::uint64_t> add(Target target);
  void peer_gone(const perflab_identity& reader);
  // Checks deadlines and leases; returns when to call it again.
  std::int64_t tick(std::int64_t now_ns);

 private:
  enum class Room { there, later, never };

  // Everything below requires mutex_.
  void make_ring();
  Room make_room(std::size_t size, perflab_error* error) noexcept;
  std::uint64_t needed_from(Target& target);
  std::uint64_t history_from() const noexcept;
  Room wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t size, perflab_error* error);

  std::int64_t next_stamp_ns_ = 0;  // 0: use the wall clock; used by the writing thread

  mutable std::mutex mutex_;
  std::vector<Target> targets_;
  std::optional<RingWriter> ring_;  // exists once there has been a reader, or if a history must be kept
  std::uint64_t next_ = 1;          // number of the next message
  std::uint32_t bell_ = 0;          // on which it waits for readers, allocated on the first wait
  std::int64_t written_ns_ = 0;     // time of the last message; 0: none yet
  std::int64_t asserted_ns_;        // for liveliness

  // Used by the control thread.
  Deadline deadline_;
  bool alive_ = true;
};

}  // namespace perflab::middleware::shm
