// Reads the events of one stream, one after the other. Any number of readers may read one trace at once.
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
  // `wanted[class_index]` (of Trace::layouts) says which events are handed out; the others are only passed
  // over, as fast as their types allow. Empty: all. Of the classes that are `in_place`, which their decoder must be able
  // to, events are not decoded: they say where in the file their fields begin (Event::body, FieldPlace). The
  // trace must outlive the reader.
  StreamReader(const Trace& trace, std::size_t stream, std::vector<bool> wanted = {}, std::vector<bool> in_place = {});
  ~StreamReader();
  StreamReader(StreamReader&&) noexcept;
  StreamReader& operator=(StreamReader&&) noexcept;

  // The next event that is wanted; false at the end. Allocates nothing, except that the memory for elements
  // of sequences grows. What cannot be decoded goes to the ledger, and reading goes on with the next packet.
  bool next(Event& event);

  // As above, but many at once, into memory of the caller, where they stay good: up to events.size(), fewer
  // where the slots come to their end (there must be slots() of them at the least) or the events have many
  // elements. 0: the end. Throws std::logic_error after next(event), which decodes a few events ahead.
  // `most_elements`: slots of elements after which no event is begun.
  std::size_t next(std::span<Event> events, std::span<std::uint64_t> slots, ElementMemory& memory,
                   std::size_t most_elements = 64 * 1024);
  // Known after the last event was handed out, often before next() says so.
  [[nodiscard]] bool at_end() const noexcept;
  [[nodiscard]] std::uint32_t slots() const noexcept;
  // next() returns false soon after `stop` was set.
  void stop_when(const std::atomic<bool>& stop) noexcept;

  [[nodiscard]] const Ledger& ledger() const noexcept;
  // Events decoded so far per class, those passed over included; indexed by class_index.
  [[nodiscard]] const std::vector<std::uint64_t>& counts() const noexcept;
  // Time of the first and the last event decoded; nothing before the first.
  [[nodiscard]] std::optional<std::int64_t> first_ns() const noexcept;
  [[nodiscard]] std::optional<std::int64_t> last_ns() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace perflab::ctf
