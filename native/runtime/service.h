// Services on top of the publishers and subscriptions of any runtime, after the manner of ROS 2: a request
// topic, a reply topic, and one of two ways to tie a reply to its request.
//
// rmw_cyclonedds puts 16 bytes between the encapsulation and the body of each message, {uint64 client, int64
// request number}, which the server sends back. rmw_fastrtps sends plain bodies and uses RTPS's
// related_sample_identity: the request carries the identity of the client's reply reader, the reply that
// identity and the number of the request. The two do not understand each other.
//
// The endpoints carry USER_DATA as rmw_cyclonedds has it, "clientid=<hex>;" and "serviceid=<hex>;", by which
// its clients and servers find out whether both topics of a peer are there.
//
// A server's handlers answer in the thread of the request, or later from any thread: replies are sent one at a time
// (turns.h).
//
// Handlers get plain CDR. Framed bodies are moved next to their encapsulation, which costs one copy of the
// message.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "runtime/runtime.h"
#include "runtime/turns.h"

namespace perflab::runtime {

// Tells one client or server from all others of the domain.
using ServiceId = std::array<std::uint8_t, 16>;

// The 16 bytes of rmw_cyclonedds.
struct RequestId {
  std::uint64_t client = 0;
  std::int64_t number = 0;
};
inline constexpr std::size_t kRequestIdBytes = 16;

class ServiceClient final : public Client, private MessageHandler {
 public:
  // Creates both endpoints. Throws Error. `handler` gets the replies to this client's requests and no others;
  // `related` says to which request.
  ServiceClient(Runtime& runtime, std::size_t executor, const ServiceSettings& settings,
                ServiceFraming framing, const ServiceId& id, MessageHandler& handler);

  bool request(const Outgoing& message) noexcept override;
  bool request_object(const message::Codec& codec, const void* object, Nanoseconds& serialize_ns) noexcept override;
  [[nodiscard]] std::int64_t next_number() const noexcept override { return next_.number; }
  [[nodiscard]] perflab_identity identity() const noexcept override { return requests_->identity(); }
  [[nodiscard]] std::size_t matched() noexcept override;

 private:
  void on_message(const Delivery& delivery) noexcept override;
  [[nodiscard]] perflab_sample_identity call_of(const Delivery& delivery) const noexcept override;
  [[nodiscard]] perflab_identity traced_as() const noexcept;

  const ServiceFraming framing_;
  const measure::Clock& clock_;
  MessageHandler& handler_;
  RequestId next_{.client = 0, .number = 1};  // of kRmwFastrtps only the number, which the middleware gives
  std::vector<std::uint8_t> scratch_;
  std::vector<std::uint8_t> encoded_;  // the last request that was a struct
  Publisher* requests_;
  Subscription* replies_;
};

class ServiceServer final : public Server, private MessageHandler {
 public:
  // Creates both endpoints. Throws Error.
  ServiceServer(Runtime& runtime, std::size_t executor, const ServiceSettings& settings,
                ServiceFraming framing, const ServiceId& id, RequestHandler& handler);

  [[nodiscard]] std::size_t matched() noexcept override;
  // The runtime stops: late replies are no longer sent, nor missed.
  void close() noexcept { closed_->store(true, std::memory_order_release); }

 private:
  // Whom a reply goes to: by one of the two, as the framing says.
  struct Asker {
    RequestId id;
    perflab_sample_identity related;
  };
  // Of several threads, one sends.
  struct Kept {
    Asker asker;
    std::vector<std::uint8_t> bytes;
  };
  class PendingReply;
  class KeptReply;
  void on_message(const Delivery& delivery) noexcept override;
  [[nodiscard]] perflab_sample_identity call_of(const Delivery& delivery) const noexcept override;
  bool send(const Asker& asker, const Outgoing& message) noexcept;
  bool send_now(const Asker& asker, const Outgoing& message) noexcept;

  const ServiceFraming framing_;
  const measure::Clock& clock_;
  RequestHandler& handler_;
  const std::shared_ptr<std::atomic<bool>> closed_ = std::make_shared<std::atomic<bool>>(false);  // replies may live longer
  Turns<Kept> turns_;
  std::vector<std::uint8_t> scratch_;
  Publisher* replies_;
  Subscription* requests_;
};

// "a0.1.ff": bytes in hexadecimal, without leading zeros, joined by dots.
[[nodiscard]] std::string to_text(const ServiceId& id);

}  // namespace perflab::runtime
