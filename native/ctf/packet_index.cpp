#include "ctf/packet_index.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace perflab::ctf {
namespace {

constexpr std::size_t kHeaderBytes = 512;  // most headers with their contexts, and what is loaded beyond

class Indexer {
 public:
  Indexer(const Metadata& metadata, const Decoders& decoders, const MappedFile& mapped,
          const std::string& file, const std::function<std::int64_t(std::uint64_t)>& to_ns, Ledger& ledger)
      : metadata_(metadata),
        decoders_(decoders),
        header_(metadata, nullptr),
        mapped_(mapped),
        file_(file),
        to_ns_(to_ns),
        ledger_(ledger) {}

  std::optional<FileIndex> run() {
    while (offset_ < mapped_.size() && add_packet()) {
    }
    if (index_.packets.empty()) return std::nullopt;
    return std::move(index_);
  }

 private:
  // False where the rest of the file is not to be read.
  bool add_packet() {
    if (!mapped_.readable(offset_, offset_ + kHeaderBytes)) {
      note(Loss::truncated_packet,
           "cannot be read: its file became shorter since it was opened, or its disk fails")
          .count = mapped_.size() - offset_;
      return false;
    }
    const std::uint64_t available = 8 * (mapped_.size() - offset_);
    Cursor cursor;
    cursor.data = mapped_.data() + offset_;
    cursor.end = available;
    cursor.memory = &memory_;
    memory_.clear();
    slots_.resize(std::max<std::size_t>(slots_.size(), header_.slots()));
    if (!header_.decode(cursor, slots_.data())) return header_failed(cursor, "header");
    const Decoder* decoder = check_header(header_.fields(slots_.data()));
    if (decoder == nullptr) return false;

    const PacketDecoder& packet_decoder = decoder->packet();
    slots_.resize(std::max<std::size_t>(slots_.size(), packet_decoder.slots()));
    memory_.clear();
    if (!packet_decoder.decode(cursor, slots_.data())) return header_failed(cursor, "context");
    const PacketFields fields = packet_decoder.fields(slots_.data());

    // Where one of the sizes is missing the packet is as large as its content; where both are, the file is
    // one packet.
    const std::uint64_t packet_bits = fields.packet_bits.value_or(fields.content_bits.value_or(available));
    const std::uint64_t content_bits = fields.content_bits.value_or(packet_bits);
    if (packet_bits == 0 || packet_bits % 8 != 0 || packet_bits < cursor.at) {
      return corrupt(
          fmt::format("says it has {} bits, of which its header alone has {}", packet_bits, cursor.at));
    }
    if (content_bits > packet_bits || content_bits < cursor.at) {
      return corrupt(fmt::format("says it has {} bits of content in {} bits, with a header of {}",
                                 content_bits, packet_bits, cursor.at));
    }
    Packet packet;
    packet.data = cursor.data;
    packet.file_offset = offset_;
    packet.content_bits = std::min(content_bits, available);
    packet.events_offset_bits = cursor.at;
    packet.truncated = content_bits > available;
    packet.sequence_number = fields.sequence_number;
    packet.events_discarded = fields.events_discarded;
    if (fields.begin_cycles) {
      cycles_ = advance_clock(cycles_, *fields.begin_cycles, fields.begin_bits);
      packet.begin_cycles = cycles_;
    }
    if (fields.end_cycles) {
      packet.end_cycles = advance_clock(cycles_, *fields.end_cycles, fields.end_bits);
      // A tracer that was killed leaves 0 here.
      if (packet.begin_cycles && *packet.end_cycles < *packet.begin_cycles) packet.end_cycles.reset();
      if (packet.end_cycles) cycles_ = *packet.end_cycles;
    }
    note_cpu(fields);
    index_.packets.push_back(packet);
    if (packet_bits > available) {
      auto& entry = note(Loss::truncated_packet, fmt::format("is cut off: {} of its {} bytes are there",
                                                             available / 8, packet_bits / 8));
      entry.count = (packet_bits - available) / 8;
      if (packet.begin_cycles) entry.begin_ns = to_ns_(*packet.begin_cycles);
      if (packet.end_cycles) entry.end_ns = to_ns_(*packet.end_cycles);
      return false;
    }
    offset_ += packet_bits / 8;
    return true;
  }

  const Decoder* check_header(const PacketFields& fields) {
    if (fields.magic && *fields.magic != kPacketMagic) {
      return not_ours(fmt::format("begins with {:#x}, not with the magic number of a packet", *fields.magic));
    }
    const bool first = index_.packets.empty();
    if (!fields.stream_class && decoders_.size() != 1) {
      return not_ours(fmt::format("does not say which of the {} stream classes it is of", decoders_.size()));
    }
    const std::uint64_t id = fields.stream_class.value_or(decoders_.begin()->first);
    const auto decoder = decoders_.find(id);
    if (decoder == decoders_.end()) {
      return not_ours(fmt::format("is of stream class {}, which the metadata does not know", id));
    }
    if (first) {
      index_.stream_class = id;
      index_.instance = fields.instance;
    } else if (id != index_.stream_class || fields.instance != index_.instance) {
      return not_ours("is of another stream than the packets before it");
    }
    if (fields.uuid && metadata_.uuid && *fields.uuid != *metadata_.uuid) note_foreign_uuid();
    return decoder->second.get();
  }

