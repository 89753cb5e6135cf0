// Memory that processes share.
#pragma once

#include <time.h>

#include <cstddef>
#include <cstdint>
#include <utility>

namespace perflab::middleware::shm {

inline std::int64_t read_clock(clockid_t clock) noexcept {
  timespec now;
  clock_gettime(clock, &now);
  return static_cast<std::int64_t>(now.tv_sec) * 1'000'000'000 + now.tv_nsec;
}

// Source time stamps.
inline std::int64_t wall_ns() noexcept { return read_clock(CLOCK_REALTIME); }

// A file descriptor that is closed with its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) noexcept : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor();
  int get() const noexcept { return fd_; }
  explicit operator bool() const noexcept { return fd_ >= 0; }
  // Another one of the same file. Throws StatusError.
  Descriptor duplicate() const;

 private:
  int fd_ = -1;
};

// A file of zeros in memory, without a name: it is gone with the last process that has it. Its size is
// sealed, so that no peer can take pages away from under another. Pages that nobody has touched cost nothing.
// Throws StatusError.
Descriptor make_file(const char* name, std::size_t size);
// Whether what a peer has sent is such a file of this size.
bool is_sealed_file(const Descriptor& file, std::size_t size) noexcept;

// A part of a file, mapped; it does not need the descriptor any more.
class Window {
 public:
  // Throws StatusError.
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
