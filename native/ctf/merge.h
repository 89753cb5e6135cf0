// Events of several streams in the order of time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ctf/stream.h"

namespace perflab::ctf {

// One stream of the merge, with what is added to its times to bring all to one time line (0 where clocks are
// the same).
struct MergeInput {
  const Trace* trace = nullptr;
  std::uint32_t trace_index = 0;  // handed back with each event
  std::size_t stream = 0;         // of the trace
  std::int64_t shift_ns = 0;
  std::vector<bool> wanted;  // as for StreamReader
  std::vector<bool> in_place{};
};

struct MergedEvent {
  Event event;  // event.time_ns is shifted
  std::uint32_t trace_index = 0;
  std::uint32_t input = 0;  // which of the inputs
};

// Hands out the events of all inputs by time; of equal times the earlier input first, within an input the
// order of the stream. An event that is older than its predecessor in its stream is handed out right after
// it, not before. Streams are decoded in bounded batches; with `threads` > 1 worker threads decode ahead, and
// the caller's thread takes part where they have not come far enough (memory is bounded, about 64 MB for all
// inputs together, whatever the length of the trace). The order of events is the same.
//
// Example:
//   Merger merger(inputs, 1);
//   for (MergedEvent event; merger.next(event);) handle(event);
class Merger {
 public:
  Merger(std::vector<MergeInput> inputs, unsigned threads);
  ~Merger();
  Merger(const Merger&) = delete;
  Merger& operator=(const Merger&) = delete;

  bool next(MergedEvent& event) {
    if (at_ == end_ && !merge()) return false;
    const Ordered& ordered = *at_++;
    event.event = *ordered.event;
    event.trace_index = ordered.trace_index;
    event.input = ordered.input;
    return true;
  }

  // An event that stays in its batch; `key` is what it is ordered by.
  struct Ordered {
    std::uint64_t key = 0;
    const Event* event = nullptr;
    std::uint32_t trace_index = 0;
    std::uint32_t input = 0;
  };
  // As next(), but as many as are known to be in order, which stay good until the next call; none at the end.
  std::span<const Ordered> next_ones() {
    if (at_ == end_) merge();
    return {std::exchange(at_, end_), end_};
  }

  // Of each input, after next() was false; see StreamReader.
  [[nodiscard]] const StreamReader& reader(std::size_t input) const;
  // Of 8 bytes, in all batches: memory that grew so far.
  [[nodiscard]] std::size_t words() const;

 private:
  struct State;
  // The next events in their order; false at the end.
  bool merge();

  const Ordered* at_ = nullptr;
  const Ordered* end_ = nullptr;
  std::unique_ptr<State> state_;
};

}  // namespace perflab::ctf
