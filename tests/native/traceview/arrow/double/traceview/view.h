// A fake view: known tables and answers, for tests of code that passes them on. Its traces are named by
// paths:
//
//   small      a few rows in some tables, none in the others
//   silent     small, without scheduler events
//   slow       prints "opened" on stdout, and takes an hour to open
//   missing    cannot be opened, for a reason that contains a newline
#pragma once

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <stdexcept>
#include <string>
#include <thread>

#include "traceview/scheduler.h"
#include "traceview/tables.h"

namespace perflab::traceview {

struct ViewOptions {
  unsigned threads = 0;
  std::optional<std::set<std::string, std::less<>>> columns{};
};

class DoubleScheduler {
 public:
  explicit DoubleScheduler(bool is_empty) : is_empty_(is_empty) {}
  [[nodiscard]] bool empty() const noexcept { return is_empty_; }

  // Always on a CPU, with as many migrations as the thread's number; unknown for thread 2.
  [[nodiscard]] std::optional<Split> split(std::int32_t thread, std::int64_t begin_ns,
                                           std::int64_t end_ns) const {
    check(thread, begin_ns, end_ns);
    if (thread == 2) return std::nullopt;
    return Split{.on_cpu_ns = end_ns - begin_ns, .migrations = static_cast<std::uint32_t>(thread)};
  }

  // One row per interval: it waited all the time, on the CPU with its own number; the holder for 1 is
  // unknown.
  [[nodiscard]] Scheduler::HoldsOf holds_of(std::span<const std::int32_t> threads,
                                            std::span<const std::int64_t> begins_ns,
                                            std::span<const std::int64_t> ends_ns) const {
    Scheduler::HoldsOf out;
    for (std::size_t i = 0; i < threads.size(); ++i) {
      check(threads[i], begins_ns[i], ends_ns[i]);
      out.interval.push(static_cast<std::uint32_t>(i));
      out.state.push(ThreadState::woken);
      out.cpu.push(threads[i]);
      threads[i] == 1 ? out.holder.push_null() : out.holder.push(0);
      out.held_ns.push(ends_ns[i] - begins_ns[i]);
    }
    return out;
  }

 private:
  static void check(std::int32_t thread, std::int64_t begin_ns, std::int64_t end_ns) {
    if (thread < 0 || thread > 2 || begin_ns > end_ns)
      throw std::logic_error("a scheduler is not asked that");
  }
  bool is_empty_;
};

class View {
 public:
  static std::shared_ptr<const View> open(std::span<const std::filesystem::path> paths,
                                          const ViewOptions& options) {
    for (const auto& path : paths) {
      if (path.filename() == "missing") throw std::runtime_error(path.string() + ":\nno such trace");
      if (path.filename() == "slow") {
        std::puts("opened");
        std::fflush(stdout);
        std::this_thread::sleep_for(std::chrono::hours(1));
      }
    }
    return std::make_shared<const View>(paths.empty() ? "" : paths.front().filename().string(), options);
  }

  View(const std::string& name, const ViewOptions& options)
      : scheduler_(name == "silent"), is_whole_(!options.columns) {
    if (options.columns) {
      takes_.keep([&](std::string_view column) { return wanted_of(*options.columns, "takes", column); });
    }
    facts_ = R"({"paths": [")" + name + R"("], "threads": )" + std::to_string(options.threads) +
             R"(, "scheduler": )" + (name == "silent" ? "null" : R"({"events": 5})") + "}";
    hosts_.name.push(std::string_view("größe"));
    hosts_.name.push_null();
    hosts_.name.push(std::string_view("cut \xc3"));
    for (std::int32_t row = 0; row < 3; ++row) {
      threads_.host.push(0);
      row == 1 ? threads_.process.push_null() : threads_.process.push(0);
      threads_.tid.push(100 + row);
      threads_.name.push(std::string_view(row == 2 ? "" : "main"));
      threads_.first_ns.push(row);
      threads_.last_ns.push(std::int64_t{1} << 60);
      threads_.events.push(~std::uint64_t{0});
    }
    for (std::int32_t row = 0; row < 20; ++row) {
      instances_.callback.push(row / 2);
      instances_.thread.push(row % 3);
      instances_.start_ns.push(1000 * row);
      row == 19 ? instances_.end_ns.push_null() : instances_.end_ns.push(1000 * row + 10);
      row == 18 ? instances_.intra_process.push_null() : instances_.intra_process.push(row % 3 == 1 ? 1 : 0);
      instances_.take.push_null();
      instances_.delivery.push_null();
      instances_.parent.push_null();
      instances_.due_ns.push_null();
    }
    for (std::int32_t row = 0; row < 6; ++row) {
      takes_.subscription.push(row);
      takes_.thread.push(0);
      takes_.rmw_ns.push(row), takes_.rcl_ns.push(row), takes_.rclcpp_ns.push(row);
      takes_.source_timestamp.push(row);
      takes_.match.push(static_cast<TakeMatch>(row));
      row == 0 ? takes_.publication.push(7) : takes_.publication.push_null();
      takes_.callback_instance.push_null();
    }
    for (const auto state : {ThreadState::running, ThreadState::blocked}) {
      states_.thread.push(0);
      states_.state.push(state);
      states_.start_ns.push(0), states_.end_ns.push(1), states_.cpu.push(0), states_.priority.push(120);
      state == ThreadState::running ? states_.end_state.push(EndState::sleeping)
                                    : states_.end_state.push_null();
      states_.inferred.push(0);
    }
  }

  [[nodiscard]] const std::string& facts() const { return facts_; }
  [[nodiscard]] const DoubleScheduler& scheduler() const { return scheduler_; }
  [[nodiscard]] bool is_whole() const { return is_whole_; }

  template <typename F>
  void tables(F&& f) const {
    f("hosts", hosts_), f("processes", processes_), f("threads", threads_), f("nodes", nodes_);
    f("callback_instances", instances_), f("takes", takes_), f("intra_deliveries", deliveries_);
    f("thread_states", states_), f("wake_ups", wake_ups_);
  }

 private:
  std::string facts_;
  DoubleScheduler scheduler_;
  bool is_whole_;
  Hosts hosts_;
  Processes processes_;
  Threads threads_;
  Nodes nodes_;
  CallbackInstances instances_;
  Takes takes_;
  ThreadStates states_;
  IntraDeliveries deliveries_;
  WakeUps wake_ups_;
};

}  // namespace perflab::traceview
