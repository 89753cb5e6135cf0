// The configuration of one perflab-node (docs/formats.md, section 2).
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "graph/live.h"
#include "graph/model.h"
#include "program/runtimes.h"

namespace perflab::node {

struct Config {
  graph::Graph graph;
  std::optional<std::size_t> process;  // index; null: all of them
  std::string process_name;
  const RuntimeKind* runtime = nullptr;
  std::string middleware_name;
  std::string middleware_library;
  std::uint32_t domain = 0;
  std::string network = "lo";
  std::vector<std::pair<std::string, std::string>> middleware_options;
  graph::LiveSettings live;
  bool intra_process = false;
  std::optional<runtime::ServiceFraming> service_framing;  // null: the runtime's choice
  Nanoseconds sampling_ns = 500'000'000;
  Nanoseconds checkpoint_ns = 5 * kNanosecondsPerSecond;
  Nanoseconds discovery_timeout_ns = 30 * kNanosecondsPerSecond;
  bool traced = false;
  std::optional<std::string> tracing_library;  // has the tracepoints, for a runtime without its own
  bool allocation_sites = false;               // whether call sites of allocations are recorded
  std::uint64_t message_limit_bytes = 0;       // with live.recording: the limit of what is written of messages
  std::optional<Nanoseconds> hiccup_ns;        // the period of the thread `hiccup`; null: there is none
  bool peers_change = false;  // processes of the graph may end and be replaced, so unknown peers are no error
  bool rejoins = false;       // replaces a process that has ended; the others are already running
  std::uint64_t seed = 1;
  std::string records;
};

// Throws BadInput with one line that names the file.
Config read_config(const std::string& file);

// Throws BadInput if messages to or from another process do not carry their due time, and there is no shared memory in which
// to look it up.
void require_schedule(const Config& config);

}  // namespace perflab::node
