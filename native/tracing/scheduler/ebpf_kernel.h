// What of bpf(2) and perf_event_open(2) the source needs. Everything lives as long as its descriptor: maps
// and programs are neither pinned nor linked, so the kernel drops them when the process ends, however it
// ends.
#pragma once

#include <linux/bpf.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>

namespace perflab::tracing::bpf {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { reset(); }
  [[nodiscard]] int get() const noexcept { return number_; }
  void reset() noexcept;

 private:
  int number_ = -1;
};

// Memory that is shared with the kernel.
class Mapping {
 public:
  Mapping() = default;
  // `what` is for the error: std::system_error.
  Mapping(int descriptor, std::size_t offset, std::size_t bytes, bool writable, const char* what);
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~Mapping();
  [[nodiscard]] std::byte* data() const noexcept { return data_; }

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

struct MapShape {
  const char* name;  // at most 15 letters, digits, underscores
  bpf_map_type type;
  std::uint32_t key_bytes, value_bytes, entries;
  std::uint32_t flags = 0;
  int inner = -1;  // for maps of maps: a map as they will be
};

// All of these throw Unavailable where the kernel or the rights are in the way.
[[nodiscard]] Descriptor create_map(const MapShape& shape);
void set_entry(int map, const void* key, const void* value, const char* what);
// BPF_NOEXIST: false where the key was there already; std::system_error where the map is full.
bool add_entry(int map, const void* key, const void* value, const char* what);
// `reads_memory`: it calls helpers that the kernel gives to GPL-compatible programs alone.
[[nodiscard]] Descriptor load_tracepoint_program(const char* name, std::span<const bpf_insn> code,
                                                 bool reads_memory);
// The program runs at that tracepoint on every CPU until the descriptor that comes back is closed.
[[nodiscard]] Descriptor attach(int program, const std::string& tracepoint, std::uint64_t tracepoint_id,
                                unsigned any_online_cpu);

// How often the kernel did not run the program because another one ran on that CPU (0 on kernels before 5.12,
// and of tracepoints before 6.7, which do not count it).
[[nodiscard]] std::uint64_t missed_runs(int program) noexcept;

// One BPF_MAP_TYPE_RINGBUF, read.
//
//   const std::uint64_t end = ring.written();
//   for (auto record = ring.next(end); !record.empty(); record = ring.next(end)) ...
//   ring.release();
class RingReader {
 public:
  RingReader(int map, std::size_t bytes);
  // How far was written up to now.
  [[nodiscard]] std::uint64_t written() const noexcept;
  // How far was read.
  [[nodiscard]] std::uint64_t position() const noexcept { return position_; }
  // The next record before `end`, or nothing: none is there, or it is just being written. It lives until
  // release().
  [[nodiscard]] std::span<const std::byte> next(std::uint64_t end) noexcept;
  // The place of what was read is free again.
  void release() noexcept;

 private:
  std::size_t mask_;
  Mapping consumer_, producer_;
  const std::byte* data_;
  std::uint64_t position_ = 0;
};

}  // namespace perflab::tracing::bpf
