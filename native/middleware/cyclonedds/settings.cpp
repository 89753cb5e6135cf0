#include "middleware/cyclonedds/settings.h"

#include <dds/features.h>

#include <algorithm>
#include <span>

#include "middleware/cyclonedds/iceoryx.h"
#include "middleware/support/cyclonedds.h"
#include "middleware/support/options.h"

namespace perflab::middleware::cyclonedds {
namespace {

using support::Options;

#ifdef DDS_HAS_SHM  // a Cyclone without it, as ROS 2 builds it, refuses the element
constexpr const char* kWithoutSharedMemory = "<SharedMemory><Enable>false</Enable></SharedMemory>";
#else
constexpr const char* kWithoutSharedMemory = "";
#endif

std::string read_config(const Options& options) {
  std::string xml = options.xml("config").value_or("");
  // Cyclone takes the configuration as fragments, which have no XML declaration.
  if (xml.starts_with("<?xml")) xml.erase(0, std::min(xml.size(), xml.find("?>") + 2));
  // Messages that are not written for it would be lost without a word.
  if (xml.find("SharedMemory") != std::string::npos) {
    options.refuse("config", "a configuration without SharedMemory, and shared_memory=on beside it");
  }
  return xml;
}

constexpr const char* kBatching = "<CycloneDDS><Domain id=\"any\"><Internal><WriteBatch>true</WriteBatch></Internal></Domain></CycloneDDS>";
constexpr std::int64_t kBatchingDelay_ns = 1'000'000;
constexpr std::int64_t kLongestBatchingDelay_ns = 3'600'000'000'000;

std::optional<std::int64_t> read_batching(const Options& options) {
  const bool batching = options.either("batching", "on", "off").value_or(false);
  const auto delay_ns = options.duration_ns("batching_delay");
  if (delay_ns && !batching) options.refuse("batching_delay", "batching=on beside it");
  if (delay_ns && (*delay_ns <= 0 || *delay_ns > kLongestBatchingDelay_ns)) {
    options.refuse("batching_delay", "above 0, to 3600s");
  }
  if (!batching) return std::nullopt;
  return delay_ns.value_or(kBatchingDelay_ns);
}

std::string read_shared_memory(const Options& options, Settings& settings) {
  settings.shared_memory = options.either("shared_memory", "on", "off").value_or(false);
  if (!settings.shared_memory) return kWithoutSharedMemory;
  if (!iceoryx::is_built_in()) {
    throw Unsupported(
        "cyclonedds: shared_memory=on: this Cyclone DDS was built without iceoryx; right would be shared_memory=off, or a "
        "build with it");
  }
  if (!iceoryx::daemon_runs()) {
    throw Unsupported(
        "cyclonedds: shared_memory=on: RouDi, the daemon of iceoryx, does not run; right would be to start iox-roudi, as "
        "perflab run does");
  }
  return iceoryx::configuration(settings.domain);
}

}  // namespace

Settings read_settings(const perflab_participant_settings& given) {
  const Options options("cyclonedds", std::span(given.options, given.option_count),
                        {"batching", "batching_delay", "config", "lease_duration", "max_blocking_time",
                         "max_message_size", "receive_buffer", "shared_memory", "socket_receive_buffer",
                         "socket_send_buffer"});
  Settings settings{support::read_dds_settings("cyclonedds", given, options, 4096)};
  const std::uint64_t receive_buffer =
      options.bytes("receive_buffer", 128u << 10, 1u << 30, "128 KiB to 1 GiB")
          .value_or(support::kCycloneReceiveBuffer);
  settings.has_user_configuration = options.text("config").has_value();
  settings.batching_delay_ns = read_batching(options);
  settings.xml = support::cyclonedds_xml(settings, receive_buffer, read_shared_memory(options, settings));
  if (settings.batching_delay_ns) settings.xml += std::string(",") + kBatching;
  const std::string extra = read_config(options);
  if (!extra.empty()) settings.xml += "," + extra;
  return settings;
}

}  // namespace perflab::middleware::cyclonedds
