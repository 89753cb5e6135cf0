// The runtimes by name: their capabilities, and how to construct them.
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

// What a runtime is constructed from. All of it must outlive the runtime.
struct RuntimeParts {
  const Config& config;
  const runtime::Plugin* plugin;          // for loadable runtimes
  const perflab_ros2_tracepoints* trace;  // null: there is none
  const measure::Clock& clock;
  runtime::EventSink& sink;
};

struct RuntimeKind {
  std::string_view name;
  runtime::Capabilities can;
  std::unique_ptr<runtime::Runtime> (*make)(const RuntimeParts& parts);  // throws Error
};

// Throws std::invalid_argument, which lists the known names.
const RuntimeKind& find_runtime(std::string_view name);

}  // namespace perflab::node
