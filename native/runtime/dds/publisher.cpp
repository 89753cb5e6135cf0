#include "runtime/dds/publisher.h"

#include <cstring>
#include <new>

#include "runtime/parts.h"

namespace perflab::runtime {
namespace {

constexpr const char* kNoMemory = "no memory for a message within the process";

std::uint8_t* append(std::uint8_t* to, std::span<const std::uint8_t> bytes) noexcept {
  if (!bytes.empty()) std::memcpy(to, bytes.data(), bytes.size());
  return to + bytes.size();
}

// Writes everything except the stamp.
void put_around(const Outgoing& message, std::uint8_t* to) noexcept {
  append(append(to, message.before) + message.stamp.size(), message.after);
}

void put_stamp(const Outgoing& message, std::uint8_t* to) noexcept {
  append(to + message.before.size(), message.stamp);
}

}  // namespace

DdsRuntime::DdsPublisher::~DdsPublisher() {
  if (loan_ != nullptr) writer_->discard_loan(loan_);
}

perflab_listener DdsRuntime::DdsPublisher::listener() noexcept {
  return {nullptr,
          [](void* context, const perflab_event* event) {
            static_cast<DdsPublisher*>(context)->sink_.on_event(*event);
          },
          this};
}

void DdsRuntime::DdsPublisher::set_writer(middleware::Writer writer) {
  identity_ = writer.identity();
  writer_.emplace(std::move(writer));
}

bool DdsRuntime::DdsPublisher::prepare(const Outgoing& message) noexcept {
  if (lends()) return prepare_loan(message);
  if (!gives_away() || takers_.empty()) return true;
  prepared_ = Message::make(message.size());
  if (!prepared_) return failed(kNoMemory);
  put_around(message, prepared_->bytes().data());
  return true;
}

bool DdsRuntime::DdsPublisher::publish(const Outgoing& message) noexcept {
  if (!takers_.empty()) return publish_locally(message);
  if (lends()) return publish_loaned(message);
  before_write(message.address(), message.source_timestamp_ns);
  return write(Parts(message).span());
}

// Traces the layers above the middleware, in the order in which each passes the message on. The source time
// stamp is traced before the write that uses it, as in rmw.
void DdsRuntime::DdsPublisher::tell_write(const void* message, std::int64_t source_timestamp_ns) noexcept {
  trace_->rclcpp_publish(message);
  trace_->rcl_publish(this, message);
  std::int64_t stamp_ns = source_timestamp_ns;
  if (can_stamp_) {
    if (stamp_ns == 0) stamp_ns = read_clock(CLOCK_REALTIME);
    writer_->stamp_next(stamp_ns);
  }
  trace_->rmw_publish(rmw_handle(), message, stamp_ns);
}

bool DdsRuntime::DdsPublisher::publish_locally(const Outgoing& outgoing) noexcept {
  MessageRef message = std::exchange(prepared_, {});
  if (!message || message->bytes().size() != outgoing.size()) {
    message = Message::make(outgoing.size());
    if (!message) return failed(kNoMemory);
    put_around(outgoing, message->bytes().data());
  }
  put_stamp(outgoing, message->bytes().data());
  MessageRef kept;
  if (!hand_over(std::move(message), outgoing.source_timestamp_ns, kept)) return false;
  if (!kept) return true;
  const perflab_bytes whole{kept->bytes().data(), kept->bytes().size()};
  // A failure is reported, and readers behind the middleware miss the message; it counts as sent, because
  // others have received it.
  static_cast<void>(write({&whole, 1}));
  return true;
}

bool DdsRuntime::DdsPublisher::hand_over(MessageRef message, std::int64_t source_timestamp_ns,
                                         MessageRef& kept) noexcept {
  if (source_timestamp_ns != 0) message->source_timestamp_ns = source_timestamp_ns;
  message->sequence = ++local_sequence_;
  const bool others = writer_->matched_readers() > 0;
  // This address identifies the message in all layers of the trace, even if the middleware gets a copy.
  const void* const address = message.get();
  if (trace_ != nullptr) [[unlikely]]
    trace_->rclcpp_intra_publish(this, address);
  if (!give(std::move(message), others, kept)) return false;
  if (others) before_write(address, source_timestamp_ns);
  return true;
}

void* DdsRuntime::DdsPublisher::prepare_object(message::Object& own) noexcept {
  if (lends() && !borrow()) return nullptr;
  if (!gives_away() || takers_.empty()) return own.data();
  prepared_ = Message::make(own.type(), own.data());
  if (prepared_) return prepared_->object()->data();
  failed(kNoMemory);
  return nullptr;
}

bool DdsRuntime::DdsPublisher::publish_object(const message::Codec& codec, void* object,
                                              std::int64_t source_timestamp_ns,
                                              Nanoseconds& serialize_ns) noexcept {
  serialize_ns = kUnknownTime;
  if (!takers_.empty()) return publish_object_locally(codec, object, source_timestamp_ns, serialize_ns);
  if (lends() && !borrow()) return false;
  before_write(lends() ? loan_ : object, source_timestamp_ns);
  if (lends()) return publish_object_loaned(codec, object, serialize_ns);
  const auto bytes = encode(codec, object, serialize_ns);
  const perflab_bytes whole{bytes.data(), bytes.size()};
  return !bytes.empty() && write({&whole, 1});
}

// Within the process the struct itself is passed on, as in rclcpp; only messages that leave the process are
// encoded.
bool DdsRuntime::DdsPublisher::publish_object_locally(const message::Codec& codec, void* object,
                                                      std::int64_t source_timestamp_ns,
                                                      Nanoseconds& serialize_ns) noexcept {
  MessageRef message = std::exchange(prepared_, {});
  if (!message) message = Message::make(codec.type(), object);
  if (!message) return failed(kNoMemory);
  MessageRef kept;
  if (!hand_over(std::move(message), source_timestamp_ns, kept)) return false;
  if (!kept) return true;
  const auto bytes = encode(codec, kept->object()->data(), serialize_ns);
  const perflab_bytes whole{bytes.data(), bytes.size()};
  if (!bytes.empty()) static_cast<void>(write({&whole, 1}));  // as in publish_locally()
  return true;
}

bool DdsRuntime::DdsPublisher::publish_object_loaned(const message::Codec& codec, const void* object,
                                                     Nanoseconds& serialize_ns) noexcept {
  const Nanoseconds begin = clock_.now();
  const std::size_t size =
      codec.encode(object, {static_cast<std::uint8_t*>(loan_), settings_.fixed_size});
  serialize_ns = clock_.now() - begin;
  if (size == 0) return failed("the message does not have the size of its loaned type");
  perflab_error error;
  if (writer_->write_loaned(std::exchange(loan_, nullptr), error) == PERFLAB_OK) [[likely]]
    return true;
  return failed(error.text);
}

std::span<const std::uint8_t> DdsRuntime::DdsPublisher::encode(const message::Codec& codec, const void* object,
                                                               Nanoseconds& serialize_ns) noexcept {
  try {
    const Nanoseconds begin = clock_.now();
    const std::size_t size = codec.encoded_size(object);
    if (encoded_.size() < size) encoded_.resize(size);
    codec.encode(object, encoded_);
    serialize_ns = clock_.now() - begin;
    return std::span(encoded_).first(size);
  } catch (const std::bad_alloc&) {
    failed(kNoMemory);
    return {};
  }
}

bool DdsRuntime::DdsPublisher::publish_related(std::span<const perflab_bytes> parts,
                                               const perflab_sample_identity* related,
                                               std::int64_t* sequence) noexcept {
  if (lends()) return failed("a publisher of loaned messages has no requests or replies");
  std::int64_t number = 0;
  // The middleware first: the sequence number that it assigns also applies within the process.
  if (takers_.empty() || writer_->matched_readers() > 0) {
    if (can_relate_) {
      perflab_error error;
      if (writer_->write_related(parts, related, &number, error) != PERFLAB_OK) return failed(error.text);
    } else if (related != nullptr) {
      return failed("this middleware cannot relate a reply to its request");
    } else if (!write(parts)) {
      return false;
    }
  }
  if (!takers_.empty()) {
    MessageRef message = Message::make(middleware::size_of(parts.data(), parts.size()));
    if (!message) return failed(kNoMemory);
    middleware::put_together(parts.data(), parts.size(), message->bytes().data());
    if (number == 0) number = local_sequence_ + 1;
    local_sequence_ = number;
    message->sequence = number;
    if (related != nullptr) message->related = *related;
    MessageRef kept;
    if (!give(std::move(message), false, kept)) return false;
  }
  if (sequence != nullptr) *sequence = number;
  return true;
}

Passing DdsRuntime::DdsPublisher::passing() noexcept {
  const std::size_t readers = writer_->matched_readers();
  const bool makes_own = takers_.empty() || gives_away();
  return {.intra_process = takers_.count(),
          .copies = (makes_own ? 0 : 1) + takers_.copies(readers > 0),
          .middleware = readers,
          .loaned = lends()};
}

bool DdsRuntime::DdsPublisher::borrow() noexcept {
  perflab_error error;
  if (loan_ != nullptr || writer_->loan(loan_, error) == PERFLAB_OK) return true;
  loan_ = nullptr;
  return failed(error.text);
}

bool DdsRuntime::DdsPublisher::prepare_loan(const Outgoing& message) noexcept {
  if (message.size() != settings_.fixed_size)
    return failed("the message does not have the size of its loaned type");
  if (!borrow()) return false;
  put_around(message, static_cast<std::uint8_t*>(loan_));
  return true;
}

bool DdsRuntime::DdsPublisher::publish_loaned(const Outgoing& message) noexcept {
  if (loan_ == nullptr && !prepare_loan(message)) return false;
  put_stamp(message, static_cast<std::uint8_t*>(loan_));
  before_write(loan_, message.source_timestamp_ns);
  perflab_error error;
  // Ends the loan, even on failure.
  if (writer_->write_loaned(std::exchange(loan_, nullptr), error) == PERFLAB_OK) [[likely]]
    return true;
  return failed(error.text);
}

bool DdsRuntime::DdsPublisher::give(MessageRef message, bool keep, MessageRef& kept) noexcept {
  message->writer = identity_;
  HandedOut result = hand_out(std::move(message), takers_, keep);
  if (!result.complete) return failed(kNoMemory);
  kept = std::move(result.kept);
  return true;
}

bool DdsRuntime::DdsPublisher::write(std::span<const perflab_bytes> parts) noexcept {
  perflab_error error;
  if (writer_->write(parts, error) == PERFLAB_OK) [[likely]]
    return true;
  return failed(error.text);
}

bool DdsRuntime::DdsPublisher::failed(const char* text) noexcept {
  sink_.on_write_failed(clock_.now(), text);
  return false;
}

}  // namespace perflab::runtime
