// File descriptors that close themselves, and what is opened with them.
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
  // The caller closes the number.
  [[nodiscard]] int release() noexcept { return std::exchange(number_, -1); }
  // False where the kernel says that something was not written; errno says why.
  bool close() noexcept { return number_ < 0 || ::close(release()) == 0; }

 private:
  int number_ = -1;
};

// A file below the folder `at` (AT_FDCWD: by its path), for reading. Not open where that cannot be done;
// errno says why.
[[nodiscard]] Descriptor open_file(int at, const char* path) noexcept;

// The whole file; nothing where it cannot be read, errno says why.
[[nodiscard]] std::optional<std::string> read_file(const std::string& path);

// Writes all of it; false where that cannot be done, errno says why.
bool write_all(const Descriptor& file, std::string_view bytes) noexcept;

// An event that another thread or a signal handler announces by notify(); readable until it was taken.
class Event {
 public:
  // Throws Failed.
  Event();
  [[nodiscard]] int number() const noexcept { return file_.number(); }
  void notify() const noexcept { notify(file_.number()); }
  // By the number, for signal handlers; leaves errno as it was.
  static void notify(int number) noexcept;
  // Whether it was announced since the last call.
  bool take() const noexcept;

 private:
  Descriptor file_;
};

// These signals as something to read (signalfd(2)), for the calling thread and those that it starts from now
// on: blocked, and an action that was inherited is the default again. Throws Failed.
[[nodiscard]] Descriptor take_signals(std::initializer_list<int> numbers);
// The next signal of take_signals(); 0 where there is none.
[[nodiscard]] int next_signal(const Descriptor& signals) noexcept;

}  // namespace perflab
