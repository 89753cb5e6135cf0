// A Fast DDS participant with its own settings, its discovery, and the shared state of its endpoints.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "middleware/fastdds/fast.h"
#include "middleware/fastdds/message.h"
#include "middleware/fastdds/settings.h"
#include "middleware/fastdds/transport.h"
#include "middleware/middleware.h"
#include "middleware/support/remembered.h"
#include "middleware/types.h"

namespace perflab::middleware::fastdds {

// An endpoint's part of describe(), also after its end.
struct Record {
  std::string topic;
  bool is_writer;
  std::size_t depth_of_pool;              // capacity of a writer's shared memory in messages, or 0
  std::atomic<std::uint64_t> samples{0};  // readers: taken; writers: loaned and written
  std::atomic<std::uint64_t> from_data_sharing{
      0};                                     // ... of these in (readers) or through (writers) shared memory
  std::atomic<std::uint64_t> copied{0};       // ... of these copied out of it
  std::atomic<std::uint64_t> overwritten{0};  // ... of these overwritten by the writer too early
};

// Determines whether two endpoints match. Kinds are the library's numbers, which increase with what is
// offered.
struct Terms {
  bool is_writer;
  std::string topic;
  std::string type;
  int durability;
  std::int64_t deadline_ns;
  int liveliness;
  std::int64_t lease_duration_ns;
  int reliability;

  bool operator==(const Terms&) const = default;
};

// An endpoint of this participant.
struct LocalEndpoint {
  Terms terms;
  perflab_identity identity;  // all zero while it is being created
};

constexpr std::size_t kProcessPrefix = 8;  // part of an identity: vendor, host and process

class Participant : private dds::DomainParticipantListener {
 public:
  Participant(const perflab_host& host, Settings settings);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  const char* describe();
  template <typename Each>
  void remote_endpoints(Each&& each) {
    const std::lock_guard lock(found_mutex_);
    for (const auto& [identity, found] : found_) {
      each({identity,
            found.writes,
            found.topic.c_str(),
            found.type.c_str(),
            {found.user_data.data(), found.user_data.size()},
            {found.topic_data.data(), found.topic_data.size()},
            {found.group_data.data(), found.group_data.size()}});
    }
  }

  // The publisher or subscriber of an endpoint: a common one, or its own if it has a partition or group data.
  dds::Publisher* use_publisher(const perflab_qos& qos);
  dds::Subscriber* use_subscriber(const perflab_qos& qos);
  void leave_publisher(dds::Publisher* publisher) noexcept;
  void leave_subscriber(dds::Subscriber* subscriber) noexcept;
  const Settings& settings() const noexcept { return settings_; }
  const perflab_host& host() const noexcept { return host_; }
  std::int64_t now_ns() const noexcept { return host_.now_ns(host_.context); }
  const perflab_identity& identity() const noexcept { return identity_; }
  bool is_own(const perflab_identity& entity) const noexcept;
  bool is_of_process(const perflab_identity& entity) const noexcept {
    // With security the first bytes are those of the certificate subject, which is the same for all
    // processes.
    if (settings_.credentials) return is_own(entity);
    return std::memcmp(entity.bytes, identity_.bytes, kProcessPrefix) == 0;
  }
  // Delivered without transport: there is no reception.
  bool is_intraprocess(const perflab_identity& writer) const noexcept {
    return intraprocess_ && is_of_process(writer);
  }
  // Endpoints of this process do not match each other.
  bool ignores_local() const noexcept { return settings_.ignore_local_endpoints; }
  // The library cannot keep local endpoints apart, so they are filtered here.
  bool filters_local() const noexcept {
    return !PERFLAB_FASTDDS_IGNORES_LOCAL && settings_.ignore_local_endpoints;
  }
  // Longer messages may have come in fragments.
  std::uint32_t smallest_fragment() const noexcept {
    return smallest_fragment_.load(std::memory_order_relaxed);
  }

  // The topic, created on first use; `reader` with filters_local(): excludes messages of this process. Throws
  // Error if the topic has another type here, or the type another size or key.
  struct Topic {
    dds::Topic* topic;
    dds::TopicDescription* description;
    const MessageType* type;
    dds::ContentFilteredTopic* filtered;  // of a reader with a content filter; otherwise null
  };
  struct TypeTraits {
    std::size_t fixed_size;  // or 0
    const perflab_key* key;  // or null
    std::string data;        // TOPIC_DATA
  };
  Topic use_topic(const perflab_endpoint_settings& endpoint, bool reader);
  void leave_topic(const std::string& name, const Topic& topic) noexcept;

  std::shared_ptr<Record> add_record(const std::string& topic, bool is_writer, std::size_t depth_of_pool);

  void add_local(const void* endpoint, LocalEndpoint local);
  void remove_local(const void* endpoint) noexcept;
  // True for a writer of this participant with automatic liveliness: it is alive as long as it exists. The
  // library only asserts such writers to remote readers.
  bool is_always_alive(const perflab_identity& writer) const;
  // With filters_local(): the library reports a policy but not a peer; true if it can mean an endpoint of
  // another process. True once per pair; the library may report a pair again, from its two discovery threads.
  bool is_incompatible_elsewhere(const void* endpoint, std::uint32_t policy);

