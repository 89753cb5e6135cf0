// Implements program.h for one process, on a LiveGraph.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "base/descriptor.h"
#include "graph/live.h"
#include "measure/histogram.h"
#include "program/program.h"

namespace perflab::program {

// The measured part: after `from`, and no later than `until`.
struct Measured {
  std::atomic<Nanoseconds> from_ns{std::numeric_limits<Nanoseconds>::max()};
  std::atomic<Nanoseconds> until_ns{std::numeric_limits<Nanoseconds>::max()};
};

class Times::State {
 public:
  State(const Measured& measured, Nanoseconds duration_ns) : measured_(measured), memory_(1), histogram_(memory_) {
    memory_.prefault(duration_ns);
  }
  void record(Nanoseconds took_ns, Nanoseconds at_ns) noexcept {
    if (at_ns <= measured_.from_ns.load(std::memory_order_relaxed) ||
        at_ns > measured_.until_ns.load(std::memory_order_relaxed))
      return;
    histogram_.record(took_ns, at_ns);
  }
  [[nodiscard]] const measure::Histogram& histogram() const noexcept { return histogram_; }

 private:
  const Measured& measured_;
  measure::HistogramMemory memory_;
  measure::Histogram histogram_;
};

// A ring between the recording thread and the writing one.
class Series::State {
 public:
  State(std::string name, std::vector<std::string> columns)
      : name_(std::move(name)), columns_(std::move(columns)), at_ns_(kRoom), values_(kRoom * columns_.size()) {}

  void record(Nanoseconds at_ns, std::span<const double> row) noexcept {
    const std::size_t next = written_.load(std::memory_order_relaxed);
    if (next >= kMost || next - taken_.load(std::memory_order_acquire) >= kRoom || row.size() != columns_.size()) {
      left_out_.fetch_add(1, std::memory_order_relaxed);
      return;
    }
    const std::size_t place = next % kRoom;
    at_ns_[place] = at_ns;
    std::copy(row.begin(), row.end(), values_.begin() + static_cast<std::ptrdiff_t>(place * columns_.size()));
    written_.store(next + 1, std::memory_order_release);
  }
  // What was recorded or left out since the last call; null if there is nothing. One thread calls it.
  [[nodiscard]] nlohmann::json take();

 private:
  static constexpr std::size_t kRoom = 4096, kMost = 100'000;  // rows

  const std::string name_;
  const std::vector<std::string> columns_;
  std::vector<Nanoseconds> at_ns_;
  std::vector<double> values_;
  std::atomic<std::size_t> written_{0}, taken_{0};
  std::atomic<std::uint64_t> left_out_{0};
  std::uint64_t left_out_taken_ = 0;  // as of the last take()
};

class Host;

// A client of the graph; `who` names it when its handler throws.
class detail::ClientEnd {
 public:
  ClientEnd(Host& host, graph::ClientEnd& end, std::string who) : host_(host), end_(end), who_(std::move(who)) {}
  bool call(const void* request, Nanoseconds due_ns, OnReply on_reply);

 private:
  Host& host_;
  graph::ClientEnd& end_;
  const std::string who_;
};

// The same for an action client.
class detail::ActionClientEnd {
 public:
  ActionClientEnd(Host& host, graph::ActionClientEnd& end, std::string who) : host_(host), end_(end), who_(std::move(who)) {}
  std::optional<GoalId> send_goal(const void* goal, Nanoseconds due_ns, GoalCallbacks callbacks);
  bool cancel_goal(const GoalId& goal) { return end_.cancel_goal(goal); }

 private:
  Host& host_;
  graph::ActionClientEnd& end_;
  const std::string who_;
};

// Used by the controlling thread, except where Context allows others.
class Host final : public Context {
 public:
  // All arguments outlive the host. Throws BadInput if the process's options are not an object.
  Host(const graph::Process& process, graph::LiveGraph& live, std::uint64_t seed, std::uint32_t domain,
       Nanoseconds duration_ns);
  ~Host() override;

  // Constructs the application. Throws what it throws, and BadInput if the application does not know an option or thread of the
  // graph, or an executor would call its handlers in a way that it does not allow.
  void make(const Make& make);
  // Creates its threads, which wait, scheduled as the graph says; then calls start(). Throws Unsupported if the kernel refuses.
  void begin(const Start& start);
  // Lets its threads run.
  void release();
  // Ends the measured part at that instant.
  void end_at(Nanoseconds at_ns);
  // Calls stop() and joins its threads. Afterwards only handlers may still run. Idempotent.
  void stop();

  // A descriptor that becomes readable when failure(), take_end() or take_record() has something new; reading
  // them clears it.
  [[nodiscard]] int news() const noexcept { return news_.number(); }
  void clear_news() noexcept { news_.take(); }
  // The first failure; empty if there was none.
  [[nodiscard]] std::string failure() const;
  // When the program asked for the end; returned once.
  [[nodiscard]] std::optional<Nanoseconds> take_end();
  // What the program reported since the last call, and with `with_times` all its histograms so far; null if there is nothing.
  [[nodiscard]] nlohmann::json take_record(Nanoseconds at_ns, bool with_times);

