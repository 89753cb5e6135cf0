#include "middleware/cyclonedds/settings.h"

#include <dds/dds.h>
#include <dds/features.h>
#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <span>

#include "middleware/cyclonedds/iceoryx.h"
#include "middleware/support/cyclonedds.h"
#include "middleware/support/options.h"
#include "middleware/support/xml.h"

namespace perflab::middleware::cyclonedds {
namespace {

using support::Options;

#ifdef DDS_HAS_SHM  // a Cyclone built without it, like that of ROS 2, rejects the element
constexpr const char* kWithoutSharedMemory = "<SharedMemory><Enable>false</Enable></SharedMemory>";
#else
constexpr const char* kWithoutSharedMemory = "";
#endif

std::string read_config(const Options& options) {
  std::string xml = options.xml("config").value_or("");
  // Cyclone takes the configuration as fragments, without an XML declaration.
  if (xml.starts_with("<?xml")) xml.erase(0, std::min(xml.size(), xml.find("?>") + 2));
  // Messages that are not prepared for it would be lost silently.
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

// The library loads plug-ins, which Debian installs in a folder next to it.
std::string security(const support::Credentials& credentials) {
#ifndef DDS_HAS_SECURITY
  static_cast<void>(credentials);
  throw Unsupported("cyclonedds: security: this Cyclone DDS was built without it; right would be security=off");
#else
  using support::element;
  Dl_info own{};
  dladdr(reinterpret_cast<const void*>(&dds_create_participant), &own);
  const std::filesystem::path beside = std::filesystem::path(own.dli_fname).parent_path();
  const auto plugin = [&](const char* name) {
    const std::string file = std::string("libdds_security_") + name + ".so";
    for (const auto& folder : {beside, beside / "libddsc0debian"}) {
      if (std::filesystem::exists(folder / file)) return (folder / file).string();
    }
    throw Unsupported("cyclonedds: security: " + file + " is not next to the library, in " + beside.string() +
                      "; right would be security=off, or a build with it");
  };
  const auto library = [&](const char* name, const char* function) {
    return "<Library path=\"" + support::escaped(plugin(name)) + "\" initFunction=\"init_" + function +
           "\" finalizeFunction=\"finalize_" + function + "\"/>";
  };
  const auto file = [&](const char* name) { return support::escaped("file:" + credentials.file(name)); };
  return element("Security",
                 element("Authentication", library("auth", "authentication") +
                                               element("IdentityCA", file(support::kIdentityCa)) +
                                               element("IdentityCertificate", file(support::kIdentityCertificate)) +
                                               element("PrivateKey", file(support::kIdentityKey))) +
                     element("Cryptographic", library("crypto", "crypto")) +
                     element("AccessControl", library("ac", "access_control") +
                                                  element("PermissionsCA", file(support::kPermissionsCa)) +
                                                  element("Governance", file(support::kGovernance)) +
                                                  element("Permissions", file(support::kPermissions))));
#endif
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
                         "max_message_size", "receive_buffer", "security", "shared_memory", "socket_receive_buffer",
                         "socket_send_buffer"});
  Settings settings{support::read_dds_settings("cyclonedds", given, options, 4096)};
  const std::uint64_t receive_buffer =
      options.bytes("receive_buffer", 128u << 10, 1u << 30, "128 KiB to 1 GiB")
          .value_or(support::kCycloneReceiveBuffer);
  settings.has_user_configuration = options.text("config").has_value();
  settings.batching_delay_ns = read_batching(options);
  std::string more = read_shared_memory(options, settings);
  if (settings.credentials) {
    if (settings.shared_memory) options.refuse("shared_memory", "off beside security, which protects datagrams alone");
    more += security(settings.credentials);
  }
  settings.xml = support::cyclonedds_xml(settings, receive_buffer, more);
  if (settings.batching_delay_ns) settings.xml += std::string(",") + kBatching;
  const std::string extra = read_config(options);
  if (!extra.empty()) settings.xml += "," + extra;
  return settings;
}

}  // namespace perflab::middleware::cyclonedds
