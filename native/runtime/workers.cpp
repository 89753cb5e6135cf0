#include "runtime/workers.h"

#include <sched.h>

#include <algorithm>
#include <system_error>

#include "realtime/scheduling.h"
#include "realtime/thread.h"

namespace perflab::runtime {
namespace {

constexpr std::size_t kKernelNameBytes = 15;

}  // namespace

std::size_t usable_cpus() noexcept {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0) return 1;
  return static_cast<std::size_t>(std::max(CPU_COUNT(&cpus), 1));
}

std::string thread_name(const std::string& name, std::size_t index, std::size_t count) {
  if (count <= 1) return name;
  const std::string number = "." + std::to_string(index);
  return name.substr(0, kKernelNameBytes - std::min(number.size(), kKernelNameBytes)) + number;
}

void Workers::create(const ExecutorSettings& settings, std::size_t count,
                     std::function<void(std::size_t)> body) {
  body_ = std::move(body);
  std::string failure;
  try {
    for (std::size_t i = 0; i < count; ++i) {
      threads_.emplace_back([this, settings, i, count] { begin(settings, i, count); });
    }
  } catch (const std::system_error& error) {
    failure = settings.name + ": cannot create thread " + std::to_string(threads_.size() + 1) + " of " +
              std::to_string(count) + ": " + error.what();
  }
  std::string refusal;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return reported_ == threads_.size(); });
    refusal = refusal_;
  }
  if (failure.empty() && refusal.empty()) return;
  join();
  if (!failure.empty()) {
    if (const auto limit = realtime::lock_limit_reached(failure)) throw Unsupported(*limit);
    throw Failed(failure);
  }
  throw Unsupported(settings.name + ": " + refusal);
}

void Workers::begin(const ExecutorSettings& settings, std::size_t index, std::size_t count) noexcept {
  realtime::name_this_thread(thread_name(settings.name, index, count));
  realtime::register_this_thread(realtime::Role::kExecutor, settings.thread);
  std::string refusal;
  try {
    realtime::apply(settings.thread);
  } catch (const realtime::SchedulingError& error) {
    refusal = error.what();
  }
  {
    std::unique_lock lock(mutex_);
    if (refusal_.empty()) refusal_ = refusal;
    ++reported_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return phase_ != Phase::kWaiting; });
    if (phase_ == Phase::kAbandoned) return;
  }
  body_(index);
}

void Workers::set_phase(Phase phase) noexcept {
  {
    const std::lock_guard lock(mutex_);
    if (phase_ == Phase::kWaiting) phase_ = phase;
  }
  changed_.notify_all();
}

void Workers::release() noexcept { set_phase(Phase::kReleased); }

void Workers::join() noexcept {
  set_phase(Phase::kAbandoned);
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

}  // namespace perflab::runtime
