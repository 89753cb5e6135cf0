// Merges the events of several streams by time.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ctf/stream.h"

namespace perflab::ctf {

// One stream of the merge. `shift_ns` is added to its event times to map all streams to one time line; 0 for
// streams with the same clock.
struct MergeInput {
  const Trace* trace = nullptr;
  std::uint32_t trace_index = 0;  // returned with each event
  std::size_t stream = 0;         // of the trace
  std::int64_t shift_ns = 0;
  std::vector<bool> wanted;  // as for StreamReader
  std::vector<bool> in_place{};
};

struct MergedEvent {
  Event event;  // event.time_ns is shifted
  std::uint32_t trace_index = 0;
  std::uint32_t input = 0;  // index of the input
};

// Returns the events of all inputs by time: at equal times in the order of the inputs, and within an input in
// stream order. An event that is older than its predecessor in the stream directly follows it. Streams are
// decoded in bounded batches. With `threads` > 1 worker threads decode ahead, and the caller's thread decodes if
// they lag. The number of threads does not change the order. Memory is bounded: about 64 MB for all inputs
// together, independent of the length of the trace.
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

  // An event, which stays in its batch, and its sort key.
  struct Ordered {
    std::uint64_t key = 0;
    const Event* event = nullptr;
    std::uint32_t trace_index = 0;
    std::uint32_t input = 0;
  };
  // The next events whose order is certain; valid until the next call, empty at the end.
  std::span<const Ordered> next_ones() {
    if (at_ == end_) merge();
    return {std::exchange(at_, end_), end_};
  }

  // The reader of an input, for its ledger and counts after next() returned false.
  [[nodiscard]] const StreamReader& reader(std::size_t input) const;
  // Memory allocated for all batches so far, in words of 8 bytes.
  [[nodiscard]] std::size_t words() const;

 private:
  struct State;
  // Prepares the next events in order; false at the end.
  bool merge();

  const Ordered* at_ = nullptr;
  const Ordered* end_ = nullptr;
  std::unique_ptr<State> state_;
};

}  // namespace perflab::ctf
