#include "ctf/packet_index.h"

#include <fmt/format.h>
#include <string.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <variant>

#include "ctf/packet_probe.h"

namespace perflab::ctf {
namespace {

constexpr std::size_t kHeaderBytes = 512;  // most headers with their contexts, and what is loaded beyond

// Bounds of the search for the next packet behind a broken one.
constexpr std::uint64_t kBlockBytes = std::uint64_t{1} << 20U;
constexpr std::uint64_t kLongestHeader = 64 * 1024;
constexpr std::uint64_t kHeaderWork = 1 << 14;
constexpr std::uint64_t kSearchCost = 64;  // about bytes looked at, for each byte of the file

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
        ledger_(ledger),
        magic_(magic_of(metadata)),
        budget_(static_cast<std::int64_t>(kSearchCost * (mapped.size() + kBlockBytes))) {}

  std::optional<FileIndex> run() {
    while (offset_ < mapped_.size()) {
      if (!mapped_.readable(offset_, offset_ + kHeaderBytes)) {
        note(Loss::truncated_packet,
             "cannot be read: its file became shorter since it was opened, or its disk fails")
            .count = mapped_.size() - offset_;
        break;
      }
      const Found found = examine(offset_, 8 * (mapped_.size() - offset_), kLeastWork);
      if (!(found.problem.empty() ? add(found) : go_on_behind(found))) break;
    }
    if (index_.packets.empty()) return std::nullopt;
    return std::move(index_);
  }

 private:
  // What stands at some byte of the file: a packet, or why it is none.
  struct Found {
    std::string problem;
    Loss loss = Loss::corrupt_packet;
    bool failed = false;  // to be decoded
    bool is_of_another_stream = false;
    PacketFields fields;
    std::uint64_t stream_class = 0;
    Packet packet;
    std::uint64_t packet_bits = 0;
    std::uint64_t cost = 0;  // of finding out, in about bytes
  };

  Found examine(std::uint64_t offset, std::uint64_t header_end, std::uint64_t work) {
    Found found;
    const std::uint64_t available = 8 * (mapped_.size() - offset);
    Cursor cursor;
    cursor.data = mapped_.data() + offset;
    cursor.end = header_end;
    cursor.memory = &memory_;
    cursor.work = work;
    const auto decode = [&](const PacketDecoder& decoder, const char* part) {
      memory_.clear();
      slots_.resize(std::max<std::size_t>(slots_.size(), decoder.slots()));
      const bool good = decoder.decode(cursor, slots_.data());
      found.cost += 64 + cursor.at / 8 + (work - cursor.work) / 8;
      if (good) return true;
      found.failed = true;
      if (cursor.failure == Failure::no_terminator) found.cost += header_end / 8;
      if (cursor.failure == Failure::beyond_end || cursor.failure == Failure::no_terminator) {
        found.loss = Loss::truncated_packet;
        found.problem = fmt::format("is cut off within its {}", part);
      } else {
        found.problem = fmt::format("has a {} that cannot be decoded: {}", part, describe(cursor.failure));
      }
      return false;
    };
    if (!decode(header_, "header")) return found;
    const Decoder* decoder = check_header(header_.fields(slots_.data()), found);
    if (decoder == nullptr || !decode(decoder->packet(), "context")) return found;
    found.fields = decoder->packet().fields(slots_.data());
    const PacketFields& fields = found.fields;

    // Where one of the sizes is missing the packet is as large as its content; where both are, the file is
    // one packet.
    const std::uint64_t packet_bits = fields.packet_bits.value_or(fields.content_bits.value_or(available));
    const std::uint64_t content_bits = fields.content_bits.value_or(packet_bits);
    if (packet_bits == 0 || packet_bits % 8 != 0 || packet_bits < cursor.at) {
      found.problem =
          fmt::format("says it has {} bits, of which its header alone has {}", packet_bits, cursor.at);
    } else if (content_bits > packet_bits || content_bits < cursor.at) {
      found.problem = fmt::format("says it has {} bits of content in {} bits, with a header of {}",
                                  content_bits, packet_bits, cursor.at);
    }
    found.packet_bits = packet_bits;
    found.packet.data = cursor.data;
    found.packet.file_offset = offset;
    found.packet.content_bits = std::min(content_bits, available);
    found.packet.events_offset_bits = cursor.at;
    found.packet.truncated = content_bits > available;
    return found;
  }

