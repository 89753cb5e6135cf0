// Memory shared between processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/time.h"

namespace perflab::middleware::shm {

// The time for source time stamps.
inline std::int64_t wall_ns() noexcept { return read_clock(CLOCK_REALTIME); }

// Throws Failed with the failed action and the text for errno.
[[noreturn]] void fail(const std::string& what);

// Duplicates the descriptor. Throws Failed.
Descriptor duplicate(const Descriptor& file);

// An anonymous memory file of zeros: freed with the last process that has it. Its size is sealed, so that no
// process can truncate it while another uses it. Untouched pages cost nothing. Throws Failed.
Descriptor make_file(const char* name, std::size_t size);
// True if a file from a peer is such a file of this size.
bool is_sealed_file(const Descriptor& file, std::size_t size) noexcept;

// A mapped part of a file, which no longer needs the descriptor.
class Window {
 public:
  // Throws Failed.
  Window(const Descriptor& file, std::size_t offset, std::size_t size, bool writable);
  Window(Window&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Window& operator=(Window&&) = delete;
  ~Window();
  std::uint8_t* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return size_; }
  // Enlarges the window to at least this size; it may move. False if the kernel refuses.
  [[nodiscard]] bool grow(std::size_t size) noexcept;

 private:
  std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace perflab::middleware::shm
