// One process of a graph: builds it, waits for discovery and the start, reports while it runs, and writes
// what was measured.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "base/control.h"
#include "measure/event_queue.h"
#include "program/config.h"
#include "program/events.h"
#include "program/hiccup.h"
#include "program/host.h"
#include "program/message_log.h"
#include "program/records.h"
#include "program/sampler.h"
#include "runtime/plugin.h"
#include "tracing/ros/library.h"

namespace perflab::node {

class Node {
 public:
  // `config` and `control` must outlive the node. `make` constructs the application of a program; it is empty in perflab-node,
  // which has none. Throws Error.
  Node(const Config& config, Control& control, const program::Make& make);
  ~Node();

  // From discovery to the last line of the records. Returns early when perflab asks for it, after writing what was measured so
  // far, and when perflab is gone, without writing any more.
  void run();

 private:
  struct Start {
    Nanoseconds at_ns = 0;
    std::vector<graph::WriterName> writers;
  };

  [[nodiscard]] nlohmann::json tracing_record() const;
  void write_process_record();
  void write_thread_record(const char* when);
  void write_passing_record();
  void write_message_log_record();
  // The processes of the graph that live here: one, or all on the virtual runtime.
  [[nodiscard]] std::vector<const graph::Process*> processes() const;
  void start_runtime();
  // Throws Unsupported.
  void refuse_what_it_cannot() const;
  void create_runtime();
  [[nodiscard]] bool real_time() const noexcept { return config_.runtime->can.real_time; }
  // The tracer's threads, which belong neither to perflab nor to the middleware.
  [[nodiscard]] const std::vector<int>& tracer_threads() const noexcept;
  // Registers the threads that the runtime's library has started.
  void adopt_threads() const;
  // Throws Error (kUnsupported) if a thread is not scheduled as asked.
  void check_threads() const;
  // Throws BadInput if the graph names another program for this process, or none.
  void require_program(bool has_application) const;
  // False if the discovery timed out.
  bool await_discovery();
  std::optional<Start> await_start(bool matched);
  void measure(Nanoseconds start_ns, Nanoseconds measured_from);
  [[nodiscard]] bool publishing_ended() const;
  // The end of a measured part that does not end by itself.
  void end_at(Nanoseconds at_ns);
  // Writes what a program has reported to the records, and tells perflab.
  void pass_on(bool with_times);
  // Writes what was measured so far, and kills the process as in a crash: nothing is closed, no peer is
  // notified.
  [[noreturn]] void crash();
  void send_progress(Nanoseconds measured_from, bool publishing);
  void write_checkpoint(bool final);
  // Ends the runtime and writes the last records; throws if they could not be written.
  void finish();
  void check_strangers();
  void send_done();

  Counters counters_;  // first: they count in threads started after them
  const Config& config_;
  Control& control_;
  measure::MonotonicClock clock_;
  RecordFile records_;
  EventLog events_;
  measure::MessageEventQueue message_events_;
  bool stop_asked_ = false;
  Nanoseconds measured_until_ = 0;  // from the start on
  std::optional<tracing::Library> tracing_;
  std::optional<runtime::Plugin> plugin_;  // if the runtime is not built into perflab-node
  std::unique_ptr<Sampler> sampler_;
  std::unique_ptr<Hiccup> hiccup_;
  std::unique_ptr<measure::MessageRing> ring_;  // if messages are recorded one by one, like the next
  std::unique_ptr<MessageLog> message_log_;
  std::unique_ptr<runtime::Runtime> runtime_;
  std::unique_ptr<graph::LiveGraph> live_;
  std::unique_ptr<program::Host> host_;  // for a program
  LoopWriter loops_;
  ThrottleWriter throttles_;
};

}  // namespace perflab::node
