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

// What writer and reader have in common: a topic, an identity, a listener, the number of partners.
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
  // From the moment on that this returns no callback of the host's is made.
  void silence() noexcept;

  // Once the library has made it.
  void made(const rtps::GUID_t& guid);

  // While the entity is being made, for what the library calls in this thread.
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

  // First what is asked for with every message.
  alignas(kCacheLine) Participant& participant_;
  std::shared_ptr<Record> record_;
  Participant::Topic topic_;
  const bool is_writer_;
  const perflab_listener listener_;
  const std::string topic_name_;
  const std::string type_name_;
  const perflab_qos qos_;
  perflab_identity identity_{};

  // The library calls from several threads at a time, and recursively (a match while a message is handled).
  // It is taken under locks of the library, never the other way round.
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

  std::int64_t next_stamp_ns_ = 0;  // 0: the library's
  const bool loans_;
  bool loans_shared_ = false;       // the memory of the loans lies in a data-sharing file
  std::vector<void*> outstanding_;  // loans
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

  // For the wait-set.
  bool has_data() noexcept { return reader_->get_unread_count() > 0; }

 private:
  // What take() holds on to until return_sample().
  struct Loan {
    dds::LoanableSequence<View> values;
    dds::SampleInfoSeq infos;
    bool shared = false;  // lies in memory that the writer will use again
    std::vector<std::uint8_t> copy;
    Loan* next = nullptr;  // of those that are free

    // Copies the message; false where there is no memory.
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
  Loan* new_loan() noexcept;  // null where there is no memory
  void keep(Loan* loan) noexcept { loan->next = std::exchange(free_loans_, loan); }
  void give_back(Loan* loan) noexcept;
  bool is_shared(const perflab_identity& writer, const void* data) noexcept;  // where the type is plain
  static void tell_relation(const dds::SampleInfo& info, perflab_sample& sample) noexcept;
  void note_fragmented() noexcept;
  std::int64_t reception_of(const dds::SampleInfo& info, const perflab_identity& writer, std::size_t size,
                            bool shared) noexcept;

  // Asked for with every message.
  dds::Subscriber* group_ = nullptr;
  alignas(kCacheLine) dds::DataReader* reader_ = nullptr;
  Loan* free_loans_ = nullptr;
  const std::size_t fixed_size_;           // 0: the type is not plain
  const bool in_place_;                    // shared memory is not copied
  const bool relates_;                     // its samples tell `sequence` and `related`
  std::atomic<bool> writers_left_{false};  // what is known of them is looked up anew

  std::vector<std::unique_ptr<Loan>> loans_;
  std::vector<KnownWriter> known_writers_;

  std::mutex fragmented_mutex_;
  std::array<Fragmented, 8> fragmented_;  // the last messages that came in pieces
  std::size_t next_fragmented_ = 0;
};

}  // namespace perflab::middleware::fastdds
