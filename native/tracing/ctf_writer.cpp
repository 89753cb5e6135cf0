#include "tracing/ctf_writer.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <filesystem>
#include <limits>
#include <optional>

#include "base/descriptor.h"
#include "base/hex.h"

namespace perflab::tracing {
namespace {

constexpr std::uint32_t kMagic = 0xc1fc1fc1;

// The header of a packet before its events, laid out as the metadata declares.
struct __attribute__((packed)) PacketStart {
  std::uint32_t magic = kMagic;
  CtfUuid uuid{};
  std::uint32_t stream_id = 0;
  std::uint64_t timestamp_begin = 0, timestamp_end = 0;
  std::uint64_t content_bits = 0, packet_bits = 0;
  std::uint64_t sequence = 0;
  std::uint64_t discarded = 0;
  std::uint32_t cpu = 0;
};

constexpr std::uint16_t kExtended = 65535;

[[noreturn]] void fail(const std::string& path, const char* what, int reason) {
  throw CtfOutputError(path + ": " + what + ": " + reason_of(reason));
}

void write_file(const std::string& path, std::string_view text) {
  Descriptor file(open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file.open()) fail(path, "cannot be made", errno);
  if (!write_all(file, text)) {
    const int reason = errno;
    unlink(path.c_str());
    fail(path, "cannot be written", reason);
  }
  if (!file.close()) fail(path, "cannot be written", errno);
}

constexpr const char* kEnvironment = "env {\n";

}  // namespace

CtfUuid random_uuid() {
  CtfUuid uuid{};
  if (getrandom(uuid.data(), uuid.size(), 0) != static_cast<ssize_t>(uuid.size()))
    throw CtfOutputError("no random numbers: " + reason_of(errno));
  uuid[6] = static_cast<std::uint8_t>((uuid[6] & 0x0fU) | 0x40U);
  uuid[8] = static_cast<std::uint8_t>((uuid[8] & 0x3fU) | 0x80U);
  return uuid;
}

std::string ctf_preamble(const CtfUuid& uuid, std::string_view environment, const std::string& clock_uuid,
                         std::int64_t epoch_offset_ns, std::string_view event_context) {
  const char* const order = std::endian::native == std::endian::little ? "le" : "be";
  std::string text = "/* CTF 1.8 */\n\n";
  for (const char* const type : {"8", "16", "32", "64"}) {
    for (const bool is_signed : {false, true}) {
      text += std::string("typealias integer { size = ") + type +
              "; align = 8; signed = " + (is_signed ? "true" : "false") + "; } := " + (is_signed ? "" : "u") +
              "int" + type + "_t;\n";
    }
  }
  text += "\ntrace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"" + uuid_text(uuid) +
          "\";\n\tbyte_order = " + order +
          ";\n\tpacket.header := struct {\n\t\tuint32_t magic;\n\t\tuint8_t uuid[16];\n\t\tuint32_t "
          "stream_id;\n\t};\n};\n\n";
  text += kEnvironment + std::string(environment) + "};\n\n";
  text += "clock {\n\tname = \"monotonic\";\n";
  if (!clock_uuid.empty()) text += "\tuuid = \"" + clock_uuid + "\";\n";
  text +=
      "\tdescription = \"Monotonic Clock\";\n\tfreq = 1000000000;\n"
      "\t/* clock value offset from Epoch is: offset * (1/freq) */\n\toffset = " +
      std::to_string(epoch_offset_ns) + ";\n};\n\n";
  for (const char* const bits : {"32", "64"}) {
    text += std::string("typealias integer {\n\tsize = ") + bits +
            "; align = 8; signed = false;\n\tmap = clock.monotonic.value;\n} := uint" + bits +
            "_clock_monotonic_t;\n\n";
  }
  text +=
      "struct packet_context {\n\tuint64_clock_monotonic_t timestamp_begin;\n\tuint64_clock_monotonic_t "
      "timestamp_end;\n\tuint64_t content_size;\n\tuint64_t packet_size;\n\tuint64_t "
      "packet_seq_num;\n\tuint64_t "
      "events_discarded;\n\tuint32_t cpu_id;\n};\n\n"
      "struct event_header_large {\n\tenum : uint16_t { compact = 0 ... 65534, extended = 65535 } "
      "id;\n\tvariant <id> "
      "{\n\t\tstruct {\n\t\t\tuint32_clock_monotonic_t timestamp;\n\t\t} compact;\n\t\tstruct "
      "{\n\t\t\tuint32_t "
      "id;\n\t\t\tuint64_clock_monotonic_t timestamp;\n\t\t} extended;\n\t} v;\n} align(8);\n\n"
      "stream {\n\tid = 0;\n\tevent.header := struct event_header_large;\n\tpacket.context := struct "
      "packet_context;\n";
  text += std::string(event_context) + "};\n\n";
  return text;
}

CtfWriter::CtfWriter(CtfSettings settings) : settings_(std::move(settings)) {
  std::error_code error;
  std::filesystem::create_directories(settings_.folder, error);
  if (error) throw CtfOutputError(settings_.folder + ": cannot be made: " + error.message());
  write_file(settings_.folder + "/metadata", settings_.metadata);
  for (const unsigned cpu : settings_.cpus) {
    Stream& stream = streams_.emplace_back();
    stream.cpu = cpu;
    stream.path = settings_.folder + "/scheduler_" + std::to_string(cpu);
    stream.file = open(stream.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (stream.file < 0) fail(stream.path, "cannot be made", errno);
    // An event is written completely before the packet size is checked.
    stream.bytes.reserve(settings_.packet_bytes + 8192);
  }
}

CtfWriter::~CtfWriter() {
  for (const Stream& stream : streams_) {
    if (stream.file >= 0) close(stream.file);
  }
}

void CtfWriter::begin_packet(Stream& stream, std::int64_t time_ns) {
  stream.bytes.resize(sizeof(PacketStart));
  stream.begin_ns = stream.last_ns = time_ns;
}

void CtfWriter::begin_event(Stream& stream, std::uint16_t id, std::int64_t time_ns) {
  const bool first = stream.bytes.empty();
  const std::int64_t before = stream.last_ns;
  if (first) begin_packet(stream, time_ns);
  CtfBytes bytes(stream.bytes);
  // 32 bits of time suffice if the previous event is within their range.
  if (first || time_ns - before <= std::numeric_limits<std::uint32_t>::max()) {
    bytes.put(id);
    bytes.put(static_cast<std::uint32_t>(static_cast<std::uint64_t>(time_ns)));
  } else {
    bytes.put(kExtended);
    bytes.put(static_cast<std::uint32_t>(id));
    bytes.put(static_cast<std::uint64_t>(time_ns));
  }
  stream.last_ns = time_ns;
}

// An empty packet between the two carries the count: readers recognize a loss by the packets around it.
void CtfWriter::lost(std::size_t index, std::int64_t after_ns, std::int64_t before_ns, std::uint64_t events) {
  Stream& stream = streams_[index];
  if (!stream.bytes.empty()) close_packet(index);
  begin_packet(stream, std::max(after_ns, stream.last_ns));
  stream.last_ns = std::max(before_ns, stream.last_ns);
  stream.discarded += events;
  close_packet(index);
}

void CtfWriter::close_packet(std::size_t index) {
  Stream& stream = streams_[index];
  PacketStart start;
  start.uuid = settings_.uuid;
  start.timestamp_begin = static_cast<std::uint64_t>(stream.begin_ns);
  start.timestamp_end = static_cast<std::uint64_t>(stream.last_ns);
  start.content_bits = 8 * stream.bytes.size();
  // The next packet starts at a word boundary: otherwise loads cross words and reading takes a quarter
  // longer.
  stream.bytes.resize((stream.bytes.size() + 7) / 8 * 8);
  start.packet_bits = 8 * stream.bytes.size();
  start.sequence = stream.sequence++;
  start.discarded = stream.discarded;
  start.cpu = stream.cpu;
  std::memcpy(stream.bytes.data(), &start, sizeof start);
  if (settings_.flight_recorder_bytes == 0) {
    write(stream, stream.bytes);
  } else {
    kept_bytes_ += stream.bytes.size();
    kept_.push_back({index, stream.begin_ns, stream.discarded, {stream.bytes.begin(), stream.bytes.end()}});
    while (kept_bytes_ > settings_.flight_recorder_bytes && kept_.size() > 1) {
      kept_bytes_ -= kept_.front().bytes.size();
      Stream& of = streams_[kept_.front().stream];
      ++of.forgotten;
      of.forgotten_discarded = kept_.front().discarded;
      kept_.pop_front();
    }
  }
  stream.bytes.clear();
}

void CtfWriter::write(Stream& stream, std::span<const std::byte> packet) {
  if (failed_) return;
  for (std::size_t done = 0; done < packet.size();) {
    const ssize_t wrote = ::write(stream.file, packet.data() + done, packet.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) {
      const int reason = wrote < 0 ? errno : ENOSPC;
      // Removes an incomplete packet, so that the file consists of complete ones.
      static_cast<void>(!ftruncate(stream.file, static_cast<off_t>(stream.size)));
      failed_ = true;
      fail(stream.path, "cannot be written", reason);
    }
    done += static_cast<std::size_t>(wrote);
  }
  stream.size += packet.size();
  bytes_ += packet.size();
}

void CtfWriter::flush() {
  if (settings_.flight_recorder_bytes != 0) return;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    if (!streams_[i].bytes.empty()) close_packet(i);
  }
}

void CtfWriter::replace_metadata(const std::string& metadata) {
  const std::string path = settings_.folder + "/metadata", next = path + ".next";
  write_file(next, metadata);
  if (rename(next.c_str(), path.c_str()) != 0) fail(path, "cannot be replaced", errno);
  settings_.metadata = metadata;
}

void CtfWriter::finish(std::int64_t end_ns) {
  if (finished_) return;
  finished_ = true;
  for (std::size_t i = 0; i < streams_.size(); ++i) {
    Stream& stream = streams_[i];
    if (stream.bytes.empty()) {
      if (stream.sequence == 0) continue;
      begin_packet(stream, stream.last_ns);
    }
    stream.last_ns = std::max(stream.last_ns, end_ns);
    close_packet(i);
  }
  if (settings_.flight_recorder_bytes != 0) write_flight();
  // Only now: if a recorder was killed, its streams end with their last events.
  std::string metadata = settings_.metadata;
  if (const auto at = metadata.find(kEnvironment); at != std::string::npos) {
    metadata.insert(at + std::strlen(kEnvironment), "\tstream_end = \"recording\";\n");
    replace_metadata(metadata);
  }
}

void CtfWriter::write_flight() {
  std::deque<Kept> kept = std::move(kept_);
  kept_.clear();
  if (kept.empty() || streams_.empty()) return;
  Stream& first = streams_[0];
  if (restate_ && first.forgotten > 0) {
    // A packet before all kept ones of its stream, in place of the last forgotten one. It starts when they
    // start: earlier parts of the stream are unknown. Its sequence number is never 0, which would mean that
    // nothing was forgotten.
    const auto own = std::find_if(kept.begin(), kept.end(), [](const Kept& packet) { return packet.stream == 0; });
    const std::int64_t begin_ns = own != kept.end() ? own->begin_ns : first.last_ns;
    const Stream now = first;
    first.sequence = std::max<std::uint64_t>(first.forgotten - 1, 1);
    first.discarded = first.forgotten_discarded;
    first.last_ns = begin_ns;
    std::size_t bytes = settings_.packet_bytes;
    settings_.packet_bytes = std::numeric_limits<std::size_t>::max();
    restate_(begin_ns);
    settings_.packet_bytes = bytes;
    if (!first.bytes.empty()) {
      settings_.flight_recorder_bytes = 0;
      close_packet(0);
    }
    first.sequence = now.sequence;
    first.discarded = now.discarded;
    first.last_ns = now.last_ns;
  }
  for (const Kept& packet : kept) write(streams_[packet.stream], packet.bytes);
}

}  // namespace perflab::tracing