  // Once for the file. Traces that were put together by hand are like that, and good.
  void note_foreign_uuid() {
    if (!foreign_) {
      foreign_ = ledger_.size();
      note(Loss::foreign_uuid, "has the UUID of another trace than the metadata; it is read all the same")
          .begin_ns.reset();
    }
    ++ledger_[*foreign_].count;
  }

  void note_cpu(const PacketFields& fields) {
    if (!fields.cpu || *fields.cpu > std::numeric_limits<std::uint32_t>::max()) {
      index_.cpu.reset();
      return;
    }
    const auto cpu = static_cast<std::uint32_t>(*fields.cpu);
    if (index_.packets.empty()) index_.cpu = cpu;
    if (index_.cpu != cpu) index_.cpu.reset();
  }

  bool header_failed(const Cursor& cursor, const char* part) {
    if (cursor.failure != Failure::beyond_end && cursor.failure != Failure::no_terminator) {
      return corrupt(fmt::format("has a {} that cannot be decoded: {}", part, describe(cursor.failure)));
    }
    note(Loss::truncated_packet, fmt::format("is cut off within its {}", part)).count_is_exact = false;
    return false;
  }

  bool corrupt(const std::string& what) {
    note(Loss::corrupt_packet, what + "; the rest of the file is not read").count = mapped_.size() - offset_;
    return false;
  }

  const Decoder* not_ours(const std::string& what) {
    if (!index_.packets.empty()) {
      corrupt(what);
    } else {
      note(Loss::unreadable_stream, what).count = mapped_.size();
    }
    return nullptr;
  }

  LedgerEntry& note(Loss loss, const std::string& what) {
    LedgerEntry entry;
    entry.loss = loss;
    entry.file = file_;
    entry.offset = offset_;
    entry.message = fmt::format("{}: the packet at byte {} {}", file_, offset_, what);
    // What is lost lies behind what was read.
    if (!index_.packets.empty() && index_.packets.back().end_cycles) {
      entry.begin_ns = to_ns_(*index_.packets.back().end_cycles);
    }
    ledger_.push_back(std::move(entry));
    return ledger_.back();
  }

  const Metadata& metadata_;
  const Decoders& decoders_;
  PacketDecoder header_;
  const MappedFile& mapped_;
  const std::string& file_;
  const std::function<std::int64_t(std::uint64_t)>& to_ns_;
  Ledger& ledger_;
  ElementMemory memory_;
  std::vector<std::uint64_t> slots_;
  std::uint64_t offset_ = 0;
  std::uint64_t cycles_ = 0;
  std::optional<std::size_t> foreign_;  // in the ledger
  FileIndex index_;
};

}  // namespace

std::optional<FileIndex> index_packets(const Metadata& metadata, const Decoders& decoders,
                                       const MappedFile& mapped, const std::string& file,
                                       const std::function<std::int64_t(std::uint64_t)>& to_ns,
                                       Ledger& ledger) {
  return Indexer(metadata, decoders, mapped, file, to_ns, ledger).run();
}

void note_losses(Stream& stream, const std::function<std::int64_t(std::uint64_t)>& to_ns, Ledger& ledger) {
  const auto ns = [&](const std::optional<std::uint64_t>& cycles) -> std::optional<std::int64_t> {
    if (!cycles) return std::nullopt;
    return to_ns(*cycles);
  };
  const Packet* before = nullptr;
  for (const auto& packet : stream.packets) {
    LedgerEntry entry;
    entry.file = stream.files[packet.file];
    entry.offset = packet.file_offset;
    if (before != nullptr) entry.begin_ns = ns(before->end_cycles);

    if (before != nullptr && packet.sequence_number && before->sequence_number &&
        *packet.sequence_number > *before->sequence_number + 1) {
      LedgerEntry lost = entry;
      lost.loss = Loss::lost_packets;
      lost.count = *packet.sequence_number - *before->sequence_number - 1;
      lost.end_ns = ns(packet.begin_cycles);
      lost.message = fmt::format("{}: {} packets are missing before number {}", lost.file, lost.count,
                                 *packet.sequence_number);
      stream.lost_packets += lost.count;
      ledger.push_back(std::move(lost));
    }
    const std::uint64_t counted = before != nullptr ? before->events_discarded.value_or(0) : 0;
    // A count that became smaller began anew; how much of it is new nobody knows.
    if (packet.events_discarded && *packet.events_discarded > counted) {
      entry.loss = Loss::discarded_events;
      entry.count = *packet.events_discarded - counted;
      // The count may be older than the trace.
      entry.count_is_exact = before != nullptr;
      entry.end_ns = ns(packet.end_cycles);
      entry.message =
          before != nullptr
              ? fmt::format("{}: the tracer discarded {} events before the end of the packet at byte {}",
                            entry.file, entry.count, packet.file_offset)
              : fmt::format("{}: the tracer discarded {} events before the end of its first packet",
                            entry.file, entry.count);
      stream.discarded_events += entry.count;
      ledger.push_back(std::move(entry));
    }
    before = &packet;
  }
}

}  // namespace perflab::ctf
