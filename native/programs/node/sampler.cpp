#include "programs/node/sampler.h"

#include <chrono>
#include <nlohmann/json.hpp>

#include "realtime/thread.h"

namespace perflab::node {

Sampler::Sampler(const measure::Clock& clock, Nanoseconds period_ns, RecordFile& file)
    : resources_(clock), clock_(clock), period_ns_(period_ns), file_(file), thread_([this] { run(); }) {
  // Until then nobody could tell the thread from one of the middleware.
  std::unique_lock lock(mutex_);
  wake_.wait(lock, [this] { return registered_; });
}

Sampler::~Sampler() { stop(); }

void Sampler::stop() {
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  file_.write(resource_record(resources_.sample()));
}

void Sampler::run() {
  realtime::name_this_thread("sampler");
  realtime::register_this_thread(realtime::Role::kPerflab);
  Nanoseconds due = clock_.now();
  std::unique_lock lock(mutex_);
  registered_ = true;
  wake_.notify_all();
  while (!stopping_) {
    lock.unlock();
    file_.write(resource_record(resources_.sample()));
    lock.lock();
    // On a fixed grid; samples that were missed are left out.
    const Nanoseconds now = clock_.now();
    due += ((now - due) / period_ns_ + 1) * period_ns_;
    wake_.wait_for(lock, std::chrono::nanoseconds(due - now), [this] { return stopping_; });
  }
}

}  // namespace perflab::node
