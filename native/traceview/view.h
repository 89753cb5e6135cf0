// A trace as tables: opens the trace, reads all events once, and keeps the tables made from them.
//
// Example:
//   const auto view = View::open(std::vector<std::filesystem::path>{"trace"}, {});
//   view->tables([](const char* name, const auto& table) { ... });
#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>

#include "traceview/directory.h"
#include "traceview/ros.h"
#include "traceview/scheduler.h"

namespace perflab::traceview {

struct ViewOptions {
  unsigned threads = 0;  // for decoding; 0: one per CPU
  // Columns that will be read, in the tables of instances, messages and phases: "takes.match", or "takes.rmw_ns?" if only
  // tested for null. nullopt: all. Omitting columns makes reading faster.
  std::optional<std::set<std::string, std::less<>>> columns{};
};

class View {
 public:
  // Throws ctf::TraceError with a message of one line if no trace can be opened or no event can be read.
  [[nodiscard]] static std::shared_ptr<const View> open(std::span<const std::filesystem::path> paths, const ViewOptions& options);

  // Facts about the traces, including data that could not be read, as JSON (docs/formats.md).
  [[nodiscard]] const std::string& facts() const noexcept { return facts_; }
  [[nodiscard]] const Scheduler& scheduler() const noexcept { return scheduler_; }

  // Whether every column of every table is kept.
  [[nodiscard]] bool is_whole() const noexcept { return is_whole_; }

  // visitor(name, table) for every table.
  template <typename F>
  void tables(F&& f) const {
    f("hosts", hosts_), f("processes", processes_), f("threads", threads_);
    f("nodes", ros_.nodes), f("publishers", ros_.publishers), f("subscriptions", ros_.subscriptions);
    f("services", ros_.services), f("clients", ros_.clients), f("timers", ros_.timers), f("callbacks", ros_.callbacks);
    f("links", ros_.links);
    f("callback_instances", ros_.callback_instances), f("publications", ros_.publications), f("takes", ros_.takes);
    f("intra_deliveries", ros_.intra_deliveries), f("service_calls", ros_.service_calls), f("phases", ros_.phases);
    f("functions", ros_.functions().functions()), f("function_calls", ros_.functions().calls());
    f("thread_states", scheduler_.states()), f("wake_ups", scheduler_.wake_ups());
    f("migrations", scheduler_.migrations()), f("holds", scheduler_.holds());
    f("futex_waits", scheduler_.futex_waits());
  }

 private:
  friend class ViewBuilder;
  View() : ros_(directory_), scheduler_(directory_) {}

  Directory directory_;
  Ros ros_;
  Scheduler scheduler_;
  Hosts hosts_;
  Processes processes_;
  Threads threads_;
  std::string facts_;
  bool is_whole_ = true;
};

}  // namespace perflab::traceview