  // Writers with a finite lifespan. The library only drops expired messages at the writer, not at the reader.
  void note_lifespan(const rtps::GUID_t& writer, std::int64_t lifespan_ns);
  void forget_lifespan(const rtps::GUID_t& writer) noexcept;
  std::int64_t lifespan_of(const rtps::GUID_t& writer) const noexcept;
  bool has_expired(const rtps::GUID_t& writer, std::int64_t source_timestamp_ns) const noexcept {
    return any_lifespan_.load(std::memory_order_relaxed) && is_over(writer, source_timestamp_ns);
  }

 private:
  class FilterFactory;
  struct RemoteEndpoint {
    perflab_identity identity;
    Terms terms;
    std::vector<const void*> reported_to;  // endpoints of this participant
  };
  // A discovered writer or reader of another participant.
  struct Found {
    bool writes;
    std::string topic;
    std::string type;
    std::vector<std::uint8_t> user_data;
    std::vector<std::uint8_t> topic_data;
    std::vector<std::uint8_t> group_data;
  };
  struct KnownTopic {
    std::string type;
    std::string data;
    dds::Topic* topic = nullptr;
    dds::ContentFilteredTopic* without_own = nullptr;
    std::size_t users = 0;
  };

  dds::DomainParticipantQos make_qos();
  void secure(dds::DomainParticipantQos& qos) const;
  void apply_profiles(dds::DomainParticipantQos& qos);
  void count_transports(dds::DomainParticipantQos& qos);
  void close() noexcept;  // guarded by the mutex of the process's participants
  void drop_topic(const std::string& name) noexcept;  // drops one use of it; requires mutex_
  MessageType* use_type(const std::string& name, const TypeTraits& traits);
  void report(perflab_event_kind kind, const perflab_identity& peer, const char* topic = nullptr,
              const char* type = nullptr);
  void report_participant(ParticipantStatus status, const rtps::GUID_t& guid);
  bool knows(const Participant& peer);
  void wait_until_known(const Participant& peer, bool known, std::chrono::steady_clock::time_point until);
  void report_reader(ReaderStatus status, const rtps::GUID_t& guid, Found found);
  void report_writer(WriterStatus status, const rtps::GUID_t& guid, Found found, const Duration& lifespan);
  void note_found(const perflab_identity& endpoint, Found found);
  void forget_found(const perflab_identity& endpoint) noexcept;
  bool is_over(const rtps::GUID_t& writer, std::int64_t source_timestamp_ns) const noexcept;
  void note_remote(const perflab_identity& identity, Terms terms);
  void forget_remote(const perflab_identity& identity) noexcept;

#if PERFLAB_FASTDDS_3
  void on_participant_discovery(dds::DomainParticipant*, ParticipantStatus status,
                                const ParticipantData& data, bool& ignore) override;
  void on_data_reader_discovery(dds::DomainParticipant*, ReaderStatus status, const ReaderData& data,
                                bool& ignore) override;
  void on_data_writer_discovery(dds::DomainParticipant*, WriterStatus status, const WriterData& data,
                                bool& ignore) override;
#else
  void on_participant_discovery(dds::DomainParticipant*, rtps::ParticipantDiscoveryInfo&& info) override;
  void on_subscriber_discovery(dds::DomainParticipant*, rtps::ReaderDiscoveryInfo&& info) override;
  void on_publisher_discovery(dds::DomainParticipant*, rtps::WriterDiscoveryInfo&& info) override;
#endif

  // Used for every message, hence in one cache line: the library's own work per message exceeds a first-level
  // cache.
  alignas(kCacheLine) perflab_identity identity_{};
  std::atomic<std::uint32_t> smallest_fragment_{UINT32_MAX};
  std::atomic<bool> any_lifespan_{false};
  bool intraprocess_ = false;

  perflab_host host_;
  Settings settings_;
  std::string description_;
  bool counted_ = true;  // false: the user's configuration has a transport that is not counted
  std::vector<std::string> overridden_;  // parts of perflab's settings replaced by the user's configuration

  Traffic udp_{smallest_fragment_};
  Traffic shm_{smallest_fragment_};
  std::set<std::string> locks_;  // lock files of the shared-memory transport held by this participant

  std::mutex report_mutex_;         // events come from several threads
  mutable std::mutex local_mutex_;  // locked while holding locks of the library
  std::map<const void*, LocalEndpoint> local_;
  std::vector<RemoteEndpoint> remote_;  // endpoints of other processes; with filters_local()
  std::mutex found_mutex_;              // locked while holding locks of the library
  std::map<perflab_identity, Found, IdentityLess> found_;
  std::set<perflab_identity, IdentityLess> peers_;  // known participants
  std::condition_variable peers_changed_;
  std::mutex mutex_;  // guards everything below
  std::vector<std::shared_ptr<Record>> records_;
  std::map<std::string, KnownTopic> topics_;
  std::map<std::string, std::pair<dds::TypeSupport, MessageType*>> types_;

  mutable std::mutex lifespans_mutex_;
  support::Remembered<rtps::GUID_t, std::int64_t> lifespans_;

  const std::unique_ptr<FilterFactory> filters_;
  std::size_t filtered_topics_ = 0;  // number created so far

  dds::DomainParticipant* participant_ = nullptr;
  dds::Publisher* publisher_ = nullptr;
  dds::Subscriber* subscriber_ = nullptr;
};

}  // namespace perflab::middleware::fastdds
