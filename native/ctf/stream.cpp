#include "ctf/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "ctf/decoder.h"
#include "ctf/mapped_file.h"
#include "ctf/packet_probe.h"

namespace perflab::ctf {
namespace {

// Pages this far behind the reader are released, so that memory use does not grow with the trace.
constexpr std::size_t kReleaseBytes = std::size_t{8} << 20U;

// next(event) decodes events in batches, which is faster.
constexpr std::size_t kEventsAhead = 128;
constexpr std::size_t kSlotsAhead = 2048;
constexpr std::size_t kElementsAhead = 64 * 1024;  // slots

std::int64_t saturated(std::uint64_t ns) noexcept {
  constexpr auto kLatest = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  return static_cast<std::int64_t>(std::min(ns, kLatest));
}

}  // namespace

struct StreamReader::State {
  const Trace* trace = nullptr;
  const Stream* stream = nullptr;
  const Decoder* decoder = nullptr;
  std::uint32_t index = 0;
  bool cycles_are_ns = false;
  std::vector<std::uint8_t> wanted;
  std::vector<std::uint32_t> class_slots;  // by class_index
  std::vector<std::uint64_t> slots;
  std::vector<Event> ahead;
  const Event* at = nullptr;  // in `ahead`
  const Event* end = nullptr;
  std::vector<std::uint64_t> packet_slots;
  ElementMemory memory;
  ElementMemory packet_memory;
  ElementMemory scratch;
  Cursor cursor;
  std::size_t packet = 0;  // the next one
  bool ended = false;
  const std::atomic<bool>* stop = nullptr;
  std::size_t released = 0;  // bytes of the packet's file
  std::uint32_t released_file = 0;
  Ledger ledger;
  Decoder::Seen seen;
  std::optional<std::size_t> backwards_entry;  // in the ledger

  [[nodiscard]] std::optional<std::int64_t> to_ns(const std::optional<std::uint64_t>& cycles) const {
    return cycles ? std::optional(trace->to_ns(*cycles)) : std::nullopt;
  }

  [[gnu::always_inline]] bool next(Event& event, std::uint64_t* place) {
    while (true) {
      switch (decoder->next(cursor, place, wanted.data(), seen)) {
        case Decoder::Step::event:
          event.time_ns = cycles_are_ns ? saturated(cursor.cycles) : trace->to_ns(cursor.cycles);
          event.class_index = cursor.class_index;
          event.stream = index;
          event.body = cursor.body;
          event.slots = cursor.body == nullptr ? place : nullptr;
          return true;
        case Decoder::Step::failed:
          note_failure();
          break;
        case Decoder::Step::end:
          break;
      }
      note_backwards();
      if (!open_packet()) return false;
    }
  }

  std::size_t fill(std::span<Event> events, std::span<std::uint64_t> places, ElementMemory& elements,
                   std::size_t most_elements) {
    Decoder::Batch batch{events, 0, places.data(), places.data() + places.size()};
    const std::uint64_t* const last = batch.end - decoder->slots();
    const std::size_t before = elements.used();
    ElementMemory* const own = std::exchange(cursor.memory, &elements);
    while (true) {
      const std::size_t first = batch.count;
      decoder->next_plain(cursor, batch, wanted.data(), seen);
      for (Event& event : events.subspan(first, batch.count - first)) {
        event.stream = index;
        const auto cycles = static_cast<std::uint64_t>(event.time_ns);
        event.time_ns = cycles_are_ns ? saturated(cycles) : trace->to_ns(cycles);
      }
      if (batch.count == events.size() || batch.slots > last || elements.used() - before >= most_elements)
        break;
      elements.begin_event();
      Event& event = events[batch.count];
      if (!next(event, batch.slots)) break;
      if (event.body == nullptr) batch.slots += class_slots[event.class_index];
      ++batch.count;
    }
    cursor.memory = own;
    return batch.count;
  }

