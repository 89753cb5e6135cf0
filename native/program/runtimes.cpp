#include "program/runtimes.h"

#include <array>
#include <stdexcept>
#include <string>

#include "middleware/host/plugin.h"
#include "program/config.h"
#include "runtime/dds/dds_runtime.h"
#include "runtime/virtual/virtual_runtime.h"

namespace perflab::node {
namespace {

std::uint32_t participants_of(const graph::Graph& graph) {
  int participants = 0;
  for (const graph::Process& process : graph.processes) participants += process.participants;
  return static_cast<std::uint32_t>(participants);
}

// A middleware that cannot be loaded is missing on this machine: not a bad input.
middleware::Plugin load_middleware(const std::string& library) {
  try {
    return middleware::Plugin::load(library);
  } catch (const Error& error) {
    throw Unsupported(error.what());
  }
}

std::unique_ptr<runtime::Runtime> make_dds(const RuntimeParts& parts) {
  const Config& config = parts.config;
  return std::make_unique<runtime::DdsRuntime>(
      load_middleware(config.middleware_library),
      middleware::ParticipantSettings{.domain = config.domain,
                                      .network = config.network,
                                      .participants_expected = participants_of(config.graph),
                                      .options = config.middleware_options},
      runtime::DdsSettings{config.intra_process, config.service_framing, parts.trace,
                           static_cast<std::size_t>(config.graph.processes[*config.process].participants)},
      parts.clock, parts.sink);
}

std::unique_ptr<runtime::Runtime> make_virtual(const RuntimeParts& parts) {
  return std::make_unique<runtime::VirtualRuntime>(parts.config.middleware_options, parts.config.seed);
}

std::unique_ptr<runtime::Runtime> make_loaded(const RuntimeParts& parts) {
  const Config& config = parts.config;
  return parts.plugin->open(
      {.middleware = config.middleware_name,
       .domain = config.domain,
       .network = config.network,
       .participants_expected = participants_of(config.graph),
       .participants = static_cast<std::uint32_t>(config.graph.processes[*config.process].participants),
       .intra_process = config.intra_process,
       .structs = config.live.structs,
       .service_framing = config.service_framing,
       .traced = config.traced,
       .options = config.middleware_options},
      parts.clock, parts.sink);
}

constexpr std::array<RuntimeKind, 3> kRuntimes{
    {{"dds", runtime::DdsRuntime::kCapabilities, make_dds},
     {"virtual", runtime::VirtualRuntime::kCapabilities, make_virtual},
     {"rclcpp", runtime::Plugin::kCapabilities, make_loaded}}};

}  // namespace

const RuntimeKind& find_runtime(std::string_view name) {
  for (const RuntimeKind& kind : kRuntimes) {
    if (kind.name == name) return kind;
  }
  throw std::invalid_argument("runtime: unknown '" + std::string(name) +
                              "', known are dds, virtual and rclcpp");
}

}  // namespace perflab::node
