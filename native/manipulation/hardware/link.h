// Shared memory between a robot's hardware (the simulator) and a controller manager in another process: the last measurement in
// one direction, the last command in the other. Neither side waits for the other; a reader always sees a complete value.
//
// The memory has no name, so nothing is left when the processes are killed. The hardware creates it and passes it to the
// controller over a local socket, whose abstract name the kernel removes with its owner.
//
// Example:
//   HardwareLink link = HardwareLink::offer(name, stopped);    // the hardware, before its loop
//   link.write(sample);
//   if (link.read(command)) drive(command);
//   HardwareLink link = HardwareLink::expect(name, stopped);   // the controller manager, likewise
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <type_traits>

#include "base/descriptor.h"
#include "base/time.h"

namespace perflab::manipulation {

// One value that one process writes and others read without locks (a sequence lock over words).
template <typename Value>
class SharedValue {
 public:
  static_assert(std::is_trivially_copyable_v<Value> && sizeof(Value) % sizeof(std::uint64_t) == 0);

  void write(const Value& value) noexcept {
    std::array<std::uint64_t, kWords> words;
    std::memcpy(words.data(), &value, sizeof(Value));
    const std::uint64_t number = number_.load(std::memory_order_relaxed);
    number_.store(number + 1, std::memory_order_relaxed);
    // A reader that sees one of the words also sees the odd number.
    for (std::size_t each = 0; each < kWords; ++each) words_[each].store(words[each], std::memory_order_release);
    number_.store(number + 2, std::memory_order_release);
  }
  // False if nothing has been written yet, or the writer was writing at every try.
  bool read(Value& value) const noexcept {
    std::array<std::uint64_t, kWords> words;
    for (int tries = 0; tries < kTries; ++tries) {
      const std::uint64_t number = number_.load(std::memory_order_acquire);
      if (number == 0 || number % 2 != 0) continue;
      for (std::size_t each = 0; each < kWords; ++each) words[each] = words_[each].load(std::memory_order_acquire);
      if (number_.load(std::memory_order_relaxed) != number) continue;
      std::memcpy(&value, words.data(), sizeof(Value));
      return true;
    }
    return false;
  }

 private:
  static constexpr std::size_t kWords = sizeof(Value) / sizeof(std::uint64_t);
  static constexpr int kTries = 8;
  std::atomic<std::uint64_t> number_;
  std::array<std::atomic<std::uint64_t>, kWords> words_;
};

class HardwareLink {
 public:
  static constexpr std::size_t kMostJoints = 16;
  using Joints = std::array<double, kMostJoints>;
  struct Sample {
    Nanoseconds time_ns;
    Joints positions, velocities, efforts;
    double hand, hand_velocity;
  };
  struct Command {
    Joints positions, velocities;
    double hand;
  };

  // Creates the memory, and tries to pass it on until the other side expects it. Throws Failed once `stopped()`.
  [[nodiscard]] static HardwareLink offer(const std::string& name, const std::function<bool()>& stopped);
  // Waits for the memory. Throws Failed once `stopped()`, or if the name is taken.
  [[nodiscard]] static HardwareLink expect(const std::string& name, const std::function<bool()>& stopped);

  void write(const Sample& sample) noexcept { memory_->sample.write(sample); }
  bool read(Sample& sample) const noexcept { return memory_->sample.read(sample); }
  void write(const Command& command) noexcept { memory_->command.write(command); }
  bool read(Command& command) const noexcept { return memory_->command.read(command); }

 private:
  struct Memory {
    SharedValue<Sample> sample;
    SharedValue<Command> command;
  };
  struct Unmap {
    void operator()(Memory* memory) const noexcept;
  };
  explicit HardwareLink(const Descriptor& file);
  std::unique_ptr<Memory, Unmap> memory_;
};

}  // namespace perflab::manipulation
