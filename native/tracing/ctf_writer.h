// Writes CTF 1.8 as LTTng does: a folder with `metadata` and one file of packets per CPU. The caller writes
// the event fields; this class adds the event header and arranges events in packets and packets on disk.
//
// A packet is written with one system call once it is complete, so the files are readable at any time. With a
// flight recorder packets stay in memory, the oldest are dropped, and finish() writes the rest.
//
// Example:
//   CtfWriter writer({.folder = "trace/scheduler", .metadata = text, .uuid = uuid, .cpus = {0, 1}});
//   writer.event(cpu, id, time_ns, [&](CtfBytes& bytes) { bytes.put(tid); bytes.put(priority); });
//   writer.finish(time_ns);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace perflab::tracing {

using CtfUuid = std::array<std::uint8_t, 16>;

// A random UUID from the kernel.
[[nodiscard]] CtfUuid random_uuid();

// The output cannot be written: one line with the file and the reason. Existing files stay readable.
class CtfOutputError : public Failed {
 public:
  using Failed::Failed;
};

// Bytes at the end of a packet, in native byte order and unaligned, as the metadata says.
class CtfBytes {
 public:
  explicit CtfBytes(std::vector<std::byte>& to) : to_(to) {}

  template <typename Number>
  void put(Number number) {
    put_bytes(&number, sizeof number);
  }
  void put_bytes(const void* bytes, std::size_t size) {
    if (size == 0) return;
    const auto* const from = static_cast<const std::byte*>(bytes);
    to_.insert(to_.end(), from, from + size);
  }
  // Writes the text up to its first zero, and a terminating zero.
  void put_text(std::string_view text) {
    text = text.substr(0, text.find('\0'));
    put_bytes(text.data(), text.size());
    to_.push_back(std::byte{0});
  }

 private:
  std::vector<std::byte>& to_;
};

// The base declarations: packet header, packet context, event header; `events` follows.
[[nodiscard]] std::string ctf_preamble(const CtfUuid& uuid, std::string_view environment,
                                       const std::string& clock_uuid, std::int64_t epoch_offset_ns,
                                       std::string_view event_context);

struct CtfSettings {
  std::string folder;
  std::string metadata;
  CtfUuid uuid{};
  std::vector<unsigned> cpus;
  std::size_t packet_bytes = 256 << 10;   // a packet is closed at this size
  std::size_t flight_recorder_bytes = 0;  // 0: everything goes to disk
};

class CtfWriter {
 public:
  // Creates the folder and all files. Throws CtfOutputError, also if a trace exists already.
  explicit CtfWriter(CtfSettings settings);
  ~CtfWriter();
  CtfWriter(const CtfWriter&) = delete;
  CtfWriter& operator=(const CtfWriter&) = delete;

  // Events of one CPU are in order of time.
  template <typename Fill>
  void event(std::size_t stream, std::uint16_t id, std::int64_t time_ns, Fill&& fill) {
    begin_event(streams_[stream], id, time_ns);
    CtfBytes bytes(streams_[stream].bytes);
    fill(bytes);
    ++events_;
    if (streams_[stream].bytes.size() >= settings_.packet_bytes) close_packet(stream);
  }
  // Records that this many events of a stream are missing between these instants.
  void lost(std::size_t stream, std::int64_t after_ns, std::int64_t before_ns, std::uint64_t events);
  // Writes all unfinished packets: everything before this call survives the end of the process.
  void flush();
  void replace_metadata(const std::string& metadata);
  // Writes the rest. No event follows, and none before `end_ns` is missing: the last packet of each non-empty
  // stream ends there, so that readers notice if it is missing; the metadata say so (stream_end =
  // "recording").
  void finish(std::int64_t end_ns);

  // Time of the last event of a stream, which later events must not precede. 0: none yet.
  [[nodiscard]] std::int64_t last_ns(std::size_t stream) const { return streams_[stream].last_ns; }
  // For a flight recorder: the start of what it keeps.
  [[nodiscard]] std::int64_t oldest_ns() const { return kept_.empty() ? 0 : kept_.front().begin_ns; }
  [[nodiscard]] std::uint64_t events() const noexcept { return events_; }
  [[nodiscard]] std::uint64_t bytes() const noexcept { return bytes_; }  // on disk

  // For a flight recorder. Called by finish() if packets of the first stream were dropped: may add events at
  // the start of the kept part that repeat still valid facts from dropped events.
  using Restate = std::function<void(std::int64_t begin_ns)>;
  void on_finish(Restate restate) { restate_ = std::move(restate); }

 private:
  struct Stream {
    unsigned cpu = 0;
    int file = -1;
    std::string path;
    std::vector<std::byte> bytes;  // of the current packet; empty: none has been started
    std::int64_t begin_ns = 0, last_ns = 0;
    std::uint64_t sequence = 0, discarded = 0;
    std::uint64_t size = 0;                                // of the file
    std::uint64_t forgotten = 0, forgotten_discarded = 0;  // packets; what the last of them counted
  };
  struct Kept {
    std::size_t stream;
    std::int64_t begin_ns;
    std::uint64_t discarded;
    std::vector<std::byte> bytes;
  };

  void begin_event(Stream& stream, std::uint16_t id, std::int64_t time_ns);
  void begin_packet(Stream& stream, std::int64_t time_ns);
  void close_packet(std::size_t index);
  void write(Stream& stream, std::span<const std::byte> packet);
  void write_flight();

  CtfSettings settings_;
  std::vector<Stream> streams_;
  std::deque<Kept> kept_;
  std::size_t kept_bytes_ = 0;
  std::uint64_t events_ = 0, bytes_ = 0;
  bool failed_ = false, finished_ = false;
  Restate restate_;
};

}  // namespace perflab::tracing
