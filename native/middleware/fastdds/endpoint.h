// Writers and readers of serialized messages.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "middleware/fastdds/fast.h"
#include "middleware/fastdds/message.h"
#include "middleware/fastdds/participant.h"
#include "middleware/middleware.h"
#include "middleware/support/waitset.h"

namespace perflab::middleware::fastdds {

// Common part of writer and reader: topic, identity, listener, number of partners.
class Endpoint {
 public:
  Endpoint(Participant& participant, const perflab_endpoint_settings& settings,
           const perflab_listener* listener, bool is_writer);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  perflab_identity identity() const noexcept { return identity_; }
  std::size_t matched() const noexcept { return static_cast<std::size_t>(matched_.load()); }
  bool offers_automatic_liveliness() const noexcept {
    return is_writer_ && qos_.liveliness == PERFLAB_AUTOMATIC;
  }

 protected:
  ~Endpoint();
  Terms terms() const;
  // No callback of the host is called once this returns.
  void silence() noexcept;

  // Called once the library has created it.
  void made(const rtps::GUID_t& guid);

  // Active while the entity is being created, for calls of the library in this thread.
  class Creating {
   public:
    explicit Creating(Endpoint& endpoint);
    ~Creating();
    Creating(const Creating&) = delete;
    Creating& operator=(const Creating&) = delete;

   private:
    const Endpoint* const before_;
  };

  void report(perflab_event_kind kind, std::int32_t count, const perflab_identity& peer,
              const char* policy = nullptr) noexcept;
  void count_matched(std::int32_t change, const perflab_identity& peer) noexcept;
  void report_incompatible(std::uint32_t policy);
  bool is_ignored(const perflab_identity& peer) const noexcept {
    return participant_.filters_local() && participant_.is_of_process(peer);
  }

  // First the members used for every message.
  alignas(kCacheLine) Participant& participant_;
  std::shared_ptr<Record> record_;
  Participant::Topic topic_;
  const bool is_writer_;
  const perflab_listener listener_;
  const std::string topic_name_;
  const std::string type_name_;
  const perflab_qos qos_;
  perflab_identity identity_{};

  // The library calls from several threads concurrently, and recursively (a match while a message is
  // handled). Locked while holding locks of the library, never the other way round.
  std::recursive_mutex calls_;
  bool silent_ = false;

 private:
  std::atomic<std::int32_t> matched_{0};
};

class Writer : public Endpoint, private dds::DataWriterListener {
 public:
  Writer(Participant& participant, const perflab_endpoint_settings& settings,
         const perflab_listener* listener);
  ~Writer();

  perflab_status write(const perflab_bytes* parts, std::size_t part_count,
                       const perflab_sample_identity* related, std::int64_t* sequence, perflab_error* error);
  perflab_status loan(void** message, perflab_error* error);
  perflab_status write_loaned(void* message, perflab_error* error);
  void discard_loan(void* message) noexcept;
  void stamp_next(std::int64_t source_timestamp_ns) noexcept { next_stamp_ns_ = source_timestamp_ns; }

 private:
  void on_publication_matched(dds::DataWriter*, const dds::PublicationMatchedStatus& status) override;
  void on_offered_deadline_missed(dds::DataWriter*, const OfferedDeadlineMissed& status) override;
  void on_offered_incompatible_qos(dds::DataWriter*,
                                   const dds::OfferedIncompatibleQosStatus& status) override;
  void on_liveliness_lost(dds::DataWriter*, const LivelinessLost& status) override;

  perflab_status refused(const ReturnCode& code, perflab_error* error) const noexcept;
  static perflab_status refused_with_parameters(perflab_error* error) noexcept;
  bool forget_loan(const void* message) noexcept;

  std::int64_t next_stamp_ns_ = 0;  // 0: use the library's time stamp
  const bool loans_;
  bool loans_shared_ = false;       // loans are in a data-sharing file
  std::vector<void*> outstanding_;  // outstanding loans
  dds::Publisher* group_ = nullptr;
  dds::DataWriter* writer_ = nullptr;
};

class Reader : public Endpoint, public support::Attachment, private dds::DataReaderListener {
 public:
  Reader(Participant& participant, const perflab_endpoint_settings& settings,
         const perflab_listener* listener);
  ~Reader();

  std::int64_t lifespan(const perflab_identity& writer) const noexcept;
  perflab_status take(perflab_sample* sample, perflab_error* error);
  void return_sample(perflab_sample* sample) noexcept;

  // Used by the wait-set.
  bool has_data() noexcept { return reader_->get_unread_count() > 0; }

 private:
  // State from take() to return_sample().
  struct Loan {
    dds::LoanableSequence<View> values;
    dds::SampleInfoSeq infos;
    bool shared = false;  // in memory that the writer will reuse
    std::vector<std::uint8_t> copy;
    Loan* next = nullptr;  // list of free ones

    // Copies the message; false if there is no memory.
    bool take_over(const View& view) noexcept;
  };
  struct KnownWriter {
    perflab_identity identity;
    bool shared;
  };
  struct Fragmented {
    perflab_identity writer;
    std::int64_t sequence = 0;
    std::int64_t received_ns;
  };

  void on_data_available(dds::DataReader*) override;
  void on_subscription_matched(dds::DataReader*, const dds::SubscriptionMatchedStatus& status) override;
  void on_requested_deadline_missed(dds::DataReader*, const DeadlineMissed& status) override;
  void on_liveliness_changed(dds::DataReader*, const LivelinessChanged& status) override;
  void on_requested_incompatible_qos(dds::DataReader*,
                                     const dds::RequestedIncompatibleQosStatus& status) override;
  void on_sample_lost(dds::DataReader*, const dds::SampleLostStatus& status) override;

  bool is_always_alive(const perflab_identity& writer) const;
  Loan* new_loan() noexcept;  // null if there is no memory
  void keep(Loan* loan) noexcept { loan->next = std::exchange(free_loans_, loan); }
  void give_back(Loan* loan) noexcept;
  bool is_shared(const perflab_identity& writer, const void* data) noexcept;  // for plain types
  static void tell_relation(const dds::SampleInfo& info, perflab_sample& sample) noexcept;
  void note_fragmented() noexcept;
  std::int64_t reception_of(const dds::SampleInfo& info, const perflab_identity& writer, std::size_t size,
                            bool shared) noexcept;

  // Used for every message.
  dds::Subscriber* group_ = nullptr;
  alignas(kCacheLine) dds::DataReader* reader_ = nullptr;
  Loan* free_loans_ = nullptr;
  const std::size_t fixed_size_;           // 0: the type is not plain
  const bool in_place_;                    // messages in shared memory are not copied
  const bool relates_;                     // its samples have `sequence` and `related`
  std::atomic<bool> writers_left_{false};  // cached data on writers must be looked up again

  std::vector<std::unique_ptr<Loan>> loans_;
  std::vector<KnownWriter> known_writers_;

  std::mutex fragmented_mutex_;
  std::array<Fragmented, 8> fragmented_;  // the last messages received in fragments
  std::size_t next_fragmented_ = 0;
};

}  // namespace perflab::middleware::fastdds
