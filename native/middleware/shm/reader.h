// A reader: the rings that it follows.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "middleware/middleware.h"
#include "middleware/shm/board.h"
#include "middleware/shm/entity.h"
#include "middleware/shm/ring.h"

namespace perflab::middleware::shm {

class WaitSet;

// A writer as seen by its reader.
struct Source {
  perflab_identity writer;
  perflab_qos qos;
  std::shared_ptr<Board> board;  // of the writer's process
  std::uint32_t cell;            // on the board of this process
  std::optional<RingReader> ring{};
  bool matched = false;
  std::int64_t matched_ns = 0;   // host clock
  bool alive = false;            // liveliness
  bool gone = false;             // messages left in its ring are still read
  std::uint64_t first = 0;       // first message for this reader
  std::uint64_t at = 0;          // the next one to take
  std::uint64_t end = 0;         // end of the available ones
  std::uint64_t called_for = 0;  // on_data() was called for all before this one
  std::uint64_t lost = 0;        // not yet reported
  std::string problem{};         // why it is no longer read
  bool is_told = false;          // take() has reported the problem
};

class Reader : public Entity {
 public:
  Reader(Participant& participant, const perflab_endpoint_settings& settings,
         const perflab_listener* listener);
  ~Reader();

  std::size_t matched() const noexcept;
  std::int64_t lifespan(const perflab_identity& writer) noexcept;
  perflab_status take(perflab_sample* sample, perflab_error* error);
  void return_sample(perflab_sample* sample) noexcept;

  // True if take() has a message or an error to return.
  bool has_data();
  // True if messages have come since the last call.
  bool has_news();
  // Attaches the wait-set's bell; throws Failed if the reader has one already.
  void attach(WaitSet& waitset, std::uint32_t bell);
  void detach() noexcept;

  // On the control thread, under the participant's mutex. Prepares for a writer's messages; returns the
  // number of its cell.
  std::uint32_t expect(const perflab_identity& writer, const perflab_qos& offered,
                       std::shared_ptr<Board> board);
  void start(const perflab_identity& writer, const Descriptor& ring, std::uint64_t first);
  void peer_gone(const perflab_identity& writer);
  // Checks deadlines, leases and losses; returns when to call it again.
  std::int64_t tick(std::int64_t now_ns);

 private:
  // A message copied out of its ring.
  struct Copy {
    std::size_t capacity = 0;
    std::unique_ptr<std::uint8_t[]> bytes;
  };

  bool keeps_all() const noexcept { return info.qos.history == PERFLAB_KEEP_ALL; }
  // Everything below requires mutex_.
  bool find_next(Source& source, Entry& entry);
  void done_with(Source& source, std::uint64_t before);
  void close(Source& source, const std::string& why);
  void set_bell(std::uint32_t bell) noexcept;
  void ring_own_bells() const noexcept;
  Source* find(const perflab_identity& writer) noexcept;
  bool is_alive(const Source& source, std::int64_t now_ns) const noexcept;
  void set_alive(Source& source, bool alive);
  void set_unmatched(Source& source);
  // Used by the taking thread.
  std::unique_ptr<Copy> room_for(std::size_t size);

  const bool tells_identities_;
  std::vector<std::unique_ptr<Copy>> free_;
  std::size_t copies_ = 0;  // copies allocated

  mutable std::mutex mutex_;
  std::vector<std::unique_ptr<Source>> sources_;
  WaitSet* waitset_ = nullptr;
  std::uint32_t waitset_bell_ = 0;

  Deadline deadline_;  // used by the control thread
};

}  // namespace perflab::middleware::shm