  // Calls `function`; an exception is a failure of the process.
  template <typename Function, typename... Arguments>
  void guarded(const std::string& who, const Function& function, Arguments&&... arguments) noexcept {
    try {
      function(std::forward<Arguments>(arguments)...);
    } catch (const std::exception& error) {
      fail(who + ": " + error.what());
    } catch (...) {
      fail(who + ": threw something that is not a std::exception");
    }
  }

  // -- Context --
  [[nodiscard]] Options& options() noexcept override { return options_; }
  [[nodiscard]] std::uint64_t seed() const noexcept override { return seed_; }
  [[nodiscard]] const std::string& process() const noexcept override { return process_.name; }
  [[nodiscard]] std::uint32_t domain() const noexcept override { return domain_; }
  void reentrant() override;
  void timer(const std::string& node, const std::string& name, Nanoseconds period_ns,
             std::function<void(Nanoseconds)> handler, bool skip_missed) override;
  void thread(const std::string& name, std::function<void(const Running&)> function) override;
  void thread_name(const std::string& name) override;
  void enter_thread(const std::string& name) override;
  [[nodiscard]] Span span(const std::string& node, const std::string& name, Nanoseconds period_ns) override;
  [[nodiscard]] Times& times(const std::string& name) override;
  void figure(const std::string& name, double value) override;
  [[nodiscard]] Series& series(const std::string& name, const std::vector<std::string>& columns) override;
  void moment(const std::string& words) override;
  void scene(const nlohmann::json& scene) override;
  void outcome(const std::string& name, const std::string& reason) override;
  void end() override;
  void fail(const std::string& reason) noexcept override;

 private:
  struct Thread {
    std::string name;
    std::function<void(const Running&)> function;
    std::thread thread{};
  };
  struct Recorder {
    std::string name;
    std::unique_ptr<Times::State> state;
    std::unique_ptr<Times> times;
  };
  struct Film {
    std::unique_ptr<Series::State> state;
    std::unique_ptr<Series> series;
  };
  struct Said {
    std::string name, reason;
    Nanoseconds at_ns;
  };
  enum class Gate { kClosed, kOpen, kStopped };

  detail::PublisherEnd& publisher_end(const std::string& node, const std::string& topic,
                                      const detail::TypeInfo& type) override;
  void set_message_handler(const std::string& node, const std::string& topic, const detail::TypeInfo& type,
                           std::function<void(const void*, const Received&)> handler) override;
  detail::ClientEnd& client_end(const std::string& node, const std::string& service, const detail::TypeInfo& request,
                                const detail::TypeInfo& response) override;
  void set_request_handler(const std::string& node, const std::string& service, const detail::TypeInfo& request,
                           const detail::TypeInfo& response,
                           std::function<void(const void*, std::shared_ptr<detail::ServerRequest>)> handler) override;
  detail::ActionClientEnd& action_client_end(const std::string& node, const std::string& action,
                                             const detail::ActionInfo& type) override;
  void set_action_handlers(const std::string& node, const std::string& action, const detail::ActionInfo& type,
                           detail::ServerCallbacks handlers) override;

  // Throws BadInput if the program was built with another type than the graph has.
  void require(const std::string& what, const message::Format& format, const detail::TypeInfo& type);
  void require(const std::string& what, const message::Type& graphs, const detail::TypeInfo& type);
  void require(const std::string& what, const message::ActionTypes& graphs, const detail::ActionInfo& type);
  void require_making(const char* what) const;
  void require_thread(const std::string& name) const;
  // Throws BadInput if the program is not reentrant and an executor of the process calls handlers at the same time.
  void require_order_of_handlers() const;
  [[nodiscard]] const realtime::ThreadSettings& settings_of(const std::string& thread) const;
  void run(Thread& thread, const Start& start) noexcept;
  const graph::Process& process_;
  graph::LiveGraph& live_;
  const std::uint64_t seed_;
  const std::uint32_t domain_;
  const Nanoseconds duration_ns_;
  Options options_;
  std::unique_ptr<Application> application_;
  bool making_ = false;
  bool reentrant_ = false;
  bool stopping_ = false;
  Measured measured_;
  std::deque<detail::ClientEnd> clients_;
  std::deque<detail::ActionClientEnd> action_clients_;
  std::deque<Recorder> recorders_;
  std::deque<Film> series_;
  struct Merged {
    measure::HistogramMemory memory{1};
    measure::Histogram histogram{memory};
  };
  std::map<std::string, Merged> merged_;
  std::deque<Thread> threads_;
  std::set<std::string> entered_;  // names of threads that the program starts itself
  std::mutex gate_mutex_;
  std::condition_variable gate_changed_;
  Gate gate_ = Gate::kClosed;
  std::size_t scheduled_ = 0;  // threads that have applied their scheduling, or failed to
  std::string refused_;        // why the first one failed
  std::atomic<bool> stopped_{false};
  Event news_;
  mutable std::mutex said_mutex_;  // guards all below
  std::map<std::string, std::vector<double>> figures_;
  nlohmann::json moments_ = nlohmann::json::array(), scene_;
  std::optional<Said> outcome_;
  bool outcome_written_ = false;
  std::optional<Nanoseconds> end_;
  bool end_taken_ = false;
  std::string failure_;
};

}  // namespace perflab::program
