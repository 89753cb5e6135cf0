// Writers and readers of serialized messages.
#pragma once

#include <dds/dds.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "middleware/cyclonedds/participant.h"
#include "middleware/middleware.h"
#include "middleware/support/remembered.h"
#include "middleware/support/waitset.h"

struct ddsi_sertype;

namespace perflab::middleware::cyclonedds {

// Common part of writer and reader: a topic, an identity, a listener.
class Endpoint {
 public:
  Endpoint(Participant& participant, const perflab_endpoint_settings& settings,
           const perflab_listener* listener);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

 protected:
  using Identify = perflab_identity (Participant::*)(dds_instance_handle_t) const noexcept;

  ~Endpoint() = default;
  // The identity for an instance handle. Handles are never reused within a domain, and an entity may be gone
  // before its last message is taken, so known identities are kept.
  perflab_identity peer(dds_instance_handle_t handle, Identify identify) noexcept;
  void report(perflab_event_kind kind, std::int32_t count, const perflab_identity& peer,
              const char* policy = nullptr);
  void report_matched(std::int32_t change, dds_instance_handle_t handle, Identify identify);
  void report_incompatible(std::uint32_t policy);
  // True if the writer is, or was, matched: shared memory delivers messages of all writers of a topic.
  bool is_partner(dds_instance_handle_t handle) noexcept;
  // Throws unless the entity got the shared memory it was created for.
  void require_shared(dds_entity_t entity) const;

  Participant& participant_;
  const std::string topic_name_;
  const std::string type_name_;
  const perflab_listener listener_;
  const std::size_t shared_size_;  // size of each message in shared memory; 0: not used
  ddsi_sertype* type_ = nullptr;  // owned by topic_
  Entity topic_;
  perflab_identity identity_{};
  std::shared_ptr<Record> record_;

 private:
  std::mutex peers_mutex_;
  support::Remembered<dds_instance_handle_t, bool> partners_;
  support::Remembered<dds_instance_handle_t, perflab_identity> peers_;
};

class Writer : public Endpoint {
 public:
  Writer(Participant& participant, const perflab_endpoint_settings& settings,
         const perflab_listener* listener);
  ~Writer();

  perflab_identity identity() const noexcept { return identity_; }
  std::size_t matched() noexcept;
  perflab_status write(const perflab_bytes* parts, std::size_t part_count, perflab_error* error) noexcept;
  void stamp_next(std::int64_t source_timestamp_ns) noexcept { next_stamp_ns_ = source_timestamp_ns; }
  perflab_status loan(void** message, perflab_error* error) noexcept;
  perflab_status write_loaned(void* message, perflab_error* error) noexcept;
  void discard_loan(void* message) noexcept;

 private:
  perflab_status write_shared(const perflab_bytes* parts, std::size_t part_count, perflab_error* error) noexcept;
  perflab_status write_chunk(void* chunk, perflab_error* error) noexcept;
  static perflab_status answer(dds_return_t code, perflab_error* error) noexcept;

  const bool loans_;
  std::vector<void*> outstanding_;
  std::int64_t next_stamp_ns_ = 0;  // 0: use the library's time stamp
  Entity writer_;
  std::optional<Batch> batch_;
};

class Reader : public Endpoint, public support::Attachment {
 public:
  Reader(Participant& participant, const perflab_endpoint_settings& settings,
         const perflab_listener* listener);

  perflab_identity identity() const noexcept { return identity_; }
  std::size_t matched() noexcept;
  std::int64_t lifespan(const perflab_identity& writer) const;
  perflab_status take(perflab_sample* sample, perflab_error* error) noexcept;
  static void return_sample(perflab_sample* sample) noexcept;

  // For the wait-set: a condition that is true while there is something to take.
  dds_entity_t make_condition();

 private:
  // The library filters per topic, not per reader: so the topic belongs to this reader only.
  void set_filter(const perflab_endpoint_settings& settings);

  std::optional<perflab_filter> filter_;
  dds_instance_handle_t last_handle_ = DDS_HANDLE_NIL;  // cache for the usual case: the writer of the
                                                        // previous message
  perflab_identity last_writer_{};
  dds_instance_handle_t last_partner_ = DDS_HANDLE_NIL;
  Entity reader_;
  Entity condition_;
};

}  // namespace perflab::middleware::cyclonedds
