#include "program/sampler.h"

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>
#include <utility>

#include "realtime/thread.h"

namespace perflab::node {

Sampler::Sampler(const measure::Clock& clock, Nanoseconds period_ns, const Counters& counters,
                 RecordFile& file)
    : resources_(clock),
      clock_(clock),
      period_ns_(period_ns),
      counters_(counters),
      file_(file),
      allocations_beside_(
          reinterpret_cast<measure::AllocationsBeside>(dlsym(RTLD_DEFAULT, measure::kAllocationsBeside))),
      thread_([this] { run(); }) {
  // Until it is registered, the thread would count as one of the middleware.
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

void Sampler::measure_cost(Nanoseconds from_ns, Nanoseconds until_ns, std::vector<int> tracer) {
  {
    const std::lock_guard lock(mutex_);
    cost_ = Cost::kBefore;
    cost_from_ = from_ns;
    cost_until_ = until_ns;
    tracer_ = std::move(tracer);
  }
  wake_.notify_all();
}

void Sampler::end_at(Nanoseconds until_ns) {
  {
    const std::lock_guard lock(mutex_);
    cost_until_ = until_ns;
  }
  wake_.notify_all();
}

void Sampler::end_cost() {
  const std::lock_guard lock(mutex_);
  if (cost_ == Cost::kWithin) finish_cost();
  cost_ = Cost::kIdle;
}

void Sampler::watch_allocations() {
  watch_ = reinterpret_cast<measure::WatchAllocations>(dlsym(RTLD_DEFAULT, measure::kWatchAllocations));
  sites_ = reinterpret_cast<measure::AllocationSites>(dlsym(RTLD_DEFAULT, measure::kAllocationSites));
  if (watch_ == nullptr || sites_ == nullptr)
    throw Failed("allocation_sites: the library that counts allocations is not preloaded");
  if (!watch_(false)) throw Failed("allocation_sites: the process has no unwinder");
}

void Sampler::begin_cost() {
  write_cost("start");
  cost_ = Cost::kWithin;
  if (watch_ != nullptr) watch_(true);
}

void Sampler::finish_cost() {
  if (watch_ != nullptr) watch_(false);
  write_cost("end");
  if (watch_ == nullptr) return;
  nlohmann::json record = allocation_sites_record(sites_, clock_.now());
  add_roles(record["sites"]);
  file_.write(record);
}

void Sampler::write_due_cost(Nanoseconds now) {
  if (cost_ == Cost::kBefore && now >= cost_from_) {
    begin_cost();
  } else if (cost_ == Cost::kWithin && now >= cost_until_) {
    finish_cost();
    cost_ = Cost::kIdle;
  }
}

void Sampler::add_roles(nlohmann::json& of_threads) const {
  const std::vector<realtime::OwnThread> own = realtime::own_threads();
  const auto role = [&own, this](int tid) {
    if (std::ranges::find(tracer_, tid) != tracer_.end()) return "tracer";
    const auto known = std::ranges::find(own, tid, &realtime::OwnThread::tid);
    if (known == own.end()) return "middleware";
    return realtime::to_text(known->role);
  };
  for (nlohmann::json& one : of_threads) one["role"] = role(one["tid"].get<int>());
}

void Sampler::write_cost(const char* when) {
  const measure::CpuTimes times = measure::cpu_times(clock_);
  nlohmann::json record = cost_record(times, counters_.cycles, counters_.instructions, counters_.cache_misses);
  record["when"] = when;
  add_roles(record["threads"]);
  record["allocations"] = workload_allocations(record["threads"]);
  file_.write(record);
}

nlohmann::json Sampler::workload_allocations(const nlohmann::json& threads) const {
  std::vector<int> instrument;
  for (const nlohmann::json& thread : threads) {
    if (thread["role"] == "perflab" || thread["role"] == "tracer") instrument.push_back(thread["tid"].get<int>());
  }
  std::uint64_t count = 0;
  if (allocations_beside_ == nullptr || !allocations_beside_(instrument.data(), instrument.size(), &count)) return nullptr;
  return count;
}

void Sampler::run() {
  realtime::name_this_thread("sampler");
  realtime::register_this_thread(realtime::Role::kPerflab);
  Nanoseconds due = clock_.now();
  std::unique_lock lock(mutex_);
  registered_ = true;
  wake_.notify_all();
  while (!stopping_) {
    Nanoseconds now = clock_.now();
    write_due_cost(now);
    if (now >= due) {
      lock.unlock();
      file_.write(resource_record(resources_.sample()));
      lock.lock();
      // At fixed times; missed samples are skipped.
      now = clock_.now();
      due += ((now - due) / period_ns_ + 1) * period_ns_;
    }
    Nanoseconds next = due;
    if (cost_ == Cost::kBefore) next = std::min(next, cost_from_);
    if (cost_ == Cost::kWithin) next = std::min(next, cost_until_);
    // Without a predicate: the work to do may have changed.
    if (!stopping_ && next > now) wake_.wait_for(lock, std::chrono::nanoseconds(next - now));
  }
}

}  // namespace perflab::node
