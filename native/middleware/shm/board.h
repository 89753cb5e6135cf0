// A process's shared data for all its senders: the futexes on which its threads sleep, and the progress of
// its readers.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>

#include "middleware/shm/memory.h"
#include "middleware/support/bell.h"

namespace perflab::middleware::shm {

using support::SharedBell;

// For one reader and one writer. The reader's process writes it, the writer's reads it.
struct Cell {
  // How many messages for it the reader has finished with; modulo 2^32.
  alignas(64) std::atomic<std::uint32_t> taken;
  // The bells to ring for a new message: that of a wait-set, and that of the thread which calls on_data(). 0:
  // none.
  alignas(64) std::array<std::atomic<std::uint32_t>, 2> bells;
};

class Board {
 public:
  static constexpr std::uint32_t kBells = 1024;
  static constexpr std::uint32_t kCells = 4096;

  // The board of this process; destroyed with the last participant. Throws Failed, like everything here that
  // is not noexcept.
  static std::shared_ptr<Board> of_this_process();
  explicit Board(Descriptor file);

  const Descriptor& file() const noexcept { return file_; }
  // A peer may send any number.
  SharedBell& bell(std::uint32_t number) const noexcept { return memory().bells[number % kBells].bell; }
  Cell& cell(std::uint32_t number) const noexcept { return memory().cells[number % kCells]; }
  void ring(std::uint32_t number) const noexcept {
    if (number != 0) bell(number).ring();
  }

  // Numbers of this process itself.
  std::uint32_t take_bell();
  void return_bell(std::uint32_t number) noexcept;
  std::uint32_t take_cell();
  void return_cell(std::uint32_t number) noexcept;

 private:
  struct alignas(64) Line {
    SharedBell bell;
  };
  struct Memory {
    std::array<Line, kBells> bells;
    std::array<Cell, kCells> cells;
  };
  // Counts from 1. Returned numbers are reused as late as possible: a peer may still use them.
  struct Numbers {
    std::uint32_t end;
    const char* what;
    std::uint32_t next = 1;
    std::deque<std::uint32_t> returned{};
  };

  std::uint32_t take(Numbers& numbers);
  Memory& memory() const noexcept { return *reinterpret_cast<Memory*>(window_.data()); }

  Descriptor file_;
  Window window_;
  std::mutex mutex_;
  Numbers bells_{kBells, "wait-sets"};
  Numbers cells_{kCells, "pairs of a writer and a reader"};
};

}  // namespace perflab::middleware::shm
