// The runtimes by their names: what each can do, and how it is made.
#pragma once

#include <memory>
#include <string_view>

#include "measure/clock.h"
#include "runtime/capabilities.h"
#include "runtime/plugin.h"
#include "runtime/runtime.h"
#include "tracing/ros/tracepoints.h"

namespace perflab::node {

struct Config;

// What a runtime is made of. All of it outlives the runtime.
struct RuntimeParts {
  const Config& config;
  const runtime::Plugin* plugin;          // of runtimes that are loaded
  const perflab_ros2_tracepoints* trace;  // null: there is none
  const measure::Clock& clock;
  runtime::EventSink& sink;
};

struct RuntimeKind {
  std::string_view name;
  runtime::Capabilities can;
  std::unique_ptr<runtime::Runtime> (*make)(const RuntimeParts& parts);  // throws Error
};

// Throws std::invalid_argument, which names those that are known.
const RuntimeKind& find_runtime(std::string_view name);

}  // namespace perflab::node
