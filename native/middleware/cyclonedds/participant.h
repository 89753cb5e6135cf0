// A Cyclone participant with its own domain configuration, and its discovery.
#pragma once

#include <dds/dds.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "middleware/cyclonedds/batching.h"
#include "middleware/cyclonedds/settings.h"
#include "middleware/middleware.h"
#include "middleware/support/filters.h"

namespace perflab::middleware::cyclonedds {

// A DDS entity that is deleted with its owner.
class Entity {
 public:
  Entity() = default;
  // Throws Error with `what` if `handle` is an error code.
  Entity(dds_entity_t handle, const char* what);
  Entity(Entity&& other) noexcept : handle_(other.handle_) { other.handle_ = 0; }
  Entity& operator=(Entity&& other) noexcept;
  ~Entity() { reset(); }
  void reset() noexcept;
  dds_entity_t get() const noexcept { return handle_; }

 private:
  dds_entity_t handle_ = 0;
};

// "<what>: <Cyclone's reason>; <last line of its log>"
[[noreturn]] void fail(const char* what, dds_return_t code);

perflab_identity identity_of(dds_entity_t entity);

// An endpoint's part of describe(), also after its end. One thread counts, others read.
struct Record {
  std::string topic;
  bool is_writer;
  std::atomic<std::uint64_t> samples{0};
  std::atomic<std::uint64_t> shared{0};  // ... of these, through shared memory
};
inline void add_one(std::atomic<std::uint64_t>& counter) noexcept {
  counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// A domain of this process: Cyclone has one configuration for all its participants.
struct Domain {
  perflab_host host;  // of the first participant; types, shared by all, use its clock
  std::string xml;
  Entity entity;
};

class Participant {
 public:
  Participant(const perflab_host& host, Settings settings);
  ~Participant();
  Participant(const Participant&) = delete;
  Participant& operator=(const Participant&) = delete;

  const char* describe();
  void remote_endpoints(const std::function<void(const perflab_remote_endpoint&)>& each) const;

  dds_entity_t handle() const noexcept { return participant_.get(); }
  const Domain& domain() const noexcept { return *domain_; }
  const perflab_host& host() const noexcept { return host_; }
  const Settings& settings() const noexcept { return settings_; }
  std::int64_t now_ns() const noexcept { return host_.now_ns(host_.context); }
  // Null if shared memory was not requested.
  support::FilterCounts& filter_counts() noexcept { return filter_counts_; }
  std::shared_ptr<Record> add_record(const std::string& topic, bool is_writer);
  Batching* batching() noexcept { return batching_.get(); }  // null: no batching

  // The GUID of a local or remote writer (or reader) for an instance handle; all zero if it is gone. Callable
  // from listener callbacks, also while the entity is still being created.
  perflab_identity writer_identity(dds_instance_handle_t handle) const noexcept;
  perflab_identity reader_identity(dds_instance_handle_t handle) const noexcept;

 private:
  // Bytes retransmitted by its writers.
  [[nodiscard]] std::uint64_t retransmitted_bytes() const;
  void watch(dds_entity_t topic, Entity& reader);
  static void on_participants(dds_entity_t reader, void* self);
  static void on_writers(dds_entity_t reader, void* self);
  static void on_readers(dds_entity_t reader, void* self);
  void take_participants(dds_entity_t reader);
  void take_endpoints(dds_entity_t reader, perflab_event_kind found, perflab_event_kind lost);
  void report(perflab_event_kind kind, const dds_guid_t& peer, const char* topic, const char* type);

  perflab_host host_;
  Settings settings_;
  std::string description_;
  perflab_identity identity_{};
  support::FilterCounts filter_counts_;
  std::mutex records_mutex_;
  std::vector<std::shared_ptr<Record>> records_;
  std::mutex report_mutex_;  // participants are lost on another thread than the one on which endpoints are
                             // found

  // Deleted in reverse order: the domain, which joins every thread, last.
  std::shared_ptr<const Domain> domain_;
  Entity participant_;
  Entity participants_;  // readers of the built-in topics
  Entity writers_;
  Entity readers_;
  std::unique_ptr<Batching> batching_;
};

}  // namespace perflab::middleware::cyclonedds
