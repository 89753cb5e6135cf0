#include "middleware/shm/board.h"

#include <string>
#include <utility>

#include "base/error.h"

namespace perflab::middleware::shm {

std::shared_ptr<Board> Board::of_this_process() {
  static std::mutex mutex;
  static std::weak_ptr<Board> known;
  const std::lock_guard lock(mutex);
  std::shared_ptr<Board> board = known.lock();
  if (board == nullptr) {
    board = std::make_shared<Board>(make_file("perflab-shm-board", sizeof(Memory)));
    known = board;
  }
  return board;
}

Board::Board(Descriptor file)
    : file_(std::move(file)),
      window_(is_sealed_file(file_, sizeof(Memory)) ? Window(file_, 0, sizeof(Memory), true)
                                                    : throw Failed("shm: a process sent an invalid board")) {}

std::uint32_t Board::take(Numbers& numbers) {
  const std::lock_guard lock(mutex_);
  if (numbers.next < numbers.end) return numbers.next++;
  if (numbers.returned.empty()) {
    throw Failed("shm: more than " + std::to_string(numbers.end - 1) + " " + numbers.what +
                 " in this process");
  }
  const std::uint32_t number = numbers.returned.front();
  numbers.returned.pop_front();
  return number;
}

std::uint32_t Board::take_bell() { return take(bells_); }

std::uint32_t Board::take_cell() {
  const std::uint32_t number = take(cells_);
  cell(number).taken = 0;
  for (auto& bell : cell(number).bells) bell = 0;
  return number;
}

void Board::return_bell(std::uint32_t number) noexcept {
  const std::lock_guard lock(mutex_);
  bells_.returned.push_back(number);
}

void Board::return_cell(std::uint32_t number) noexcept {
  const std::lock_guard lock(mutex_);
  cells_.returned.push_back(number);
}

}  // namespace perflab::middleware::shm
