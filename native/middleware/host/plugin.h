// C++ wrapper of a middleware plug-in: loads it, owns its handles, throws its errors.
//
// Example:
//   const Plugin plugin = Plugin::load("lib/perflab/middleware/cyclonedds.so");
//   Participant participant = plugin.open(host, {.domain = 7});
//   Writer writer = participant.create_writer({.topic = "rt/amazon", .type = type, .qos = qos});
//   Reader reader = participant.create_reader({.topic = "rt/amazon", .type = type, .qos = qos});
//
//   WaitSet waitset = participant.create_waitset();
//   waitset.attach(reader, 1);
//   perflab_error error;
//   const perflab_bytes message{bytes.data(), bytes.size()};
//   if (writer.write({&message, 1}, error) < 0) throw Failed(error.text);
//
//   std::uint64_t ready[8];
//   std::size_t count = 0;
//   if (waitset.wait(1'000'000'000, ready, count, error) == PERFLAB_OK && count > 0) {
//     perflab_sample sample;
//     while (reader.take(sample, error) == PERFLAB_OK) {
//       use(sample.data, sample.size);
//       reader.return_sample(sample);
//     }
//   }
//
// Units, threads and semantics of every call are those of middleware.h.
//
// Functions that create objects throw Error; write(), take(), wait() and the like are noexcept, do not
// allocate on the host's side of the interface, and return a status.
//
// A participant is closed when it and everything created from it are gone; the order does not matter.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/error.h"
#include "middleware/types.h"

namespace perflab::middleware {

struct ParticipantSettings {
  std::uint32_t domain = 0;
  std::string network = "lo";
  std::uint32_t participants_expected = 1;
  bool ignore_local_endpoints = false;
  std::vector<std::pair<std::string, std::string>> options = {};
};

struct EndpointSettings {
  std::string topic;
  std::string type;
  std::size_t fixed_size = 0;
  bool loans = false;
  bool related_samples = false;
  perflab_qos qos = default_qos();
  std::string user_data = {};
  const perflab_key* key = nullptr;  // outlives the participant
  std::vector<perflab_filter> filters = {};  // what the filters point to also outlives the participant
};

// A writer or reader of another participant.
struct RemoteEndpoint {
  perflab_identity identity;
  bool writes;
  std::string topic;  // name on the wire
  std::string type;
  std::string user_data;
  std::string topic_data;
  std::string group_data;
};

class Writer {
 public:
  perflab_status write(std::span<const perflab_bytes> parts, perflab_error& error) noexcept {
    return api_->write(writer_.get(), parts.data(), parts.size(), &error);
  }
  // Requires capabilities().related_samples.
  perflab_status write_related(std::span<const perflab_bytes> parts, const perflab_sample_identity* related,
                               std::int64_t* sequence, perflab_error& error) noexcept {
    return api_->write_related(writer_.get(), parts.data(), parts.size(), related, sequence, &error);
  }
  // Requires a writer created with `loans`.
  perflab_status loan(void*& message, perflab_error& error) noexcept {
    return api_->loan(writer_.get(), &message, &error);
  }
  perflab_status write_loaned(void* message, perflab_error& error) noexcept {
    return api_->write_loaned(writer_.get(), message, &error);
  }
  void discard_loan(void* message) noexcept { api_->discard_loan(writer_.get(), message); }
  // Requires capabilities().source_timestamps.
  void stamp_next(std::int64_t source_timestamp_ns) noexcept {
    api_->stamp_next(writer_.get(), source_timestamp_ns);
  }
  std::size_t matched_readers() noexcept { return api_->matched_readers(writer_.get()); }
  perflab_identity identity() const noexcept { return api_->writer_identity(writer_.get()); }

 private:
  friend class Participant;
  using Handle = std::unique_ptr<perflab_writer, void (*)(perflab_writer*)>;
  Writer(const perflab_middleware* api, std::shared_ptr<perflab_participant> participant,
         perflab_writer* writer)
      : api_(api), participant_(std::move(participant)), writer_(writer, api->destroy_writer) {}