  // False where the rest of the file is not to be read.
  bool add(const Found& found) {
    const std::uint64_t available = 8 * (mapped_.size() - offset_);
    const PacketFields& fields = found.fields;
    const bool is_cut_off = found.packet_bits > available;
    if (index_.packets.empty()) {
      index_.stream_class = found.stream_class;
      index_.instance = fields.instance;
    }
    if (fields.uuid && metadata_.uuid && *fields.uuid != *metadata_.uuid) note_foreign_uuid();
    uuid_ = fields.uuid;
    Packet packet = found.packet;
    packet.sequence_number = fields.sequence_number;
    packet.events_discarded = fields.events_discarded;
    packet.after_gap = gap_.has_value();
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
    if (gap_ && packet.begin_cycles) ledger_[*gap_].end_ns = to_ns_(*packet.begin_cycles);
    gap_.reset();
    note_cpu(fields);
    index_.packets.push_back(packet);

    // Packets of a stream mostly have one size: a different one may be wrong, and hide other packets.
    const bool has_usual_size = found.packet_bits == usual_bits_;
    usual_bits_ = found.packet_bits;
    if (!has_usual_size) {
      const std::uint64_t end = offset_ + std::min(found.packet_bits, available) / 8;
      if (const auto next = search(behind_content(), end)) return cut(*next);
    }
    if (is_cut_off) {
      const auto last_ns = keep_good_events(index_.packets.back());
      auto& entry = note(Loss::truncated_packet, fmt::format("is cut off: {} of its {} bytes are there",
                                                             available / 8, found.packet_bits / 8));
      entry.begin_ns = last_ns;
      entry.count = (found.packet_bits - available) / 8;
      if (packet.end_cycles) entry.end_ns = to_ns_(*packet.end_cycles);
      return false;
    }
    offset_ += found.packet_bits / 8;
    return true;
  }

  // Continues at the next packet. Perhaps the size of the packet before is wrong, and hides that one.
  bool go_on_behind(const Found& found) {
    if (!index_.packets.empty()) {
      const std::uint64_t behind = behind_content();
      if (behind < offset_) {
        if (const auto next = search(behind, offset_)) return cut(*next);
      }
    }
    const auto next = search(offset_ + 1, mapped_.size());
    if (next) {
      gap_ = ledger_.size();
      note(Loss::corrupt_packet, found.problem + fmt::format("; reading goes on at byte {}", *next)).count =
          *next - offset_;
      offset_ = *next;
      return true;
    }
    if (found.loss == Loss::truncated_packet) {
      note(found.loss, found.problem).count_is_exact = false;
    } else if (found.is_of_another_stream && index_.packets.empty()) {
      note(Loss::unreadable_stream, found.problem).count = mapped_.size();
    } else {
      note(Loss::corrupt_packet, found.problem + "; the rest of the file is not read").count =
          mapped_.size() - offset_;
    }
    return false;
  }

  // The first byte where a packet may begin that the last one hides. Only one of its sizes is taken to be
  // wrong.
  [[nodiscard]] std::uint64_t behind_content() const {
    const Packet& last = index_.packets.back();
    const bool knows_content = last.content_bits < usual_bits_ && !last.truncated;
    return last.file_offset + ((knows_content ? last.content_bits : last.events_offset_bits) + 7) / 8;
  }

  // The last packet is smaller than it says.
  bool cut(std::uint64_t next) {
    Packet& last = index_.packets.back();
    const std::uint64_t end = last.file_offset + (last.content_bits + 7) / 8;
    last.content_bits = std::min(last.content_bits, 8 * (next - last.file_offset));
    last.truncated = false;
    offset_ = last.file_offset;
    gap_ = ledger_.size();
    const auto last_ns = keep_good_events(last);
    LedgerEntry& entry =
        note(Loss::corrupt_packet,
             fmt::format("says it has {} bytes, but another one begins at byte {}", usual_bits_ / 8, next));
    entry.count = next - std::min(next, end);
    entry.begin_ns = last_ns;
    usual_bits_ = 8 * (next - last.file_offset);
    offset_ = next;
    return true;
  }

  // Of a damaged packet what is behind the last event that can be decoded is not read. The time of that
  // event, or of the packet's begin where there is none.
  std::optional<std::int64_t> keep_good_events(Packet& packet) {
    std::optional<std::uint64_t> cycles = packet.begin_cycles;
    const auto content = static_cast<std::size_t>((packet.content_bits + 7) / 8);
    if (mapped_.readable(packet.file_offset, packet.file_offset + content + MappedFile::kReadableBeyond)) {
      Packet limited = packet;
      if (packet.end_cycles) limited.latest_cycles = *packet.end_cycles;
      const Probe found = probe(*decoders_.at(index_.stream_class), limited);
      packet.content_bits = found.good_bits;
      if (found.last_cycles) cycles = found.last_cycles;
    }
    if (!cycles) return std::nullopt;
    return to_ns_(*cycles);
  }

