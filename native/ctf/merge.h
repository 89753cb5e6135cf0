// Events of several streams in the order of time.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "ctf/stream.h"

namespace perflab::ctf {

// One stream of the merge, with what is added to its times to bring all to one time line (0 where clocks are the same).
struct MergeInput {
  const Trace* trace = nullptr;
  std::uint32_t trace_index = 0;  // handed back with each event
  std::size_t stream = 0;         // of the trace
  std::int64_t shift_ns = 0;
  std::vector<bool> wanted;       // as for StreamReader
};

struct MergedEvent {
  Event event;                    // event.time_ns is shifted
  std::uint32_t trace_index = 0;
  std::uint32_t input = 0;        // which of the inputs
};

// Hands out the events of all inputs by time; of equal times the earlier input first, within an input the order of the
// stream. An event that is older than its predecessor in its stream is handed out right after it, not before.
// With `threads` > 1 streams are decoded ahead by worker threads in bounded batches (memory is bounded by inputs times
// batch size, not by the length of the trace); the order of events is the same.
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

  bool next(MergedEvent& event);

  // Of each input, after next() was false; see StreamReader.
  [[nodiscard]] const StreamReader& reader(std::size_t input) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perflab::ctf
