// A trace as tables: opens it, reads all events once, and keeps what became of them.
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
  unsigned threads = 0;  // that decode; 0 is one per CPU
  // Of the tables of what happened (instances, messages, phases) the columns that will be read: "takes.match", or
  // "takes.rmw_ns?" of which it is only asked which rows are null; none: all of them. What nobody reads need not be kept, and
  // takes its share of the time of reading.
  std::optional<std::set<std::string, std::less<>>> columns{};
};

class View {
 public:
  // Throws ctf::TraceError where nothing can be opened or no event can be read: one line.
  [[nodiscard]] static std::shared_ptr<const View> open(std::span<const std::filesystem::path> paths, const ViewOptions& options);

  // What was read and what was not, as JSON (docs/formats.md).
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