  bool open_packet() {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) packet = stream->packets.size();
    while (packet != stream->packets.size() && !is_readable(stream->packets[packet])) ++packet;
    if (packet == stream->packets.size()) {
      cursor.at = cursor.end = 0;
      ended = true;
      return false;
    }
    const Packet& next = stream->packets[packet++];
    release(next);
    cursor.data = next.data;
    cursor.end = next.content_bits;
    cursor.latest = next.latest_cycles;
    if (has_block_of_zeros(next)) leave_out_zeros(next);
    cursor.work = work_in(next.content_bits / 8);
    if (decoder->uses_packet()) {
      packet_memory.clear();
      ElementMemory* const kept = std::exchange(cursor.memory, &packet_memory);
      // Cannot fail: indexing the packet already decoded its header and context.
      (void)decoder->packet().decode(cursor, packet_slots.data());
      cursor.memory = kept;
    }
    cursor.at = next.events_offset_bits;
    if (next.begin_cycles) cursor.cycles = *next.begin_cycles;
    return true;
  }

  // Zeros decode as events. Without this check, a hole in a file would yield events that never happened.
  void leave_out_zeros(const Packet& packet_with_zeros) {
    const Probe found = probe(*decoder, packet_with_zeros);
    if (!found.meets_zeros) return;
    cursor.end = found.good_bits;
    const auto cycles = found.last_cycles ? found.last_cycles : packet_with_zeros.begin_cycles;
    note_undecodable(packet_with_zeros, found.good_bits, packet_with_zeros.content_bits, cycles,
                     "zeros stand there");
  }

  void note_undecodable(const Packet& current, std::uint64_t at, std::uint64_t content_end,
                        std::optional<std::uint64_t> last_cycles, const std::string& why) {
    LedgerEntry entry{.loss = Loss::undecodable_event,
                      .count = (content_end - at + 7) / 8,
                      .file = stream->files[current.file],
                      .offset = current.file_offset + at / 8,
                      .begin_ns = to_ns(last_cycles),
                      .end_ns = to_ns(current.end_cycles)};
    // In LTTng before 2.11 a packet's end time may precede its last event.
    if (entry.begin_ns && entry.end_ns) entry.end_ns = std::max(*entry.begin_ns, *entry.end_ns);
    entry.message =
        fmt::format("{}: the event at byte {} cannot be decoded: {}; the rest of its packet is not read",
                    entry.file, *entry.offset, why);
    ledger.push_back(std::move(entry));
  }

  bool is_readable(const Packet& next) {
    const auto begin = static_cast<std::size_t>(next.file_offset);
    const auto bytes = static_cast<std::size_t>((next.content_bits + 7) / 8);
    if (trace->files[stream->mapped[next.file]]->readable(begin,
                                                          begin + bytes + MappedFile::kReadableBeyond)) {
      return true;
    }
    const std::string& file = stream->files[next.file];
    ledger.push_back(
        {.loss = Loss::truncated_packet,
         .count = bytes,
         .file = file,
         .offset = next.file_offset,
         .begin_ns = to_ns(next.begin_cycles),
         .end_ns = to_ns(next.end_cycles),
         .message = fmt::format("{}: the packet at byte {} cannot be read: its file became shorter "
                                "since it was opened, or its disk fails",
                                file, next.file_offset)});
    return false;
  }

  void release(const Packet& next) {
    if (next.file != released_file) {
      released_file = next.file;
      released = next.file_offset;
    }
    // The caller may still use events of the previous packet, so its pages are kept.
    const auto behind = static_cast<std::size_t>(next.file_offset);
    if (behind < released + 2 * kReleaseBytes) return;
    trace->files[stream->mapped[next.file]]->release(released, behind - kReleaseBytes);
    released = behind - kReleaseBytes;
  }

  void note_failure() {
    const Packet& current = stream->packets[packet - 1];
    // Indexing the file already added a ledger entry for every truncated packet.
    if (current.truncated &&
        (cursor.failure == Failure::beyond_end || cursor.failure == Failure::no_terminator))
      return;
    const std::string id = cursor.failure == Failure::unknown_event ? fmt::format(" (id {})", cursor.id) : "";
    note_undecodable(current, cursor.at, cursor.end, cursor.cycles, describe(cursor.failure) + id);
  }

