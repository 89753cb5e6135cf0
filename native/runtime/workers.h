// The threads of one executor: each takes its name and its settings before any of them runs.
//
// Example:
//   workers.create(settings, 2, [this](std::size_t) { run(); });  // throws if the kernel refuses
//   workers.release();
//   ...
//   workers.join();
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/runtime.h"

namespace perflab::runtime {

class Workers {
 public:
  Workers() = default;
  Workers(const Workers&) = delete;
  Workers& operator=(const Workers&) = delete;
  ~Workers() { join(); }

  // Returns when all threads have their settings. Throws Error, and then no thread is left.
  void create(const ExecutorSettings& settings, std::size_t count, std::function<void(std::size_t)> body);
  void release() noexcept;
  // Threads that were not released end without having run.
  void join() noexcept;

 private:
  enum class Phase { kWaiting, kReleased, kAbandoned };

  void begin(const ExecutorSettings& settings, std::size_t index, std::size_t count) noexcept;
  void set_phase(Phase phase) noexcept;

  std::mutex mutex_;
  std::condition_variable changed_;
  Phase phase_ = Phase::kWaiting;
  std::size_t reported_ = 0;
  std::string refusal_;
  std::function<void(std::size_t)> body_;
  std::vector<std::thread> threads_;
};

// CPUs that the calling thread may use, at least 1: how many threads an executor has that is not told.
[[nodiscard]] std::size_t usable_cpus() noexcept;

// "<name>" of a thread that is alone, "<name>.<index>" of several; the number survives the kernel's 15 bytes.
[[nodiscard]] std::string thread_name(const std::string& name, std::size_t index, std::size_t count);

}  // namespace perflab::runtime
