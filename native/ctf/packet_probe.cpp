#include "ctf/packet_probe.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "ctf/mapped_file.h"

namespace perflab::ctf {
namespace {

constexpr std::uint64_t kHalfPage = 2048;  // in a page of zeros there is one, wherever it begins
constexpr std::uint64_t kZeroBytes = 64;  // longer than any event of zeros

bool are_zeros(const std::uint8_t* data, std::uint64_t bytes) noexcept {
  return std::all_of(data, data + bytes, [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace

bool has_block_of_zeros(const Packet& packet) noexcept {
  const std::uint64_t begin = packet.file_offset + packet.events_offset_bits / 8;
  const std::uint64_t end = packet.file_offset + packet.content_bits / 8;
  for (std::uint64_t at = (begin + kHalfPage - 1) / kHalfPage * kHalfPage; at + kHalfPage <= end;
       at += kHalfPage) {
    const std::uint8_t* const block = packet.data + (at - packet.file_offset);
    std::uint64_t first = 0;
    std::memcpy(&first, block, sizeof first);
    if (first == 0 && are_zeros(block, kHalfPage)) return true;
  }
  return false;
}

Probe probe(const Decoder& decoder, const Packet& packet) {
  std::vector<std::uint64_t> packet_slots(decoder.packet().slots());
  std::vector<std::uint64_t> slots(std::max<std::size_t>(decoder.slots(), 1));
  ElementMemory packet_memory, memory, scratch;
  Cursor cursor;
  cursor.data = packet.data;
  cursor.end = packet.content_bits;
  cursor.work = work_in(packet.content_bits / 8);
  cursor.latest = packet.latest_cycles;
  cursor.scratch = &scratch;
  cursor.frames[0] = packet_slots.data();
  cursor.memory = &packet_memory;
  if (decoder.uses_packet()) (void)decoder.packet().decode(cursor, packet_slots.data());
  cursor.memory = &memory;
  cursor.at = packet.events_offset_bits;
  if (packet.begin_cycles) cursor.cycles = *packet.begin_cycles;

  Decoder::Seen seen;
  seen.counts.resize(decoder.classes_end());
  const std::vector<std::uint8_t> wanted(decoder.classes_end(), 1);
  Probe found;
  found.good_bits = packet.events_offset_bits;
  while (true) {
    const std::uint64_t before = cursor.cycles;
    const std::uint64_t start = (cursor.at + 7) / 8;
    memory.clear();
    const bool is_event = decoder.next(cursor, slots.data(), wanted.data(), seen) == Decoder::Step::event;
    const bool zeros =
        8 * (start + kZeroBytes) <= packet.content_bits && are_zeros(packet.data + start, kZeroBytes);
    // An event of zeros is real where the clock did not move: it stands at 0.
    if (zeros && !(is_event && cursor.cycles == before)) {
      found.meets_zeros = true;
      std::uint64_t first = start;
      const std::uint64_t events = (packet.events_offset_bits + 7) / 8;
      while (first > events && packet.data[first - 1] == 0) --first;
      // The zeros may have replaced the end of the last event.
      if (8 * first < found.good_bits) {
        Packet less = packet;
        less.content_bits = 8 * first;
        found = probe(decoder, less);
        found.meets_zeros = true;
      }
      return found;
    }
    if (!is_event) return found;
    found.good_bits = cursor.at;
    found.last_cycles = cursor.cycles;
  }
}

}  // namespace perflab::ctf