  void note_backwards() {
    if (seen.backwards == 0) return;
    if (!backwards_entry) {
      backwards_entry = ledger.size();
      ledger.push_back(
          {.loss = Loss::backwards_time, .file = stream->files[stream->packets[packet - 1].file]});
    }
    LedgerEntry& entry = ledger[*backwards_entry];
    entry.count = seen.backwards;
    entry.begin_ns = trace->to_ns(seen.backwards_cycles);
    entry.end_ns = trace->to_ns(seen.before_backwards_cycles);
    entry.message = fmt::format("{}: {} events are older than the one before", entry.file, entry.count);
  }
};

StreamReader::StreamReader(const Trace& trace, std::size_t stream, std::vector<bool> wanted, std::vector<bool> in_place)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.trace = &trace;
  state.stream = &trace.streams.at(stream);
  state.decoder = trace.decoders.at(stream).get();
  state.cycles_are_ns = trace.frequency_hz == 1'000'000'000;
  state.index = static_cast<std::uint32_t>(stream);
  state.wanted.assign(trace.layouts.size(), Decoder::kDecode);
  for (std::size_t i = 0; i < state.wanted.size(); ++i) {
    if (!wanted.empty() && !(i < wanted.size() && wanted[i])) {
      state.wanted[i] = Decoder::kPass;
    } else if (i < in_place.size() && in_place[i] && state.decoder->can_read_in_place(static_cast<std::uint32_t>(i))) {
      state.wanted[i] = Decoder::kInPlace;
    }
  }
  for (const auto& layout : trace.layouts) state.class_slots.push_back(layout.slots);
  state.packet_slots.resize(state.decoder->packet().slots());
  state.seen.counts.resize(trace.layouts.size());
  state.cursor.memory = &state.memory;
  state.cursor.scratch = &state.scratch;
  state.cursor.frames[0] = state.packet_slots.data();
}

StreamReader::~StreamReader() = default;
StreamReader::StreamReader(StreamReader&&) noexcept = default;
StreamReader& StreamReader::operator=(StreamReader&&) noexcept = default;

bool StreamReader::next(Event& event) {
  State& state = *state_;
  if (state.at == state.end) {
    state.memory.clear();
    if (state.ahead.empty()) {  // only needed when reading event by event
      state.ahead.resize(kEventsAhead);
      state.slots.resize(std::max<std::size_t>(kSlotsAhead, state.decoder->slots()));
    }
    state.at = state.ahead.data();
    state.end = state.at + state.fill(state.ahead, state.slots, state.memory, kElementsAhead);
    if (state.at == state.end) return false;
  }
  event = *state.at++;
  return true;
}

std::size_t StreamReader::next(std::span<Event> events, std::span<std::uint64_t> slots, ElementMemory& memory,
                               std::size_t most_elements) {
  if (state_->at != state_->end) throw std::logic_error("a stream is read by event and by batch");
  return state_->fill(events, slots, memory, most_elements);
}

bool StreamReader::at_end() const noexcept { return state_->ended && state_->at == state_->end; }

std::uint32_t StreamReader::slots() const noexcept { return state_->decoder->slots(); }

void StreamReader::stop_when(const std::atomic<bool>& stop) noexcept { state_->stop = &stop; }

const Ledger& StreamReader::ledger() const noexcept { return state_->ledger; }

const std::vector<std::uint64_t>& StreamReader::counts() const noexcept { return state_->seen.counts; }

std::optional<std::int64_t> StreamReader::first_ns() const noexcept {
  if (!state_->seen.first_cycles) return std::nullopt;
  return state_->trace->to_ns(*state_->seen.first_cycles);
}

std::optional<std::int64_t> StreamReader::last_ns() const noexcept {
  if (!state_->seen.first_cycles) return std::nullopt;
  return state_->trace->to_ns(state_->seen.last_cycles);
}

}  // namespace perflab::ctf
