#include "middleware/host/plugin.h"

#include <dlfcn.h>

#include "base/error.h"
#include "middleware/disturb/disturb.h"
#include "middleware/policies.h"

namespace perflab::middleware {
namespace {

[[noreturn]] void refuse(const std::filesystem::path& file, const std::string& what) {
  throw Failed("middleware plug-in " + file.string() + ": " + what);
}

}  // namespace

Plugin Plugin::load(const std::filesystem::path& file) {
  // dlopen() needs an absolute path: it would look up a bare name in the library path.
  std::error_code code;
  const std::filesystem::path path = std::filesystem::absolute(file, code);
  if (code || !std::filesystem::exists(path, code)) refuse(file, "no such file");
  void* const library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) refuse(file, dlerror());
  const auto entry =
      reinterpret_cast<perflab_middleware_entry>(dlsym(library, PERFLAB_MIDDLEWARE_ENTRY_NAME));
  if (entry == nullptr) refuse(file, "does not export " PERFLAB_MIDDLEWARE_ENTRY_NAME);
  const perflab_middleware* const api = entry();
  if (api == nullptr) refuse(file, PERFLAB_MIDDLEWARE_ENTRY_NAME " returned nothing");
  if (api->abi != PERFLAB_MIDDLEWARE_ABI) {
    refuse(file, "was built for interface version " + std::to_string(api->abi) + "; this program needs " +
                     std::to_string(PERFLAB_MIDDLEWARE_ABI));
  }
  return Plugin(api);
}

Participant Plugin::open(const perflab_host& host, const ParticipantSettings& settings) const {
  std::vector<perflab_option> options;
  for (const auto& [key, value] : settings.options) options.push_back({key.c_str(), value.c_str()});
  perflab_participant_settings given{};
  given.domain = settings.domain;
  given.network = settings.network.c_str();
  given.participants_expected = settings.participants_expected;
  given.ignore_local_endpoints = settings.ignore_local_endpoints;
  given.options = options.data();
  given.option_count = options.size();
  perflab_participant* participant = nullptr;
  perflab_error error{};
  if (disturb::is_asked_for(options)) {
    require_ok(disturb::open(*api_, host, given, &participant, &error), error);
    return Participant(&disturb::table(), participant, *api_);
  }
  require_ok(api_->open(&host, &given, &participant, &error), error);
  return Participant(api_, participant, *api_);
}

perflab_endpoint_settings Participant::as_c(const EndpointSettings& settings) const {
  if (settings.key != nullptr && !plugin_->capabilities().instances) {
    throw Unsupported(std::string(plugin_->name) + ": topic '" + settings.topic +
                      "' is keyed, but this middleware does not support instances; right would be a topic "
                      "without keys");
  }
  if (!settings.filters.empty() && !plugin_->capabilities().filters) {
    throw Unsupported(std::string(plugin_->name) + ": a subscriber of topic '" + settings.topic +
                      "' has a content filter, which this middleware does not support; right would be no "
                      "filter, or a middleware with content filters, like cyclonedds or fastdds");
  }
  require_declared(plugin_->name, settings.topic, settings.qos, plugin_->policies());
  if (api_ != plugin_) require_declared(api_->name, settings.topic, settings.qos, api_->policies());
  perflab_endpoint_settings given{};
  given.topic = settings.topic.c_str();
  given.type = settings.type.c_str();
  given.fixed_size = settings.fixed_size;
  given.loans = settings.loans;
  given.related_samples = settings.related_samples;
  given.qos = settings.qos;
  given.user_data = settings.user_data.empty() ? nullptr : settings.user_data.c_str();
  given.key = settings.key;
  given.filters = settings.filters.data();
  given.filter_count = settings.filters.size();
  return given;
}

Writer Participant::create_writer(const EndpointSettings& settings, const perflab_listener& listener) {
  const perflab_endpoint_settings given = as_c(settings);
  perflab_writer* writer = nullptr;
  perflab_error error{};
  require_ok(api_->create_writer(participant_.get(), &given, &listener, &writer, &error), error);
  return Writer(api_, participant_, writer);
}

Reader Participant::create_reader(const EndpointSettings& settings, const perflab_listener& listener) {
  const perflab_endpoint_settings given = as_c(settings);
  perflab_reader* reader = nullptr;
  perflab_error error{};
  require_ok(api_->create_reader(participant_.get(), &given, &listener, &reader, &error), error);
  return Reader(api_, participant_, reader);
}

WaitSet Participant::create_waitset() {
  perflab_waitset* waitset = nullptr;
  perflab_error error{};
  require_ok(api_->create_waitset(participant_.get(), &waitset, &error), error);
  return WaitSet(api_, participant_, waitset);
}

std::string Participant::describe() { return api_->describe(participant_.get()); }

std::vector<RemoteEndpoint> Participant::remote_endpoints() {
  std::vector<RemoteEndpoint> found;
  if (api_->remote_endpoints == nullptr) return found;
  const auto each = [](void* context, const perflab_remote_endpoint* one) {
    const auto text = [](const perflab_bytes& bytes) {
      const auto* const data = static_cast<const char*>(bytes.data);
      return std::string(data, data + bytes.size);
    };
    static_cast<std::vector<RemoteEndpoint>*>(context)->push_back({one->identity, one->writes, one->topic, one->type,
                                                                   text(one->user_data), text(one->topic_data),
                                                                   text(one->group_data)});
  };
  perflab_error error{};
  require_ok(api_->remote_endpoints(participant_.get(), each, &found, &error), error);
  return found;
}

void WaitSet::attach(Reader& reader, std::uint64_t cookie) {
  perflab_error error{};
  require_ok(api_->attach(waitset_.get(), reader.reader_.get(), cookie, &error), error);
}

}  // namespace perflab::middleware
