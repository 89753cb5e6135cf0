// File descriptors that close themselves, and helpers that open them.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace perflab {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int number) noexcept : number_(number) {}
  Descriptor(Descriptor&& other) noexcept : number_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~Descriptor() { static_cast<void>(close()); }

  [[nodiscard]] int number() const noexcept { return number_; }
  [[nodiscard]] bool open() const noexcept { return number_ >= 0; }
  // The caller must close the number.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  // False if the kernel reports that some data was not written; errno has the reason.
  bool close() noexcept { return number_ < 0 || ::close(release()) == 0; }

 private:
  int number_ = -1;
};

// Opens a file for reading, relative to the folder `at` (AT_FDCWD: the working directory). Not open on
// failure; errno has the reason.
[[nodiscard]] Descriptor open_file(int at, const char* path) noexcept;

// Returns the whole file; empty if it cannot be read, with the reason in errno.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);

// Writes all bytes; false on failure, with the reason in errno.
bool write_all(const Descriptor& file, std::string_view bytes) noexcept;

// An event that another thread or a signal handler raises by notify(); readable until taken.
class Event {
 public:
  // Throws Failed.
  Event();
  [[nodiscard]] int number() const noexcept { return file_.number(); }
  void notify() const noexcept { notify(file_.number()); }
  // notify() by descriptor number, for signal handlers; preserves errno.
  static void notify(int number) noexcept;
  // True if the event was raised since the last call.
  bool take() const noexcept;

 private:
  Descriptor file_;
};

// A signalfd(2) for these signals. Blocks them in the calling thread and in threads it starts later, and
// resets inherited actions to the default. Throws Failed.
[[nodiscard]] Descriptor take_signals(std::initializer_list<int> numbers);
// Returns the next signal of take_signals(); 0 if none is pending.
[[nodiscard]] int next_signal(const Descriptor& signals) noexcept;

}  // namespace perflab