  const perflab_middleware* api_;
  std::shared_ptr<perflab_participant> participant_;
  Handle writer_;
};

class Reader {
 public:
  perflab_status take(perflab_sample& sample, perflab_error& error) noexcept {
    return api_->take(reader_.get(), &sample, &error);
  }
  void return_sample(perflab_sample& sample) noexcept { api_->return_sample(reader_.get(), &sample); }
  std::size_t matched_writers() noexcept { return api_->matched_writers(reader_.get()); }
  std::int64_t lifespan(const perflab_identity& writer) noexcept {
    return api_->lifespan(reader_.get(), &writer);
  }
  perflab_identity identity() const noexcept { return api_->reader_identity(reader_.get()); }
  // Destroys the reader; its callbacks may use it until close() returns, and none runs afterwards. No other
  // function may be called after close().
  void close() noexcept {
    if (!reader_) return;
    api_->destroy_reader(reader_.get());
    static_cast<void>(reader_.release());
  }

 private:
  friend class Participant;
  friend class WaitSet;
  using Handle = std::unique_ptr<perflab_reader, void (*)(perflab_reader*)>;
  Reader(const perflab_middleware* api, std::shared_ptr<perflab_participant> participant,
         perflab_reader* reader)
      : api_(api), participant_(std::move(participant)), reader_(reader, api->destroy_reader) {}

  const perflab_middleware* api_;
  std::shared_ptr<perflab_participant> participant_;
  Handle reader_;
};

class WaitSet {
 public:
  // Throws Error if the reader is attached already.
  void attach(Reader& reader, std::uint64_t cookie);
  perflab_status wait(std::int64_t timeout_ns, std::span<std::uint64_t> ready, std::size_t& ready_count,
                      perflab_error& error) noexcept {
    return api_->wait(waitset_.get(), timeout_ns, ready.data(), ready.size(), &ready_count, &error);
  }
  void wake() noexcept { api_->wake(waitset_.get()); }

 private:
  friend class Participant;
  using Handle = std::unique_ptr<perflab_waitset, void (*)(perflab_waitset*)>;
  WaitSet(const perflab_middleware* api, std::shared_ptr<perflab_participant> participant,
          perflab_waitset* waitset)
      : api_(api), participant_(std::move(participant)), waitset_(waitset, api->destroy_waitset) {}

  const perflab_middleware* api_;
  std::shared_ptr<perflab_participant> participant_;
  Handle waitset_;
};

class Participant {
 public:
  // `listener.context` must outlive the entity.
  Writer create_writer(const EndpointSettings& settings, const perflab_listener& listener = {});
  Reader create_reader(const EndpointSettings& settings, const perflab_listener& listener = {});
  WaitSet create_waitset();
  // Returns a JSON object.
  std::string describe();
  // Endpoints of other participants, regardless of topic, type and QoS. Empty if
  // capabilities().reports_endpoints is false: then they are unknown.
  std::vector<RemoteEndpoint> remote_endpoints();

 private:
  friend class Plugin;
  Participant(const perflab_middleware* api, perflab_participant* participant, const perflab_middleware& plugin)
      : api_(api), plugin_(&plugin), participant_(participant, api->close) {}
  perflab_endpoint_settings as_c(const EndpointSettings& settings) const;

  const perflab_middleware* api_;
  const perflab_middleware* plugin_;  // the plug-in itself, without the disturbance layer
  std::shared_ptr<perflab_participant> participant_;
};

// A loaded plug-in. It stays in memory until the process ends, because libraries register thread-exit
// functions that must not be unmapped.
class Plugin {
 public:
  // Throws Error with one line that names the file and what is wrong with it.
  static Plugin load(const std::filesystem::path& file);

  std::string_view name() const noexcept { return api_->name; }
  std::string_view summary() const noexcept { return api_->summary; }
  std::string_view version() const noexcept { return api_->version(); }
  perflab_capabilities capabilities() const noexcept { return api_->capabilities(); }
  // The last entry has no name.
  const perflab_policy* policies() const noexcept { return api_->policies(); }

  // What `host.context` points to must outlive the participant.
  Participant open(const perflab_host& host, const ParticipantSettings& settings) const;

 private:
  explicit Plugin(const perflab_middleware* api) : api_(api) {}

  const perflab_middleware* api_;
};

}  // namespace perflab::middleware
