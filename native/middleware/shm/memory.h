// Memory that processes share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "base/descriptor.h"
#include "base/time.h"

namespace perflab::middleware::shm {

// Source time stamps.
inline std::int64_t wall_ns() noexcept { return read_clock(CLOCK_REALTIME); }

// Throws Failed with what could not be done and what errno says of it.
[[noreturn]] void fail(const std::string& what);

// Another descriptor of the same file. Throws Failed.
Descriptor duplicate(const Descriptor& file);

// A file of zeros in memory, without a name: it is gone with the last process that has it. Its size is
// sealed, so that no peer can take pages away from under another. Pages that nobody has touched cost nothing.
// Throws Failed.
Descriptor make_file(const char* name, std::size_t size);
// Whether what a peer has sent is such a file of this size.
bool is_sealed_file(const Descriptor& file, std::size_t size) noexcept;

// A part of a file, mapped; it does not need the descriptor any more.
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
  // Afterwards it has at least this size, and may lie elsewhere. False where the kernel gives no more.
  [[nodiscard]] bool grow(std::size_t size) noexcept;

 private:
  std::uint8_t* data_;
  std::size_t size_;
};

}  // namespace perflab::middleware::shm
