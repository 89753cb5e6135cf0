#include "ctf/stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "ctf/decoder.h"
#include "ctf/mapped_file.h"

namespace perflab::ctf {
namespace {

// Pages this far behind the reader are given back, so that the memory in use does not grow with the trace.
constexpr std::size_t kReleaseBytes = std::size_t{8} << 20U;

}  // namespace

struct StreamReader::State {
  const Trace* trace = nullptr;
  const Stream* stream = nullptr;
  const Decoder* decoder = nullptr;
  std::uint32_t index = 0;
  bool cycles_are_ns = false;
  std::vector<std::uint8_t> wanted;
  std::vector<std::uint64_t> slots;
  std::vector<std::uint64_t> packet_slots;
  ElementMemory memory;
  ElementMemory packet_memory;
  ElementMemory scratch;
  Cursor cursor;
  std::size_t packet = 0;  // the next one
  const std::atomic<bool>* stop = nullptr;
  std::size_t released = 0;  // bytes of the packet's file
  std::uint32_t released_file = 0;
  Ledger ledger;
  Decoder::Seen seen;
  std::optional<std::size_t> backwards_entry;  // in the ledger

  [[gnu::always_inline]] bool next(Event& event, std::uint64_t* place) {
    while (true) {
      switch (decoder->next(cursor, place, wanted.data(), seen)) {
        case Decoder::Step::event:
          event.time_ns =
              cycles_are_ns ? static_cast<std::int64_t>(cursor.cycles) : trace->to_ns(cursor.cycles);
          event.class_index = cursor.class_index;
          event.stream = index;
          event.slots = place;
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

  bool open_packet() {
    if (stop != nullptr && stop->load(std::memory_order_relaxed)) packet = stream->packets.size();
    if (packet == stream->packets.size()) {
      cursor.at = cursor.end = 0;
      return false;
    }
    const Packet& next = stream->packets[packet++];
    release(next);
    cursor.data = next.data;
    cursor.end = next.content_bits;
    if (decoder->uses_packet()) {
      packet_memory.clear();
      ElementMemory* const kept = std::exchange(cursor.memory, &packet_memory);
      // Was decoded before, when the packets were found.
      (void)decoder->packet().decode(cursor, packet_slots.data());
      cursor.memory = kept;
    }
    cursor.at = next.events_offset_bits;
    if (next.begin_cycles) cursor.cycles = *next.begin_cycles;
    return true;
  }

  void release(const Packet& next) {
    if (next.file != released_file) {
      released_file = next.file;
      released = next.file_offset;
    }
    // The packet before the next one may still be pointed into; were it released, it would be read again.
    const auto behind = static_cast<std::size_t>(next.file_offset);
    if (behind < released + 2 * kReleaseBytes) return;
    trace->files[stream->mapped[next.file]]->release(released, behind - kReleaseBytes);
    released = behind - kReleaseBytes;
  }

  void note_failure() {
    const Packet& current = stream->packets[packet - 1];
    // Then it is in the ledger already.
    if (current.truncated &&
        (cursor.failure == Failure::beyond_end || cursor.failure == Failure::no_terminator))
      return;
    LedgerEntry entry;
    entry.loss = Loss::undecodable_event;
    entry.count = (cursor.end - cursor.at + 7) / 8;
    entry.file = stream->files[current.file];
    entry.offset = current.file_offset + cursor.at / 8;
    entry.begin_ns = trace->to_ns(cursor.cycles);
    if (current.end_cycles) entry.end_ns = trace->to_ns(*current.end_cycles);
    const std::string id = cursor.failure == Failure::unknown_event ? fmt::format(" (id {})", cursor.id) : "";
    entry.message =
        fmt::format("{}: the event at byte {} cannot be decoded: {}{}; the rest of its packet is not read",
                    entry.file, *entry.offset, describe(cursor.failure), id);
    ledger.push_back(std::move(entry));
  }

  void note_backwards() {
    if (seen.backwards == 0) return;
    if (!backwards_entry) {
      backwards_entry = ledger.size();
      LedgerEntry entry;
      entry.loss = Loss::backwards_time;
      entry.file = stream->files[stream->packets[packet - 1].file];
      ledger.push_back(std::move(entry));
    }
    LedgerEntry& entry = ledger[*backwards_entry];
    entry.count = seen.backwards;
    entry.begin_ns = trace->to_ns(seen.backwards_cycles);
    entry.end_ns = trace->to_ns(seen.before_backwards_cycles);
    entry.message = fmt::format("{}: {} events are older than the one before", entry.file, entry.count);
  }
};

StreamReader::StreamReader(const Trace& trace, std::size_t stream, std::vector<bool> wanted)
    : state_(std::make_unique<State>()) {
  State& state = *state_;
  state.trace = &trace;
  state.stream = &trace.streams.at(stream);
  state.decoder = trace.decoders.at(stream).get();
  state.cycles_are_ns = trace.frequency_hz == 1'000'000'000;
  state.index = static_cast<std::uint32_t>(stream);
  state.wanted.assign(trace.layouts.size(), wanted.empty() ? 1 : 0);
  for (std::size_t i = 0; i < std::min(wanted.size(), state.wanted.size()); ++i)
    state.wanted[i] = wanted[i] ? 1 : 0;
  state.slots.resize(state.decoder->slots());
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
  state_->memory.clear();
  return state_->next(event, state_->slots.data());
}

bool StreamReader::next(Event& event, std::uint64_t* slots, ElementMemory& memory) {
  memory.begin_event();
  ElementMemory* const own = std::exchange(state_->cursor.memory, &memory);
  const bool found = state_->next(event, slots);
  state_->cursor.memory = own;
  return found;
}

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
