// Services on top of the publishers and subscriptions of any runtime, following ROS 2: a request topic, a
// reply topic, and one of two ways to relate a reply to its request.
//
// rmw_cyclonedds inserts 16 bytes between encapsulation and body of each message, {uint64 client, int64
// request number}, which the server sends back. rmw_fastrtps sends plain bodies and uses RTPS's
// related_sample_identity: the request carries the identity of the client's reply reader, the reply carries
// that identity and the request's sequence number. The two are incompatible.
//
// Endpoints have USER_DATA like those of rmw_cyclonedds, "clientid=<hex>;" and "serviceid=<hex>;", by which
// its clients and servers detect whether both topics of a peer exist.
//
// A server's handlers answer in the thread of the request, or later from any thread: replies are sent one at
// a time (turns.h).
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

// Identifies a client or server within the domain.
using ServiceId = std::array<std::uint8_t, 16>;

// The 16 bytes inserted by rmw_cyclonedds.
struct RequestId {
  std::uint64_t client = 0;
  std::int64_t number = 0;
};
inline constexpr std::size_t kRequestIdBytes = 16;

class ServiceClient final : public Client, private MessageHandler {
 public:
  // Creates both endpoints. Throws Error. `handler` gets only replies to this client's requests; `related`
  // identifies the request.
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
  RequestId next_{.client = 0, .number = 1};  // for kRmwFastrtps only the number, which the middleware
                                              // assigns
  std::vector<std::uint8_t> scratch_;
  std::vector<std::uint8_t> encoded_;  // the last request passed as a struct
  Publisher* requests_;
  Subscription* replies_;
};

class ServiceServer final : public Server, private MessageHandler {
 public:
  // Creates both endpoints. Throws Error.
  ServiceServer(Runtime& runtime, std::size_t executor, const ServiceSettings& settings,
                ServiceFraming framing, const ServiceId& id, RequestHandler& handler);

  [[nodiscard]] std::size_t matched() noexcept override;
  // Called when the runtime stops: late replies are no longer sent, and missing ones not reported.
  void close() noexcept { closed_->store(true, std::memory_order_release); }

 private:
  // The addressee of a reply, identified by one of the two, depending on the framing.
  struct Asker {
    RequestId id;
    perflab_sample_identity related;
  };
  // Serializes sending by several threads.
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
  const std::shared_ptr<std::atomic<bool>> closed_ = std::make_shared<std::atomic<bool>>(false);  // replies
                                                                                                  // may
                                                                                                  // outlive
                                                                                                  // the
                                                                                                  // server
  Turns<Kept> turns_;
  std::vector<std::uint8_t> scratch_;
  Publisher* replies_;
  Subscription* requests_;
};

// "a0.1.ff": bytes in hexadecimal, without leading zeros, joined by dots.
[[nodiscard]] std::string to_text(const ServiceId& id);

}  // namespace perflab::runtime
