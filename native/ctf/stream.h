// Reads the events of one stream in order. Any number of readers may read one trace at the same time.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "ctf/trace.h"

namespace perflab::ctf {

class ElementMemory;  // decoder.h

class StreamReader {
 public:
  // `wanted[class_index]` (index into Trace::layouts) selects the classes whose events are returned; events of
  // other classes are skipped as fast as their types allow. Empty: all. Events of classes with
  // `in_place[class_index]` are not decoded if Decoder::can_read_in_place(): Event::body points to their fields
  // in the file (FieldPlace). The trace must outlive the reader.
  StreamReader(const Trace& trace, std::size_t stream, std::vector<bool> wanted = {}, std::vector<bool> in_place = {});
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;

  // The next wanted event; false at the end. Allocates only if the memory for elements of sequences must grow.
  // An event that cannot be decoded is noted in the ledger, and reading continues with the next packet.
  bool next(Event& event);

  // Reads a batch into the caller's memory, which keeps the events valid: up to events.size() events, fewer if
  // the slots run out (there must be at least slots() of them) or the events have many elements. 0: the end.
  // Throws std::logic_error if events that next(event) decoded ahead are left. `most_elements`: once the batch
  // holds this many slots of elements, it ends.
  std::size_t next(std::span<Event> events, std::span<std::uint64_t> slots, ElementMemory& memory,
                   std::size_t most_elements = 64 * 1024);
  // Set after the last event was returned, often before next() returns false.
  [[nodiscard]] bool at_end() const noexcept;
  [[nodiscard]] std::uint32_t slots() const noexcept;
  // Once `stop` is set, next() returns false after at most the current packet.
  void stop_when(const std::atomic<bool>& stop) noexcept;

  [[nodiscard]] const Ledger& ledger() const noexcept;
  // Events read so far per class, including skipped ones; indexed by class_index.
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const noexcept;
  // Times of the first and the last event read; nullopt before the first.
  [[nodiscard]] std::optional<std::int64_t> first_ns() const noexcept;
  [[nodiscard]] std::optional<std::int64_t> last_ns() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perflab::ctf
