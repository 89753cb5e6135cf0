#include "traceview/run_times.h"

#include <algorithm>

namespace perflab::traceview {

void RunTimes::collect() {
  times_.resize(threads_);
  const auto add = [this](const Int32& threads, const Int64& instants) {
    for (std::size_t i = 0; i < instants.size(); ++i) {
      if (instants.valid(i)) times_[at(threads[i])].push_back(instants[i]);
    }
  };
  add(ros_.callback_instances.thread, ros_.callback_instances.start_ns);
  add(ros_.callback_instances.thread, ros_.callback_instances.end_ns);
  add(ros_.phases.thread, ros_.phases.start_ns);
  const Publications& p = ros_.publications;
  for (const Int64* instants : {&p.rclcpp_ns, &p.intra_ns, &p.rcl_ns, &p.rmw_ns, &p.dds_ns})
    add(p.thread, *instants);
  const Takes& t = ros_.takes;
  for (const Int64* instants : {&t.rmw_ns, &t.rcl_ns, &t.rclcpp_ns}) add(t.thread, *instants);
  add(ros_.functions().calls().thread, ros_.functions().calls().start_ns);
  for (auto& times : times_) std::sort(times.begin(), times.end());
}

std::optional<std::int64_t> RunTimes::first_in(std::int32_t thread, std::int64_t begin_ns,
                                               std::int64_t end_ns) {
  if (times_.empty()) collect();
  if (at(thread) >= times_.size()) return std::nullopt;
  const auto& times = times_[at(thread)];
  const auto found = std::upper_bound(times.begin(), times.end(), begin_ns);
  return found == times.end() || *found >= end_ns ? std::nullopt : std::optional(*found);
}

}  // namespace perflab::traceview