  // The first place in [begin, end) where a packet's header fits. Takes time in proportion to the file,
  // whatever is in it.
  std::optional<std::uint64_t> search(std::uint64_t begin, std::uint64_t end) {
    if (magic_.empty()) return std::nullopt;
    while (begin < end && budget_ > 0) {
      const std::uint64_t block_end = std::min<std::uint64_t>(end, begin + kBlockBytes);
      const std::uint64_t last = std::min<std::uint64_t>(mapped_.size(), block_end + magic_.size() - 1);
      if (!mapped_.readable(begin, last + kHeaderBytes)) return std::nullopt;
      const std::uint8_t* const data = mapped_.data();
      while (begin < block_end) {
        const void* const place = memmem(data + begin, last - begin, magic_.data(), magic_.size());
        if (place == nullptr) break;
        const auto at = static_cast<std::uint64_t>(static_cast<const std::uint8_t*>(place) - data);
        if (fits(at)) return at;
        if (budget_ <= 0) return std::nullopt;
        begin = at + 1;
      }
      begin = block_end;
    }
    return std::nullopt;
  }

  bool fits(std::uint64_t at) {
    const std::uint64_t available = 8 * (mapped_.size() - at);
    if (!mapped_.readable(at, at + kHeaderBytes)) return false;
    const Found found = examine(at, std::min<std::uint64_t>(available, 8 * kLongestHeader), kHeaderWork);
    budget_ -= static_cast<std::int64_t>(found.cost);
    if (!found.problem.empty()) return false;
    if (found.fields.uuid) return found.fields.uuid == metadata_.uuid || found.fields.uuid == uuid_;
    // The magic number alone may stand in an event: there must be a packet behind it, or the end.
    if (found.packet_bits >= available) return found.packet_bits == available;
    const std::uint64_t next = at + found.packet_bits / 8;
    return mapped_.size() - next >= magic_.size() && mapped_.readable(next, next + magic_.size()) &&
           std::equal(magic_.begin(), magic_.end(), mapped_.data() + next);
  }

  // The bytes of the magic number, where packets begin with it.
  static std::vector<std::uint8_t> magic_of(const Metadata& metadata) {
    const auto* header =
        metadata.packet_header ? std::get_if<Structure>(&metadata.packet_header->kind) : nullptr;
    if (header == nullptr || header->fields.empty() || header->fields[0].name != "magic") return {};
    const auto* integer = std::get_if<Integer>(&header->fields[0].type->kind);
    if (integer == nullptr || integer->size != 32) return {};
    std::vector<std::uint8_t> bytes;
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned shift = integer->order == ByteOrder::big ? 24 - 8 * i : 8 * i;
      bytes.push_back(static_cast<std::uint8_t>(kPacketMagic >> shift));
    }
    return bytes;
  }

  const Decoder* check_header(const PacketFields& fields, Found& found) const {
    const auto none = [&](std::string what) -> const Decoder* {
      found.problem = std::move(what);
      found.is_of_another_stream = true;
      return nullptr;
    };
    if (fields.magic && *fields.magic != kPacketMagic) {
      return none(fmt::format("begins with {:#x}, not with the magic number of a packet", *fields.magic));
    }
    if (!fields.stream_class && decoders_.size() != 1) {
      return none(fmt::format("does not say which of the {} stream classes it is of", decoders_.size()));
    }
    found.stream_class = fields.stream_class.value_or(decoders_.begin()->first);
    const auto decoder = decoders_.find(found.stream_class);
    if (decoder == decoders_.end()) {
      return none(fmt::format("is of stream class {}, which the metadata does not know", found.stream_class));
    }
    if (!index_.packets.empty() &&
        (found.stream_class != index_.stream_class || fields.instance != index_.instance)) {
      return none("is of another stream than the packets before it");
    }
    return decoder->second.get();
  }

  // One entry for the file. Traces that were put together by hand have such packets, and are good.
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

  LedgerEntry& note(Loss loss, const std::string& what) {
    LedgerEntry entry{.loss = loss,
                      .file = file_,
                      .offset = offset_,
                      .message = fmt::format("{}: the packet at byte {} {}", file_, offset_, what)};
    // The loss begins at the end of the last packet that was read.
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
  std::uint64_t usual_bits_ = 0;  // size of the last packet
  std::optional<Uuid> uuid_;      // of the last packet
  std::vector<std::uint8_t> magic_;
  std::int64_t budget_;                 // of looking at places where a packet might begin
  std::optional<std::size_t> gap_;      // in the ledger: the one before the next packet
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
    LedgerEntry entry{.file = stream.files[packet.file], .offset = packet.file_offset};
    if (before != nullptr) entry.begin_ns = ns(before->end_cycles);

    // A gap of numbers next to a broken packet is that packet, which has an entry of its own.
    if (before != nullptr && !packet.after_gap && packet.sequence_number && before->sequence_number &&
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
    // A count that became smaller was reset, and does not tell how many events were discarded since.
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
