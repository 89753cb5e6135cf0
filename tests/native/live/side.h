// One process of a graph on a middleware, with its own types like a separate process.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "graph/live.h"
#include "graph/parse.h"
#include "measure/clock.h"
#include "message/format.h"
#include "middleware/host/plugin.h"
#include "runtime/dds/dds_runtime.h"

namespace perflab::graph {

class Nobody final : public runtime::EventSink {
 public:
  void on_event(const perflab_event& /*event*/) noexcept override {}
  void on_write_failed(Nanoseconds /*at_ns*/, const char* text) noexcept override { ADD_FAILURE() << text; }
  void on_failure(Nanoseconds /*at_ns*/, const char* text) noexcept override { ADD_FAILURE() << text; }
};

// Variants of a process.
struct Manner {
  bool structs = false;
  std::optional<runtime::ServiceFraming> framing{};
  std::optional<runtime::ExecutorKind> executor{};
  bool intra_process = false;
};

// Runs a graph that contains TYPE in place of its type, which is defined by that text.
class Side {
 public:
  Side(const middleware::Plugin& plugin, std::uint32_t domain, const std::string& yaml, const std::string& type,
       const std::string& definition, std::size_t process, const Manner& manner = {})
      : types_(std::make_shared<message::Formats>(std::map<std::string, std::string>{{type, definition}})),
        graph_(parse_graph({{"test.yaml", with_type(yaml, type), "test"}}, types_)),
        runtime_(plugin, {.domain = domain, .participants_expected = 4},
                 {.intra_process = manner.intra_process, .service_framing = manner.framing}, clock_, sink_),
        live_(graph_, process, runtime_, events_,
              {.duration_ns = kNanosecondsPerSecond,
               .structs = manner.structs,
               .executor = manner.executor,
               .domain = domain}) {}
  ~Side() { runtime_.stop(); }
  Side(const Side&) = delete;
  Side& operator=(const Side&) = delete;

  [[nodiscard]] LiveGraph& live() { return live_; }
  [[nodiscard]] const message::Format& format(const std::string& type) { return *types_->find(type); }
  [[nodiscard]] bool timers_done() { return runtime_.timers_done(); }
  void stop() { runtime_.stop(); }
  [[nodiscard]] std::string hash(const std::string& type) { return types_->library().hash(type); }

 private:
  static std::string with_type(std::string yaml, const std::string& type) {
    for (std::size_t at = 0; (at = yaml.find("TYPE")) != std::string::npos;) yaml.replace(at, 4, type);
    return yaml;
  }

  std::shared_ptr<message::Formats> types_;
  Graph graph_;
  measure::MonotonicClock clock_;
  Nobody sink_;
  measure::MessageEventQueue events_;
  runtime::DdsRuntime runtime_;
  LiveGraph live_;
};

}  // namespace perflab::graph
